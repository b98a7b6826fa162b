"""What a headless run writes: text, JSON, event streams and the linear transcript."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from swecli.block_text import block_lines
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TerminalBlock
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.codec import encode_event, to_text
from swecli.core.protocol.commands import Command, ReplyPermission
from swecli.core.protocol.compaction_words import completed_line
from swecli.core.protocol.events import (
    CompactionCompleted,
    ContextMeasured,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    Notice,
    PermissionRequested,
    QuestionAsked,
    RetryScheduled,
    StepStarted,
)
from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart, usage_words
from swecli.headless.outcome import Denial, Outcome
from swecli.output import Output, safe


class Printer(Protocol):
    """Shows a run as it happens. Both methods raise ``OutputClosed`` when nobody reads any more."""

    def event(self, event: Event) -> None: ...

    def replied(self, command: Command) -> None:
        """The front-end itself answered a question with this command."""
        ...

    def finish(self, outcome: Outcome) -> None: ...


def result_object(outcome: Outcome) -> dict[str, Any]:
    """The result of the run as it is written in json and as the last line of stream-json."""
    usage, error, stop, ended = outcome.usage, outcome.error, outcome.stop, outcome.ended
    return {
        "type": "result",
        "status": outcome.status,
        "exit_code": int(outcome.exit_code),
        "text": outcome.text,
        "error": {"kind": error[0], "message": error[1]} if error else None,
        "stop": {
            "kind": stop.kind,
            "reason": ended.reason if ended is not None else "",
            "raw": stop.raw,
            "detail": stop.detail,
        }
        if stop is not None
        else None,
        "session": outcome.session,
        "turns": outcome.turns,
        "steps": outcome.steps,
        "usage": {
            "input_total": usage.input_total,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "output_total": usage.output_total,
            "reasoning": usage.reasoning,
        },
        "cost": None if outcome.cost is None else str(outcome.cost),
        "denials": [
            {"tool": denial.tool, "title": denial.title, "reason": denial.reason, "approval_needed": denial.asked}
            for denial in outcome.denials
        ],
    }


class TextPrinter:
    """The answer on standard output, everything else that matters on standard error."""

    def __init__(self, out: Output, err: Output) -> None:
        self._out = out
        self._err = err

    def event(self, event: Event) -> None:
        line = trouble_line(event)
        if line:
            self._err.note(line)

    def replied(self, command: Command) -> None:
        """The denial is told at the end."""

    def finish(self, outcome: Outcome) -> None:
        text = outcome.text.rstrip("\n")
        if text:
            self._out.text(f"{text}\n")
        for line in closing_lines(outcome):
            self._err.note(line)


class JsonPrinter:
    """One JSON object at the end; troubles on standard error as well."""

    def __init__(self, out: Output, err: Output) -> None:
        self._out = out
        self._err = err

    def event(self, event: Event) -> None:
        line = trouble_line(event)
        if line:
            self._err.note(line)

    def replied(self, command: Command) -> None:
        """The denial is part of the result."""

    def finish(self, outcome: Outcome) -> None:
        self._out.line(to_text(result_object(outcome)))
        for line in closing_lines(outcome):
            self._err.note(line)


class StreamJsonPrinter:
    """Every event with its envelope on a line of its own, then the result."""

    def __init__(self, out: Output, err: Output) -> None:
        self._out = out
        self._err = err

    def event(self, event: Event) -> None:
        self._out.line(encode_event(event))

    def replied(self, command: Command) -> None:
        """The event that follows tells of it."""

    def finish(self, outcome: Outcome) -> None:
        self._out.line(to_text(result_object(outcome)))
        for line in closing_lines(outcome):
            self._err.note(line)


def trouble_line(event: Event) -> str:
    """One line for a warning, an error or a retry; empty for everything else."""
    match event.body:
        case Notice(level=level, text=text, hint=hint) if level != "info":
            return f"{level}: {text}{f' {hint}' if hint else ''}"
        case RetryScheduled(attempt=attempt, limit=limit, delay=delay, reason=reason):
            number = f"{attempt} of {limit}" if limit else f"{attempt}"
            return f"retry {number} in {delay:.1f} s: {reason}"
        case _:
            return ""


def closing_lines(outcome: Outcome) -> list[str]:
    """What standard error gets at the end: denials and why the run did not end well."""
    lines = [f"not allowed: {denial_line(denial)}" for denial in outcome.denials]
    ended = outcome.ended
    if outcome.status == "interrupted":
        lines.append("interrupted")
    elif ended is not None and ended.outcome != "done":
        lines.append(f"{ended.outcome}: {ended.reason or ended.error_kind or 'no reason given'}")
    elif ended is not None and ended.reason:
        lines.append(ended.reason)
    return lines


def denial_line(denial: Denial) -> str:
    """What was denied and why, on one line."""
    target = f" {denial.title}" if denial.title else ""
    return f"{denial.tool}{target} ({denial.reason})"


MAX_LINES = 60
"""Lines of a diff or of a command's output that are shown; a longer one is cut in the middle."""
MAX_OTHER_LINES = 12
"""The same for all other blocks."""


