"""/undo and /redo: what their words mean, and how the result is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.block_text import block_lines
from swecli.commands.files import target
from swecli.commands.registry import CommandCall, parse
from swecli.core.checkpoints.journal import Change, Operation, Origin
from swecli.core.checkpoints.restore import Recent, Target
from swecli.core.checkpoints.store import ABSENT, Image
from swecli.core.protocol.events import FilesRestored, LeftFile, RestoredFile
from tests.commands.support import CommandSession

DONE = FilesRestored(
    "undo",
    ("t3 rm b.txt",),
    (RestoredFile("/proj/b.txt", "brought back"), RestoredFile("/else/c", "removed")),
    (LeftFile("/proj/a.txt", "it was changed since"),),
    (LeftFile("/proj/big", "larger than 2 MB"),),
)


class UndoSession(CommandSession):
    """Shows results as lines."""

    def __init__(self, done: FilesRestored = DONE, recent: Recent = Recent()) -> None:  # noqa: B008
        super().__init__()
        self.files.done = done
        self.files.recent = recent

    async def lines(self, line: str) -> str:
        invocation = parse(line)
        assert isinstance(invocation, CommandCall)
        result = await invocation.command.run(self, invocation.arguments)
        return "\n".join(text for block in result.blocks for text in block_lines(block))


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("", Target()),
        ("last", Target()),
        ("turn", Target("turn")),
        ("turn 12", Target("turn", 12)),
        ("t12", Target("call", name="t12")),
        ('@"my notes.md"', Target("path", name="/proj/my notes.md")),
    ],
)
def test_words(words: str, meaning: Target) -> None:
    assert target(words, Path("/proj")) == meaning


def test_paths(tmp_path: Path) -> None:
    real = Path(os.path.realpath(tmp_path))
    (real / "link").symlink_to("nowhere")
    for words in ("./t12", "t12.txt", "@a b.txt", '"a b.txt"', "d/../link", str(real / "x")):
        found = target(words, real)
        assert found.scope == "path"
        assert Path(found.name).parent == real
    assert target("link", real).name == str(real / "link")


async def test_the_result_names_files_conflicts_and_what_is_not_covered() -> None:
    session = UndoSession()
    text = await session.lines("/undo")
    assert text.startswith("Undid `rm b.txt`: b.txt restored, /else/c removed · /redo")
    assert "1 file left alone:\n  a.txt: it was changed since" in text
    assert "Not tracked:\n  big: larger than 2 MB" in text
    assert session.files.targets == [Target()]


@pytest.mark.parametrize(
    ("done", "text"),
    [
        (
            FilesRestored("undo", ("t13 Edit src/x.py",), (RestoredFile("/proj/src/x.py", "restored", 1, 1),)),
            "Undid the edit of src/x.py (+1 -1) · /redo",
        ),
        (
            FilesRestored(
                "redo",
                ("t13 Write a.py", "t14 Edit b.py"),
                (RestoredFile("/proj/a.py", "restored", 5, 0), RestoredFile("/proj/b.py", "restored")),
            ),
            "Changed again: a.py (+5 -0) and b.py · /undo",
        ),
        (
            FilesRestored("undo", ("t2 make x",), (RestoredFile("/proj/x", "removed", 3, 0),)),
            "Undid `make x`: x (+3 -0) removed · /redo",
        ),
    ],
)
async def test_the_undo_of_few_files_is_one_line(done: FilesRestored, text: str) -> None:
    assert await UndoSession(done).lines(f"/{done.direction}") == text


async def test_a_table_names_three_files_and_more() -> None:
    files = tuple(RestoredFile(f"/proj/f{number}", "restored") for number in range(3))
    text = await UndoSession(FilesRestored("undo", ("t7 Patch 3 files",), files)).lines("/undo")
    assert text.startswith("Undid: Patch 3 files\n")
    assert "f2    restored" in text
    assert "/redo reapplies it. The conversation is unchanged." in text


async def test_files_left_alone_for_the_same_reason_share_a_line() -> None:
    left = tuple(LeftFile(f"/proj/{name}", "changed since") for name in ("a", "b"))
    done = FilesRestored("undo", ("t1 x",), conflicts=(*left, LeftFile("/proj/c", "no longer exists")))
    assert "left alone:\n  a, b: changed since\n  c: no longer exists" in await UndoSession(done).lines("/undo")


async def test_redo_and_nothing_to_do() -> None:
    session = UndoSession(FilesRestored("redo", reason="Nothing was undone."))
    assert await session.lines("/redo") == "Nothing was undone."
    session.files.done = FilesRestored("undo", ("t1 x",), conflicts=(LeftFile("/proj/a", "no longer exists"),))
    assert "Nothing was changed. /undo list shows what else can be undone." in await session.lines("/undo turn")


@pytest.mark.parametrize("words", ["turn x", "Turn 3 x", "list a.py", "last one", "3"])
async def test_a_number_or_a_known_word_followed_by_others_is_not_a_path(words: str) -> None:
    session = UndoSession()
    assert f"Nothing was changed; a file of that name is ./{words}" in await session.lines(f"/undo {words}")
    assert session.files.targets == []
    await session.lines(f"/undo ./{words}")
    assert session.files.targets == [Target("path", name=f"/proj/{words}")]


async def test_thousands_of_files_are_listed_in_part() -> None:
    many = tuple(RestoredFile(f"/proj/f{number}", "removed") for number in range(3_000))
    text = await UndoSession(FilesRestored("undo", ("t1 touch",), many)).lines("/undo")
    assert "3,000 files changed" in text
    assert "and 2,950 more files" in text


async def test_the_list_names_calls_files_and_exceptions() -> None:
    change = Change(1, "/proj/a.txt", ABSENT, Image("file", 0o644, "0" * 64))
    operation = Operation(1, Origin("s", 2, "t7", "command", "make all"), 0.0, "unsure", "", (change,))
    recent = Recent((operation,), (LeftFile("/proj/node_modules", "generated folder"),))
    text = await UndoSession(recent=recent).lines("/undo list")
    assert "t7" in text
    assert "a.txt" in text
    assert "make all (swecli was killed during it)" in text
    assert "Not tracked, as usual: node_modules" in text
    assert "no file changes" in await UndoSession().lines("/undo list")
    assert await UndoSession(recent=Recent(reason="off")).lines("/undo list") == "off"


async def test_help_changes_nothing() -> None:
    session = UndoSession()
    assert "turn 3" in await session.lines("/undo ?")
    assert session.files.targets == []


async def test_what_is_still_staged_is_named_after_an_undo() -> None:
    session = UndoSession()
    session.files.staged = ("/proj/b.txt",)
    assert "staged" not in await UndoSession().lines("/undo")
    told = "git still has the undone version of 1 file staged; `git restore --staged -- b.txt` unstages it."
    assert told in await session.lines("/undo")
