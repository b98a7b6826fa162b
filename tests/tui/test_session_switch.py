"""Another session in place of the open one: nothing of the one that was left appears in it."""

from __future__ import annotations

import asyncio

from swecli.core.protocol.events import Notice
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
