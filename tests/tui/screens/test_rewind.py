"""Going back from the screen: Esc Esc, the list of messages, what is to go back; and forks."""

from __future__ import annotations

from pathlib import Path

from swecli.core.engine.rewind import RewindPoint
from swecli.core.protocol.commands import Rewind
from swecli.core.protocol.events import FilesRestored, RestoredFile, RewindUndone, Rewound, TurnStarted
from swecli.core.protocol.messages import ImagePart
from tests.tui.scenes import DONE
from tests.tui.screens.fakes import Sessions, ports
from tests.tui.support import NOW, Running, Session, running

SAID = (TurnStarted("u1"), *DONE)
POINTS = (
    RewindPoint(1, "u1", "How many pens?", NOW - 600, 5_200, 2, 31, 12),
    RewindPoint(2, "u2", "Only words", NOW - 60, 900, 0),
)


async def opened(it: Running) -> None:
    await it.until(lambda: it.app.session.spoke)
    it.session.rewinds.listed = POINTS
    it.session.rewinds.files = FilesRestored("undo", files=(RestoredFile("/proj/pens.py", "restored"),))
    await it.press("escape")
    await it.shows("Esc again rewinds")
    await it.press("escape")
    await it.shows("Rewind to before a message · 2", "How many pens?", "2 files +31 -12")


async def test_esc_twice_lists_the_messages_and_a_choice_goes_back() -> None:
    async with running(session=Session(history=SAID)) as it:
        await opened(it)
        await it.press("down", "enter")
        await it.shows("Rewind to before: How many pens?", "Conversation and files", "Files only")
        it.clock.now += 1
        await it.press("3")
        await it.until(lambda: it.session.sent(Rewind))
        assert it.session.sent(Rewind) == [Rewind("u1", "files")]


async def test_a_new_conversation_has_nothing_to_rewind() -> None:
    async def new_session() -> Session:
        return Session()

    async with running(session=Session(history=SAID), new_session=new_session) as it:
        await it.until(lambda: it.app.session.spoke)
        await it.say("/clear")
        await it.hides("How many pens?")
        await it.until(lambda: it.app.session.port is not None)
        await it.press("escape")
        assert "Esc again" not in it.screen()


async def test_without_changes_only_the_conversation_can_go_back() -> None:
    async with running(session=Session(history=SAID)) as it:
        await opened(it)
        await it.press("enter")
        await it.shows("Rewind to before: Only words", "Conversation only")
        assert "Files only" not in it.screen()
        it.clock.now += 1
        await it.press("2")
        await it.hides("Rewind to before")
        assert it.session.sent(Rewind) == []


async def test_what_was_typed_is_not_lost_to_a_list() -> None:
    async with running(session=Session(history=SAID)) as it:
        await it.press(*"text", "escape", "escape")
        assert it.app.main.list_view is None
        assert it.editor.text == ""
        await it.press("ctrl+y")
        assert it.editor.text == "text"


async def test_the_message_comes_back_and_an_undo_shows_all_again() -> None:
    async with running(session=Session(history=SAID)) as it:
        await it.shows("Fixed: ten pens")
        it.session.emit(Rewound("u1", "1 file restored.", "How many pens?", "both", "w1"))
        await it.shows(": 1 file restored · /rewind undo · Ctrl+O")
        await it.until(lambda: it.editor.text == "How many pens?")
        assert "Fixed: ten pens" not in it.screen()
        it.session.emit(RewindUndone("w1", "1 file restored."))
        await it.shows("Fixed: ten pens", "Rewind undone. 1 file restored.")


async def test_its_images_come_back_with_it() -> None:
    image = ImagePart("image/png", "aGVsbG8=", "pens.png")
    async with running(session=Session(history=SAID)) as it:
        await it.shows("Fixed: ten pens")
        it.session.rewinds.images = (image,)
        text = "How many pens? [Image #1: pens.png]"
        it.session.emit(Rewound("u1", "", text, "conversation", "w1"))
        await it.until(lambda: it.editor.text == text)
        assert it.editor.attachments.used(text) == (image,)


async def test_what_a_killed_run_left_belongs_to_no_fork(tmp_path: Path) -> None:
    opened: list[str] = []

    def open_one(name: str) -> object:
        async def run() -> Session:
            opened.append(name)
            return Session()

        return run

    given = ports(sessions=Sessions(open_one))  # pyright: ignore[reportArgumentType]
    async with running(session=Session(history=SAID), state=tmp_path, **given) as it:
        await it.until(lambda: it.app.session.spoke)
        (tmp_path / "draft-999999999.txt").write_text("of another run")
        it.app.interface.open("fork")
        await it.until(lambda: opened)
        await it.shows("Forked from fake")
        assert it.editor.text == ""
        assert (tmp_path / "draft-999999999.txt").exists()


async def test_a_fork_is_opened_in_place() -> None:
    names: list[str] = []

    def open_one(name: str) -> object:
        async def run() -> Session:
            names.append(name)
            return Session()

        return run

    async with running(session=Session(history=SAID), **ports(sessions=Sessions(open_one))) as it:  # pyright: ignore[reportArgumentType]
        await it.until(lambda: it.app.session.spoke)
        it.app.interface.open("fork")
        await it.until(lambda: names)
        assert names == ["fork of fake"]
        await it.shows("Forked from fake")


async def test_a_fork_gets_the_name_it_is_given_and_says_what_it_came_from() -> None:
    copy = Session()

    def open_one(name: str) -> object:
        async def run() -> Session:
            return copy

        return run

    parent = Session(history=SAID)
    parent.called = "login fix"
    async with running(session=parent, **ports(sessions=Sessions(open_one))) as it:  # pyright: ignore[reportArgumentType]
        await it.until(lambda: it.app.session.spoke)
        it.app.interface.open("fork", "other way")
        await it.shows("Forked from login fix as other way")
        assert copy.called == "other way"


async def test_esc_behind_a_message_goes_back_to_the_list() -> None:
    async with running(session=Session(history=SAID)) as it:
        await opened(it)
        await it.press("down", "enter")
        await it.shows("Rewind to before: How many pens?", "Conversation and files")
        await it.press("escape")
        await it.shows("Rewind to before a message · 2", "How many pens?")
        assert not it.session.sent(Rewind)
