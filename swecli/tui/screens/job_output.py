"""What a command writes, while it writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swecli.core.protocol.blocks import DisplayBlock, TerminalBlock, TextBlock
from swecli.tui.screens.command_words import facts, one_line
from swecli.tui.screens.entry import Entry
from swecli.tui.screens.ports import CommandsPort, ShownCommand
from swecli.tui.screens.sheet import Sheet

EVERY = 0.5
"""Seconds after which it is looked for more."""
SHOWN = 200_000
"""Characters of the end of the output that are shown."""


class OutputSheet(Sheet):
    """``stop`` is called by the key that takes entries away."""

    reads = True

    def __init__(
        self, port: CommandsPort, name: str, clock: Callable[[], float], stop: Callable[[ShownCommand], None]
    ) -> None:
        super().__init__("Jobs", "type to see only the lines with these words")
        self._port = port
        self._name = name
        self._clock = clock
        self._stop = stop
        self._command: ShownCommand | None = None
        self._output: str | None = None
        self._trouble = ""

    def begin(self) -> None:
        self.board.start(self._look, "output")

    async def _look(self) -> None:
        """Read what is new, and come again while more may follow."""
        now = next((command for command in self._port.read() if command.name == self._name), None)
        try:
            if now is None or self._command is None or self._output is None or now.size != self._command.size:
                self._output = (await self._port.output(self._name))[-SHOWN:]
        except ValueError as error:
            self._trouble = str(error) if self._output is None else ""
        changed = now != self._command
        # A command of the foreground that has ended is no longer there: what it wrote is in the conversation.
        self._command = now or self._command
        if self.board.shows(self):
            if changed or now is None or now.running:
                self.board.show()
            if now is not None and now.running:
                self.board.after(EVERY, self.begin)

    # --- what is seen ---

    def headline(self, count: int, total: int) -> str:
        if self._command is None:
            return self.title
        command = self._command
        parts = (command.name if command.job else "", facts(command, self._clock()), one_line(command))
        return " · ".join(part for part in parts if part)

    def found(self, query: str) -> Sequence[Entry]:
        return ()

    def about(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if self._trouble:
            return (TextBlock(self._trouble, "error"),)
        if self._output is None:
            return (TextBlock("…", "dim"),)
        words = self.board.text.casefold().split()
        lines = self._output.splitlines()
        left = [line for line in lines if all(word in line.casefold() for word in words)]
        if not lines:
            return (TextBlock("It has written nothing" + (" yet." if self._runs else "."), "dim"),)
        if not left:
            return (TextBlock(f"None of its {len(lines)} lines has these words.", "dim"),)
        return (TerminalBlock("" if words or self._command is None else self._command.command, "\n".join(left)),)

    def note(self, entry: Entry | None) -> str:
        stop = f"{self.board.keymap.shown('remove')} stops it · " if self._runs else ""
        return f"{stop}↑↓ PgUp PgDn Home End scroll · esc back to the list"

    @property
    def _runs(self) -> bool:
        return self._command is not None and self._command.running

    # --- what is done ---

    def remove(self, entry: Entry | None) -> None:
        if self._command is not None:
            self._stop(self._command)
