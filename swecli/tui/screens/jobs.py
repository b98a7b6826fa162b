"""Running commands and ended jobs: view their output as it grows, and stop them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.protocol.blocks import DisplayBlock, TerminalBlock, TextBlock
from swecli.core.protocol.commands import CancelItem, Interrupt
from swecli.core.tools.base import readable_size
from swecli.core.workspace.jobs import JobInfo, JobsError, shown_age
from swecli.figures import cut
from swecli.safe_text import safe_line
from swecli.tui.screens.list_screen import Ask, Entry, ListPage, heading
from swecli.tui.session_controller import SessionController
from swecli.tui.session_state import Running
from swecli.tui.transcript.blocks import ToolBlock
from swecli.tui.transcript.view import Transcript

if TYPE_CHECKING:
    from swecli.core.engine.session import Session


class ShownCommand(Struct, frozen=True):
    """A running command or an ended job. ``name`` is a job's id, or the item of a foreground command; ``item`` remains
    when the command becomes a job. Times are Unix seconds; ``size`` is bytes of output, a lower bound with ``beyond``;
    ``about`` is further information."""

    name: str
    command: str
    started: float
    ended: float | None = None
    exit_status: int | None = None
    stopped: bool = False
    size: int = 0
    beyond: bool = False
    about: str = ""
    job: bool = True
    item: str = ""
    tokens: int | None = None
    """Tokens that a subagent used; None for a command."""

    @property
    def running(self) -> bool:
        return self.ended is None


class SessionCommands:
    """The commands of the open session. Output of a foreground command comes from the transcript, which has at least
    its end. No method blocks for long."""

    def __init__(self, session: SessionController, transcript: Transcript) -> None:
        self._session = session
        self._transcript = transcript

    def read(self) -> Sequence[ShownCommand]:
        """Foreground commands, then jobs, oldest first."""
        port = self._session.port
        waited = [self._waited(item, run) for item, run in self._session.state.running.items() if run.is_command]
        return [*waited, *(_job(job) for job in (port.view.jobs if port is not None else ()))]

    async def output(self, name: str) -> str:
        """Output of a command so far, without its middle if it is long.

        Raises:
            ValueError: the command no longer exists.
        """
        block = self._block(name)
        if block is not None:
            return block.output
        try:
            return await self._port().job_output(name)
        except JobsError as error:
            raise ValueError(str(error)) from error

    async def stop(self, name: str) -> str:
        """Stop a command and every process that it started. Returns a sentence.

        Raises:
            ValueError: the command no longer exists.
        """
        running = self._session.state.running.get(name)
        if running is not None:
            # The user's own commands have no call to stop separately.
            self._session.send(Interrupt() if running.kind == "user" else CancelItem(name))
            return "Stopping it; its output is in the transcript"
        try:
            job = await self._port().stop_job(name)
        except JobsError as error:
            raise ValueError(str(error)) from error
        return f"{job.id} was stopped" if job.status == "killed" else f"{job.id} had already ended"

    def _port(self) -> Session:
        port = self._session.port
        if port is None:
            raise ValueError("The session is not open")
        return port

    def _block(self, item: str) -> ToolBlock | None:
        blocks = self._transcript.page.blocks
        index = blocks.place(item) if item in self._session.state.running else None
        block = blocks[index] if index is not None else None
        return block if isinstance(block, ToolBlock) else None

    def _waited(self, item: str, running: Running) -> ShownCommand:
        block = self._block(item)
        size = len(block.output.encode("utf-8", "replace")) if block is not None else 0
        beyond = block is not None and block.output_cut
        about = "your own" if running.kind == "user" else "the turn waits for it"
        return ShownCommand(
            item,
            running.title or running.name,
            running.since,
            size=size,
            beyond=beyond,
            about=about,
            job=False,
            item=item,
        )


def _job(job: JobInfo) -> ShownCommand:
    about = job.note
    if job.status == "running":
        about = f"pid {job.pid}" if job.pid else ""
    return ShownCommand(
        job.id,
        job.command,
        job.started,
        None if job.status == "running" else job.ended or job.started,
        job.exit_status,
        stopped=job.status == "killed",
        size=job.size,
        about=about,
        item=job.item,
        tokens=job.tokens,
    )


def one_line(command: ShownCommand) -> str:
    return safe_line(" ".join(command.command.split()))


def label(command: ShownCommand) -> str:
    """A command's name within a sentence: its id, or its text."""
    text = cut(one_line(command), 40)
    return f"{command.name} ({text})" if command.job else text


