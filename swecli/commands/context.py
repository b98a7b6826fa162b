"""Commands about the context: /context, /compact, /cache, /recall."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from swecli.commands.base import CommandResult, Offer, SlashCommand
from swecli.core.context_management.cache import CachedRequest, RecordedMiss
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.budget import Budget, window_words
from swecli.core.protocol.commands import Compact, RedoCompaction, UndoCompaction
from swecli.figures import bar, dollars, percent, portion

if TYPE_CHECKING:
    from swecli.core.context_management.compaction.clearing import RuleReport
    from swecli.core.engine.session import Conversation, Session, SessionView


def number(value: int) -> str:
    return f"{value:,}"


def aligned(rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Rows as lines, the first column to the left, all others to the right."""
    table = [list(row) for row in rows]
    if not table:
        return ""
    widths = [
        max(len(row[column]) if column < len(row) else 0 for row in table) for column in range(max(map(len, table)))
    ]
    lines: list[str] = []
    for row in table:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(widths[column + 1]) for column, cell in enumerate(row[1:])]
        lines.append((indent + "  ".join([first, *rest])).rstrip())
    return "\n".join(lines)


def labelled(rows: Iterable[tuple[str, str]]) -> str:
    """``label  value`` with the values below each other; rows without a value are left out."""
    kept = [(label, value) for label, value in rows if value]
    width = max((len(label) for label, _ in kept), default=0)
    return "\n".join(f"{label.ljust(width)}  {value}" for label, value in kept)


