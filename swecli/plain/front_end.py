"""The linear front-end: a loop that writes events and reads lines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from msgspec import Struct

from swecli.commands.base import LATER, SHELL_USE, CommandResult, Offer, jobs_words, run_command, running_jobs
from swecli.commands.instructions import instructions_file, note_of, remember
from swecli.commands.registry import COMMANDS, CommandCall, UnknownCommand, commands_of, parse
from swecli.commands.screens import QUIT_WORDS
from swecli.core.config.paths import user_paths
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.commands import Answer, Command, Interrupt, ReplyPermission, RunShell, Steer, Submit
from swecli.core.protocol.events import MAIN, Event, PermissionRequested, QuestionAsked, SessionStarted, TurnEnded
from swecli.core.protocol.request_events import Question, hunk_texts, rule_words
from swecli.core.protocol.turns import Request, Turns
from swecli.event_lines import EventLines, Silence
from swecli.figures import duration
from swecli.stopping import Stop

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

_WORDS = {
    "y": "once",
    "yes": "once",
    "once": "once",
    "a": "always",
    "always": "always",
    "e": "edit",
    "edit": "edit",
    "n": "reject",
    "no": "reject",
}


class NotUnderstood(Exception):
    """The line is not a valid answer; the message describes one."""


def approval_hint(request: PermissionRequested) -> str:
    always = f", a always ({request.rule}, for this session)" if request.rule else ""
    edit = ""
    if _command(request) is not None:
        edit = ", e and another command, which swecli then shows for approval,"
    elif len(request.hunks) > 1:
        edit = f", e and the numbers of the changes to apply, 1 to {len(request.hunks)},"
    note = f" {rule_words(request, 'a')}" if request.rule_note else ""
    return f"Answer with y once{always}{edit} or n reject, with a note on what to do instead.{note}"


def hunk_lines(request: PermissionRequested) -> Sequence[str]:
    """The separately selectable changes, with their numbers; empty if there is only one."""
    if len(request.hunks) < 2:
        return ()
    lines = [f"{len(request.hunks)} changes:"]
    for number, hunk in enumerate(request.hunks, 1):
        block = request.blocks[hunk.block]
        if isinstance(block, DiffBlock):
            removed, added = hunk_texts(block, hunk)
            lines.append(f"{number}. {block.path}, line {hunk.old_start if hunk.old_lines else hunk.new_start}")
            lines += [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return lines


def _command(request: PermissionRequested) -> str | None:
    command = (request.arguments or {}).get("command")
    return command if request.tool == "run_command" and isinstance(command, str) else None


def _changed(request: PermissionRequested, rest: str) -> ReplyPermission:
    """The reply to an ``e`` with its arguments.

    Raises:
        NotUnderstood: they name nothing that can be changed here.
    """
    if _command(request) is not None and rest:
        arguments = {**(request.arguments or {}), "command": rest}
        return ReplyPermission(request.request, "edit", arguments=arguments)
    words = rest.replace(",", " ").split()
    numbers = tuple(sorted({int(word) for word in words if word.isdecimal()}))
    fits = all(1 <= number <= len(request.hunks) for number in numbers)
    if numbers and fits and all(word.isdecimal() for word in words):
        return ReplyPermission(request.request, "once", hunks=numbers)
    raise NotUnderstood(f"Nothing was run. {approval_hint(request)}")


def reply(request: PermissionRequested, line: str) -> ReplyPermission:
    """Parse a line as a reply.

    Raises:
        NotUnderstood: it is neither y, a, e nor n. An empty line never approves.
    """
    word, _, rest = line.strip().partition(" ")
    match _WORDS.get(word.lower().strip(",.")):
        case "once" if not rest:
            return ReplyPermission(request.request, "once")
        case "always" if not rest and request.rule is not None:
            return ReplyPermission(request.request, "always")
        case "reject":
            return ReplyPermission(request.request, "reject", rest.strip())
        case "edit":
            return _changed(request, rest.strip())
        case _:
            raise NotUnderstood(f"Nothing was run. {approval_hint(request)}")


def question_hint(question: Question) -> str:
    if not question.options:
        return "Type your answer."
    several = ", or several with commas" if question.multiple else ""
    return f"Answer with a number{several}{'' if question.closed else ', or in your own words'}."


def answer(question: Question, line: str) -> tuple[str, ...]:
    """The chosen labels, or the words themselves.

    Raises:
        NotUnderstood: it is empty, or an unknown number.
    """
    text = line.strip()
    if not text:
        raise NotUnderstood(question_hint(question))
    parts = [part.strip() for part in text.split(",")] if question.multiple else [text]
    named = {option.label.casefold(): option.label for option in question.options}
    if all(part.casefold() in named or (question.options and part.isdecimal()) for part in parts):
        return tuple(dict.fromkeys(named.get(part.casefold()) or _label(question, int(part)) for part in parts))
    if question.closed:
        raise NotUnderstood(question_hint(question))
    return (text,)


def question_lines(question: Question, place: int, count: int) -> Sequence[str]:
    number = f" {place} of {count}" if count > 1 else ""
    header = f"{question.header}: " if question.header else ""
    lines = [f"Question{number}: {header}{question.text}"]
    for at, option in enumerate(question.options, 1):
        lines.append(f"{at}. {option.label}{f': {option.description}' if option.description else ''}")
    return [*lines, question_hint(question)]


def _label(question: Question, number: int) -> str:
    if not 1 <= number <= len(question.options):
        raise NotUnderstood(f"Options are 1 to {len(question.options)}. {question_hint(question)}")
    return question.options[number - 1].label


def offer_lines(offer: Offer) -> Sequence[str]:
    later = f"l {_choice(LATER)}, " if offer.later is not None else ""
    return [offer.title, f"Answer with y {_choice(offer.yes)}, {later}or n {_choice(offer.no)}."]


def _choice(labels: tuple[str, str]) -> str:
    label, follows = labels
    return f"{label.lower()} ({follows})"


def accepted(offer: Offer, line: str) -> Command | None:
    """The command that a line accepts; None if it declines the offer.

    Raises:
        NotUnderstood: it is neither. An empty line never accepts.
    """
    word = line.strip().lower().strip(",.")
    if offer.later is not None and word in ("l", "later"):
        return offer.later
    match _WORDS.get(word):
        case "once":
            return offer.command
        case "reject":
            return None
        case _:
            raise NotUnderstood(f"Nothing was changed. {offer_lines(offer)[-1]}")


class Choice(Struct, frozen=True):
    """A choice that the front end asks for, not the session; the next line answers. ``decide`` returns the action to
    take, or None to cancel, and raises ``NotUnderstood`` for any other line."""

    lines: Sequence[str]
    decide: Callable[[str], Callable[[], object] | None]


class Line(Struct, frozen=True):
    """``text`` is None at the end of input. ``at`` is when it was read, on the clock of the event loop."""

    text: str | None
    at: float


class Lines:
    """Reads a line for each ``want``; from a terminal continuously, so that the time of each line is known."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._asked = threading.Semaphore(0)
        self._asking = False
        self._eager = stream.isatty()
        self.queue: asyncio.Queue[Line] = asyncio.Queue()
        threading.Thread(target=self._read, daemon=True, name="typed lines").start()

    @property
    def by_hand(self) -> bool:
        return self._eager

    def want(self) -> None:
        if not self._asking:
            self._asking = True
            self._asked.release()

    def taken(self) -> None:
        self._asking = False

    def _read(self) -> None:
        while True:
            if not self._eager:
                self._asked.acquire()
            try:
                text = self._stream.readline()
            except (OSError, ValueError):
                text = ""
            line = Line(text.rstrip("\n") if text else None, self._loop.time())
            try:
                self._loop.call_soon_threadsafe(self.queue.put_nowait, line)
            except RuntimeError:  # the loop has ended
                return
            if line.text is None:
                return


