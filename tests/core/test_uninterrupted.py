"""Work that ends once it has begun, whatever becomes of the caller."""

from __future__ import annotations

import asyncio

import pytest

from swecli.core.uninterrupted import uninterrupted


async def test_the_result_or_the_failure_comes_back() -> None:
    async def fails() -> None:
        raise ValueError("no")

    assert await uninterrupted(asyncio.to_thread(lambda: 7)) == 7
    with pytest.raises(ValueError, match="no"):
        await uninterrupted(fails())


@pytest.mark.parametrize("failure", [None, ValueError("no")])
async def test_it_ends_although_the_caller_is_cancelled_twice_and_the_cancellation_follows(
    failure: Exception | None,
) -> None:
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        ended.append("done")
        if failure is not None:
            raise failure

    caller = asyncio.create_task(uninterrupted(work()))
    await begun.wait()
    for _ in range(2):
        caller.cancel()
        await asyncio.sleep(0)
        assert not caller.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended == ["done"]


async def test_work_that_is_cancelled_itself_cancels_the_caller() -> None:
    work = asyncio.ensure_future(asyncio.Event().wait())
    caller = asyncio.create_task(uninterrupted(work))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
