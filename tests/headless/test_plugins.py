"""`swecli plugin`: a plugin in the whole program, from being shown to being gone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.core.plugins.support import make_plugin
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

pytestmark = pytest.mark.e2e

SCRIPT = """
[[step]]
call = [{ tool = "write_file", arguments = { path = "new.txt", content = "x" } }]
[[step]]
text = "done"
"""
HOOKS = {
    "description": "for tests",
    "hooks": {
        "PreToolUse": [
            {"matcher": "Write", "hooks": [{"type": "command", "command": '"${CLAUDE_PLUGIN_ROOT}"/no.sh'}]}
        ],
        "PostToolUse": [{"hooks": [{"type": "command", "command": 'touch "$CLAUDE_PLUGIN_DATA"/after'}]}],
    },
}


def test_a_plugin_is_shown_added_used_and_removed_without_a_trace(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    home = tmp_path / "home"
    files = {
        "hooks/hooks.json": HOOKS,
        "no.sh": "#!/bin/sh\necho 'not here\x1b[2J' >&2\nexit 2\n",
        "commands/go.md": "---\ndescription: Go\n---\nGo to $1",
        ".mcp.json": {"near": {"command": "${CLAUDE_PLUGIN_ROOT}/server", "args": ["a\x1b[31m"]}},
    }
    plugin = make_plugin(tmp_path / "p", files)
    (plugin / "no.sh").chmod(0o755)
    with LoopbackServer(parse_script(SCRIPT * 3)) as provider:
        swecli = Program(folder, home, provider.environment())
        shown = swecli.run("plugin", "add", "../p")
        assert shown.code == 62
        assert "\x1b" not in shown.stdout
        assert 'hook at PreToolUse for Write: runs "${CLAUDE_PLUGIN_ROOT}"/no.sh' in shown.stdout
        assert "MCP server plugin_tools_near: starts" in shown.stdout
        assert "command /tools:go" in shown.stdout
        assert "No plugins." in swecli.run("plugin", "list").stdout
        assert swecli.run("plugin", "add", "../p", "--allow", "0" * 16).code == 62
        (allowed,) = re.findall(r"^Content: (\w+)$", shown.stdout, re.MULTILINE)
        assert swecli.run("plugin", "add", "../p", "--allow", allowed).code == 0

        ran = swecli.run("-p", "/tools:go home", "-m", "openai/m", "--yolo")
        assert ran.code == 0, ran.stderr
        assert not (folder / "new.txt").exists()
        bodies = json.dumps([request.body for request in provider.requests])
        assert "Go to home" in bodies
        assert "A PreToolUse hook of the user blocked this call; nothing was done. not here" in bodies
        safe = swecli.run("-p", "go", "-m", "openai/m", "--yolo", "--safe-mode")
        assert safe.code == 0, safe.stderr
        (folder / "new.txt").unlink()

        (plugin / "no.sh").write_text("#!/bin/sh\nexit 0\n")
        changed = swecli.run("plugin", "update")
        assert changed.code == 62
        assert "-exit 2\n+exit 0" in changed.stdout
        assert "up to date" not in changed.stdout
        (newer,) = re.findall(r"^Content: (\w+)$", changed.stdout, re.MULTILINE)
        assert swecli.run("plugin", "update", "tools", "--allow", newer).code == 0
        assert swecli.run("-p", "go", "-m", "openai/m", "--yolo").code == 0
        assert (folder / "new.txt").exists()
        assert (home / "data/plugins/data/tools/after").exists()

        (entry,) = map(json.loads, swecli.run("plugin", "list", "--json").stdout.splitlines())
        assert (entry["name"], entry["state"], entry["brings"]) == ("tools", "on", "1 command, 2 hooks, 1 MCP server")
        assert swecli.run("plugin", "remove", "tools").code == 0
        assert swecli.run("plugin", "remove", "tools").code == 42
        assert not list((home / "data/plugins").rglob("*.sh"))
        assert "Unknown command" in swecli.run("-p", "/tools:go home", "-m", "openai/m").stderr
