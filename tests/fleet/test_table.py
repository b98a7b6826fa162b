"""The live table of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.widgets import DataTable, RichLog

from swecli.fleet.allowance import Allowance, Caps
from swecli.fleet.board import Board
from swecli.fleet.ledger import Ledger
from swecli.fleet.link import Began, Ended, Order, Said
from swecli.fleet.local import Heard, Permission, Returned
from swecli.fleet.run import Fleet, Ways
from swecli.fleet.table import FleetTable, TaskTranscript
from swecli.fleet.tasks import Task
from tests.support.waiting import until

HOSTILE = "[bold]x[/bold]\x1b[31m\u202e"


class Waiting:
    """Tasks that say a line and run until they may end, or are halted."""

    size = 1

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.halted = False

    async def attempt(self, order: Order, heard: Heard, permission: Permission) -> Returned:
        heard(Began("agent"))
        heard(Said(f"reads {HOSTILE}", 1))
        await self.may_end.wait()
        return Returned(Ended("stopped" if self.halted else "passed", "", ""))

    def halt(self) -> None:
        self.halted = True
        self.may_end.set()

    async def close(self) -> None:
        return


async def test_it_shows_running_tasks_opens_a_transcript_and_stops_gently_then_at_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", resume=False)
    ledger.merge([Task(f"t{HOSTILE[:14]}", "/r", "Do it"), Task("t2", "/r", "Do it")])
    runner, board = Waiting(), Board(2, {}, 1)
    app = FleetTable(Fleet(ledger, runner, Allowance(Caps()), board, Ways()), board)
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.query_one("#running", DataTable)
        await until(lambda: table.row_count == 1)
        assert [str(cell) for cell in table.get_row_at(0)][:3] == ["t[bold]x[/bold]", "agent", "1"]
        assert app.screen.active_bindings["enter"].binding.description == "Transcript"
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, TaskTranscript))
        log = app.screen.query_one(RichLog)
        await until(lambda: len(log.lines) > 0)
        assert "reads [bold]x[/bold]" in log.lines[0].text
        await pilot.press("ctrl+c")
        await until(lambda: app.stops == 1)
        assert not runner.halted
        await pilot.press("escape")
        await pilot.press("ctrl+c")
        await until(lambda: runner.halted)
        await until(lambda: app.work is not None and app.work.done())
    assert board.counts["stopped"] == 1
    assert ledger.begin() == 2
    ledger.close()
