"""Another session in place of the open one: nothing of the one that was left appears in it."""

from __future__ import annotations

import asyncio
from typing import cast

from swecli.assembly.succession import OpenSession
from swecli.core.protocol.events import Notice
from tests.tui.screens.fakes import Sessions, ports
from tests.tui.support import Session, running


class Talking(Session):
    """Still has something to say when it is closed."""

    stuck = False

    async def close(self, reason: str = "other") -> None:
        self.emit(Notice("the first last words", "info", "session"))
        await asyncio.sleep(0)
        self.emit(Notice("the second last words", "info", "session"))
        if not self.stuck:
            await super().close(reason)

    def speak(self) -> None:
        self.emit(Notice("words of the one that was left", "info", "session"))


async def test_last_words_do_not_appear_in_the_next_session() -> None:
    fresh = Session(history=())

    async def new_session() -> Session:
        return fresh

    async with running(session=Talking(), new_session=new_session) as it:
        await it.say("/clear")
        await it.until(lambda: it.app.session.port is fresh)
        fresh.emit(Notice("a new beginning", "info", "session"))
        await it.shows("a new beginning")
        assert "last words" not in it.screen()


async def test_last_words_of_all_sessions_of_the_run_are_kept_for_the_farewell() -> None:
    fresh = Talking(history=())

    async def new_session() -> Session:
        return fresh

    async with running(session=Talking(), new_session=new_session) as it:
        await it.say("/clear")
        await it.until(lambda: it.app.session.port is fresh)
        await it.app.session.close()
        assert it.app.session.state.parting == ("the first last words", "the second last words") * 2


async def test_a_session_that_does_not_end_in_time_is_no_longer_shown() -> None:
    fresh, left = Session(history=()), Talking()
    left.stuck = True

    async def new_session() -> Session:
        return fresh

    async with running(session=left, new_session=new_session) as it:
        await it.say("/clear")
        await it.until(lambda: it.app.session.port is fresh)
        left.speak()
        fresh.emit(Notice("a new beginning", "info", "session"))
        await it.shows("a new beginning")
        assert "was left" not in it.screen()
        left.stuck = False


async def test_a_second_enter_opens_no_second_session() -> None:
    opened: list[str] = []

    def opener(session_id: str) -> OpenSession:
        async def open_it() -> Session:
            opened.append(session_id)
            return Session(history=())

        return cast("OpenSession", open_it)

    async with running(**ports(sessions=Sessions(opener))) as it:
        it.app.interface.open("sessions")
        await it.shows("Fix the login bug")
        await it.at_once("enter", "enter")
        await it.until(lambda: opened and it.app.session.port is not it.session and it.app.session.view)
        assert len(opened) == 1


async def test_no_other_session_is_opened_while_one_is_opening() -> None:
    may_open = asyncio.Event()

    async def slow() -> Session:
        await may_open.wait()
        return it.session

    def opener(session_id: str) -> OpenSession:
        raise AssertionError(session_id)

    async with running(open_session=slow, **ports(sessions=Sessions(opener))) as it:
        await it.until(lambda: it.app.loaded)
        it.app.interface.open("sessions")
        await it.shows("Fix the login bug")
        await it.press("enter")
        await it.shows("The session is still opening")
        may_open.set()
        await it.until(lambda: it.app.session.port is it.session)


async def test_a_second_close_waits_for_the_end_that_the_first_one_began() -> None:
    class Slow(Session):
        let = asyncio.Event()

        async def close(self, reason: str = "other") -> None:
            await self.let.wait()
            await super().close(reason)

    slow = Slow()
    async with running(session=slow) as it:
        left = asyncio.ensure_future(it.app.session.close())  # for another session
        await asyncio.sleep(0)
        quits = asyncio.ensure_future(it.app.session.close())
        await it.pilot.pause()
        assert not quits.done()
        slow.let.set()
        await quits
        assert slow.closed
        await left
