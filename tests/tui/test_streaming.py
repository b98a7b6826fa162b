"""Long answers on the whole application: few updates, a quiet place to read, and keys that still work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from swecli.core.protocol.commands import Interrupt
from swecli.core.protocol.events import Body, Event, ItemCompleted, ItemDelta, ItemStarted
from swecli.core.protocol.messages import TextPart
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.frames import FRAMES
from tests.tui.support import Running, Session, running


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame is drawn when it comes."""
    FRAMES.watch(monkeypatch, every=True)


def answer(words: int) -> list[Body]:
    pieces = [f"word{n}{chr(10) * 2 if n % 10 == 9 else ' '}" for n in range(words)]
    return [ItemStarted("a1", "text"), *(ItemDelta("a1", piece) for piece in pieces)]


async def started(it: Running) -> None:
    await it.say("go")
    await it.until(lambda: it.app.session.state.busy)


def page(it: Running) -> list[str]:
    """The transcript's part of the screen, without its scroll bar."""
    return [line[:78].rstrip() for line in it.screen().split("\n")[:18]]


async def test_five_thousand_deltas_are_few_updates_and_nothing_is_lost() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        applied: list[int] = []
        apply = it.app.main.transcript.apply

        def counted(events: Sequence[Event]) -> None:
            applied.append(len(events))
            apply(events)

        it.app.main.transcript.apply = counted  # type: ignore[method-assign, assignment]
        await started(it)
        for body in answer(5000):
            session.emit(body)
        await it.shows("word4999")
        assert len(applied) < 20
        assert sum(applied) < 40


async def test_the_place_stays_while_text_comes_and_new_lines_are_counted() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        await started(it)
        for body in answer(400):
            session.emit(body)
        await it.shows("word399")
        await it.press("pageup")
        await it.hides("word399")
        before = page(it)
        for n in range(5000):
            session.emit(ItemDelta("a1", f"more{n}\n\n"))
        await it.until(lambda: "new lines · End" in it.screen())
        assert page(it) == before
        await it.press("end")
        await it.hides("new lines")


async def test_an_interrupt_in_the_middle_is_shown_in_the_next_frame() -> None:
    session = Session((*answer(3000), WAIT_FOR_INTERRUPT))  # type: ignore[arg-type]
    async with running(session=session) as it:
        await started(it)
        await it.press("escape")
        assert "Interrupting…" in it.screen() or not it.app.session.state.busy
        await it.until(lambda: it.session.sent(Interrupt))
        await it.until(lambda: not it.app.session.state.busy)


async def test_nothing_ticks_while_nothing_happens() -> None:
    async with running() as it:
        before = it.app.main.activity._timer
        await it.say("/context")
        await it.shows("context got []")
        assert before is None
        assert it.app.main.activity._timer is None
        assert not it.editor.cursor_blink


async def test_markup_of_the_model_is_text_everywhere() -> None:
    nasty = "[/foo] [red]x[/] [@click=app.quit]y[/] \x1b[2J\x1b]0;title\x07"
    bodies: list[Body] = [
        ItemStarted("t1", "tool", nasty, nasty),
        ItemStarted("a1", "text"),
        ItemDelta("a1", nasty),
        ItemCompleted("a1", "ok", (TextPart(nasty),)),
    ]
    session = Session((*bodies, WAIT_FOR_INTERRUPT))  # type: ignore[arg-type]
    async with running(session=session) as it:
        await started(it)
        await it.shows("[/foo] [red]x[/]")
        assert "\x1b" not in it.screen()
        assert "\x07" not in it.screen()
