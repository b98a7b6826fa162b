"""Outcome of a run: answer, usage, denials, output of slash commands, exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.block_text import block_lines
from swecli.commands.base import CommandResult, Screen, run_command
from swecli.commands.registry import CommandCall, command_table, commands_of
from swecli.core.answer_schema import AnswerSchema, Mismatch
from swecli.core.engine.decisions import ASKED_BY_HOOK
from swecli.core.permissions.decide import NO_RULE_NOW
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.events import (
    MAIN,
    CompactionRedone,
    CompactionUndone,
    Event,
    PermissionRequested,
    RewindUndone,
    Rewound,
)
from swecli.core.protocol.result import LOSSES, Kept, Status
from swecli.core.protocol.turns import Item, Turns
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
    """A call that was not allowed to run. ``asked``: it needed an approval, and the run is unattended. ``why`` says for
    what: a rule is missing, there was text from ``outside``, or a ``hook`` asked; only the first has a rule for it."""

    tool: str
    title: str
    reason: str
    asked: bool
    why: Literal["rule", "outside", "hook"] = "rule"


class Outcome(Turns):
    """Result of a run, reduced from all its events in order."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: Kept = "nothing"
        """What of the session can be continued after the run."""
        self.input_errors: list[str] = []
        self.start_error: StartError | None = None
        """Reason for the failure to open a session."""
        self.shown: Shown | None = None
        """Output of the slash command, if the run was one."""
        self._undone: list[str] = []
        """Undone actions, because the command for that has no output of its own."""
        self.signal: ExitCode | None = None
        """Set by the run after a signal."""
        self.structured: Any = None
        """The answer as a value, if it matches the requested schema; see ``fits``."""
        self.fits = False
        self.mismatch: Mismatch | None = None
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
    def loss(self) -> str:
        """A sentence if the conversation can't be continued as usual; empty if it can, or was not to be stored."""
        return LOSSES.get(self.kept, "")

    @property
    def text(self) -> str:
        """The output of a slash command, else the newest answer."""
        return super().text if self.shown is None else self.shown.text or "\n".join(self._undone)

    def nobody_to_ask(self, request: PermissionRequested) -> None:
        """Mark this request as rejected because the run is unattended."""
        self._nobody[request.item] = request
        self.offers.update(dict.fromkeys(request.offered))

    def apply(self, event: Event) -> Item | None:
        match event.body:
            case Rewound() | RewindUndone() as body if event.agent == MAIN:
                self._undone += rewind_lines(body)
            case CompactionUndone() if event.agent == MAIN:
                self._undone.append(UNDONE)
            case CompactionRedone() if event.agent == MAIN:
                self._undone.append(REDONE)
            case _:
                pass
        return super().apply(event)

    @property
    def denials(self) -> list[Denial]:
        return [self._denial(item) for item in self.rejected]

    def _denial(self, item: Item) -> Denial:
        request = self._nobody.get(item.id)
        if request is None:
            return Denial(item.name, item.title, item.ended.detail if item.ended is not None else "", False)
        if request.rule_note == ASKED_BY_HOOK:
            reason = request.reason.rstrip(".")
            return Denial(item.name, item.title, f"{reason}; no user is present to approve it", True, "hook")
        outside = request.rule_note == NO_RULE_NOW
        needed = "needs approval after text from outside" if outside else "needs approval"
        return Denial(
            item.name, item.title, f"{needed}, but no user is present", True, "outside" if outside else "rule"
        )

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
            if any(denial.asked for denial in self.denials):
                return ExitCode.APPROVAL_NEEDED
            return ExitCode.FAILURE if self.shown.failed else ExitCode.OK
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
