"""Broken files of settings, servers, hooks and plugins are named once wherever somebody looks, and the rest counts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

pytestmark = pytest.mark.e2e

HOOK = {"type": "command", "command": "true"}
BROKEN = {
    ".mcp.json": '{"mcpServers": {\n"a": {"command": 3},\n"b": {"command": "x"}}}',
    ".claude/settings.json": json.dumps({"hooks": {"Stop": [3, {"hooks": [HOOK]}]}}, indent=0),
    ".claude/settings.local.json": '{\n"hooks": {},\n}',
    ".aider.conf.yml": "\nread: {a: b}\n",
    ".cursor/rules/x.mdc": "---\nglobs: x\nno end",
    ".claude/agents/x.md": "---\nname: x\ndescription: d\ntools: [a\n---\nx",
    ".claude/commands/x.md": "---\ndescription: d\nno end",
    ".gemini/commands/y.toml": "prompt = ",
    ".claude/skills/z/SKILL.md": "---\nname: z\ncolor: red\n---\nno problem worth a word at each start",
}
TOLD = {
    ".mcp.json": ".mcp.json:2: ignored server 'a': command must be a string.",
    ".claude/settings.json": "settings.json:4: an entry of hooks.Stop is not an object; it is ignored.",
    ".claude/settings.local.json": "settings.local.json:",
    ".aider.conf.yml": ".aider.conf.yml:2: read is not a list of files; it is ignored.",
    ".cursor/rules/x.mdc": ".cursor/rules/x.mdc:1: the front matter that starts here has no end",
    ".claude/agents/x.md": ".claude/agents/x.md:4: the list has no closing ].",
    ".claude/commands/x.md": ".claude/commands/x.md:1: the front matter that starts here has no end",
    ".gemini/commands/y.toml": ".gemini/commands/y.toml: is not valid TOML",
    "AGENTS.md": "AGENTS.md is not UTF-8; unreadable bytes are shown as \ufffd.",
    "mcp.json": "mcp.json: is UTF-16 text; save it as UTF-8; its servers are ignored.",
    "plugins": "installed_plugins.json:1: is not valid JSON (Expecting value); the plugins in it are ignored.",
    "grants": "grants.json was damaged; it was kept as grants.json.corrupt-",
}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    folder, home, user = tmp_path / "work", tmp_path / "home", tmp_path / "user"
    for name, text in BROKEN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "AGENTS.md").write_bytes(b"caf\xe9")
    home.mkdir()
    (home / "mcp.json").write_bytes('{"mcpServers": {}}'.encode("utf-16"))
    (home / ".claude/plugins").mkdir(parents=True)
    (home / ".claude/plugins/installed_plugins.json").write_text("{")
    (home / ".claude/plugins/installed_plugins.json").write_text('{"plugins": }')
    made = Program(folder, home, {"HOME": str(user)})
    assert made.run("permissions", "trust").code == 0
    return made


def damage_grants(program: Program) -> None:
    (folder,) = (program.home / "data" / "workspaces").iterdir()
    (folder / "grants.json").write_text("{")


def test_a_headless_run_names_each_once(program: Program) -> None:
    with LoopbackServer(parse_script('[[step]]\ntext = "done"\n' * 2)) as server:
        address = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        known = Program(program.folder, program.home, {**program.variables, **address})
        assert known.run("-p", "hi", "-m", "openai/m").code == 0
        damage_grants(known)
        ended = known.run("-p", "hi", "-m", "openai/m")
    assert (ended.code, ended.stdout) == (0, "done\n")
    for text in TOLD.values():
        assert ended.stderr.count(text) == 1, ended.stderr
    assert "SKILL.md" not in ended.stderr
    assert "MCP server b" in ended.stderr  # what is whole counts: it waits for approval


def test_the_list_of_servers_names_theirs(program: Program) -> None:
    listed = program.run("mcp", "list")
    assert listed.stdout.startswith("b  needs approval  x")
    assert TOLD[".mcp.json"] in listed.stderr
    assert TOLD["mcp.json"] in listed.stderr


def test_doctor_names_all(program: Program) -> None:
    said = program.run("doctor").stdout
    for name, text in TOLD.items():
        assert (text in said) == (name != "grants"), name


@pytest.mark.parametrize("name", [".mcp.json", ".claude/settings.json"])
@pytest.mark.parametrize("form", ["folder", "link", "pipe", "empty"])
def test_what_is_no_such_file_is_named_too(program: Program, name: str, form: str) -> None:
    file = program.folder / name
    file.unlink()
    match form:
        case "folder":
            file.mkdir()
        case "link":
            file.symlink_to("/etc/hostname")
        case "pipe":
            os.mkfifo(file)
        case _:
            file.touch()
    said = program.run("doctor").stdout
    (line,) = [line for line in said.splitlines() if line.startswith(str(file))]
    assert line.endswith(" ignored.") or "ignored: it is a link" in line
