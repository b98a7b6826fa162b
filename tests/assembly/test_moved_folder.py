"""A folder that was moved takes its sessions along, with what they changed in files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.app import open_session
from swecli.assembly.session_list import move_sessions
from swecli.core.config.paths import user_paths
from swecli.core.engine.session import Session
from swecli.core.protocol.commands import Command, RedoFiles, Submit, UndoFiles
from swecli.core.protocol.events import FilesRestored, TurnEnded
from swecli.launch import LaunchOptions

SCRIPT = """
[[step]]
call = [{ tool = "write_file", arguments = { path = "sub/note.txt", content = "by the model\\n" } }]
[[step]]
call = [{ tool = "run_command", arguments = { command = "echo by a command > made.txt; ln made.txt twin.txt" } }]
[[step]]
text = "Done."
"""


async def done(session: Session, command: Command) -> FilesRestored | None:
    """What a command came to, or None for a turn that ended."""
    events = session.subscribe()
    session.send(command)
    async for event in events:
        if isinstance(event.body, FilesRestored):
            return event.body
        if isinstance(event.body, TurnEnded):
            assert event.body.outcome == "done"
            return None
    raise AssertionError("the session ended")


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.txt"))}


@pytest.mark.parametrize("link", [False, True], ids=["named as it is", "named by a link"])
async def test_undo_and_redo_reach_the_files_where_they_are_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: bool
) -> None:
    home, script = tmp_path / "home", tmp_path / "script.toml"
    monkeypatch.setenv("SWECLI_HOME", str(home))
    script.write_text(SCRIPT)
    (tmp_path / "real" / "old" / "sub").mkdir(parents=True)
    os.symlink(tmp_path / "real", tmp_path / "link")
    real = tmp_path / "real" / "old"
    old = tmp_path / "link" / "old" if link else real
    (old / "sub" / "note.txt").write_text("of the user\n")
    before = texts(old)
    options = LaunchOptions(cwd=old, script=script, headless=True, mode="auto", yolo=True)
    session = await open_session(replace(options, cwd=old))
    await done(session, Submit("Change things."))
    await session.close()
    changed = texts(old)
    assert len(changed) == 3

    new = tmp_path / "elsewhere" / "new"
    new.parent.mkdir()
    real.rename(new)
    paths = user_paths({"SWECLI_HOME": str(home)})
    moved = move_sessions(paths, old, new)
    assert (len(moved.sessions), moved.trouble) == (1, "")
    session = await open_session(replace(options, cwd=new, continue_newest=True))
    points = await session.rewinds.points()
    assert [point.files for point in points] == [3]
    undone = await done(session, UndoFiles("turn"))
    assert undone is not None
    assert {file.path for file in undone.files} == {str(new / name) for name in changed}
    assert texts(new) == before
    await done(session, RedoFiles())
    assert texts(new) == changed
    assert (new / "made.txt").stat().st_ino == (new / "twin.txt").stat().st_ino
    await session.close()
    assert not old.exists()


async def test_a_store_of_changes_that_can_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, script, old = tmp_path / "home", tmp_path / "script.toml", tmp_path / "old"
    monkeypatch.setenv("SWECLI_HOME", str(home))
    script.write_text(SCRIPT)
    (old / "sub").mkdir(parents=True)
    session = await open_session(LaunchOptions(cwd=old, script=script, headless=True, mode="auto", yolo=True))
    await done(session, Submit("Change things."))
    await session.close()
    store = next(home.rglob("checkpoints.db"))
    store.unlink()
    store.mkdir()
    moved = move_sessions(user_paths({"SWECLI_HOME": str(home)}), old, tmp_path)
    assert len(moved.sessions) == 1
    assert "/undo does not cover them" in moved.trouble
