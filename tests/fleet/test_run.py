"""A run over a runner without processes: retries, budget, stopping, a ledger that cannot be written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from swecli.fleet.allowance import Allowance, Caps
from swecli.fleet.board import Board
from swecli.fleet.ledger import Ledger
from swecli.fleet.link import Ask, Ended, Order, Said, Spent
from swecli.fleet.local import Heard, Permission, Returned
from swecli.fleet.run import Fleet, Ways, backoff
from swecli.fleet.tasks import Task

PASSED = Ended("passed", "", "", patch=b"p\n", steps=2)


class FakeRunner:
    """Ends each attempt as ``ends`` says; ``asks`` requests of 10 tokens are made before."""

    def __init__(self, ends: Callable[[Order], Ended], size: int = 2, asks: int = 0) -> None:
        self.size = size
        self.orders: list[Order] = []
        self.closed = self.halted = False
        self.requests = 0
        self._ends = ends
        self._asks = asks

    async def attempt(self, order: Order, heard: Heard, permission: Permission) -> Returned:
        self.orders.append(order)
        for _ in range(self._asks):
            if refusal := await permission(Ask("p", 10)):
                return Returned(Ended("stopped", "budget", refusal))
            await asyncio.sleep(0)  # the request takes its time, while others ask
            self.requests += 1
            heard(Spent("p", 10, "0.01"))
        heard(Said("a line", 1))
        return Returned(self._ends(order), b"{}")

    def halt(self) -> None:
        self.halted = True

    async def close(self) -> None:
        self.closed = True


def tasks(count: int) -> list[Task]:
    return [Task(f"t{number}", "/r", "p") for number in range(count)]


async def ran(
    ledger: Ledger, runner: FakeRunner, caps: Caps | None = None, ways: Ways | None = None
) -> tuple[Fleet, Board, list[str]]:
    counts = ledger.counts()
    board = Board(sum(counts.values()), counts, runner.size)
    said: list[str] = []
    board.say = said.append
    fleet = Fleet(ledger, runner, Allowance(caps or Caps(), *ledger.spent()), board, ways or Ways(delay=0.001))
    await fleet.run()
    assert runner.closed
    return fleet, board, said


async def test_every_task_ends_once_and_is_told(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    ledger.merge(tasks(20))
    runner = FakeRunner(lambda order: PASSED if order.task.id != "t3" else Ended("failed", "check", "no"), size=4)
    fleet, board, said = await ran(ledger, runner)
    assert (fleet.stopped, board.counts["passed"], board.counts["failed"]) == ("", 19, 1)
    assert len(said) == len(runner.orders) == 20
    assert board.summary.startswith("20 of 20 done, 19 passed, 1 failed")
    assert len({order.scratch for order in runner.orders}) == 20
    ledger.close()


async def test_failures_of_the_machinery_are_repeated_and_those_of_the_agent_are_not(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    ledger.merge(tasks(3))
    ends: dict[str, Callable[[Order], Ended]] = {
        "t0": lambda order: Ended("broken", "network", "no answer", again=True) if order.attempt < 3 else PASSED,
        "t1": lambda _: Ended("broken", "auth", "wrong key"),
        "t2": lambda _: Ended("failed", "check", "status 1"),
    }
    runner = FakeRunner(lambda order: ends[order.task.id](order))
    _, board, said = await ran(ledger, runner)
    attempts = sorted((order.task.id, order.attempt) for order in runner.orders)
    assert attempts == [("t0", 1), ("t0", 2), ("t0", 3), ("t1", 1), ("t2", 1)]
    assert (board.counts["passed"], board.counts["broken"], board.counts["failed"]) == (1, 1, 1)
    assert sum("tried again" in line for line in said) == 2
    assert next(line for line in ledger.results() if line["id"] == "t0")["attempt"] == 3
    ledger.close()


async def test_the_budget_is_passed_by_at_most_one_request_a_worker_and_the_rest_waits(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    ledger.merge(tasks(30))
    runner = FakeRunner(lambda _: PASSED, size=3, asks=4)
    fleet, board, _ = await ran(ledger, runner, Caps(tokens=200))
    assert 20 <= runner.requests <= 20 + 3
    assert "budget of 200 tokens" in fleet.stopped
    assert board.counts["stopped"] > 0
    unfinished = ledger.begin()
    assert unfinished == 30 - board.counts["passed"]
    more = FakeRunner(lambda _: PASSED, size=3, asks=1)
    fleet, board, _ = await ran(ledger, more, Caps(tokens=10_000))
    assert (fleet.stopped, board.counts["passed"]) == ("", 30)
    assert ledger.spent()[0] == (runner.requests + more.requests) * 10  # also what earlier attempts cost
    ledger.close()


async def test_a_gentle_stop_lets_running_tasks_end_and_a_hard_one_does_not(tmp_path: Path) -> None:
    for hard in (False, True):
        ledger = Ledger(tmp_path / f"out{hard}", resume=False)
        ledger.merge(tasks(5))
        fleets: list[Fleet] = []

        def stopping(_: Order, fleets: list[Fleet] = fleets, hard: bool = hard) -> Ended:
            fleets[0].stop_now("now") if hard else fleets[0].stop("enough")
            return PASSED

        runner = FakeRunner(stopping, size=1)
        board = Board(5, {}, 1)
        fleets.append(Fleet(ledger, runner, Allowance(Caps()), board, Ways()))
        await fleets[0].run()
        assert (board.counts["passed"], runner.halted, ledger.begin()) == (1, hard, 4)
        ledger.close()


async def test_the_same_trouble_in_one_task_after_the_other_stops_the_run(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    ledger.merge(tasks(50))
    runner = FakeRunner(lambda _: Ended("broken", "auth", "the key was rejected"), size=1)
    fleet, board, _ = await ran(ledger, runner)
    assert "the key was rejected" in fleet.stopped
    assert board.counts["broken"] == 5
    ledger.close()


async def test_a_full_disk_ends_the_run_and_keeps_what_was_finished(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    ledger.merge(tasks(4))

    def blocking(order: Order) -> Ended:
        if order.task.id == "t1":
            for left in (tmp_path / "out" / "patches").iterdir():
                left.unlink()
            (tmp_path / "out" / "patches").rmdir()
        return PASSED

    fleet, _, _ = await ran(ledger, FakeRunner(blocking, size=1))
    assert fleet.failure is not None
    assert [line["id"] for line in ledger.results()] == ["t0"]
    ledger.close()


def test_pauses_double_up_to_five_minutes() -> None:
    assert [round(backoff(5.0, attempt, lambda: 0.5)) for attempt in (1, 2, 3, 10)] == [5, 10, 20, 300]
