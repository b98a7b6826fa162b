"""Outcome of a run: answer, usage, denials, output of slash commands, exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from swecli.block_text import block_lines
from swecli.commands.base import CommandResult, Screen, run_command
from swecli.commands.registry import CommandCall, command_table, commands_of
from swecli.core.answer_schema import AnswerSchema, Mismatch
from swecli.core.permissions.decide import NO_RULE_NOW
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    MAIN,
    CompactionRedone,
    CompactionUndone,
    ContextMeasured,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ModelChanged,
    ModelResponded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    RewindUndone,
    Rewound,
    SessionStarted,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import Stop, TextPart, Usage, plus
from swecli.core.protocol.result import Kept, Status
from swecli.event_lines import REDONE, UNDONE, rewind_lines
from swecli.exit_codes import ExitCode
from swecli.launch import StartError

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

Screens = Mapping[Screen, Callable[[str], tuple[DisplayBlock, ...]]]
"""Content in place of screens, for the words after the command; may read files."""


class Shown(Struct, frozen=True):
    """Output of a command. ``failed``: it is an error by its own account."""

    text: str
    failed: bool = False


async def run_slash(session: Session, invocation: CommandCall, screens: Screens = MappingProxyType({})) -> Shown:
    """Run a command to its end. ``screens`` has the content in place of screens."""
    result = await run_command(invocation.command, session, invocation.arguments)
    if result.offer is not None and result.offer.unattended:
        session.send(result.offer.command)
    shown = screens.get(result.screen) if result.screen is not None else None
    instead = await asyncio.to_thread(shown, result.argument) if shown is not None and not result.blocks else ()
    blocks = (*result.blocks, *(instead or result.instead)) or _instead_of(result, session)
    text = "\n".join(line for block in blocks for line in block_lines(block))
    failed = bool(blocks) and all(isinstance(block, TextBlock) and block.style == "error" for block in blocks)
    return Shown(text, failed)  # a report about an error is not an error


def _instead_of(result: CommandResult, session: Session) -> tuple[DisplayBlock, ...]:
    """Content in place of a screen that can't be shown here."""
    if result.screen == "clear":
        return (TextBlock("Nothing to clear: swecli -p starts a new conversation, unless -c or -r continues one."),)
    if result.screen != "help":
        return ()
    table = command_table(commands_of(session))
    words = result.argument.casefold().split()
    rows = tuple(row for row in table.rows if all(word in " ".join(row).casefold() for word in words))
    return (replace(table, rows=rows),) if rows else (TextBlock("No command matches; /help lists all."),)


_ERRORS: Mapping[str, ExitCode] = {
    "auth": ExitCode.AUTH,
    "not_found": ExitCode.CONFIG,
    "context_overflow": ExitCode.CONTEXT_BLOCKED,
    "context": ExitCode.CONTEXT_BLOCKED,
    "too_large": ExitCode.CONTEXT_BLOCKED,
    "rate_limit": ExitCode.RETRYABLE,
    "overloaded": ExitCode.RETRYABLE,
    "server": ExitCode.RETRYABLE,
    "network": ExitCode.RETRYABLE,
    "stalled": ExitCode.RETRYABLE,
    "truncated": ExitCode.RETRYABLE,
    "max_turns": ExitCode.TURN_LIMIT,
    "answer_cut": ExitCode.ANSWER_CUT,
    "max_tokens": ExitCode.BUDGET,
    "max_price": ExitCode.BUDGET,
    "budget": ExitCode.BUDGET,
    "content_filter": ExitCode.REFUSED,
    "hook": ExitCode.FAILURE,
}
_OUTCOMES: Mapping[str, ExitCode] = {
    "done": ExitCode.OK,
    "interrupted": ExitCode.INTERRUPTED,
    "blocked": ExitCode.CONTEXT_BLOCKED,
    "limit": ExitCode.TURN_LIMIT,
    "error": ExitCode.FAILURE,
}


class Denial(Struct, frozen=True):
    """A call that was not allowed to run. ``asked``: it needed an approval, and the run is unattended; ``ruled``: a
    rule could have given it."""

    tool: str
    title: str
    reason: str
    asked: bool
    ruled: bool = True