def span(seconds: float) -> str:
    """A length of time in its largest unit: "12 seconds", "1 minute", "3 hours", "2 days"."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count = int(seconds // length)
        if count or unit == "second":
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return ""


async def _run_compact(session: Session, arguments: str) -> CommandResult:
    match arguments.strip().lower().lstrip("-"):
        case "undo":
            session.send(UndoCompaction())
            return CommandResult()
        case "redo":
            session.send(RedoCompaction())
            return CommandResult()
        case "free":
            session.send(Compact(without_model=True))
            return CommandResult()
        case "plan" | "preview" | "dry-run":
            return _plan(session)
        case _:
            pass
    plan = session.plan_compaction()
    if plan is not None and not plan.worthwhile:
        return CommandResult.text(
            f"Nothing to compact yet ({plan.kept_messages} messages, {number(plan.kept_tokens)} tokens)."
        )
    command = Compact(arguments.strip())
    if plan is None:
        session.send(command)
        return CommandResult()
    title = f"Compact from {number(plan.tokens_before)} to about {number(plan.tokens_after)} tokens?"
    offer = Offer(title, command, ("Apply", "/compact undo restores it"), ("Cancel", "nothing changes"))
    return CommandResult((_table(plan),), offer=offer)


def _plan(session: Session) -> CommandResult:
    plan = session.plan_compaction()
    if plan is None:
        return CommandResult.text("No model is connected, so swecli cannot measure anything.", "warning")
    if not plan.worthwhile:
        return CommandResult.text("A compaction would change nothing: it would keep the whole conversation.")
    return CommandResult((_table(plan), TextBlock(_words(plan))))


def _table(plan: CompactionPlan) -> TableBlock:
    rows = (
        ("kept verbatim", str(plan.kept_messages), number(plan.kept_tokens)),
        (
            "summarised" if plan.summary_allowance else "removed",
            str(plan.replaced_messages),
            number(plan.replaced_tokens),
        ),
        ("moved to disk (can be read back)", str(len(plan.offloaded)), number(plan.offloaded_tokens)),
        ("summary (estimate)", "1" if plan.summary_allowance else "0", number(plan.summary_allowance)),
        ("whole request, before and after", "", f"{number(plan.tokens_before)} -> {number(plan.tokens_after)}"),
        ("re-sent uncached", "", number(plan.rewritten_tokens)),
    )
    return TableBlock(("", "messages", "tokens"), (*rows, *_costs(plan)), "If you compact now")


def _costs(plan: CompactionPlan) -> tuple[tuple[str, str, str], ...]:
    if plan.cost is None or plan.saved_per_request is None:
        return ()
    return (
        ("cost now", "", dollars(Decimal(plan.cost))),
        ("saving per later request", "", dollars(Decimal(plan.saved_per_request))),
    )


def _words(plan: CompactionPlan) -> str:
    saved = 1 - plan.tokens_after / plan.tokens_before
    return (
        f"From {number(plan.tokens_before)} to about {number(plan.tokens_after)} tokens (-{percent(saved)}). "
        "The record keeps your own messages, files, checks and todos. "
        "/compact [focus] applies it, /compact undo restores it."
    )


COMPACT = SlashCommand(
    "compact",
    "Free space in the context; also undo, redo and plan",
    _run_compact,
    aliases=("compress", "summarize"),
    arguments="[focus | free | plan | undo | redo]",
)


_BAR_CELLS, _PART_CELLS = 40, 16
_SOURCES = {"measured": "anchored on reported usage", "estimated": "estimated", "unknown": "unknown"}
_LEVELS = {
    "ok": "",
    "warn": "It is filling up. /compact frees space.",
    "compact": "It is nearly full. /compact frees space.",
    "block": "It is full: no request is sent until /compact frees space or /clear starts a new conversation.",
}


async def _run_context(session: Session, arguments: str) -> CommandResult:
    return CommandResult.text("\n".join(filter(None, (context_text(session.view), rules_text(session.retention())))))


CONTEXT = SlashCommand("context", "Show what fills the context window", _run_context, aliases=("tokens",))


def context_text(view: SessionView) -> str:
    budget, model = view.budget, view.model
    if budget is None:
        lines = ["Not measured yet; the first request measures it."]
        if model is not None and model.window:
            lines.append(f"{model.ref} has a window of {window_words(model.window, model.window_source)}.")
        return "\n".join(lines)
    sign = "" if budget.source == "measured" else "~"
    parts = [
        f"Context {budget.shown}: {sign}{number(budget.used)} of {number(budget.effective)} tokens"
        f" ({_SOURCES[budget.source]})",
        bar(budget.share, _BAR_CELLS),
        _components(budget),
        f"Window {window_words(budget.window, budget.window_source)}, {number(budget.reserve)} of them kept"
        f" for the answer.{_thresholds(budget)}",
        conversation_text(view.conversation),
        _LEVELS[budget.level],
    ]
    return "\n".join(part for part in parts if part)


def rules_text(rules: Sequence[RuleReport]) -> str:
    """What the user's rules did; empty without rules."""
    rows = [
        (
            rule.rule,
            f"{number(rule.removed)} removed",
            f"{number(rule.saved)} tokens saved",
            f"{rule.recalled} requested again",
        )
        for rule in rules
    ]
    return f"Your rules:\n{aligned(rows)}" if rows else ""


def _components(budget: Budget) -> str:
    rows = [
        _part(
            component.name,
            component.tokens,
            component.tokens / budget.effective if budget.effective > 0 else None,
            f"of max. {number(component.limit)}" if component.limit is not None else "",
        )
        for component in budget.components
    ]
    rows.append(_part("free", max(0, budget.effective - budget.used), max(0.0, 1 - budget.share)))
    return aligned(rows)


def _part(name: str, tokens: int, share: float | None, limit: str = "") -> tuple[str, ...]:
    if share is None:
        return (name, number(tokens), "?", limit)
    return (name, number(tokens), portion(share), bar(share, _PART_CELLS, ends=False), limit)


def _thresholds(budget: Budget) -> str:
    """Where the levels begin, by the settings."""
    if not budget.block_at or budget.effective <= 0:
        return ""
    high, near, full = (
        f"{number(tokens)} ({percent(tokens / budget.effective)})"
        for tokens in (budget.warn_at, budget.compact_at, budget.block_at)
    )
    return f" High from {high}, nearly full from {near}, full from {full}."