GRACE = 0.3
"""Seconds after a question during which a typed line is not yet an answer to it."""

EARLY = "That line was typed before the question appeared; please answer again."

READY = "Ready. Type a message, /help for commands, Ctrl+D to leave."
LEAVING = "Press Ctrl+C again to leave."
PATIENCE = (10.0, 60.0, 300.0)
"""Seconds of silence from the model after which a line in a terminal says so; from then on as often as the last."""

OpenSession: TypeAlias = "Callable[[], Awaitable[Session]]"


class LinearFrontEnd:
    """Runs one session after the other until the user leaves. ``new_session`` opens the session of /clear,
    ``fork_session`` the fork of an id for /fork; None if nothing is stored."""

    def __init__(
        self,
        open_session: OpenSession,
        new_session: OpenSession,
        *,
        fork_session: Callable[[str], OpenSession] | None = None,
        first_prompt: str = "",
        source: TextIO = sys.stdin,
        target: TextIO = sys.stdout,
        patience: Sequence[float] = PATIENCE,
    ) -> None:
        self._open = open_session
        self._new = new_session
        self._next = new_session
        self._fork = fork_session
        self._first = first_prompt
        self._source = source
        self._target = target
        self._patience = patience
        self._output = EventLines(self._write)
        self._by_hand = False
        self._works: Callable[[], bool] = lambda: False
        """Whether work goes on in the open session."""
        self._turns = Turns()
        """Of the open session. Only its oldest request is on the screen: a line answers what was asked last."""
        self._silence = Silence(patience, self._turns)
        self._unshown: dict[str, Event] = {}
        """Events of requests that are not on the screen yet, by request."""
        self._task: asyncio.Task[None] | None = None
        """The newest command."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Running commands."""
        self._beside: list[asyncio.Task[None]] = []
        """Those of them that wait for a model's answer beside the turn."""
        self._waiting: list[str] = []
        """Lines that cannot run during a turn, and those sent after them."""
        self._runner: asyncio.Task[None] | None = None
        """Runs them."""
        self._answers: list[tuple[str, ...]] = []
        """Answers to the first parts of the question on the screen."""
        self._choice: Choice | None = None
        self._asked_at = 0.0
        self._armed = False
        self._again = False
        self._first_sent = False
        self._beginning: asyncio.Task[None] | None = None
        """The command in the first message."""
        self._stop = Stop((signal.SIGTERM, signal.SIGHUP))
        self._left = asyncio.Event()
        self._changed = asyncio.Event()
        """Set at each event."""

    async def run(self) -> int:
        """Run until the user leaves. Returns the exit code."""
        lines = Lines(self._source)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupted)
        opening = self._open
        # Not a handler of the loop: it would not run while a line waits for its reader.
        with self._stop.handled(), self._stop.calling(self._left.set):
            while True:
                session = await opening()
                await self._play(session, lines)
                if not self._again:
                    return self._stop.code or 0
                self._again, opening = False, self._next

    async def _play(self, session: Session, lines: Lines) -> None:
        self._session, self._by_hand = session, lines.by_hand
        self._works = lambda: session.view.busy
        first = self._first
        self._turns = Turns()
        self._silence = Silence(self._patience, self._turns)
        self._unshown.clear()
        self._choice = None
        if self._stop.code is None:
            self._left.clear()
        events = asyncio.create_task(self._events(session))
        typed = asyncio.create_task(self._lines(lines))
        leaving = asyncio.create_task(self._left.wait())
        watching = asyncio.create_task(self._silence.watch(self._say_silence)) if lines.by_hand else leaving
        self._first_sent, self._first = bool(self._first), ""
        if first.lstrip().startswith("/"):
            self._beginning = asyncio.create_task(self._do(first))
        elif first:
            session.send(Submit(first))
        if self._waiting:
            self._runner = self._start(self._run_waiting())
        try:
            await asyncio.wait((events, typed, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            left = self._left.is_set() and self._stop.code is None
            if not self._again:
                self._drop_waiting()
            await session.close("clear" if self._again else "prompt_input_exit" if left else "other")
            for task in (
                typed,
                leaving,
                watching,
                *self._tasks,
                *((self._beginning,) if self._beginning is not None else ()),
            ):
                task.cancel()
            await asyncio.gather(events, typed, leaving, watching, return_exceptions=True)

    def _say_silence(self, seconds: float) -> None:
        self._output.say([f"Nothing from the model for {duration(seconds)}. Ctrl+C interrupts."])

    async def _events(self, session: Session) -> None:
        greeted = False
        async for event in session.subscribe(replay=True):
            self._output.earlier = event.seq < session.view.started_seq
            self._show_event(event)
            match event.body:
                case TurnEnded() | SessionStarted() if event.agent != MAIN:
                    pass
                case TurnEnded():
                    self._output.say([READY])
                case SessionStarted() if not greeted and event.seq >= session.view.started_seq and not self._first_sent:
                    greeted = True
                    self._output.say([READY])
                case _:
                    pass

    def _show_event(self, event: Event) -> None:
        self._note(event)
        body = event.body
        if not isinstance(body, PermissionRequested | QuestionAsked):
            self._output.event(event)
        if isinstance(body, TurnEnded) and event.agent == MAIN and body.outcome not in ("done", "limit"):
            self._drop_waiting()  # after a failed turn the user decides
        self._present()

    def _note(self, event: Event) -> None:
        self._changed.set()
        self._turns.apply(event)
        self._silence.broken()
        if isinstance(event.body, PermissionRequested | QuestionAsked):
            self._unshown[event.body.request] = event
            self._withdraw()

    @property
    def _request(self) -> Request | None:
        """The oldest open request."""
        return next(iter(self._turns.requests.values()), None)

    def _present(self) -> None:
        """Write the oldest open request, unless it is on the screen already."""
        request = self._request
        event = None if request is None else self._unshown.pop(request.request, None)
        if request is None or event is None:
            return
        self._output.event(event)
        self._asked_at = asyncio.get_running_loop().time()
        self._answers = []
        if isinstance(request, PermissionRequested):
            self._output.say([*hunk_lines(request), approval_hint(request)])
        else:
            self._ask_next(request)

    async def _lines(self, lines: Lines) -> None:
        if self._first_sent and not lines.by_hand:
            await self._begun()
        while True:
            if not lines.by_hand:  # piped lines wait for their turn
                await self._until(lambda: not self._turns.turn_open or bool(self._turns.requests))
            lines.want()
            line = await lines.queue.get()
            lines.taken()
            if line.text is None:
                self._withdraw()
                while not lines.by_hand and (self._turns.turn_open or self._turns.requests):
                    if (request := self._request) is not None:
                        self._dismiss(request)
                    await self._until(lambda: not self._turns.turn_open or bool(self._turns.requests))
                return
            self._armed = False
            if (request := self._request) is not None:
                self._answer(request, line, lines.by_hand)
            elif self._choice is not None and self._decided(self._choice, line, lines.by_hand):
                if not lines.by_hand:
                    await self._begun()
            elif line.text.strip():
                await self._do(line.text)
                if not lines.by_hand:
                    await self._commanded()
                if self._left.is_set():  # later lines are for the next session
                    return
                if not lines.by_hand:
                    await self._begun()

    async def _commanded(self) -> None:
        """Wait until a piped command ends or asks, before the next line is read."""
        task = self._task
        if task is not None:
            task.add_done_callback(lambda _: self._changed.set())
            await self._until(lambda: task.done() or bool(self._turns.requests))

    async def _begun(self) -> None:
        """Wait until a sent message begins its turn, or ends without one, before the next line is read."""
        if not self._session.view.busy:  # a command that may still begin a turn or another session
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._until(lambda: self._turns.turn_open), 0.5)
            return
        worked = asyncio.create_task(self._session.worked())
        worked.add_done_callback(lambda _: self._changed.set())
        try:
            await self._until(
                lambda: self._turns.turn_open or bool(self._turns.requests) or not self._session.view.busy
            )
        finally:
            worked.cancel()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    # --- answers ---

    def _answer(self, request: Request, line: Line, by_hand: bool) -> None:
        text = line.text or ""
        if by_hand and line.at - self._asked_at < GRACE:
            self._output.say([EARLY])
            return
        try:
            if isinstance(request, PermissionRequested):
                self._session.send(reply(request, text))
                self._turns.answered(request.request)
                self._present()
            else:
                self._answers.append(answer(request.questions[len(self._answers)], text))
                self._ask_next(request)
        except NotUnderstood as error:
            self._output.say([str(error)])

    def _ask_next(self, request: QuestionAsked) -> None:
        """Ask the next part of the question on the screen, or send its answers."""
        if len(self._answers) < len(request.questions):
            at = len(self._answers)
            self._output.say(question_lines(request.questions[at], at + 1, len(request.questions)))
        else:
            self._turns.answered(request.request)
            self._session.send(Answer(request.request, tuple(self._answers)))
            self._present()

    def _dismiss(self, request: Request) -> None:
        """At the end of the input, reject an open question."""
        self._turns.answered(request.request)
        if isinstance(request, PermissionRequested):
            self._session.send(reply(request, "n The input has ended; no answer is possible."))
        else:
            self._session.send(Answer(request.request, ()))
        self._present()

    def _propose(self, offer: Offer) -> None:
        """Offer an action; the next line answers."""

        def decide(line: str) -> Callable[[], object] | None:
            command = accepted(offer, line)
            return (lambda: self._session.send(command)) if command is not None else None

        self._ask(Choice(offer_lines(offer), decide))

    def _ask(self, choice: Choice) -> None:
        self._choice = choice
        self._asked_at = asyncio.get_running_loop().time()
        self._output.say(choice.lines)

    def _decided(self, choice: Choice, line: Line, by_hand: bool) -> bool:
        """Whether a line answers the choice. Any other piped line declines it and is then processed as usual: it was
        written before the choice appeared."""
        if by_hand and line.at - self._asked_at < GRACE:
            self._output.say([EARLY])
            return True
        try:
            chosen = choice.decide(line.text or "")
        except NotUnderstood as error:
            if by_hand:
                self._output.say([str(error)])
                return True
            self._withdraw()
            return False
        self._changed.set()
        if chosen is not None:
            self._choice = None
            chosen()
        else:
            self._withdraw()
        return True

    def _withdraw(self) -> None:
        """Withdraw the choice: another question arrived, the input ended, or the user declined."""
        if self._choice is not None:
            self._choice = None
            self._output.say(["Cancelled: nothing was changed."])

    # --- messages and commands ---

    async def _do(self, text: str, *, waited: bool = False) -> None:
        """Run a line, or let it wait for the turn to end. ``waited``: its turn has come."""
        stripped = "/help" if text.strip() == "?" else text.strip()
        if self._by_hand and stripped.lower() in QUIT_WORDS:
            stripped = "/quit"
        if stripped.startswith("!"):
            command = stripped.lstrip("!").strip()
            if not command:
                self._output.say([SHELL_USE])
            elif waited or not self._holds(text):
                self._session.send(RunShell(command))
            return
        commands = await asyncio.to_thread(commands_of, self._session) if stripped.startswith("/") else COMMANDS
        parsed = parse(stripped, commands)
        if isinstance(parsed, UnknownCommand) and self._session.tools.pending:
            self._output.say(["Waiting for MCP servers, which may provide this command."])
            await self._session.extensions_settled()
            parsed = parse(stripped, await asyncio.to_thread(commands_of, self._session))
        if parsed is None:
            note = note_of(text) if self._by_hand else ""
            if not waited and self._holds(text, rest=bool(note)):
                return
            if note:
                self._ask_note(text, note)
            else:
                await self._say(text)
        elif not isinstance(parsed, CommandCall):
            self._output.say([parsed.message])
        elif waited or not self._holds(
            text, rest=parsed.command.needs_rest(parsed.arguments), sends=parsed.command.own
        ):
            # A command may ask for consent, and its answer must be read meanwhile.
            self._task = self._start(self._command(parsed, waited=waited))
            if parsed.command.asks_model:
                self._beside = [*(task for task in self._beside if not task.done()), self._task]

    def _holds(self, text: str, *, rest: bool = True, sends: bool = True) -> bool:
        """Whether a line has to wait, and let it. ``rest``: it cannot run during a turn; ``sends``: it sends a message.
        Piped lines are read only between turns."""
        first = not self._waiting
        busy = self._turns.turn_open or (self._by_hand and self._works())
        if not (rest and busy if first else rest or sends):
            return False
        self._waiting.append(text)
        when = "Waiting for the turn to end" if first else "Waiting after that"
        self._output.say([f"{when}: {text.strip()}"])
        if self._runner is None or self._runner.done():
            self._runner = self._start(self._run_waiting())
        return True

    async def _run_waiting(self) -> None:
        """Run the waiting lines in order. A new session goes on with those that are left."""
        while self._waiting and not self._left.is_set():
            await self._until(lambda: not (self._turns.turn_open or self._turns.requests or self._choice is not None))
            await self._session.worked()
            if self._waiting and not (self._turns.turn_open or self._turns.requests or self._choice is not None):
                line, task = self._waiting.pop(0), self._task
                self._output.say([f"Now: {line.strip()}"])
                await self._do(line, waited=True)
                if self._task is not None and self._task is not task:
                    await asyncio.wait((self._task,))
                if self._waiting and not self._left.is_set():
                    await self._begun()

    def _drop_waiting(self) -> None:
        lines, self._waiting = self._waiting, []
        self._output.say([f"Not run: {line.strip()}" for line in lines])

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something that ends with the session."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _say(self, text: str) -> None:
        """Send a message."""
        self._output.typed(text)
        await self._tell_mentions(text)
        self._session.send(Steer(text) if self._turns.turn_open else Submit(text))

    def _ask_note(self, text: str, note: str) -> None:
        """Ask where a line that begins with ``#`` belongs."""
        cwd, own = self._session.view.cwd, user_paths(os.environ).config

        def decide(line: str) -> Callable[[], object] | None:
            match line.strip().rstrip("."):
                case "1":
                    return lambda: self._start(self._remember(note, cwd))
                case "2":
                    return lambda: self._start(self._remember(note, own, own=True))
                case "3":
                    return lambda: self._start(self._say(text))
                case word if _WORDS.get(word.lower()) == "reject":
                    return None
                case _:
                    raise NotUnderstood(f"Nothing was added. {hint}")

        hint = "Answer with a number, or n cancel."
        lines = (
            f"Add to the instructions: {note}",
            f"1. Add it to {instructions_file(cwd).name} (this folder's instructions)",
            f"2. Add it to {instructions_file(own)} (your own)",
            "3. Send it as a message (nothing is added)",
            hint,
        )
        self._ask(Choice(lines, decide))

    async def _remember(self, note: str, folder: Path, *, own: bool = False) -> None:
        result = await remember(self._session, note, folder, own=own)
        self._output.blocks(result.blocks, drawings=False)

    async def _tell_mentions(self, text: str) -> None:
        """Report the share of the window that a message's mentioned files take."""
        if "@" not in text:
            return
        from swecli.core.engine.message_weight import mentions_line, weigh, weigh_mentions
        from swecli.core.workspace.mentions import mentioned

        view = self._session.view
        words = mentioned(text)
        weighed = await weigh_mentions(words, view.cwd, view.roots, view.model, self._session.mentionables)
        if line := mentions_line(weighed, weigh("", 0, view.budget, view.ratio)):
            self._output.say([f"Attached: {line}."])

    async def _command(self, call: CommandCall, *, waited: bool) -> None:
        """Run a command. One that ``waited`` does what it would offer if its words name that: the user may be
        away."""
        result = await run_command(call.command, self._session, call.arguments)
        self._show(result)
        if result.offer is not None and waited and result.offer.named:
            self._session.send(result.offer.command)
        elif result.offer is not None:
            self._propose(result.offer)
        match result.screen:
            case "quit":
                self._after_jobs(self._left.set)
            case "clear":
                self._after_jobs(lambda: self._go_on(self._new))
            case "fork" if self._fork is not None:
                forked = self._named(self._fork(self._session.view.session_id), result.argument)
                self._after_jobs(lambda: self._go_on(forked))
            case "help":
                self._output.say(
                    [
                        f"/{entry.name} {entry.arguments}".rstrip() + f": {entry.summary}"
                        for entry in await asyncio.to_thread(commands_of, self._session)
                    ]
                )
            case _:
                pass

    def _after_jobs(self, leave: Callable[[], object]) -> None:
        """Leave the session. If that ends background jobs, ask the user first; a pipe has none to ask."""
        jobs = running_jobs(self._session.view.jobs)
        if not jobs or not self._by_hand:
            leave()
            return
        title, named = jobs_words(jobs)
        hint = "Answer with y stop and continue, or n cancel (nothing changes)."

        def decide(line: str) -> Callable[[], object] | None:
            match _WORDS.get(line.strip().lower().strip(",.")):
                case "once":
                    return leave
                case "reject":
                    return None
                case _:
                    raise NotUnderstood(f"Nothing was changed. {hint}")

        self._ask(Choice((f"{title}: {named}", hint), decide))

    def _go_on(self, opening: OpenSession) -> None:
        self._again, self._next = True, opening
        self._left.set()

    def _named(self, opening: OpenSession, name: str) -> OpenSession:
        """A session that gets this name once it is open, if there is a name."""

        async def opened() -> Session:
            session = await opening()
            try:
                if name:
                    await session.rename(name)
            except ValueError as error:
                self._output.say([str(error)])
            return session

        return opened

    def _show(self, result: CommandResult) -> None:
        if result.screen == "fork" and self._fork is not None:
            return
        blocks = (*result.blocks, *result.instead)
        self._output.blocks(blocks, drawings=False)
        if not blocks and result.screen not in (None, "quit", "clear", "help"):
            self._output.say(["This command needs an argument here; /help shows which."])

    def _interrupted(self) -> None:
        """Ctrl+C: interrupt the session's work or a side question, or decline the choice; twice without any of them
        leaves."""
        if self._turns.turn_open or self._works():
            self._drop_waiting()
            self._session.send(Interrupt(skip=True))
        elif waiting := [task for task in self._beside if not task.done()]:
            waiting[-1].cancel()
            self._output.say(["Cancelled. The conversation is unchanged."])
        elif self._choice is not None:
            self._withdraw()
        elif self._armed:
            self._left.set()
        else:
            self._armed = True
            self._output.say([LEAVING])

    def _write(self, line: str) -> None:
        try:
            self._target.write(f"{line}\n")
            self._target.flush()
        except (OSError, ValueError):  # closed output or a full disk: reported at the program's end
            self._left.set()
