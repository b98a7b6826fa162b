"""What is asked of a person before the plain front-end reads the folder."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from swecli.assembly.services import launch_of
from swecli.assembly.startup import startup_of
from swecli.command_line.interactive import asked
from swecli.core.config.trust import read_trust
from swecli.core.mcp.configured import decisions_of, definitions_of
from swecli.features.mcp.wiring import build_servers
from swecli.launch import LaunchOptions

HOOK = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo \u001b[31mred"}]}]}}
SERVER = {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"TOKEN": "x"}}}}


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaunchOptions:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude" / "settings.json").write_text(json.dumps(HOOK))
    (folder / ".mcp.json").write_text(json.dumps(SERVER))
    return LaunchOptions(cwd=folder, plain=True)


def ask(options: LaunchOptions, typed: str) -> tuple[LaunchOptions, str]:
    target = io.StringIO()
    return asked(options, io.StringIO(typed), target), target.getvalue()


def verdict(options: LaunchOptions) -> tuple[str | None, bool]:
    """What was decided about the server, and whether the hook may run."""
    startup = startup_of(options, dict(os.environ))
    (server,) = definitions_of(startup, options.cwd)[0]
    return decisions_of(startup.paths, options.cwd).verdict(server), not startup.hooks.hooks[0].waiting


def test_one_answer_for_all_that_the_project_wants(options: LaunchOptions) -> None:
    options, shown = ask(options, "y\ny\n")
    assert "Do you trust" in shown
    assert "these 2 things" in shown
    assert "- start the MCP server time: uvx mcp-server-time  (with the variables TOKEN)" in shown
    assert "\u001b" not in shown
    assert verdict(options) == ("approved", True)
    assert ask(LaunchOptions(cwd=options.cwd, plain=True), "")[1] == ""


def test_one_by_one(options: LaunchOptions) -> None:
    options, _ = ask(options, "y\no\nn\ny\n")
    assert verdict(options) == ("approved", False)


def test_what_is_put_off_waits_and_is_asked_again(options: LaunchOptions) -> None:
    first, _ = ask(options, "y\n\n")
    assert verdict(first) == (None, False)
    assert first.servers_later == {"time"}
    servers = build_servers(launch_of(first, startup_of(first, dict(os.environ))))
    assert servers is not None
    assert servers._setup.later == {"time"}
    assert "these 2 things" in ask(options, "")[1]


@pytest.mark.parametrize(("typed", "state"), [("n\n", "declined"), ("", "unknown"), ("maybe\n", "unknown")])
def test_a_folder_that_is_not_trusted_is_not_asked_about_more(options: LaunchOptions, typed: str, state: str) -> None:
    after, shown = ask(options, typed)
    assert "things" not in shown
    assert after.trust == "declined"
    assert read_trust(Path(os.environ["SWECLI_HOME"]) / "data", options.cwd).state == state
