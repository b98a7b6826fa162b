"""Parts beside the turns of a session: what each may do at which moment, and the order in which they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from msgspec import Struct

from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.engine.model_call import Call
from swecli.core.engine.prepared_call import PreparedCall
from swecli.core.protocol.commands import Command
from swecli.core.protocol.events import Body, Event, TurnOutcome
from swecli.core.protocol.messages import Message, ToolCallPart
from swecli.core.tools.base import ToolOutcome

T = TypeVar("T")
EndReason = Literal["clear", "resume", "prompt_input_exit", "other"]
"""Why a session ends: a new one replaces it, an earlier one is resumed in its place, the user leaves."""
BUDGET_KIND = "budget"
"""Error kind of a turn that a budget ended."""


@dataclass(frozen=True, slots=True)
class TurnStopped(Exception):
    """The end of a turn; raised, it ends the turn although the model is not done."""

    outcome: TurnOutcome
    reason: str
    error_kind: str = ""


class Refused(Exception):
    """A message that must not join the conversation. The text is the reason; ``by`` says who refused it."""

    def __init__(self, reason: str, by: str) -> None:
        super().__init__(reason)
        self.by = by


class Joined(Struct, frozen=True):
    """User messages that have joined the conversation, with their attachments behind them."""

    text: str
    """As the model sees them."""
    typed: str
    """The user's own words: a command's expanded text comes from the project."""
    first: bool
    """Whether they begin the turn."""


class Step(Struct, frozen=True):
    """A finished step of a turn. Every call has its result."""

    calls: Sequence[Call]


class Companion:
    """A part beside the turns of one session. It overrides the moments that concern it; the others cost nothing.

    An interrupt cancels whatever runs. An exception other than ``TurnStopped`` is a defect, which ends the turn.
    """

    watches: ClassVar[tuple[type[Body], ...]] = ()
    """Types of the events that ``watch`` is called for."""
    due: bool = True
    """Whether ``before_request`` has anything to do. A companion that waits for something sets it to False until
    then."""

    def __init_subclass__(cls) -> None:
        if cls.watch is not Companion.watch and not cls.watches:
            raise TypeError(f"{cls.__name__} would never be called: name the types of its events in `watches`.")

    def start(self, *, resumed: bool) -> None:
        """The session begins, or continues one with history; its model is not measured yet. May record events and
        begin tasks of its own."""

    def heard(self, command: Command) -> bool:
        """A command has come. True: it concerned this companion alone, and nothing else acts on it."""
        return False

    def status(self) -> Sequence[tuple[str, str]]:
        """Rows of ``/status``: label and text, empty for none."""
        return ()

    def watch(self, event: Event) -> None:
        """An event of one of the types in ``watches`` was recorded in the session. Quick; records none itself."""

    async def screen(self, text: str, *, first: bool) -> None:
        """A message of the user is about to join the conversation; ``first``: it begins a turn. May raise ``Refused``:
        the user gets the first message back, a later one leaves the queue."""

    async def joined(self, message: Joined) -> None:
        """Messages have joined the conversation. May append behind them, ask the user and run tools."""

    async def before_request(self) -> None:
        """A request is about to be built, or to be built anew because a compaction changed the view: a second call in
        a row costs next to nothing. May queue notes, append to the conversation, ask, and raise ``TurnStopped``."""

    async def check_request(self, prepared: PreparedRequest) -> None:
        """A request is built and measured. May ask and raise ``TurnStopped``; appends nothing."""

    def around_compaction(self, options: CompactionOptions) -> CompactionOptions:
        """A compaction is about to be planned. Returns its options, with what has to run before and after it."""
        return options

    async def after_step(self, step: Step) -> None:
        """A step has ended. May write, ask and raise ``TurnStopped``, which keeps the later ones from being called."""

    async def stay(self, answer: Message) -> bool:
        """The model is done and nothing waits. True: the turn goes on, because something was appended."""
        return False

    async def end_turn(self, end: TurnStopped) -> None:
        """The turn is about to end, other than by an interrupt or a defect. Raises nothing."""

    async def close(self, reason: EndReason) -> None:
        """The session ends, after its turn and its subagents. Leaves no task and no process."""


class CallCompanion(Companion):
    """A companion that also takes part in tool calls, and in the subagents that they start."""

    async def before_call(self, call: PreparedCall) -> PreparedCall:
        """A call is about to be decided. May change it, or raise ``Rejected``."""
        return call

    async def before_asking(self, call: PreparedCall, reason: str) -> str:
        """The user is about to be asked about a call, for this reason. Returns a warning for the question, empty for
        none; may raise ``Rejected``."""
        return ""

    async def before_run(self, call: PreparedCall) -> None:
        """A call was allowed and is about to run."""

    async def after_call(self, call: PreparedCall, outcome: ToolOutcome) -> ToolOutcome:
        """The tool has run, or failed: with ``is_error``, only text that is added counts. File changes made here
        belong to the call and are undone with it."""
        return outcome

    async def after_run(self, call: PreparedCall, outcome: ToolOutcome) -> ToolOutcome:
        """A call has run, and its changes are recorded. Returns its outcome, perhaps with more text."""
        return outcome

    async def after_calls(self) -> None:
        """All calls of a step, or of the user, have ended."""

    async def agent_begins(self, agent: str, profile: str) -> str:
        """A subagent is about to begin. Returns text for it in addition to its task."""
        return ""

    async def agent_ends(self, agent: str, profile: str, answer: str, continued: int) -> str:
        """A subagent is done, after ``continued`` continuations. Returns why it has to continue; empty if it may
        end."""
        return ""

    async def agent_blocked(self) -> str:
        """A subagent is about to send a request. Returns why it must not, as a clause; empty if it may."""
        return ""

    def on_failure(self, call: ToolCallPart, item: str, text: str) -> str:
        """A result with an error is about to be recorded. Returns text to append to it."""
        return ""


class Companions:
    """The companions of a session in their order, which is the same at every moment; they close in reverse."""

    def __init__(self, companions: Sequence[Companion] = ()) -> None:
        self.take(companions)

    def take(self, companions: Sequence[Companion]) -> None:
        """Call these from now on."""
        self._all = companions

        def at(moment: str) -> Sequence[Companion]:
            default = getattr(Companion, moment)
            return tuple(companion for companion in companions if getattr(type(companion), moment) is not default)

        self._start = at("start")
        self.watching = at("watch")
        self._heard = at("heard")
        self._status = at("status")
        self._screen = at("screen")
        self._joined = at("joined")
        self._before_request = at("before_request")
        self._check_request = at("check_request")
        self._around_compaction = at("around_compaction")
        self._after_step = at("after_step")
        self._stay = at("stay")
        self._end_turn = at("end_turn")
        self._close = at("close")[::-1]

        def at_calls(moment: str) -> Sequence[CallCompanion]:
            default = getattr(CallCompanion, moment)
            calls = (companion for companion in companions if isinstance(companion, CallCompanion))
            return tuple(companion for companion in calls if getattr(type(companion), moment) is not default)

        self._before_call = at_calls("before_call")
        self._before_asking = at_calls("before_asking")
        self._before_run = at_calls("before_run")
        self._after_call = at_calls("after_call")
        self._after_run = at_calls("after_run")
        self._after_calls = at_calls("after_calls")
        self._agent_begins = at_calls("agent_begins")
        self._agent_ends = at_calls("agent_ends")
        self._agent_blocked = at_calls("agent_blocked")
        self._on_failure = at_calls("on_failure")

    def find(self, kind: type[T]) -> T | None:
        """The companion of this class, if any."""
        return next((companion for companion in self._all if isinstance(companion, kind)), None)

    def start(self, *, resumed: bool) -> None:
        for companion in self._start:
            companion.start(resumed=resumed)

    def heard(self, command: Command) -> bool:
        """Whether one of them has acted on it alone."""
        return any(companion.heard(command) for companion in self._heard)

    def status(self) -> Sequence[tuple[str, str]]:
        return [row for companion in self._status for row in companion.status()]

    @property
    def screens(self) -> bool:
        """Whether any of them looks at a message before it joins."""
        return bool(self._screen)

    async def screen(self, text: str, *, first: bool) -> None:
        for companion in self._screen:
            await companion.screen(text, first=first)

    async def joined(self, message: Joined) -> None:
        for companion in self._joined:
            await companion.joined(message)

    async def before_request(self) -> None:
        for companion in self._before_request:
            if companion.due:
                await companion.before_request()

    async def check_request(self, prepared: PreparedRequest) -> None:
        for companion in self._check_request:
            await companion.check_request(prepared)

    def around_compaction(self, options: CompactionOptions) -> CompactionOptions:
        for companion in self._around_compaction:
            options = companion.around_compaction(options)
        return options

    async def after_step(self, step: Step) -> None:
        for companion in self._after_step:
            await companion.after_step(step)

    async def stay(self, answer: Message) -> bool:
        for companion in self._stay:
            if await companion.stay(answer):
                return True
        return False

    async def end_turn(self, end: TurnStopped) -> None:
        for companion in self._end_turn:
            await companion.end_turn(end)

    async def close(self, reason: EndReason) -> None:
        for companion in self._close:
            await companion.close(reason)

    async def before_call(self, call: PreparedCall) -> PreparedCall:
        for companion in self._before_call:
            call = await companion.before_call(call)
        return call

    async def before_asking(self, call: PreparedCall, reason: str) -> tuple[str, ...]:
        """The warnings for the question."""
        warnings = [await companion.before_asking(call, reason) for companion in self._before_asking]
        return tuple(filter(None, warnings))

    async def before_run(self, call: PreparedCall) -> None:
        for companion in self._before_run:
            await companion.before_run(call)

    async def after_run(self, call: PreparedCall, outcome: ToolOutcome) -> ToolOutcome:
        for companion in self._after_run:
            outcome = await companion.after_run(call, outcome)
        return outcome

    async def after_call(self, call: PreparedCall, outcome: ToolOutcome) -> ToolOutcome:
        for companion in self._after_call:
            outcome = await companion.after_call(call, outcome)
        return outcome

    async def after_calls(self) -> None:
        for companion in self._after_calls:
            await companion.after_calls()

    async def agent_begins(self, agent: str, profile: str) -> str:
        """The texts for the subagent."""
        texts = [await companion.agent_begins(agent, profile) for companion in self._agent_begins]
        return "\n".join(filter(None, texts))

    async def agent_ends(self, agent: str, profile: str, answer: str, continued: int) -> str:
        """The first reason why the subagent has to continue."""
        for companion in self._agent_ends:
            if reason := await companion.agent_ends(agent, profile, answer, continued):
                return reason
        return ""

    async def agent_blocked(self) -> str:
        """The first reason why a subagent must not send a request."""
        for companion in self._agent_blocked:
            if reason := await companion.agent_blocked():
                return reason
        return ""

    def on_failure(self, call: ToolCallPart, item: str, text: str) -> str:
        """The text of a failed call's result with what is appended to it."""
        added = [companion.on_failure(call, item, text) for companion in self._on_failure]
        return "\n\n".join(filter(None, (text, *added)))
