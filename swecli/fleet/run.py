"""A run: tasks from the ledger to the runner and back, retries, the budget, and the ways to stop."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from msgspec import Struct

from swecli.fleet.allowance import Allowance, permission
from swecli.fleet.board import Board
from swecli.fleet.ledger import MIRRORS, SCRATCH, Ledger, LedgerError, file_name
from swecli.fleet.link import Ended, FromWorker, Order, Spent
from swecli.fleet.local import Runner
from swecli.fleet.tasks import Task

LONGEST_DELAY = 300.0
"""Seconds of the longest pause before a task is tried again."""
ALIKE = 5
"""Tasks in a row whose machinery fails in the same way, after which no further one begins."""


class Ways(Struct, frozen=True):
    """How tasks run. ``retries`` is how often a task is tried again, ``delay`` the seconds before the first time.
    ``memory`` is bytes, ``processor`` seconds of each process of a task."""

    retries: int = 2
    delay: float = 5.0
    memory: int | None = None
    processor: int | None = None
    yolo: bool = False
    base_url: str | None = None
    scratch: str | None = None
    """The folder for copies; None: below the ledger's."""


class Fleet:
    """One run. ``board`` shows it; ``allowance`` is what all workers may spend together."""

    def __init__(self, ledger: Ledger, runner: Runner, allowance: Allowance, board: Board, ways: Ways) -> None:
        self._ledger = ledger
        self._runner = runner
        self._allowance = allowance
        self._board = board
        self._ways = ways
        base = Path(ways.scratch) if ways.scratch is not None else ledger.folder
        self._scratch, self._mirrors = base / SCRATCH, base / MIRRORS
        self._changed = asyncio.Event()
        self._running = 0
        self._alike: tuple[str, int] = ("", 0)
        self.stopped = ""
        """Why no further task begins; empty while they do."""
        self.failure: LedgerError | None = None

    async def run(self) -> None:
        """Run until every task has ended, or the run is stopped. ``stopped`` then says why, ``failure`` if the ledger
        could not be written."""
        slots = [asyncio.ensure_future(self._slot()) for _ in range(self._runner.size)]
        try:
            await asyncio.gather(*slots)
        finally:
            for slot in slots:
                slot.cancel()
            await self._runner.close()
            await asyncio.gather(*slots, return_exceptions=True)

    def stop(self, reason: str) -> None:
        """Begin no further task."""
        self.stopped = self.stopped or reason
        self._wake()

    def stop_now(self, reason: str) -> None:
        """End the running tasks, too."""
        self.stop(reason)
        self._runner.halt()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _slot(self) -> None:
        """Run one task after the other."""
        while not self.stopped:
            if reason := self._allowance.exhausted:
                self.stop(reason)
                return
            try:
                taken = self._ledger.next(time.time())
                if taken is None:
                    due = self._ledger.due()
                    if due is None and not self._running:
                        return
                    await self._pause(due)
                    continue
                self._running += 1
                try:
                    await self._attempt(*taken)
                finally:
                    self._running -= 1
                    self._wake()
            except LedgerError as error:
                self.failure = self.failure or error
                self.stop_now(str(error))

    async def _pause(self, due: float | None) -> None:
        """Wait until a task is due, or something else changes."""
        changed = self._changed
        try:
            async with asyncio.timeout(None if due is None else max(0.01, due - time.time())):
                await changed.wait()
        except TimeoutError:
            return

    async def _attempt(self, task: Task, number: int) -> None:
        name = f"{file_name(task.id)}-{number}-{secrets.token_hex(3)}"
        order = Order(
            task,
            number,
            str(self._scratch / name),
            str(self._mirrors),
            memory=self._ways.memory,
            processor=self._ways.processor,
            yolo=self._ways.yolo,
            base_url=self._ways.base_url,
        )
        self._board.began(task, number)
        began = time.monotonic()
        returned = await self._runner.attempt(
            order,
            lambda message: self._heard(task, name, message),
            lambda ask: permission(self._allowance, ask),
        )
        ended = returned.ended
        if ended.status == "broken" and ended.again and number <= self._ways.retries and not self.stopped:
            delay = backoff(self._ways.delay, number, random.random)
            self._ledger.again(task, time.time() + delay)
            self._board.repeated(task, ended, delay)
            return
        if self._ledger.finish(task, number, ended, returned.transcript):
            self._board.ended(task, ended, time.monotonic() - began)
        self._watch_for_alike(ended)

    def _watch_for_alike(self, ended: Ended) -> None:
        """Stop when one task after the other fails for the same reason that is not its own."""
        kind = f"{ended.kind}: {ended.reason}" if ended.status == "broken" and ended.kind != "clone" else ""
        self._alike = (kind, self._alike[1] + 1 if kind and kind == self._alike[0] else 1)
        if kind and self._alike[1] >= ALIKE:
            self.stop(f"{ALIKE} tasks in a row failed in the same way, and not by the agent: {ended.reason}")

    def _heard(self, task: Task, attempt: str, message: FromWorker) -> None:
        if isinstance(message, Spent):
            self._allowance.take(message)
            self._board.spent(task, message.tokens, Decimal(message.price or 0))
            try:
                self._ledger.add_spent(attempt, message.tokens, message.price)
            except LedgerError as error:
                self.failure = self.failure or error
                self.stop_now(str(error))
        else:
            self._board.heard(task, message)


def backoff(first: float, attempt: int, jitter: Callable[[], float]) -> float:
    """Seconds before the attempt after this one: doubled each time, a fifth of it at random."""
    return min(LONGEST_DELAY, first * 2.0 ** (attempt - 1)) * (0.9 + 0.2 * jitter())
