"""What plugins bring in swecli's own form, and how hostile parts of them are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.assembly.plugin_listing import brought
from swecli.core.extensions.plugins import Plugin, read_plugin
from swecli.core.hooks.reading import hooks_of_plugin
from swecli.core.mcp.configured import servers_of_plugin
from swecli.features.language_servers.wiring import languages_of_plugin
from tests.core.plugins.support import make_plugin


def plugin_with(tmp_path: Path, files: dict[str, Any]) -> Plugin:
    root = make_plugin(tmp_path / "p", files)
    return replace(read_plugin(root), allowed=True, data=tmp_path / "kept")


def test_servers_have_names_and_variables_of_their_plugin(tmp_path: Path) -> None:
    servers = {
        "db": {"command": "${CLAUDE_PLUGIN_ROOT}/run", "env": {"PLACE": "${CLAUDE_PLUGIN_DATA}/x"}},
        "far": {"type": "http", "url": "https://h/mcp"},
        "asks": {"command": "x", "env": {"KEY": "${user_config.key}"}},
        "bad": {"command": "x\0y"},
    }
    plugin = plugin_with(tmp_path, {".mcp.json": servers})
    found, problems = servers_of_plugin(plugin)
    assert [one.name for one in found] == ["plugin_tools_db", "plugin_tools_far"]
    assert found[0].command == f"{plugin.root}/run"
    assert found[0].env["PLACE"] == f"{tmp_path}/kept/x"
    assert found[0].env["CLAUDE_PLUGIN_ROOT"] == str(plugin.root)
    assert [one.partition("server ")[2].partition(" of")[0] for one in problems] == ["'asks'", "'bad'"]


def test_language_servers_that_swecli_knows_are_left_to_it(tmp_path: Path) -> None:
    servers = {
        "mine": {
            "command": "my-lsp",
            "args": ["--stdio"],
            "extensionToLanguage": {".foo": "foo"},
            "settings": {"a.b": 1},
        },
        "go": {"command": "gopls", "extensionToLanguage": {".go": "go"}},
        "none": {"command": "x"},
    }
    found, problems = languages_of_plugin(plugin_with(tmp_path, {".lsp.json": servers}))
    (mine,) = found
    assert (mine.name, mine.command, mine.languages) == ("tools-mine", ("my-lsp", "--stdio"), {".foo": "foo"})
    assert mine.settings == {"a": {"b": 1}}
    assert "'none'" in problems[0]


@pytest.mark.parametrize("hooks", [5, [], {"Stop": "x"}, {"hooks": {"Nothing": []}}, ["./missing.json"], "../out.json"])
def test_hooks_in_a_wrong_form_are_named_and_nothing_runs(tmp_path: Path, hooks: object) -> None:
    plugin = plugin_with(tmp_path, {".claude-plugin/plugin.json": {"name": "tools", "hooks": hooks}})
    found, problems = hooks_of_plugin(plugin)
    assert found == ()
    assert bool(problems) == (hooks != [])


def test_the_list_names_everything_that_runs_or_leaves(tmp_path: Path) -> None:
    hooks = {
        "Stop": [{"hooks": [{"type": "http", "url": "https://h/x", "allowedEnvVars": ["TOKEN"]}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "prompt", "prompt": "Safe?"}]}],
    }
    files = {"hooks/hooks.json": {"hooks": hooks}, "commands/go.md": "Run !`date`", "output-styles/a.md": "x"}
    lines = list(brought(plugin_with(tmp_path, files)))
    assert lines == [
        "command /tools:go",
        "  /go runs `date` when you call it",
        "hook at Stop: sends the event to https://h/x",
        "  gets your TOKEN",
        "hook at PreToolUse for Bash: asks the model: Safe?",
        "without effect in swecli: output styles",
    ]
