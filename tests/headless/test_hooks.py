"""Hooks in the real program: the example of the documentation as it stands there, and consent to it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import ROOT, Program

pytestmark = pytest.mark.e2e

SCRIPT = r"""
[[step]]
call = [{ tool = "run_command", arguments = { command = "rm kept.txt" } }]
[[step]]
call = [{ tool = "write_file", arguments = { path = "new.txt", content = "one  \ntwo\t\n" } }]
[[step]]
text = "done"
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project with the files of the example in docs/hooks.md."""
    folder = Path(os.path.realpath(tmp_path)) / "work"
    (folder / ".claude" / "hooks").mkdir(parents=True)
    text = (ROOT / "docs" / "hooks.md").read_text()
    for name, content in re.findall(r"^`(\.claude/\S+)`:\n\n```\w+\n(.*?)```$", text, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(content)
    (folder / ".claude" / "hooks" / "no-rm.py").chmod(0o755)
    settings = json.loads((folder / ".claude" / "settings.json").read_text())
    # jq is not on every machine; what the command does is the same
    edited = settings["hooks"]["PostToolUse"][0]["hooks"][0]
    assert edited["command"].startswith("jq -r .tool_input.file_path | ")
    path = "import json, sys; print(json.load(sys.stdin)['tool_input']['file_path'])"
    edited["command"] = edited["command"].replace("jq -r .tool_input.file_path", f'{sys.executable} -c "{path}"')
    (folder / ".claude" / "settings.json").write_text(json.dumps(settings))
    (folder / "kept.txt").write_text("kept\n")
    return folder


def go(work: Path, *options: str, expected: int = 0) -> str:
    """Run the script; returns what is on stderr."""
    with LoopbackServer(parse_script(SCRIPT)) as provider:
        program = Program(work, work.parent / "home", provider.environment())
        ended = program.run("-p", "go", "-m", "openai/m", "--yolo", *options)
        assert ended.code == expected, ended.stderr
        return ended.stderr


def permissions(work: Path, *arguments: str) -> str:
    ended = Program(work, work.parent / "home").run("permissions", *arguments)
    assert ended.code == 0, ended.stderr
    return ended.stdout


def test_the_documented_example_runs_and_undo_takes_its_edit_back(work: Path) -> None:
    said = go(work, "--trust")
    assert "--trust allows 2 hooks of this project to run" in said
    assert said.count("rm is not allowed here.") == 1
    assert (work / "kept.txt").exists()
    assert (work / "new.txt").read_text() == "one\ntwo\n"
    program = Program(work, work.parent / "home")
    assert program.run("-p", "-c", "/undo turn").code == 0
    assert not (work / "new.txt").exists()


def test_consent_is_bound_to_what_the_hooks_are(work: Path) -> None:
    (work / "kept.txt").write_text("kept\n")
    go(work)  # nothing of an untrusted folder runs
    assert not (work / "kept.txt").exists()
    assert (work / "new.txt").read_text() == "one  \ntwo\t\n"
    (work / "kept.txt").write_text("kept\n")
    assert "no-rm.py" in permissions(work, "trust")
    (work / "new.txt").unlink()
    go(work)
    assert (work / "kept.txt").exists()
    script = work / ".claude" / "hooks" / "no-rm.py"
    script.write_text("#!/bin/sh\ntouch PWNED\n")
    said = go(work, expected=62)
    assert "1 hook waits for your consent and will not run (PreToolUse)" in said
    assert "PreToolUse hook no-rm.py failed: not run: you have not allowed its current version" in said
    refused = next(line for line in said.splitlines() if line.startswith("not allowed: run_command"))
    assert "The PreToolUse hook no-rm.py did not judge this call" in refused
    assert refused.endswith("; no user is present to approve it)")
    assert "--allowed-tools" not in said, "no rule could have allowed it"
    assert (work / "kept.txt").exists()  # nobody could be asked in its place
    assert not (work / "PWNED").exists()
    assert "no-rm.py" in permissions(work, "accept")
    permissions(work, "accept", "hooks.PreToolUse")
    go(work)
    assert (work / "PWNED").exists()


def test_own_settings_add_to_the_projects_and_safe_mode_runs_none(work: Path) -> None:
    home = work.parent / "home"
    home.mkdir()
    own = '[[hooks.UserPromptSubmit]]\ncommand = "cat > $SWECLI_PROJECT_DIR/prompt.json"\n'
    (home / "config.toml").write_text(own)
    go(work, "--trust")
    assert json.loads((work / "prompt.json").read_text())["prompt"] == "go"
    assert (work / "kept.txt").exists()
    (work / "prompt.json").unlink()
    (work / "new.txt").unlink()
    go(work, "--trust", "--safe-mode")
    assert not (work / "prompt.json").exists()
    assert not (work / "kept.txt").exists()
