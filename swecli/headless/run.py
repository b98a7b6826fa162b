"""One run without a screen: commands in, events out, until nothing is left to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import BinaryIO

from swecli.commands.registry import Invocation, UnknownCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.commands import Answer, Close, Command, Interrupt, ReplyPermission, Submit
from swecli.core.protocol.events import Event, PermissionRequested, QuestionAsked
from swecli.exit_codes import ExitCode
from swecli.headless import signals, slash
from swecli.headless.command_input import BadLine, CommandInput
from swecli.headless.outcome import Outcome
from swecli.headless.output import OutputClosed
from swecli.headless.printers import Printer
from swecli.headless.replies import consent, dismissal, refusal

SETTLE_SECONDS = 0.05
"""How often the end of a run is checked for while no event comes."""
CLOSE_SECONDS = 10.0
"""How long the session may take to stop its processes and store its facts."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to do. ``prompt`` is sent first unless it is empty. ``commands`` is a stream of JSON lines that may
    answer questions; without it nobody can be asked. ``approve_all`` says yes to every permission question."""

    prompt: str = ""
    commands: BinaryIO | None = None
    approve_all: bool = False


class HeadlessRun:
    """Drives one session. ``run`` returns when everything that was asked for is done, and closes the session."""

    def __init__(
        self, session: SessionPort, request: Request, printer: Printer, complain: Callable[[str], None]
    ) -> None:
        """``complain`` takes a line for standard error."""
        self._session = session
        self._request = request
        self._printer = printer
        self._complain = complain
        self._outcome = Outcome()
        self._input_open = request.commands is not None
        self._stopping = False
        self._closed_output = False
        self._wake = asyncio.Event()
        self._command: asyncio.Future[slash.Shown] | None = None

    async def run(self) -> ExitCode:
        """The exit status. Raises nothing but cancellation and defects."""
        events = self._session.subscribe(replay=True)
        with signals.handled(self._signalled):
            self._begin(self._request.prompt)
            if self._request.commands is not None:
                CommandInput(self._request.commands, self._receive).start()
            await self._follow(events)
        if self._closed_output:
            return self._outcome.signal or ExitCode.FAILURE
        return self._finish()

    def _begin(self, prompt: str) -> None:
        """Send the first message, or run the slash command that it is."""
        meaning = None if self._request.commands is not None else slash.meaning(prompt)
        if isinstance(meaning, UnknownCommand):
            self._outcome.input_errors.append(meaning.message)
            self._complain(f"error: {meaning.message}")
        elif isinstance(meaning, Invocation):
            self._command = asyncio.ensure_future(slash.run(self._session, meaning))
        elif prompt:
            self._session.send(Submit(prompt))

    def _finish(self) -> ExitCode:
        try:
            self._printer.finish(self._outcome)
        except OutputClosed as error:
            self._output_closed(error)
            return ExitCode.FAILURE
        return self._outcome.exit_code

    async def _follow(self, events: AsyncIterator[Event]) -> None:
        """Take events until nothing is left to do, close the session, and take what it still says."""
        following = asyncio.ensure_future(_next(events))
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            while not self._done():
                await asyncio.wait(
                    (following, waking),
                    timeout=SETTLE_SECONDS if self._may_end() else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if waking.done():
                    self._wake.clear()
                    waking = asyncio.ensure_future(self._wake.wait())
                if following.done():
                    event = following.result()
                    if event is None:
                        return
                    self._take(event)
                    following = asyncio.ensure_future(_next(events))
            if self._command is not None:
                self._outcome.shown = await self._command
            await self._close()
            while (event := await asyncio.wait_for(following, CLOSE_SECONDS)) is not None:
                self._take(event)
                following = asyncio.ensure_future(_next(events))
        except TimeoutError:
            self._complain("swecli: the session did not stop in time; what was not stored is lost")
        finally:
            waking.cancel()
            following.cancel()

    def _may_end(self) -> bool:
        return not self._input_open and self._outcome.idle

    def _done(self) -> bool:
        command_runs = self._command is not None and not self._command.done()
        return self._may_end() and not command_runs and not self._session.view.busy

    async def _close(self) -> None:
        jobs = [job for job in self._session.view.jobs if job.status == "running"]
        for job in jobs:
            self._complain(f"swecli: ended the background job {job.id}: {job.command}")
        await asyncio.wait_for(self._session.close(), CLOSE_SECONDS)

    def _take(self, event: Event) -> None:
        if event.seq < self._session.view.started_seq:
            return
        self._outcome.apply(event)
        if not self._closed_output:
            try:
                self._printer.event(event)
            except OutputClosed as error:
                self._output_closed(error)
        if isinstance(event.body, PermissionRequested | QuestionAsked):
            self._answer(event.body)

    def _answer(self, body: PermissionRequested | QuestionAsked) -> None:
        """Answer for the person who is not there; with commands from outside, they are left to answer."""
        if isinstance(body, PermissionRequested):
            if self._request.approve_all:
                self._reply(consent(body))
            elif not self._input_open:
                self._outcome.nobody_to_ask(body)
                self._reply(refusal(body))
        elif not self._input_open:
            self._reply(dismissal(body.request))

    def _reply(self, command: Command) -> None:
        with contextlib.suppress(OutputClosed):
            self._printer.replied(command)
        self._session.send(command)

    def _receive(self, value: Command | BadLine | None) -> None:
        """A line from standard input."""
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
        permissions, questions = self._outcome.waiting
        for request in permissions:
            self._answer(request)
        for question in questions:
            self._reply(dismissal(question))

    def _output_closed(self, error: OutputClosed) -> None:
        """Nobody reads: there is no point in going on."""
        self._closed_output = True
        if str(error):
            self._complain(f"swecli: {error}")
        self._stop()

    def _stop(self) -> None:
        self._stopping = True
        self._input_open = False
        self._session.send(Interrupt())
        self._wake.set()

    def _signalled(self, code: ExitCode) -> None:
        if self._outcome.signal is not None:
            os._exit(code)
        self._outcome.signal = code
        self._stop()


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)