def state(command: ShownCommand) -> str:
    """State or result of a command in a word or two."""
    if command.running:
        return "running" if command.exit_status is None else "left running"
    if command.stopped:
        return "stopped"
    if command.tokens is not None:
        return "done"
    return "ended" if command.exit_status is None else f"exit {command.exit_status}"


def size(command: ShownCommand) -> str:
    if command.tokens is not None:
        return f"{command.tokens:,} tokens"
    return ("> " if command.beyond else "") + readable_size(command.size)


def facts(command: ShownCommand, now: float) -> str:
    """Everything about a command besides its text, on one line."""
    age = shown_age((command.ended or now) - command.started)
    since = 0.0 if command.ended is None else now - command.ended
    ended = f", {shown_age(since)} ago" if since >= 1 else ""
    took = f"for {age}" if command.running else f"after {age}{ended}"
    kind, of = ("", " of output") if command.tokens is None else ("subagent", "")
    parts = [kind, f"{state(command)} {took}", f"{size(command)}{of}", command.about]
    return " · ".join(part for part in parts if part)


def _written(command: ShownCommand, text: str, output: str) -> DisplayBlock:
    """A command with its output; for a subagent only the report, because no shell ran it."""
    return TerminalBlock(text, output) if command.tokens is None else TextBlock(output)


OUTPUT_INTERVAL = 0.5
"""Seconds between two checks for more output."""
SHOWN = 200_000
"""Characters of the end of the output to show."""


class OutputPage(ListPage):
    """Output of one command. ``stop`` is called by the key that removes entries."""

    reads = True
    leave = "back to the list"

    def __init__(
        self, commands: SessionCommands, name: str, clock: Callable[[], float], stop: Callable[[ShownCommand], None]
    ) -> None:
        super().__init__("Jobs", "type to filter the lines")
        self._source = commands
        self._name = name
        self._clock = clock
        self._stop = stop
        self._command: ShownCommand | None = None
        self._output: str | None = None
        self._trouble = ""

    def begin(self) -> None:
        self.view.start(self._look, "output")

    async def _look(self) -> None:
        """Read new output, and repeat while more may follow."""
        now = self._present()
        try:
            if now is None or self._command is None or self._output is None or now.size != self._command.size:
                self._output = (await self._source.output(self._name))[-SHOWN:]
        except ValueError as error:
            self._trouble = str(error) if self._output is None else ""
        self._command = now or (None if self._command is None else self._as_ended(self._command))
        if self.view.shows(self):
            self.view.show()
            if now is not None and now.running:
                self.view.after(OUTPUT_INTERVAL, self.begin)

    def _present(self) -> ShownCommand | None:
        """The command's current state; one sent to the background since is a job with another name."""
        item = self._command.item if self._command is not None else ""
        for command in self._source.read():
            if command.name == self._name or (item and command.item == item):
                self._name = command.name
                return command
        return None

    def _as_ended(self, command: ShownCommand) -> ShownCommand:
        """The command after it is no longer known; the conversation has its result."""
        about = "" if command.job else "the result is in the conversation"
        return replace(command, ended=command.ended or self._clock(), about=about)

    # --- display ---

    def headline(self, count: int, total: int) -> str:
        if self._command is None:
            return self.title
        command = self._command
        parts = (command.name if command.job else "", facts(command, self._clock()), one_line(command))
        return " · ".join(part for part in parts if part)

    def matching(self, query: str) -> Sequence[Entry]:
        return ()

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if self._trouble:
            return (TextBlock(self._trouble, "error"),)
        if self._output is None:
            return (TextBlock("…", "dim"),)
        words = self.view.text.casefold().split()
        lines = self._output.splitlines()
        left = [line for line in lines if all(word in line.casefold() for word in words)]
        if not lines:
            return (TextBlock("No output" + (" yet." if self._runs else "."), "dim"),)
        if not left:
            return (TextBlock(f"No line of {len(lines)} matches.", "dim"),)
        text = "\n".join(left)
        if self._command is None:
            return (TerminalBlock("", text),)
        return (_written(self._command, "" if words else self._command.command, text),)

    def key_note(self, entry: Entry | None) -> str:
        stop = f"{self.view.keymap.shown('remove')} stops it · " if self._runs else ""
        return f"{stop}↑↓ PgUp PgDn Home End scroll"

    @property
    def _runs(self) -> bool:
        return self._command is not None and self._command.running

    # --- actions ---

    def remove(self, entry: Entry | None) -> None:
        if self._command is not None:
            self._stop(self._command)


