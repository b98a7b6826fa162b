"""The folders of the program are the user's alone, also those above the last."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from swecli.core.atomic_text import close_to_others, make_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_folder_that_is_made_is_private(tmp_path: Path) -> None:
    made = tmp_path / "share" / "swecli" / "workspaces"
    old = os.umask(0o022)
    try:
        make_private(made)
        make_private(made)
    finally:
        os.umask(old)
    assert {mode(path) for path in (made, made.parent, made.parent.parent)} == {0o700}
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "file")


def test_an_open_folder_is_closed_and_a_link_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)
    (tmp_path / "link").symlink_to(folder)
    close_to_others(tmp_path / "link")
    close_to_others(tmp_path / "absent")
    assert mode(folder) == 0o755
    close_to_others(folder)
    assert mode(folder) == 0o700


def test_no_code_makes_a_folder_of_the_program_in_another_way() -> None:
    root = Path(__file__).parents[2] / "swecli"
    others = {"core/atomic_text.py", "core/tools/edit_file.py", "core/engine/plan.py"}
    open_ones = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if "mkdir(parents=True, exist_ok=True" in path.read_text(encoding="utf-8")
    ]
    assert set(open_ones) <= others
