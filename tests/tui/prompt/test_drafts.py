"""Drafts that outlive their process, with their pastes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.tui.prompt.box import Draft, Drafts
from swecli.tui.prompt.editor import Pastes


def test_a_draft_is_taken_over_once_and_only_from_a_process_that_is_gone(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    Drafts(tmp_path, pid=gone.pid).save("left behind\r\nü")
    Drafts(tmp_path, pid=os.getppid()).save("still typed elsewhere")
    mine = Drafts(tmp_path)
    assert mine.adopt().text == "left behind\r\nü"
    assert mine.adopt() == Draft()


def test_two_programs_do_not_take_over_the_same_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    Drafts(tmp_path, pid=gone.pid).save("left [1]", {1: "pasted"})
    read, taken = Path.read_bytes, list[Draft]()

    def read_while_another_takes_it(path: Path) -> bytes:
        data = read(path)
        monkeypatch.setattr(Path, "read_bytes", read)
        taken.append(Drafts(tmp_path).adopt())
        return data

    monkeypatch.setattr(Path, "read_bytes", read_while_another_takes_it)
    assert Drafts(tmp_path).adopt() == Draft()
    assert taken == [Draft("left [1]", {1: "pasted"})]


def test_a_draft_of_an_earlier_process_with_the_same_id_is_taken_over(tmp_path: Path) -> None:
    """In a container each run may have the same id."""
    Drafts(tmp_path).save("left behind")
    mine = Drafts(tmp_path)
    assert mine.adopt().text == "left behind"
    mine.save("my own")
    assert mine.adopt() == Draft()


def test_a_sent_draft_leaves_no_file(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path)
    drafts.save("text")
    assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()] == [0o600]
    drafts.save("")
    assert list(tmp_path.iterdir()) == []


def test_drafts_without_a_folder_or_with_a_bad_one_do_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (None, tmp_path / "file"):
        Drafts(folder).save("text")
        assert Drafts(folder).adopt() == Draft()


def test_a_paste_is_written_once_and_comes_back_with_the_draft(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    drafts, pastes = Drafts(tmp_path, pid=gone.pid), Pastes()
    folded = pastes.fold("line\n" * 2000)
    text = ""
    pastes._draft = lambda: text
    inodes: set[int] = set()  # a file that is written anew is another one
    for text in (f"look at {folded}", f"look at {folded} closely"):
        drafts.save(text, pastes.saved())
        inodes |= {written.stat().st_ino for written in tmp_path.glob("*.paste")}
    assert len(inodes) == 1
    assert sum(path.stat().st_size for path in tmp_path.glob("*.txt")) < 200
    mine = Pastes()
    mine.fold("other\n" * 20)
    draft = Drafts(tmp_path).adopt()
    typed = mine.adopt(draft.text, draft.pastes)
    assert typed == f"look at {folded.replace('#1', '#2')} closely"
    assert mine.expand(typed) == f"look at {'line' + chr(10)}{('line' + chr(10)) * 1999} closely"
    assert list(tmp_path.iterdir()) == []


def test_a_paste_that_left_the_draft_leaves_the_disk(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path)
    drafts.save("see [Pasted text #1: 20 lines, 100 characters]", {1: "line\n" * 20})
    assert len(list(tmp_path.iterdir())) == 2
    drafts.save("see", {})
    assert [path.suffix for path in tmp_path.iterdir()] == [".txt"]
