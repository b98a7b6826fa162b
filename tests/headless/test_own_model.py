"""A session that goes on does so with its own model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

pytestmark = pytest.mark.e2e

SCRIPT = 'name = "m"\n[[step]]\ntext = "One."\n[[step]]\ntext = "Two."\n[[step]]\ntext = "Three."\n'


def test_the_model_of_the_session_unless_another_one_is_named(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with LoopbackServer(parse_script(SCRIPT, python=sys.executable)) as server:
        variables = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "SWECLI_MODEL": "openai/usual"}
        program = Program(project, tmp_path / "home", variables)
        asked = ["-p", "-m", "openai/first"], ["-p", "-c"], ["-p", "-c", "-m", "openai/second"]
        for number, arguments in enumerate(asked):
            ended = program.run(*arguments, f"Message {number}.")
            assert ended.code == 0, ended.stderr
        assert [request.body["model"] for request in server.asked] == ["first", "first", "second"]
        shown = program.run("-p", "-c", "/status")
        assert "openai/second" in shown.stdout


def test_a_model_that_swecli_chose_is_named_on_standard_error(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    script = parse_script(SCRIPT.replace('"m"', '"grand-model-2"'), python=sys.executable)
    with LoopbackServer(script) as server:
        program = Program(project, tmp_path / "home", {"OPENAI_BASE_URL": f"{server.url}/v1"})
        chosen = program.run("-p", "Hello.", "-m", "grand")
        assert (chosen.code, chosen.stdout) == (0, "One.\n")
        assert "note: grand is openai/grand-model-2.\n" in chosen.stderr
        named = program.run("-p", "Hello.", "-m", "grand-model-2")
        assert (named.code, "note:" in named.stderr) == (0, False)


ELSEWHERE = "https://gateway.example.invalid/v1"
"""Nobody is there, and it is not nearby."""


def test_it_is_asked_where_it_was_asked_before(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with LoopbackServer(parse_script(SCRIPT, python=sys.executable)) as server:
        home, address = tmp_path / "home", f"{server.url}/v1"
        secret = Program(project, home, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": ""})
        begun = secret.run("-p", "One", "-m", "openai/x", "--base-url", address.replace("://", "://me:s3cret@"))
        assert begun.code == 0, begun.stderr
        assert secret.run("-p", "-c", "/status").stdout.count(address) == 1
        # Nothing of the environment leads there any more, and a flag for the same model changes nothing either.
        again = secret.run("-p", "-c", "-m", "openai/x", "Two")
        assert again.code == 0, again.stderr
        moved = Program(project, home, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": ELSEWHERE})
        third = moved.run("-p", "-c", "Three")
        assert f"Continuing with {address}, where this session started" in third.stderr
        assert f"--base-url {ELSEWHERE}" in third.stderr
        assert [request.body["model"] for request in server.asked] == ["x"] * 3
        away = moved.run("-p", "-c", "--base-url", "http://localhost:1/v1", "/status")
        assert "http://localhost:1/v1" in away.stdout
    assert b"s3cret" not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_model_of_ones_own_that_is_gone_is_replaced_by_none(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    settings = tmp_path / "mine.toml"
    with LoopbackServer(parse_script(SCRIPT, python=sys.executable)) as server:
        settings.write_text(f'[providers.mine]\nbase_url = "{server.url}/v1"\n')
        first = Program(project, home).run("-p", "Hello.", "-m", "mine/first", "--settings", str(settings))
        assert first.code == 0, first.stderr
        other = Program(project, home, {"OPENAI_BASE_URL": f"{server.url}/v1", "SWECLI_MODEL": "openai/other"})
        later = other.run("-p", "-c", "Hello again.")
        assert later.code == 52
        assert "This session's model mine/first can't be used. Provider 'mine' is unknown" in later.stderr
        assert len(server.asked) == 1
        chosen = other.run("-p", "-c", "Hello again.", "-m", "openai/other")
        assert chosen.code == 0, chosen.stderr
        assert len(server.asked) == 2