def conversation_text(conversation: Conversation) -> str:
    active, total, summaries = conversation.active, conversation.total, conversation.summaries
    age = "" if conversation.oldest_age is None else f" The oldest is {span(conversation.oldest_age)} old."
    if not summaries and active == total:
        return f"{_count(total, 'message')} in the conversation.{age}"
    return f"{_count(active, 'active message')} of {number(total)}, {_count(summaries, 'summary')}.{age}"


def _count(count: int, name: str) -> str:
    many = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{number(count)} {name if count == 1 else many}"


SHOWN = 10
"""Requests and misses that are listed."""


async def _run_cache(session: Session, arguments: str) -> CommandResult:
    return CommandResult.text(cache_text(session.view))


CACHE = SlashCommand("cache", "Show the cached share of recent prompts, and each miss", _run_cache)


def cache_text(view: SessionView) -> str:
    history = view.cache
    reported = [request for request in history.requests if request.usage.cache_read is not None]
    if not history.requests:
        return "No answer yet."
    if not reported:
        return "The provider does not report cache usage."
    newest = reported[-1].usage.cache_share or 0.0
    read = sum(request.usage.cache_read or 0 for request in reported)
    total = sum(request.usage.input_total or 0 for request in reported)
    lines = [
        f"Prompt cache: {percent(newest)} of the last request, {percent(read / total)} of the last"
        f" {number(len(reported))} requests ({number(read)} of {number(total)} tokens)",
        bar(newest, _BAR_CELLS),
        "Newest requests (prompt tokens, read from the cache, written to it):",
        _requests(reported[-SHOWN:]),
        _misses(history.misses, history.missed_tokens),
    ]
    return "\n".join(line for line in lines if line)


def _requests(requests: Sequence[CachedRequest]) -> str:
    return aligned(
        (
            f"turn {request.turn}, {_clock(request.at)}",
            number(request.usage.input_total or 0),
            percent(request.usage.cache_share or 0.0),
            number(request.usage.cache_write) if request.usage.cache_write is not None else "",
        )
        for request in requests
    )


def _misses(misses: Sequence[RecordedMiss], tokens: int) -> str:
    if not misses:
        return "No misses."
    head = f"{number(len(misses))} misses, {number(tokens)} tokens processed again; the newest:"
    rows = [f"  turn {miss.turn}, {_clock(miss.at)}  {number(miss.tokens)}  {miss.cause}" for miss in misses[-SHOWN:]]
    return "\n".join([head, *rows])


def _clock(at: float) -> str:
    return time.strftime("%H:%M", time.localtime(at))


_ID = re.compile(r"\[?[a-z]\d+(\.result)?(\s*[-–,]\s*[a-z]\d+(\.result)?)*\]?|r[0-9a-f]{12}")
_FOR_THE_MODEL = "recall(id=…) returns one in full."


async def _run_recall(session: Session, arguments: str) -> CommandResult:
    if not arguments:
        return CommandResult.text("Search words, or an id such as t12.result: /recall database port", "warning")
    key = "id" if _ID.fullmatch(arguments) else "query"
    found = await session.run_tool("recall", {key: arguments})
    if found.is_error:
        return CommandResult.text(found.text, "error")
    return CommandResult.text(found.text.replace(_FOR_THE_MODEL, "/recall with an id shows one in full."))


RECALL = SlashCommand(
    "recall", "Search what was removed from the context", _run_recall, arguments="[words | id]", while_busy=False
)


def plan_document(plan: CompactionPlan) -> dict[str, Any]:
    """What a compaction would do. Tokens are of the whole request; ids are of ledger entries."""
    return {"type": "compaction_plan", **asdict(plan), "worthwhile": plan.worthwhile}


def context_document(session: Session) -> dict[str, Any]:
    """The figures of ``/context``: the same measure, in tokens."""
    view = session.view
    budget, model = view.budget, view.model
    return {
        "type": "context",
        "session": view.session_id,
        "model": model.ref if model is not None else None,
        "messages": len(view.messages),
        "conversation": asdict(view.conversation),
        "budget": msgspec.to_builtins(budget) if budget is not None else None,
        "share": round(budget.share, 6) if budget is not None else None,
        "rules": [asdict(rule) for rule in session.retention()],
    }
