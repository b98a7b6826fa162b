"""The line above the prompt."""

from __future__ import annotations

from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import running


async def test_a_short_message_leaves_the_way_to_stop_in_sight() -> None:
    async with running((WAIT_FOR_INTERRUPT,)) as it:
        await it.say("go")
        await it.shows("esc to interrupt")
        it.app.main.activity.flash("x" * 200)
        await it.shows("xxxx", "… · esc to interrupt")
        await it.press("escape")
        await it.hides("esc to interrupt")
        await it.shows("xxxx")
