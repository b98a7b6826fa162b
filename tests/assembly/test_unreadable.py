"""Folders that a start looks into and may not: those of another user, of a volume, or of a run as root."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from swecli.app import open_session
from swecli.core.config.trust import RULE_FOLDERS
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import TurnEnded
from swecli.launch import LaunchOptions

SCRIPT = """
[[step]]
call = [{ tool = "search", arguments = { pattern = "hello" } }, { tool = "list_files", arguments = {} }]
[[step]]
text = "The answer."
"""
HIDDEN = (
    ".claude",
    ".cursor",
    ".github",
    ".windsurf",
    ".clinerules",
    ".agents",
    ".swecli/memory",
    ".swecli/skills",
    "src",
)


def hide(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have the system deny every look into the folder, as it would to another user than root."""
    inside = f"{folder}{os.sep}"

    def denied(name: str, at: str = "") -> None:
        real: Callable[..., Any] = getattr(os, name)

        def look(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
            if text.startswith(inside) or text == at:
                raise PermissionError(errno.EACCES, "Permission denied", text)
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, name, look)

    for name in ("stat", "lstat", "open", "mkdir", "readlink"):
        denied(name)
    for name in ("scandir", "listdir"):
        denied(name, f"{folder}")


@pytest.mark.parametrize("trust", ["session", None])
@pytest.mark.parametrize("name", HIDDEN)
async def test_a_folder_that_may_not_be_looked_into_ends_no_run(
    name: str, trust: Literal["session"] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, script = tmp_path / "work", tmp_path / "model.toml"
    script.write_text(SCRIPT, encoding="utf-8")
    (work / name).mkdir(parents=True)
    (work / "a.txt").write_text("hello\n", encoding="utf-8")
    hide(monkeypatch, work / name)
    session = await open_session(LaunchOptions(cwd=work, script=script, headless=True, trust=trust))
    events = session.subscribe()
    session.send(Submit("Look."))
    try:
        async for event in events:
            if isinstance(event.body, TurnEnded):
                assert (event.body.outcome, event.body.reason) == ("done", "")
                break
    finally:
        await session.close()


def test_every_folder_of_rules_is_hidden_once() -> None:
    assert {folder.partition("/")[0] for folder in RULE_FOLDERS} <= set(HIDDEN)
