"""Of a long session the newest turns are shown, more when somebody looks further back, and all of it when asked for."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from swecli.core.protocol.events import Body, ItemCompleted, ItemStarted, TurnEnded, TurnStarted
from swecli.core.protocol.messages import TextPart
from swecli.tui.session_controller import FURTHER, SHOWN_TURNS
from tests.tui.support import Running, Session, running

TURNS = SHOWN_TURNS * FURTHER + 30


def said(turns: int) -> Iterator[Body]:
    for turn in range(1, turns + 1):
        yield TurnStarted(f"u{turn}")
        yield ItemStarted(f"u{turn}", "user")
        yield ItemCompleted(f"u{turn}", "ok", (TextPart(f"message {turn:03}"),))
        yield ItemStarted(f"a{turn}", "text")
        yield ItemCompleted(f"a{turn}", "ok", (TextPart(f"answer {turn:03}"),))
        yield TurnEnded("done")


def long_session(turns: int = TURNS) -> Session:
    session = Session(history=tuple(said(turns)))
    session.view.totals = replace(session.view.totals, turns=turns)
    return session


def first_shown(it: Running) -> str:
    return it.app.main.transcript.first_message


async def at_the_top(it: Running, turns: int = TURNS) -> None:
    """The newest turns are shown, and the top of them is in sight."""
    await it.shows(f"answer {turns:03}")
    assert first_shown(it) == f"u{turns - SHOWN_TURNS + 1}"
    it.app.main.transcript.scroll_to_line(0)
    await it.shows(f"{turns - SHOWN_TURNS:,} earlier messages are not shown")


async def test_page_up_at_the_top_brings_more_above_what_is_in_sight() -> None:
    async with running(session=long_session()) as it:
        await at_the_top(it)
        first = TURNS - SHOWN_TURNS + 1
        await it.press("pageup")
        await it.until(lambda: first_shown(it) == f"u{TURNS - SHOWN_TURNS * FURTHER + 1}")
        await it.shows(f"answer {first - 1:03}")
        assert f"answer {TURNS:03}" not in it.screen()
        assert it.app.session.earlier == TURNS - SHOWN_TURNS * FURTHER
        it.app.main.transcript.scroll_to_line(0)
        await it.shows("30 earlier messages are not shown")
        await it.press("pageup")
        await it.until(lambda: first_shown(it) == "u1")
        await it.shows("answer 030")
        assert it.app.session.earlier == 0


async def test_home_at_the_top_brings_the_beginning() -> None:
    async with running(session=long_session()) as it:
        await at_the_top(it)
        it.app.main.transcript.action_scroll_home()
        await it.shows("message 001")
        assert it.app.session.earlier == 0
        await it.until(lambda: it.app.main.transcript.page.place(f"a{TURNS}") is not None)
        assert "message 001" in it.screen()
        assert f"answer {TURNS:03}" not in it.screen()


async def test_while_a_turn_runs_it_is_put_off_and_can_be_asked_for_again() -> None:
    async with running(session=long_session()) as it:
        await at_the_top(it)
        it.session.emit(TurnStarted("u900"))
        await it.until(lambda: it.app.session.state.busy)
        it.app.main.transcript.action_scroll_home()
        await it.shows("Earlier messages load when the turn ends")
        it.session.emit(TurnEnded("done"))
        await it.until(lambda: not it.app.session.state.busy)
        it.app.main.transcript.action_scroll_home()
        await it.shows("message 001")
