"""/add-dir: what is refused, and what it asks of the screen."""

from __future__ import annotations

from pathlib import Path

from swecli.commands.files import ADD_DIR
from swecli.commands.registry import CommandCall
from swecli.core.workspace.jobs import JobInfo
from swecli.headless.outcome import run_slash as headless
from tests.commands.support import CommandSession


async def test_a_folder_is_handed_on_as_its_real_path(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    (work / "link").symlink_to(other)
    port = CommandSession(work)
    port.view.roots = (work,)
    for name in ("../other", "link", str(other)):
        result = await ADD_DIR.run(port, name)
        assert (result.screen, result.argument) == ("add_folder", str(other))
    assert f"--add-dir {other}" in (await headless(port, CommandCall(ADD_DIR, "../other"))).text


async def test_a_folder_may_be_typed_as_a_terminal_drops_it(tmp_path: Path) -> None:
    folder = tmp_path / "my work (1)"
    (tmp_path / "here").mkdir()
    folder.mkdir()
    port = CommandSession(tmp_path / "here")
    port.view.roots = (tmp_path / "here",)
    escaped = str(folder).replace(" ", "\\ ").replace("(", "\\(").replace(")", "\\)")
    for typed in (f"'{folder}'", f'"{folder}"', escaped, str(folder)):
        assert (await ADD_DIR.run(port, typed)).argument == str(folder)
    assert f"--add-dir '{folder}'" in (await headless(port, CommandCall(ADD_DIR, escaped))).text


async def test_what_is_no_new_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "file").write_text("x")
    port = CommandSession(tmp_path)
    port.view.roots = (tmp_path,)
    for name, words in (
        ("", "Folders of this session"),
        ("sub", "is already part of this session"),
        ("file", "not a directory"),
        ("gone", "no such directory"),
        ("~nobody-here/x", "cannot use"),
        ("a\0b", "Nothing was added"),
    ):
        result = await ADD_DIR.run(port, name)
        assert result.screen is None
        assert words in result.blocks[0].text  # type: ignore[union-attr]


async def test_running_jobs_are_not_ended_by_it(tmp_path: Path) -> None:
    port = CommandSession(tmp_path / "work")
    port.view.jobs = (JobInfo("j1", "npm start", "t1", 1, 0.0),)
    result = await ADD_DIR.run(port, str(tmp_path))
    assert result.screen is None
    assert "would end its background jobs" in result.blocks[0].text  # type: ignore[union-attr]
