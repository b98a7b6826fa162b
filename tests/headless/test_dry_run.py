"""--dry-run prints the request and sends none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from swecli.core.tools.registry import LEAN_TOOLS
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Ended, Program

pytestmark = pytest.mark.e2e

FORBID = """
import sys

def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto"):
        sys.stderr.write("SOCKET " + event + "\\n")
        raise PermissionError("no network in this test")

sys.addaudithook(hook)
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program where every use of the network fails and is told."""
    hooks, project = tmp_path / "hooks", tmp_path / "project"
    hooks.mkdir()
    project.mkdir()
    (hooks / "sitecustomize.py").write_text(FORBID)
    variables = {"PYTHONPATH": str(hooks), "OPENAI_API_KEY": "sk-verysecret123456", "ANTHROPIC_API_KEY": "key-98765432"}
    return Program(project, tmp_path / "home", variables)


def dry(program: Program, *arguments: str) -> Ended:
    ended = program.run("-p", "Say hello.", "--dry-run", *arguments)
    assert "SOCKET" not in ended.stderr
    return ended


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("openai/gpt-5", "https://api.openai.com/v1/responses"),
        ("anthropic/claude-sonnet-5", "https://api.anthropic.com/v1/messages"),
    ],
)
def test_the_request_is_printed_and_nothing_else_happens(program: Program, model: str, url: str) -> None:
    ended = dry(program, "-m", model)
    assert ended.code == 0, ended.stderr
    request = json.loads(ended.stdout)
    assert (request["method"], request["url"]) == ("POST", url)
    assert request["body"]["model"] == model.partition("/")[2]
    assert "Say hello." in json.dumps(request["body"])
    assert request["body"]["tools"]
    assert "verysecret" not in ended.stdout
    assert "98765432" not in ended.stdout
    assert not list(program.home.rglob("*.db"))


def test_what_the_flags_say_is_in_it(program: Program) -> None:
    ended = dry(program, "-m", "openai/gpt-5", "--effort", "low", "--append-system-prompt", "Be brief like a poet.")
    body = json.loads(ended.stdout)["body"]
    assert body["reasoning"]["effort"] == "low"
    assert "Be brief like a poet." in json.dumps(body)


def test_what_makes_no_request_is_an_error(program: Program) -> None:
    command = program.run("-p", "/context", "--dry-run")
    assert command.code == 2
    assert "slash commands send none" in command.stderr
    nothing = program.run("-p", "--dry-run")
    assert nothing.code == 42
    both = program.run("--dry-run", "--input-format", "stream-json")
    assert both.code == 2
    assert "--dry-run" in both.stderr
    unknown = program.run("-p", "Say hello.", "--dry-run", "-m", "nobody/model")
    assert unknown.code == 52
    keyless = dry(program, "-m", "groq/model")
    assert keyless.code == 52
    assert "GROQ_API_KEY" in keyless.stderr
    assert "nobody" in unknown.stderr
    assert unknown.stdout == ""


@pytest.mark.parametrize("prefix", ["vllm/", ""])
def test_it_is_the_request_of_a_real_run(tmp_path: Path, prefix: str) -> None:
    """The window of a local server decides on prompt and tools."""
    project = tmp_path / "project"
    project.mkdir()
    script = parse_script('[[step]]\ntext = "Hello."')
    with LoopbackServer(script, manners=Manners(window=8_192)) as server:
        program, name = Program(project, tmp_path / "home", {"VLLM_BASE_URL": server.url}), f"{prefix}{script.name}"
        shown = json.loads(program.run("-p", "Say hello.", "--dry-run", "-m", name).stdout)
        assert not server.asked
        assert program.run("-p", "Say hello.", "-m", name).code == 0
        sent = server.asked[0].body
    assert shown["body"] == sent
    assert len(sent["tools"]) == len(LEAN_TOOLS)