class Outcome:
    """Result of a run, reduced from all its events in order."""

    def __init__(self) -> None:
        self.session = self.model = ""
        self.kept: Kept = "nothing"
        """What of the session can be continued after the run."""
        self.budget: Budget | None = None
        """The newest measure of the context."""
        self.turns = 0
        self.steps = 0
        self._ended_steps = 0
        self.denials: list[Denial] = []
        self.ended: TurnEnded | None = None
        self.stop: Stop | None = None
        """Reason why the model stopped the newest answer; None before the first one."""
        self.error_notice: Notice | None = None
        """The first error outside a turn: later ones are its consequences."""
        self.input_errors: list[str] = []
        self.start_error: StartError | None = None
        """Reason for the failure to open a session."""
        self.shown: Shown | None = None
        """Output of the slash command, if the run was one."""
        self._undone: list[str] = []
        """Undone actions, because the command for that has no output of its own."""
        self.signal: ExitCode | None = None
        """Set by the run after a signal."""
        self.turn_open = False
        self._usage = Usage()
        self.estimated = False
        """Whether a part of the usage is an estimate, because an answer broke off."""
        self._cost: Decimal | None = Decimal(0)
        self._kinds: dict[str, ItemStarted] = {}
        self._of_agents: dict[str, ItemStarted] = {}
        """Unfinished calls of subagents."""
        self._partial: dict[str, list[str]] = {}
        self._step_text: list[str] = []
        self.structured: Any = None
        """The answer as a value, if it matches the requested schema; see ``fits``."""
        self.fits = False
        self.mismatch: Mismatch | None = None
        self._cut = False
        """Whether the newest text was cut off, so that the model's next text continues it."""
        self._text = ""
        self._requests: dict[str, PermissionRequested] = {}
        self._questions: set[str] = set()
        self._nobody: dict[str, PermissionRequested] = {}
        self.offers: dict[str, None] = {}
        """Rules that would have allowed the calls refused because the run is unattended."""

    async def fit(self, schema: AnswerSchema) -> None:
        """Parse the answer by the schema, and keep its value or the mismatch."""
        try:
            self.structured, self.mismatch, self.fits = await schema.value(self.text), None, True
        except Mismatch as error:
            self.structured, self.mismatch, self.fits = None, error, False

    @property
    def idle(self) -> bool:
        return not self.turn_open and not self._kinds

    @property
    def waiting(self) -> tuple[list[PermissionRequested], list[str]]:
        """Unanswered permission requests, and ids of unanswered questions."""
        return list(self._requests.values()), sorted(self._questions)

    @property
    def text(self) -> str:
        """The newest answer: the output of a slash command, else the text of the last step with text, complete or
        not."""
        if self.shown is not None:
            return self.shown.text or "\n".join(self._undone)
        texts = [*self._step_text]
        for text in filter(None, map("".join, self._partial.values())):
            _join(texts, text, self._cut and len(texts) == len(self._step_text))
        return "\n\n".join(texts) or self._text

    @property
    def usage(self) -> Usage:
        return self._usage

    @property
    def cost(self) -> Decimal | None:
        """US dollars; None if the price of a step is unknown, or no step was completed."""
        return self._cost if self._ended_steps == self.steps > 0 else None

    def answered(self, request: str) -> None:
        """Mark a permission request or question as answered; its event will follow."""
        self._requests.pop(request, None)
        self._questions.discard(request)

    def nobody_to_ask(self, request: PermissionRequested) -> None:
        """Mark this request as rejected because the run is unattended."""
        self._nobody[request.item] = request
        self.offers.update(dict.fromkeys(request.offered))

    def apply(self, event: Event) -> None:
        self.session = event.session
        if event.agent == MAIN:
            self._apply(event)
        else:
            self._of_agent(event)

    def _of_agent(self, event: Event) -> None:
        """Usage and questions of a subagent belong to the run; its texts do not."""
        match event.body:
            case StepEnded() as ended:
                self._add(ended)
            case ItemStarted(item=item, kind="tool") as started:
                self._of_agents[item] = started
            case ItemCheckpointed(item=item, title=title) if title and item in self._of_agents:
                self._of_agents[item] = replace(self._of_agents[item], title=title)
            case ItemCompleted(item=item) as completed if item in self._of_agents:
                self._deny(self._of_agents.pop(item), completed)
            case _:
                self._ask(event)

    def _ask(self, event: Event) -> None:
        match event.body:
            case PermissionRequested(request=request) as asked:
                self._requests[request] = asked
            case PermissionResolved(request=request):
                self._requests.pop(request, None)
            case QuestionAsked(request=request):
                self._questions.add(request)
            case QuestionAnswered(request=request):
                self._questions.discard(request)
            case _:
                pass

    def _apply(self, event: Event) -> None:
        match event.body:
            case ItemDelta(item=item, text=text, channel="text"):
                if item in self._partial:
                    self._partial[item].append(text)
            case TurnStarted():
                self.turn_open, self.ended, self._text, self._cut = True, None, "", False
                self.stop = None
                self.turns += 1
                self._new_step()
            case SessionStarted(model=model) | ModelChanged(model=model):
                self.model = model
            case ContextMeasured(budget=budget):
                self.budget = budget
            case StepStarted(budget=budget):
                self.budget = budget
                self.steps += budget.level != "block"  # a blocked step sent no request
                self._new_step()
            case ModelResponded(stop=stop):
                self.stop = stop
            case StepEnded() as step:
                self._ended_steps += 1
                self._add(step)
            case TurnEnded() as ended:
                self.turn_open, self.ended = False, ended
                self._kinds.clear()
            case ItemStarted(item=item) as started:
                self._kinds[item] = started
                if started.kind == "text":
                    self._partial[item] = []
            case ItemCheckpointed() as checkpoint:
                self._checkpoint(checkpoint)
            case ItemCompleted() as completed:
                self._complete(completed)
            case Rewound() | RewindUndone():
                self._undone += rewind_lines(event.body)
            case CompactionUndone():
                self._undone.append(UNDONE)
            case CompactionRedone():
                self._undone.append(REDONE)
            case Notice(level="error") as notice:
                self.error_notice = self.error_notice or notice
            case _:
                self._ask(event)

    def _new_step(self) -> None:
        text = self.text
        if not self._cut:
            self._step_text = []
        self._partial = {}
        self._text = text

    def _checkpoint(self, body: ItemCheckpointed) -> None:
        item, known = body.item, self._kinds.get(body.item)
        if known is not None and body.title:
            self._kinds[item] = ItemStarted(item, known.kind, known.name, body.title)
        if item in self._partial and isinstance(part := body.whole_part("".join(self._partial[item])), TextPart):
            self._partial[item] = [part.text]

    def _complete(self, completed: ItemCompleted) -> None:
        started = self._kinds.pop(completed.item, None)
        if self._partial.pop(completed.item, None) is not None:
            text = "".join(part.text for part in completed.parts if isinstance(part, TextPart))
            if text.strip():
                _join(self._step_text, text, self._cut)
                self._cut = completed.status == "error"
        if started is not None:
            self._deny(started, completed)

    def _deny(self, started: ItemStarted, completed: ItemCompleted) -> None:
        if completed.status == "rejected":
            request = self._nobody.get(completed.item)
            ruled = request is None or request.rule_note != NO_RULE_NOW
            needed = "needs approval" if ruled else "needs approval after text from outside"
            reason = completed.detail if request is None else f"{needed}, but no user is present"
            self.denials.append(Denial(started.name, started.title, reason, request is not None, ruled))

    def _add(self, step: StepEnded) -> None:
        usage, cost = step.usage, step.cost
        self.estimated |= step.estimated
        if usage is not None:
            now = self._usage
            self._usage = Usage(
                input_total=plus(now.input_total, usage.input_total),
                cache_read=plus(now.cache_read, usage.cache_read),
                cache_write=plus(now.cache_write, usage.cache_write),
                output_total=plus(now.output_total, usage.output_total),
                reasoning=plus(now.reasoning, usage.reasoning),
            )
        try:
            self._cost = self._cost + Decimal(cost) if cost is not None and self._cost is not None else None
        except InvalidOperation:
            self._cost = None

    @property
    def status(self) -> Status:
        if self.start_error is not None:
            return "error"
        if self.signal is not None:
            return "interrupted"
        if self.ended is not None:
            return self.ended.outcome
        if self.shown is not None:
            return "error" if self.shown.failed else "done"
        return "error" if self.error_notice or self.input_errors or self.turn_open else "done"

    @property
    def error(self) -> tuple[str, str] | None:
        if self.start_error is not None:
            return self.start_error.exit_code.name.lower(), str(self.start_error)
        if self.ended is not None and self.ended.outcome not in ("done", "interrupted"):
            return self.ended.error_kind or self.ended.outcome, self.ended.reason
        if self.mismatch is not None:
            return "schema", f"The answer does not match the schema: {self.mismatch}"
        if self.shown is not None:
            return ("command", self.shown.text) if self.shown.failed else None
        if self.ended is None and self.error_notice is not None:
            return self.error_notice.topic or "error", self.error_notice.line
        if self.input_errors:
            return "bad_input", self.input_errors[-1]
        return None

    @property
    def exit_code(self) -> ExitCode:
        if self.start_error is not None:
            return self.start_error.exit_code
        if self.signal is not None:
            return self.signal
        if self.shown is not None:
            return self._of_command(failed=self.shown.failed)
        if self.ended is None:
            if self.error_notice is not None:
                return ExitCode.CONFIG
            return ExitCode.BAD_INPUT if self.input_errors else ExitCode.OK
        code = _OUTCOMES[self.ended.outcome]
        if self.ended.outcome in ("error", "blocked", "limit"):
            code = _ERRORS.get(self.ended.error_kind, code)
        if code is ExitCode.OK and self.stop is not None and self.stop.kind in ("refusal", "content_filter"):
            return ExitCode.REFUSED
        if self.ended.error_kind == "command" and any(denial.asked for denial in self.denials):
            return ExitCode.APPROVAL_NEEDED
        if code is ExitCode.OK and self.mismatch is not None:
            return ExitCode.SCHEMA_MISMATCH
        if code is ExitCode.OK and any(denial.asked for denial in self.denials):
            return ExitCode.APPROVAL_NEEDED
        if code is ExitCode.OK and self.input_errors:
            return ExitCode.BAD_INPUT
        return code

    def _of_command(self, *, failed: bool) -> ExitCode:
        if any(denial.asked for denial in self.denials):
            return ExitCode.APPROVAL_NEEDED
        return ExitCode.FAILURE if failed else ExitCode.OK


def _join(texts: list[str], text: str, goes_on: bool) -> None:
    if goes_on and texts:
        texts[-1] += text
    else:
        texts.append(text)
