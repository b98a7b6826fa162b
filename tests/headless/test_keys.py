"""Keys on the command line: stored, used, forgotten, and never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program

pytestmark = pytest.mark.e2e

CANARY = "sk-canary-4711-0815-abcdef"


def program(tmp_path: Path, **variables: str) -> Program:
    (tmp_path / "project").mkdir(exist_ok=True)
    null = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    return Program(tmp_path / "project", tmp_path / "home", {**null, **variables})


def test_a_key_is_stored_used_for_its_host_and_forgotten(tmp_path: Path) -> None:
    hello = parse_script('[[step]]\ntext = "Hello there."')
    with LoopbackServer(hello, manners=Manners(key=CANARY)) as server:
        here = program(tmp_path, ANTHROPIC_BASE_URL=server.url)
        stored = here.run("login", "anthropic", stdin=f"{CANARY}\n")
        assert (stored.code, CANARY in stored.stdout + stored.stderr) == (0, False)
        assert server.url in stored.stdout
        ended = here.run("-p", "hi", "-m", "anthropic/m")
        assert (ended.code, ended.stdout) == (0, "Hello there.\n")
    elsewhere = program(tmp_path, ANTHROPIC_BASE_URL="https://other.example")
    refused = elsewhere.run("-p", "hi", "-m", "anthropic/m")
    assert refused.code == 52
    assert "There is no key for anthropic" in refused.stderr
    doctor = here.run("doctor", "-m", "anthropic/m")
    assert doctor.code == 0
    assert "stored" in doctor.stdout
    assert CANARY not in doctor.stdout + doctor.stderr
    listed = here.run("logout")
    assert "anthropic" in listed.stdout
    assert listed.stdout.endswith("\nswecli logout PROVIDER deletes its keys.\n")
    assert CANARY not in listed.stdout
    assert here.run("logout", "anthropic").code == 0
    assert "No keys are stored" in here.run("-p", "/logout", "-m", "vllm/m").stdout
    assert CANARY not in (tmp_path / "home" / "keys.json").read_text()


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for arguments, words in (
        (("login", "nobody"), "Provider 'nobody' is unknown"),
        (("login", "openai"), "A key is one word"),
        (("login",), "PROVIDER"),
    ):
        ended = program(tmp_path).run(*arguments)
        assert ended.code in (2, 42)
        assert words in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
