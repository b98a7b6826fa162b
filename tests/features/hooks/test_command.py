"""/hooks lists, shows, switches and allows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swecli.block_text import block_lines
from swecli.core.engine.session import Session
from swecli.core.hooks.hook import Hook
from swecli.core.hooks.runner import HookPlace, Hooks
from swecli.core.permissions.workspace_scripts import workspace_scripts
from swecli.core.protocol.events import HookRan
from swecli.features.hooks.command import HOOKS
from tests.core.engine.support import bench

ANSWER = "[[step]]\ntext = 'hello'\n"


def made(folder: Path) -> Hooks:
    hooks = (
        Hook("Stop", "echo secret-output; exit 3", origin="/w/config.toml:3"),
        Hook("Stop", "./new.sh", source="project", waiting="you have not allowed its current version"),
    )
    return Hooks(hooks, HookPlace(folder, {"PATH": os.environ.get("PATH", os.defpath)}))


async def shown(session: Session, arguments: str = "") -> str:
    result = await HOOKS.run(session, arguments)
    return "\n".join(line for block in result.blocks for line in block_lines(block))


async def test_without_hooks_it_says_how_to_get_some(tmp_path: Path) -> None:
    async with bench(ANSWER, tmp_path) as it:
        assert "[[hooks.PreToolUse]]" in await shown(it.session)


async def test_it_lists_the_last_runs_and_shows_one(tmp_path: Path) -> None:
    async with bench(ANSWER, tmp_path, hooks=made(tmp_path)) as it:
        assert "not run yet" in await shown(it.session)
        await it.say("go")
        listed = await shown(it.session)
        assert "exit 3" in listed
        assert "1 of 1 failed" in listed
        assert "/hooks allow 2" in listed
        one = await shown(it.session, "1")
        assert "secret-output" in one
        assert "/w/config.toml:3" in one


async def test_it_switches_hooks_for_the_session(tmp_path: Path) -> None:
    async with bench(ANSWER * 2, tmp_path, hooks=made(tmp_path)) as it:
        assert "Hook 1 off" in await shown(it.session, "off 1")
        await it.say("go")
        assert it.bodies(HookRan) == []
        assert "All hooks on" in await shown(it.session, "on all")
        await it.say("go")
        assert [body.exit_status for body in it.bodies(HookRan)] == [3]


async def test_allowing_lets_one_run(tmp_path: Path) -> None:
    (tmp_path / "new.sh").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "new.sh").chmod(0o755)
    allowed: dict[str, Any] = {
        "allow_hook": lambda hook: replace(hook, waiting="", scripts=workspace_scripts(hook.command, tmp_path))
    }
    async with bench(ANSWER, tmp_path, hooks=made(tmp_path), **allowed) as it:
        assert "./new.sh" in await shown(it.session, "allow 2")
        await it.say("go")
        assert [body.exit_status for body in it.bodies(HookRan)] == [3, 0]


async def test_what_it_does_not_know_is_an_error_with_its_use(tmp_path: Path) -> None:
    async with bench(ANSWER, tmp_path, hooks=made(tmp_path)) as it:
        for words in ("3", "off", "off 9", "burn 1", "1 2 3"):
            assert "Use /hooks" in await shown(it.session, words)
