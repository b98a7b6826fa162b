"""A headless run: commands in, events out, until the work is done; and its exit status."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, TextIO

from msgspec import Struct, field

from swecli.commands.base import Screen
from swecli.commands.registry import COMMANDS, CommandCall, UnknownCommand, commands_of, parse
from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.codec import CodecError, decode_command
from swecli.core.protocol.commands import Answer, Close, Command, Interrupt, ReplyPermission, Submit
from swecli.core.protocol.events import Event, PermissionRequested, QuestionAsked
from swecli.core.workspace.mentions import mentioned
from swecli.event_lines import Silence
from swecli.exit_codes import ExitCode
from swecli.figures import duration
from swecli.headless import outcome
from swecli.headless.outcome import Outcome
from swecli.headless.printers import Printer, printer_for
from swecli.headless.replies import consent, dismissal, refusal
from swecli.launch import LaunchOptions
from swecli.output import ROOM, Output, Writer, takes_more
from swecli.stopping import Stop

if TYPE_CHECKING:
    from swecli.core.answer_schema import AnswerSchema
    from swecli.core.engine.session import Session


MAX_LINE = 64 * 1024 * 1024
"""Bytes of one line; a longer one is an error, not a command."""


class BadLine(Exception):
    """A line that is not a command. The message names line and field."""


class CommandInput:
    """Reads lines in a thread of its own, because a read from a pipe can't be cancelled, and passes each to the event
    loop: a command, a ``BadLine``, or None at the end of the input."""

    def __init__(self, stream: BinaryIO, receive: Callable[[Command | BadLine | None], None]) -> None:
        self._stream = stream
        self._receive = receive
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        threading.Thread(target=self._read, name="command input", daemon=True).start()

    def _read(self) -> None:
        number = 0
        try:
            while line := self._stream.readline(MAX_LINE):
                number += 1
                if line.strip():
                    self._hand_over(_command(line, number))
        except (OSError, ValueError) as error:
            self._hand_over(BadLine(f"standard input: {error}"))
        self._hand_over(None)

    def _hand_over(self, value: Command | BadLine | None) -> None:
        with contextlib.suppress(RuntimeError):  # the run is over and its loop closed: drop the line
            self._loop.call_soon_threadsafe(self._receive, value)


def _command(line: bytes, number: int) -> Command | BadLine:
    try:
        return decode_command(line.decode("utf-8"))
    except (CodecError, UnicodeDecodeError) as error:
        return BadLine(f"standard input, line {number}: {error}")


SETTLE_SECONDS = 0.05
"""Seconds between checks for the end of a run without events."""
CLOSE_SECONDS = 10.0
"""Seconds for the session to stop its processes and store its facts."""
LONG = 2_000
"""Characters from which on a message without files may be large."""
PATIENCE = (60.0, 300.0)
"""Seconds of silence from the model after which a line on standard error says so."""
LINGER = 1.0
"""Seconds that a run ended by a signal waits for the reader of its remaining output."""


class Request(Struct, frozen=True):
    """Work for a run. ``prompt`` is sent first unless it is empty, and attaches ``mentions`` (None: its own mentions).
    ``commands`` is a stream of JSON lines that may answer questions; without it the run is unattended. ``approve_all``
    approves every permission request."""

    prompt: str = ""
    mentions: tuple[str, ...] | None = None
    commands: BinaryIO | None = None
    approve_all: bool = False
    screens: Mapping[Screen, Callable[[str], tuple[DisplayBlock, ...]]] = field(default_factory=lambda: {})
    """Content in place of screens that a slash command opens."""
    large: Callable[[], float] = lambda: 1.0
    """The share of the window above which the size of the message is reported."""
    schema: AnswerSchema | None = None
    """Schema of the last answer; the model may correct it once."""


class HeadlessRun:
    """Drives one session. ``run`` returns when all work is done, and closes the session."""

    def __init__(
        self,
        session: Session,
        request: Request,
        printer: Printer,
        complain: Callable[[str], None],
        writer: Writer,
        stop: Stop,
    ) -> None:
        """``complain`` takes a line for standard error. ``writer`` is the printer's."""
        self._session = session
        self._request = request
        self._printer = printer
        self._complain = complain
        self._writer = writer
        self._stop_wish = stop
        self._outcome = Outcome()
        self._input_open = request.commands is not None
        self._stopping = False
        self._closed_output = False
        self._wake = asyncio.Event()
        self._silence = Silence(PATIENCE, self._outcome)
        self._command: asyncio.Future[outcome.Shown | None] | None = None
        self._asks_model = False
        """Whether the command asks the model by itself, which no interrupt of the session ends."""
        self._weighing: asyncio.Future[None] | None = None
        self._arrived: deque[Event] = deque()
        """Events that were not processed yet."""
        self._fitting: asyncio.Future[None] | None = None
        self._fitted = 0
        """How many turns had ended when the check of an answer began."""
        self._repaired = False
        self._taken_seq = 0
        """Sequence number of the newest event that was processed; those before the subscription are not awaited."""

    async def run(self) -> ExitCode:
        """The exit status. Raises nothing but cancellation and defects."""
        events = self._session.subscribe(replay=True)
        self._taken_seq = self._session.view.published_seq
        self._writer.changed = self._look_at_output
        with self._stop_wish.calling(self._signalled):
            if self._stop_wish.code is None:
                if self._request.schema is not None:
                    self._session.require_answers(self._request.schema.schema)
                self._begin(self._request.prompt)
                if self._request.commands is not None:
                    CommandInput(self._request.commands, self._receive).start()
            await self._follow(events)
            self._outcome.kept = self._session.kept
            if self._outcome.loss:
                self._complain(f"swecli: {self._outcome.loss}")
            if not self._closed_output:
                self._printer.finish(self._outcome)
            await self._delivered()
        if self._closed_output:
            return self._outcome.signal or ExitCode.FAILURE
        return self._outcome.exit_code

    def _begin(self, prompt: str) -> None:
        commands = commands_of(self._session) if prompt.lstrip().startswith("/") else COMMANDS
        command = None if self._request.commands is not None else parse(prompt, commands)
        if isinstance(command, UnknownCommand | CommandCall):
            self._command = asyncio.ensure_future(self._run_command(prompt, command))
        elif prompt:
            self._weighing = asyncio.ensure_future(self._submit(Submit(prompt, mentions=self._request.mentions)))

    async def _run_command(self, prompt: str, command: CommandCall | UnknownCommand | None) -> outcome.Shown | None:
        """Run a command to its end, after the start of servers whose tools it shows. An unknown one may belong to
        one."""
        unknown = isinstance(command, UnknownCommand)
        needs_servers = unknown or (isinstance(command, CommandCall) and command.command.shows_tools)
        if needs_servers and self._session.tools.pending:
            await self._session.extensions_settled()
        if unknown:
            command = parse(prompt, commands_of(self._session))
        if isinstance(command, CommandCall):
            self._asks_model = command.command.asks_model
            return await outcome.run_slash(self._session, command, self._request.screens)
        if command is not None:
            self._outcome.input_errors.append(command.message)
            self._complain(f"error: {command.message}")
        return None

    async def _submit(self, message: Submit) -> None:
        """Send a message. Reports one that takes much of the window, because the user can't be asked."""
        words = mentioned(message.text) if message.mentions is None else message.mentions
        if words or len(message.text) > LONG:
            from swecli.core.engine.message_weight import all_of, weigh, weigh_mentions

            await self._session.start_settled()  # until then the window may be only assumed
            view = self._session.view
            weighed = await weigh_mentions(words, view.cwd, view.roots, view.model)
            weight = all_of(weigh(message.text, 0, view.budget, view.ratio), weighed)
            if weight.share > await asyncio.to_thread(self._request.large):
                self._complain(f"swecli: this message takes {weight.shown}")
        if not self._stopping:
            self._session.send(message)

    async def _delivered(self) -> None:
        """Wait until all output is written; for a limited time if a signal ends the run."""
        writing = asyncio.ensure_future(self._writer.settled())
        while not writing.done() and self._stop_wish.code is None:
            self._wake.clear()
            waking = asyncio.ensure_future(self._wake.wait())
            await asyncio.wait((writing, waking), return_when=asyncio.FIRST_COMPLETED)
            waking.cancel()
        await asyncio.wait((writing,), timeout=LINGER)
        writing.cancel()

    async def _follow(self, events: AsyncIterator[Event]) -> None:
        """Process events until no work is left, close the session, and process its last events."""
        arriving = asyncio.ensure_future(self._receive_events(events))
        watching = asyncio.ensure_future(self._silence.watch(self._say_silence))
        try:
            while not self._done():
                if not await self._has_room():
                    continue
                if self._arrived:
                    self._take(self._arrived.popleft())
                    continue
                if arriving.done():
                    arriving.result()
                    return
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SETTLE_SECONDS if self._may_end() else None):
                        await self._wake.wait()
            if self._weighing is not None:
                await self._weighing
            if self._command is not None and not self._command.cancelled():
                shown = await self._command
                if shown is not None and (
                    shown.text or self._outcome.ended is None
                ):  # else the command began a turn, so wait for its answer
                    self._outcome.shown = shown
            await self._close()
            await asyncio.wait_for(arriving, CLOSE_SECONDS)
            while self._arrived:
                self._take(self._arrived.popleft())
        except TimeoutError:
            self._complain("swecli: the session did not stop in time; unsaved work is lost")
        finally:
            arriving.cancel()
            watching.cancel()
            if self._fitting is not None:
                self._fitting.cancel()

    async def _receive_events(self, events: AsyncIterator[Event]) -> None:
        try:
            async for event in events:
                self._arrived.append(event)
                self._wake.set()
        finally:
            self._wake.set()

    def _say_silence(self, seconds: float) -> None:
        self._complain(f"swecli: nothing from the model for {duration(seconds)}; still waiting")

    async def _has_room(self) -> bool:
        """Wait while too much output is unread. False: something else needs attention first."""
        if self._writer.waiting <= ROOM or self._stopping:
            return True
        self._wake.clear()
        room, waking = asyncio.ensure_future(self._writer.settled(ROOM // 2)), asyncio.ensure_future(self._wake.wait())
        await asyncio.wait((room, waking), return_when=asyncio.FIRST_COMPLETED)
        room.cancel()
        waking.cancel()
        return room.done()

    def _may_end(self) -> bool:
        return not self._input_open and self._outcome.idle

    def _done(self) -> bool:
        works = any(task is not None and not task.done() for task in (self._command, self._weighing))
        view = self._session.view
        arrived = self._stopping or self._taken_seq == view.newest_seq
        return self._may_end() and not works and not view.busy and arrived and not self._corrects()

    def _corrects(self) -> bool:
        """Check the answer against the schema. True while the result is open: the check goes on, or the model was
        asked for a correction."""
        schema, ended = self._request.schema, self._outcome.ended
        if schema is None or self._stopping or self._stop_wish.code is not None:
            return False
        if ended is None or ended.outcome != "done":
            return False
        if self._fitting is None or self._fitted != self._outcome.turns:
            if self._fitting is not None:
                self._fitting.cancel()
            self._fitting, self._fitted = asyncio.ensure_future(self._outcome.fit(schema)), self._outcome.turns
            self._fitting.add_done_callback(lambda _: self._wake.set())
        if not self._fitting.done():
            return True
        mismatch = self._outcome.mismatch
        if mismatch is None or self._repaired:
            return False
        self._repaired = True
        self._session.require_answers(schema.schema, last=True)
        self._session.send(Submit(schema.repair(mismatch), mentions=()))
        return True

    async def _close(self) -> None:
        jobs = [job for job in self._session.view.jobs if job.status == "running"]
        for job in jobs:
            self._complain(f"swecli: ended the background job {job.id}: {job.command}")
        await asyncio.wait_for(self._session.close(), CLOSE_SECONDS)

    def _take(self, event: Event) -> None:
        self._taken_seq = max(self._taken_seq, event.seq)
        if event.seq < self._session.view.started_seq:
            return
        self._outcome.apply(event)
        self._silence.broken()
        if not self._closed_output:
            self._printer.event(event)
        if isinstance(event.body, PermissionRequested | QuestionAsked):
            self._answer(event.body)

    def _answer(self, body: PermissionRequested | QuestionAsked) -> None:
        """Answer in the user's absence; with commands from outside, leave the answer to them."""
        if isinstance(body, PermissionRequested):
            if self._request.approve_all:
                self._reply(consent(body))
            elif not self._input_open:
                self._outcome.nobody_to_ask(body)
                self._reply(refusal(body))
        elif not self._input_open:
            self._reply(dismissal(body.request))

    def _reply(self, command: Command) -> None:
        self._printer.replied(command)
        self._session.send(command)

    def _receive(self, value: Command | BadLine | None) -> None:
        if self._stopping:
            return
        if value is None or isinstance(value, Close):
            self._end_of_input(interrupt=value is not None)
        elif isinstance(value, BadLine):
            self._outcome.input_errors.append(str(value))
            self._complain(f"error: {value}")
        else:
            if isinstance(value, ReplyPermission | Answer):
                self._outcome.answered(value.request)
            self._session.send(value)
        self._wake.set()

    def _end_of_input(self, *, interrupt: bool) -> None:
        self._input_open = False
        if interrupt:
            self._session.send(Interrupt())
            return
        for request in tuple(self._outcome.requests.values()):
            self._answer(request)

    def _look_at_output(self) -> None:
        """Stop the run once its output has no reader."""
        failure = self._writer.failure
        if failure is None or self._closed_output:
            return
        self._closed_output = True
        if str(failure):
            self._complain(f"swecli: {failure}")
        self._stop()

    def _stop(self) -> None:
        self._stopping = True
        self._input_open = False
        self._session.send(Interrupt())
        if self._command is not None and self._asks_model:
            self._command.cancel()
        self._wake.set()

    def _signalled(self) -> None:
        self._outcome.signal = self._stop_wish.code
        self._stop()


async def run(
    session: Session,
    options: LaunchOptions,
    screens: Mapping[Screen, Callable[[LaunchOptions, str], tuple[DisplayBlock, ...]]],
    stop: Stop,
    schema: AnswerSchema | None = None,
    large: Callable[[], float] = lambda: 1.0,
) -> ExitCode:
    """Run the options with this session, and close it. ``screens`` has the content in place of screens that slash
    commands open; the last answer must match the ``schema``; ``large`` is the share of the window above which the size
    of a message is reported."""
    writer = Writer()
    out, err = Output(sys.stdout, writer), Output(sys.stderr, writer)
    stdin: TextIO | None = sys.stdin  # None if it was closed
    request = Request(
        prompt=options.prompt,
        mentions=options.mentions,
        commands=stdin.buffer if stdin is not None and options.input_format == "stream-json" else None,
        approve_all=options.approve_all,
        screens={name: partial(show, options) for name, show in screens.items()},
        large=large,
        schema=schema,
    )
    code = await HeadlessRun(session, request, printer_for(options, out, err), err.note, writer, stop).run()
    if writer.waiting and takes_more(sys.stderr):
        stored = ", the session is stored" if session.kept == "all" else ""
        Output(sys.stderr).note(f"swecli: the output was not read in time; the rest is lost{stored}")
    return code
