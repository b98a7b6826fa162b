"""/rewind, /fork and /rename as text, for front-ends without a screen."""

from __future__ import annotations

from typing import Any, cast

from swecli.block_text import block_lines
from swecli.commands.base import CommandResult
from swecli.commands.registry import find
from swecli.core.engine.rewind import RewindPoint
from swecli.core.engine.session import Session
from swecli.core.protocol.commands import Rewind, UndoRewind
from swecli.core.protocol.events import FilesRestored, LeftFile, RestoredFile
from tests.support.fake_session import FakeSession

POINTS = (
    RewindPoint(1, "u1", "Where is the login checked?", 0.0, 12_400, 3, 40, 12),
    RewindPoint(2, "u4", "Fix it,\nplease", 0.0, 5_200, 0),
    RewindPoint(3, "u9", "x" * 200, 0.0, 90),
)


def session() -> FakeSession:
    made = FakeSession()
    made.rewinds.listed = POINTS
    made.rewinds.files = FilesRestored(
        "undo",
        files=(RestoredFile("/proj/a.py", "removed"),),
        conflicts=(LeftFile("/proj/b.py", "changed since"),),
    )
    return made


async def result(made: FakeSession, line: str) -> CommandResult:
    name, _, words = line.partition(" ")
    command = find(name)
    assert command is not None
    return await command.run(cast(Session, made), words)


def text(shown: CommandResult) -> str:
    return "\n".join(line for block in (*shown.blocks, *shown.instead) for line in block_lines(block))


async def test_the_messages_are_listed_with_what_changed_since() -> None:
    shown = await result(session(), "rewind")
    assert shown.screen == "rewind"
    listed = text(shown)
    assert "3 files +40 -12" in listed
    assert "no files" in listed
    assert "Fix it, please" in listed
    assert "/rewind N both" in listed
    assert "Nothing to go back to" in text(await result(FakeSession(), "rewind list"))


async def test_a_number_goes_back_and_undo_takes_it_back() -> None:
    made = session()
    for words, scope in (("1", "both"), ("2 conversation", "conversation"), ("#2 files", "files"), ("1 both", "both")):
        await result(made, f"rewind {words}")
        sent: Any = made.commands[-1]
        assert isinstance(sent, Rewind)
        assert (sent.item, sent.scope) == ("u1" if "1" in words else "u4", scope)
    await result(made, "rewind undo")
    assert isinstance(made.commands[-1], UndoRewind)


async def test_a_preview_changes_nothing() -> None:
    made = session()
    shown = text(await result(made, "rewind 1 preview"))
    assert "a.py" in shown
    assert "b.py: changed since" in shown
    assert made.commands == []


async def test_what_makes_no_sense_is_answered() -> None:
    made = session()
    for words, said in (
        ("9", "messages: 1 to 3"),
        ("x", "/rewind N both"),
        ("1 nothing", "/rewind N both"),
        ("0", "1 to 3"),
    ):
        assert said in text(await result(made, f"rewind {words}"))
    assert made.commands == []
    assert "Nothing to fork" in text(await result(made, "fork mine"))


async def test_rename_without_a_name_shows_it_and_changes_nothing() -> None:
    made = session()
    assert "but no name" in text(await result(made, "rename"))
    await result(made, "rename login fix")
    assert text(await result(made, "rename")).startswith("This session is called login fix. /rename NAME")
    assert made.called == "login fix"
    assert "swecli -r 'Dana'\"'\"'s fix'" in text(await result(made, "rename Dana's fix"))
    assert "now has a title but no name" in text(await result(made, "rename --clear"))
    assert made.called == ""
