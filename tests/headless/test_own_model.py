"""A session that goes on does so with its own model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swecli.core.llm.script_format import parse_script
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


def test_a_model_that_is_gone_is_told_and_replaced(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with LoopbackServer(parse_script(SCRIPT.rsplit("[[step]]", 2)[0], python=sys.executable)) as server:
        keys = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        first = Program(project, tmp_path / "home", keys).run("-p", "Hello.", "-m", "openai/first")
        assert first.code == 0, first.stderr
    later = Program(project, tmp_path / "home", {"ANTHROPIC_API_KEY": "k"}).run("-p", "-c", "/status")
    assert "This session's model openai/first can't be used" in later.stderr
    assert "anthropic/" in later.stdout
    none = Program(project, tmp_path / "home").run("-p", "-c", "Hello.")
    assert none.code == 52
    assert "can't be used: no key" in none.stderr
    again = Program(project, tmp_path / "home", {"ANTHROPIC_API_KEY": "k"}).run("-p", "-c", "/status")
    assert again.code == 0, again.stderr
