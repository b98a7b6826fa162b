"""The whole run as plain linear text: what was said, every call with its diff or output, approvals, figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swecli.block_text import block_lines
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TerminalBlock
from swecli.core.protocol.commands import Command, ReplyPermission
from swecli.core.protocol.events import (
    Budget,
    CompactionCompleted,
    ContextMeasured,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    Notice,
    PermissionRequested,
    QuestionAsked,
    StepStarted,
)
from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart
from swecli.headless.outcome import Outcome
from swecli.headless.output import Output, safe
from swecli.headless.printers import closing_lines, trouble_line

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
            case CompactionCompleted(tokens_before=before, tokens_after=after):
                self._write([f"Compacted from {before:,} to {after:,} tokens"])
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
        if started is not None and kind == "tool":
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
    if budget is not None:
        parts.append(f"context {budget.used:,} of {budget.effective:,} tokens ({budget.share:.0%})")
    share = outcome.usage.cache_share
    if share is not None:
        parts.append(f"{share:.0%} of the prompts from the cache")
    if outcome.cost:
        parts.append(f"${outcome.cost}")
    return f"[{', '.join(parts)}]"
