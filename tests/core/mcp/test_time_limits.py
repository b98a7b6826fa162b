"""Limits of requests: what restarts them, and what they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from swecli.core.mcp.time_limits import TimeLimits


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_neither_progress_nor_the_end_of_another_question_starts_a_limit_while_the_user_thinks() -> None:
    limits, answered = TimeLimits(), False

    async def request() -> None:
        nonlocal answered
        async with limits.within(0.0) as alive:
            with limits.suspended():
                with limits.suspended():
                    alive()
                    await turns()
                await turns()
                alive()
                await turns()
                answered = True
            assert limits
            await asyncio.Event().wait()  # the last question is answered

    with pytest.raises(TimeoutError):
        await request()
    assert answered
    assert not limits


async def test_a_request_that_begins_during_a_question_waits_for_it_too() -> None:
    limits = TimeLimits()
    with limits.suspended():
        async with limits.within(0.0):
            await turns()
            assert limits
    assert not limits


async def test_progress_and_questions_that_come_too_late_change_nothing() -> None:
    limits, alives, late = TimeLimits(), list[Callable[[], None]](), False

    async def request() -> None:
        nonlocal late
        async with limits.within(0.0) as alive:
            alives.append(alive)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:  # a request takes leave of its server
                alive()
                with limits.suspended():
                    late = True
                raise

    with pytest.raises(TimeoutError):
        await request()
    alives[0]()
    assert late
