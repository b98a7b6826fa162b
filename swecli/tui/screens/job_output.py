"""What a command writes, while it writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

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
    leave = "back to the list"

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
        now = self._present()
        try:
            if now is None or self._command is None or self._output is None or now.size != self._command.size:
                self._output = (await self._port.output(self._name))[-SHOWN:]
        except ValueError as error:
            self._trouble = str(error) if self._output is None else ""
        self._command = now or (None if self._command is None else self._gone(self._command))
        if self.board.shows(self):
            self.board.show()
            if now is not None and now.running:
                self.board.after(EVERY, self.begin)

    def _present(self) -> ShownCommand | None:
        """The command as it is now; one that was sent to the background meanwhile is a job of another name."""
        item = self._command.item if self._command is not None else ""
        for command in self._port.read():
            if command.name == self._name or (item and command.item == item):
                self._name = command.name
                return command
        return None

    def _gone(self, command: ShownCommand) -> ShownCommand:
        """The same command, of which nobody knows any more: the conversation has what became of it."""
        about = "" if command.job else "the conversation has its result"
        return replace(command, ended=command.ended or self._clock(), about=about)

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
        return f"{stop}↑↓ PgUp PgDn Home End scroll"

    @property
    def _runs(self) -> bool:
        return self._command is not None and self._command.running

    # --- what is done ---

    def remove(self, entry: Entry | None) -> None:
        if self._command is not None:
            self._stop(self._command)
