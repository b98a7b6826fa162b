"""The search of the transcript, however fast it is closed."""

from __future__ import annotations

import asyncio

import pytest

from swecli.tui.dock.find import FindPanel
from tests.tui.support import running


@pytest.mark.parametrize("ticks", [0, 1, 2, 4, 8])
async def test_a_search_that_is_closed_as_it_opens_ends_nothing(ticks: int) -> None:
    async with running() as it:
        it.app.interface.open("find", "words")
        it.app.main.dock.fit()
        for _ in range(ticks):
            await asyncio.sleep(0)
        it.app.main.dock.close()
        await it.until(lambda: it.editor.has_focus and not it.app.query(FindPanel))
        await it.press("x")
        await it.until(lambda: it.editor.text == "x")


async def test_the_keys_of_a_search_are_those_that_do_something() -> None:
    async with running() as it:
        it.app.interface.open("find", "nowhere to be found")
        await it.shows("no match", "esc closes")
        await it.hides("enter older")
