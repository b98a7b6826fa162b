"""Runs the calls of one answer: together where their effects allow it, results in any order, none lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from swecli.core.engine.answer import Call
from swecli.core.engine.locks import overlap
from swecli.core.engine.prepared_call import PreparedCall
from swecli.core.engine.tool_call import ToolCalls


class Scheduler:
    """Starts the calls of a step and waits for all of them."""

    def __init__(self, calls: ToolCalls) -> None:
        self._calls = calls
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, calls: Sequence[Call]) -> None:
        """Returns when every call has its terminal item; cancelled, it cancels them and still waits.

        A call that waits for the user holds up only calls that write the same file, and commands: these run after the
        writes and commands before them, whatever the order of the answers. They ask in the order of the calls.
        """
        prepared = [ready for call in calls if (ready := self._calls.prepare(call)) is not None]
        self._calls.order.begin(call.item for call in prepared)
        try:
            for position, call in enumerate(prepared):
                earlier = prepared[:position]
                writers = [self._tasks[other.item] for other in earlier if _same_target(other, call)]
                before = [self._tasks[other.item] for other in earlier if _comes_after(other, call)]
                self._tasks[call.item] = asyncio.create_task(self._calls.run(call, writers, before), name=call.item)
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            _raise_defects(self._tasks.values())
        except asyncio.CancelledError:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            raise
        finally:
            for call in prepared:  # a task cancelled before its first step never ran its own clean-up
                self._calls.order.passed(call.item)
                self._calls.close(call)
            self._tasks.clear()

    def cancel(self, item: str) -> bool:
        """Stop one running call; the others go on. False when it does not run."""
        task = self._tasks.get(item)
        return task is not None and task.cancel()


def _same_target(earlier: PreparedCall, later: PreparedCall) -> bool:
    return any(overlap(one, other) for one in earlier.effects.writes for other in later.effects.writes)


def _comes_after(earlier: PreparedCall, later: PreparedCall) -> bool:
    """Whether ``later`` is a command, which may need what ``earlier`` writes or does."""
    return later.effects.command is not None and (earlier.effects.command is not None or bool(earlier.effects.writes))


def _raise_defects(tasks: Iterable[asyncio.Task[None]]) -> None:
    """An exception that is no ``ToolError`` is a defect of swecli: it ends the turn, and is seen."""
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
