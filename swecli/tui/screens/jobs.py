"""The commands that run, and the jobs that have ended: looked at while they write, and stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swecli.core.protocol.blocks import DisplayBlock, TerminalBlock, TextBlock
from swecli.core.workspace.jobs import shown_age
from swecli.tui.screens.command_words import facts, label, one_line, size, state
from swecli.tui.screens.entry import Entry, heading
from swecli.tui.screens.job_output import OutputSheet
from swecli.tui.screens.ports import CommandsPort, ShownCommand
from swecli.tui.screens.sheet import Sheet

EVERY = 1.0
"""Seconds after which the commands are looked at again."""
TAIL = 3
"""Lines of the end of the output that are shown below the list."""

Ask = Callable[[str, tuple[str, str], Callable[[], None]], None]
"""Asks whether something is to be done: the question, a label for yes with what follows, and what is done then."""


class JobsSheet(Sheet):
    """``tell`` gets a sentence for the user, ``ask`` asks before a command is stopped; ``clock`` is Unix seconds."""

    def __init__(self, port: CommandsPort, tell: Callable[[str], None], ask: Ask, clock: Callable[[], float]) -> None:
        super().__init__("Jobs", "type to search commands and states")
        self._port = port
        self._tell = tell
        self._ask = ask
        self._clock = clock
        self._commands: dict[str, ShownCommand] = {}
        self._ends: dict[str, tuple[int, str]] = {}
        """The end of what a command wrote, and how much it had written then."""

    def begin(self) -> None:
        self._read()
        self.board.show()
        self.board.after(EVERY, self._again)

    def _read(self) -> bool:
        """Look at the commands; whether there is anything new to see."""
        before = self.entries
        self._commands = {command.name: command for command in self._port.read()}
        self.entries = entries(list(self._commands.values()), self._clock())
        return self.entries != before

    def _again(self) -> None:
        if self._read():
            self.board.show()
        self.board.after(EVERY, self._again)

    # --- what is seen ---

    def about(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if entry is None:
            return () if self.entries else self._how_to_get_one()
        command = self._commands[entry.name]
        seen, end = self._ends.get(entry.name, (-1, ""))
        if seen != command.size:
            self.board.start(lambda: self._look(command), "look")
        return (
            TextBlock(facts(command, self._clock()), "dim"),
            TerminalBlock(one_line(command), end),
        )

    def _how_to_get_one(self) -> Sequence[DisplayBlock]:
        key = self.board.keymap.shown("background")
        return (
            TextBlock("Nothing runs, and nothing has run in the background."),
            TextBlock(
                f"{key} lets a command that runs go on in the background, so that the turn goes on without it. "
                "Servers and watchers are started there by the model. They are listed here until the session ends, "
                "and end with it.",
                "dim",
            ),
        )

    async def _look(self, command: ShownCommand) -> None:
        try:
            output = await self._port.output(command.name)
        except ValueError as error:
            output = str(error)
        lines = [line for line in output.splitlines() if line.strip()]
        self._ends[command.name] = (command.size, "\n".join(lines[-TAIL:]))
        chosen = self.board.chosen
        if self.board.shows(self) and chosen is not None and chosen.name == command.name:
            self.board.say(self.about(chosen))

    def note(self, entry: Entry | None) -> str:
        if entry is None:
            return ""
        command, keymap = self._commands[entry.name], self.board.keymap
        stop = f"{keymap.shown('remove')} stops it · " if command.running else ""
        away = "" if command.job else f"{keymap.shown('background')} sends it to the background · "
        return f"enter shows its output · {stop}{away}↑↓ choose"

    # --- what is done ---

    def choose(self, entry: Entry) -> None:
        self.board.enter(OutputSheet(self._port, entry.name, self._clock, self._stop))

    def remove(self, entry: Entry | None) -> None:
        if entry is not None:
            self._stop(self._commands[entry.name])

    def _stop(self, command: ShownCommand) -> None:
        if not command.running:
            self._tell(f"{label(command)} has ended already")
            return
        follows = "and all that it has started" if command.job else "the model is told that you stopped it"
        self._ask(
            f"Stop {label(command)}?",
            ("Stop it", follows),
            lambda: self.board.start(lambda: self._stopped(command.name)),
        )

    async def _stopped(self, name: str) -> None:
        try:
            self._tell(await self._port.stop(name))
        except ValueError as error:
            self._tell(str(error))
        if self.board.shows(self) and self._read():
            self.board.show()


def entries(commands: Sequence[ShownCommand], now: float) -> list[Entry]:
    """The commands under headings: what waits for its end, what does not, and what has ended."""
    out: list[Entry] = []
    groups: tuple[tuple[str, Callable[[ShownCommand], bool]], ...] = (
        ("In the foreground", lambda command: not command.job),
        ("In the background", lambda command: command.job and command.running),
        ("Ended", lambda command: command.job and not command.running),
    )
    for title, belongs in groups:
        inside = [command for command in commands if belongs(command)]
        if inside:
            out.append(heading(title))
        for command in inside:
            cells = (
                command.name if command.job else "",
                state(command),
                shown_age((command.ended or now) - command.started),
                size(command),
                one_line(command),
            )
            failed = command.exit_status not in (0, None)
            tone = "plain" if command.running else "warning" if failed else "dim"
            out.append(Entry(command.name, cells, tone, mark="●" if command.running else " "))
    return out
