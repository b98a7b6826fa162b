"""Skills and commands of a folder in the whole program: trusted, called, listed, and told to a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program

pytestmark = pytest.mark.e2e

CALLS_SKILL = '[[step]]\ncall = [{ tool = "skill", arguments = { name = "pdf" } }]\n[[step]]\ntext = "Done."'


def test_a_folder_s_skills_and_commands(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    commands, skill = folder / ".claude/commands", folder / ".claude/skills/pdf"
    commands.mkdir(parents=True)
    skill.mkdir(parents=True)
    (commands / "hello.md").write_text("---\ndescription: greets\n---\nHello $1, we are in !`pwd`")
    (skill / "SKILL.md").write_text("---\nname: pdf\ndescription: Fill forms\n---\nUse fill.py")
    with LoopbackServer(parse_script(CALLS_SKILL), manners=Manners(window=32_000)) as provider:
        swecli = Program(folder, tmp_path / "home", provider.environment())
        model = ("-m", "openai/m")

        unknown = swecli.run("-p", "/hello world", *model)
        assert unknown.code == 42
        assert "Unknown command /hello" in unknown.stderr
        assert swecli.run("permissions", "trust").code == 0

        called = swecli.run("-p", "/hello world", *model, "--output-format", "stream-json")
        assert called.code == 0, called.stderr
        events = [json.loads(line) for line in called.stdout.splitlines()]
        started = next(event["body"] for event in events if event.get("body", {}).get("type") == "session_started")
        assert {one["name"]: one["description"] for one in started["commands"]} == {
            "hello": "greets",
            "pdf": "Fill forms",
        }
        assert events[-1]["text"] == "Done."
        sent = json.dumps(provider.requests[-1].body)
        assert f"Hello world, we are in {folder}" in sent
        assert "- pdf: Fill forms" in sent
        assert "Use fill.py" in sent

        (commands / "hello.md").write_text("changed by a pull")
        changed = swecli.run("-p", "/hello world", *model)
        assert changed.code == 1
        assert "/commands approve hello" in changed.stdout
        assert "Fill forms" in swecli.run("-p", "/skills").stdout
