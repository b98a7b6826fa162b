"""The run as a live table in the terminal: counts on top, a line for each running task, Enter opens its transcript."""

from __future__ import annotations

import asyncio
import signal
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Footer, RichLog, Static

from swecli.figures import dollars, duration, tokens
from swecli.fleet.board import Board, Running
from swecli.fleet.run import Fleet
from swecli.safe_text import safe_line

LOOK = 0.5
"""Seconds between two drawings."""
KEPT = 500
"""Lines about ended tasks that stay visible."""
COLUMNS = ("Task", "Phase", "Steps", "Time", "Tokens", "Cost", "Newest line")


async def watch(fleet: Fleet, board: Board) -> bool:
    """Run the fleet under the table. Returns whether the user stopped it."""
    app = FleetTable(fleet, board)
    await app.run_async()
    if app.work is not None and not app.work.done():  # the terminal is gone
        fleet.stop_now("the terminal was closed")
    if app.work is not None:
        await app.work
    return app.stops > 0


class RunningTasks(DataTable[Text]):
    """A row for each running task."""

    BINDINGS: ClassVar[list[BindingType]] = [("enter", "select_cursor", "Transcript")]


class FleetTable(App[None]):
    """Draws the board until the run has ended. Ctrl+C stops gently, twice at once."""

    CSS = """
    #counts { height: auto; padding: 0 1; text-style: bold; }
    #note { height: auto; padding: 0 1; color: $text-warning; }
    #running { height: 2fr; }
    #ended { height: 1fr; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "halt", "Stop", priority=True), ("q", "halt", "Stop")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, fleet: Fleet, board: Board) -> None:
        super().__init__()
        self._fleet = fleet
        self._board = board
        self.stops = 0
        """How often the user asked to stop."""
        self.work: asyncio.Task[None] | None = None
        self._counts = Static(id="counts", markup=False)
        self._note = Static(id="note", markup=False)
        self._table = RunningTasks(id="running", cursor_type="row", zebra_stripes=True)
        self._ended = RichLog(id="ended", max_lines=KEPT, markup=False, wrap=True)

    def compose(self) -> ComposeResult:
        yield from (self._counts, self._note, self._table, self._ended, Footer())

    def on_mount(self) -> None:
        for name in COLUMNS:
            self._table.add_column(name, key=name)
        self._table.focus()
        self._board.say = self._say
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._fleet.stop_now, "stopped by a signal")
        self.work = asyncio.create_task(self._fleet.run())
        self.work.add_done_callback(lambda _: self.exit())
        self.set_interval(LOOK, self._draw)
        self._draw()

    def _say(self, line: str) -> None:
        self._ended.write(Text(line))

    def _draw(self) -> None:
        if len(self.screen_stack) > 1:  # a transcript is in front
            return
        self._counts.update(Text(self._board.summary))
        table = self._table
        known = {str(key.value) for key in table.rows}
        for name in known - self._board.running.keys():
            table.remove_row(name)
        for name, running in self._board.running.items():
            cells = cells_of(running, asyncio.get_running_loop().time())
            if name not in known:
                table.add_row(*cells, key=name)
                continue
            for column, cell in zip(COLUMNS, cells, strict=True):
                table.update_cell(name, column, cell, update_width=True)

    def on_data_table_row_selected(self, selected: DataTable.RowSelected) -> None:
        """Open the transcript of the task under the cursor."""
        running = self._board.running.get(str(selected.row_key.value))
        if running is not None:
            self.push_screen(TaskTranscript(running))

    def action_halt(self) -> None:
        """Stop: the first time no further task begins, the second time the running ones end, too."""
        self.stops += 1
        if self.stops == 1:
            self._fleet.stop("stopped by the user")
            self._note.update(Text("No further task begins; the running ones end first. Again: end them at once."))
        else:
            self._fleet.stop_now("stopped by the user")
            self._note.update(Text("Ending the running tasks."))

    async def action_quit(self) -> None:
        """Textual's own key for the end stops the run, as Ctrl+C does."""
        self.action_halt()


class TaskTranscript(Screen[None]):
    """The lines of one running task as they come."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss", "Back"), ("enter", "dismiss", "Back")]

    def __init__(self, running: Running) -> None:
        super().__init__()
        self._shown_task = running
        self._seen = 0

    def compose(self) -> ComposeResult:
        task = self._shown_task.task
        yield Static(Text(f"{safe_line(task.id)}: {first_line(task.prompt)}", style="bold"))
        yield RichLog(id="lines", markup=False, wrap=True)
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(RichLog).focus()
        self.set_interval(LOOK, self._draw)
        self._draw()

    def _draw(self) -> None:
        log, running = self.query_one(RichLog), self._shown_task
        new = min(running.said - self._seen, len(running.lines))
        for line in list(running.lines)[len(running.lines) - new :]:
            log.write(Text(line))
        self._seen = running.said


def first_line(text: str) -> str:
    """The first line of a prompt that is not empty, cut to 200 characters."""
    lines = (line.strip() for line in text.splitlines())
    return safe_line(next(filter(None, lines), ""))[:200]


def cells_of(running: Running, now: float) -> list[Text]:
    """The line of a running task. ``now`` is in seconds of the monotonic clock."""
    name = safe_line(running.task.id)
    attempt = f" (attempt {running.attempt})" if running.attempt > 1 else ""
    return [
        Text(f"{name[:40]}{attempt}"),
        Text(running.phase),
        Text(str(running.steps), justify="right"),
        Text(duration(now - running.since), justify="right"),
        Text(tokens(running.tokens), justify="right"),
        Text(dollars(running.price) if running.price else "", justify="right"),
        Text(safe_line(running.newest)[:200], style="dim"),
    ]