class TranscriptPrinter:
    """Writes every item when it is complete. All of it goes to standard output."""

    def __init__(self, out: Output, banner: str = "") -> None:
        self._out = out
        self._started: dict[str, ItemStarted] = {}
        self._shown: dict[str, tuple[DisplayBlock, ...]] = {}
        self._budget: Budget | None = None
        if banner:
            self._write(banner.splitlines())

    def event(self, event: Event) -> None:
        match event.body:
            case ItemStarted(item=item) as started:
                self._started[item] = started
            case ItemCheckpointed(item=item, title=title, part=ToolCallPart()) if title and item in self._started:
                known = self._started[item]
                self._started[item] = ItemStarted(item, known.kind, known.name, title)
            case ItemCompleted() as completed:
                self._completed(completed)
            case PermissionRequested() as request:
                self._shown[request.item] = request.blocks
                self._write([f"? May it {_call(request.tool, request.title)}? ({request.reason})"])
                self._blocks(request.blocks)
            case QuestionAsked(questions=questions):
                self._write([f"? {question.text}" for question in questions])
            case StepStarted(budget=budget) | ContextMeasured(budget=budget):
                self._budget = budget
            case CompactionCompleted() as done:
                self._write([completed_line(done)])
            case Notice(level="info", text=text, hint=hint):
                self._write([f"note: {text}{f' {hint}' if hint else ''}"])
            case _:
                line = trouble_line(event)
                if line:
                    self._write([line])

    def replied(self, command: Command) -> None:
        if isinstance(command, ReplyPermission):
            self._write(
                [f"> {'no' if command.choice == 'reject' else 'yes'}{f': {command.note}' if command.note else ''}"]
            )

    def finish(self, outcome: Outcome) -> None:
        self._write(closing_lines(outcome))
        self._write([_figures(outcome, self._budget)])

    def _completed(self, completed: ItemCompleted) -> None:
        started = self._started.pop(completed.item, None)
        kind = started.kind if started else "text"
        text = "".join(part.text for part in completed.parts if isinstance(part, TextPart | ReasoningPart)).strip("\n")
        if started is not None and kind in ("tool", "attachment"):
            self._tool(started, completed)
        elif started is not None and kind == "user" and started.name == "shell":
            self._blocks(completed.blocks)
        elif text.strip():
            prefix = {"user": "> ", "reasoning": "~ "}.get(kind, "")
            ending = "" if completed.status == "ok" else f" ({completed.status})"
            self._write([f"{prefix}{line}".rstrip() for line in f"{text}{ending}".splitlines()])

    def _tool(self, started: ItemStarted, completed: ItemCompleted) -> None:
        status = "" if completed.status == "ok" else f" {completed.status}"
        detail = f": {completed.detail}" if completed.detail and completed.detail != completed.status else ""
        self._write([f"* {_call(started.name, started.title)}{status}{detail}"])
        if completed.blocks != self._shown.pop(completed.item, None):
            self._blocks(completed.blocks)

    def _blocks(self, blocks: Sequence[DisplayBlock]) -> None:
        for block in blocks:
            lines = block_lines(block)
            limit = MAX_LINES if isinstance(block, DiffBlock | TerminalBlock) else MAX_OTHER_LINES
            if len(lines) > limit:
                half = limit // 2
                lines = [*lines[:half], f"... {len(lines) - 2 * half} lines ...", *lines[-half:]]
            self._write((f"    {line}".rstrip() for line in lines), gap=False)

    def _write(self, lines: Iterable[str], *, gap: bool = True) -> None:
        text = "\n".join(safe(line) for line in lines)
        if text:
            self._out.text(f"{chr(10) if gap else ''}{text}\n")


def _call(tool: str, title: str) -> str:
    name = tool.replace("_", " ")
    return f"{name} {title}" if title else name


def _figures(outcome: Outcome, budget: Budget | None) -> str:
    parts = [outcome.status, f"{outcome.steps} model steps"]
    if tokens := usage_words(outcome.usage):
        parts.append(tokens)
    if budget is not None:
        parts.append(f"context {budget.used:,} of {budget.effective:,} tokens ({budget.shown})")
    share = outcome.usage.cache_share
    if share is not None:
        parts.append(f"{share:.0%} of the prompts from the cache")
    if outcome.cost:
        parts.append(f"${outcome.cost}")
    return f"[{', '.join(parts)}]"
