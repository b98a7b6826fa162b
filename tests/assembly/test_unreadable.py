"""Folders that a start looks into and may not: those of another user, of a volume, or of a run as root."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from swecli.app import open_session
from swecli.assembly.startup import read_startup
from swecli.core.config.trust import RULE_FOLDERS
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import TurnEnded
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from tests.support.closed import as_others_may

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


@pytest.mark.parametrize(("closed", "named"), [(".swecli", ".swecli"), (".swecli/config.toml", ".swecli/config.toml")])
def test_project_settings_that_may_not_be_read_end_the_start_with_a_way_out(
    closed: str, named: str, tmp_path: Path
) -> None:
    folder = tmp_path / ".swecli"
    folder.mkdir()
    (folder / "config.toml").write_text("")
    (tmp_path / closed).chmod(0)
    try:
        with as_others_may(), pytest.raises(StartError) as raised:
            read_startup(tmp_path, {"HOME": str(tmp_path / "home")}, {}, trust="session")
    finally:
        (tmp_path / closed).chmod(0o700)
    assert str(raised.value) == (
        f"{tmp_path / named}: cannot read it: Permission denied\n"
        "Settings may hold rules that deny access, so swecli does not start without them: make it readable, or use "
        "--safe-mode to ignore the project's settings."
    )
    assert raised.value.exit_code == ExitCode.CONFIG


def test_every_folder_of_rules_is_hidden_once() -> None:
    assert {folder.partition("/")[0] for folder in RULE_FOLDERS} <= set(HIDDEN)