EVERY = 1.0
"""Seconds between two updates of the list."""
TAIL = 3
"""Lines of the end of the output shown below the list."""


class JobsPage(ListPage):
    """List of commands. ``notify`` gets a sentence for the user, ``ask`` confirms before a stop; ``clock`` is Unix
    seconds."""

    def __init__(
        self, commands: SessionCommands, notify: Callable[[str], None], ask: Ask, clock: Callable[[], float]
    ) -> None:
        super().__init__("Jobs", "type to search commands and states")
        self._source = commands
        self._notify = notify
        self._ask = ask
        self._clock = clock
        self._commands: dict[str, ShownCommand] = {}
        self._ends: dict[str, tuple[int, str]] = {}
        """End of a command's output, and the output's size at that time."""

    def begin(self) -> None:
        self._read()
        self.view.show()
        self.view.after(EVERY, self._again)

    def _read(self) -> bool:
        """Update the commands; returns whether anything visible changed."""
        before = self.entries
        self._commands = {command.name: command for command in self._source.read()}
        self.entries = entries(list(self._commands.values()), self._clock())
        return self.entries != before

    def _again(self) -> None:
        if self._read():
            self.view.show()
        self.view.after(EVERY, self._again)

    # --- display ---

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if entry is None:
            return () if self.entries else self._how_to_get_one()
        command = self._commands[entry.name]
        seen, end = self._ends.get(entry.name, (-1, ""))
        if seen != command.size:
            self.view.start(lambda: self._look(command), "look")
        return (TextBlock(facts(command, self._clock()), "dim"), _written(command, one_line(command), end))

    def _how_to_get_one(self) -> Sequence[DisplayBlock]:
        key = self.view.keymap.shown("background")
        return (
            TextBlock("No jobs yet."),
            TextBlock(
                f"{key} moves a running command to the background, so the turn continues without it. The model starts "
                "servers and watchers there. Jobs are listed here until the session ends, and end with it.",
                "dim",
            ),
        )

    async def _look(self, command: ShownCommand) -> None:
        try:
            output = await self._source.output(command.name)
        except ValueError as error:
            output = str(error)
        lines = [line for line in output.splitlines() if line.strip()]
        self._ends[command.name] = (command.size, "\n".join(lines[-TAIL:]))
        chosen = self.view.chosen
        if self.view.shows(self) and chosen is not None and chosen.name == command.name:
            self.view.say(self.detail(chosen))

    def key_note(self, entry: Entry | None) -> str:
        if entry is None:
            return ""
        command, keymap = self._commands[entry.name], self.view.keymap
        stop = f"{keymap.shown('remove')} stops it · " if command.running else ""
        away = "" if command.job else f"{keymap.shown('background')} moves it to the background · "
        return f"enter shows its output · {stop}{away}↑↓ move"

    # --- actions ---

    def choose(self, entry: Entry) -> None:
        self.view.enter(OutputPage(self._source, entry.name, self._clock, self._stop))

    def remove(self, entry: Entry | None) -> None:
        if entry is not None:
            self._stop(self._commands[entry.name])

    def _stop(self, command: ShownCommand) -> None:
        if not command.running:
            self._notify(f"{label(command)} has already ended")
            return
        follows = "and everything it started" if command.job else "the model learns that you stopped it"
        self._ask(
            f"Stop {label(command)}?",
            ("Stop it", follows),
            lambda: self.view.start(lambda: self._stopped(command.name)),
        )

    async def _stopped(self, name: str) -> None:
        try:
            self._notify(await self._source.stop(name))
        except ValueError as error:
            self._notify(str(error))
        if self.view.shows(self) and self._read():
            self.view.show()


def entries(commands: Sequence[ShownCommand], now: float) -> list[Entry]:
    """The commands under headings: foreground, background, ended."""
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
