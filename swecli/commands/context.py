"""Commands about the context: /context, /compact, /cache, /recall."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from swecli.commands.base import LATER_WORD, CommandResult, Offer, SlashCommand, fixed_words
from swecli.core.context_management.cache import CachedRequest, CacheHistory, RecordedMiss, miss_cost
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.context_management.compaction.policy import conversation_tokens
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.context_management.edit_effects import price_words
from swecli.core.context_management.items import foldable
from swecli.core.context_management.past import difference
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.budget import Budget, window_words
from swecli.core.protocol.commands import ApplyPlan, ChangeContext, Command, Compact, RedoCompaction, UndoCompaction
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.messages import Usage
from swecli.core.protocol.provider_reports import dropped_words
from swecli.core.tools.read_result import NOTHING_RECALLED
from swecli.export.destination import DestinationError, located
from swecli.figures import bar, dollars, percent, plural, portion
from swecli.figures import tokens as short
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.context_management.compaction.clearing import RuleReport
    from swecli.core.context_management.edits import Effect
    from swecli.core.context_management.items import ContextItem
    from swecli.core.engine.inspection import Picture
    from swecli.core.engine.session import Session
    from swecli.core.engine.session_view import Conversation, SessionView
    from swecli.core.engine.state import AgentRecord


def tokens_by_agent(items: Sequence[ContextItem]) -> Mapping[str, int]:
    """Tokens of each subagent's results and reports in this context, by its id."""
    told: dict[str, int] = {}
    for item in items:
        if item.agent and item.kind != "call":
            told[item.agent] = told.get(item.agent, 0) + item.tokens
    return told


def agent_figures(agent: AgentRecord, told: int) -> tuple[str, ...]:
    """A subagent's name and state, the fill of its own context, its usage and cost, and its share of this context
    (``told`` tokens); empty before there is any."""
    state = "running" if agent.outcome is None else agent.outcome
    own = agent.budget
    window = f"{own.shown} of {short(own.effective)}" if own is not None else ""
    used, cost = _used([agent], "used {}")
    return (f"{agent.id} ({agent.started.profile})", state, window, used, cost, _here(told))


def agents_line(agents: Sequence[AgentRecord], told: int) -> str:
    """The same figures of all subagents together; empty without any."""
    if not agents:
        return ""
    working = sum(agent.outcome is None for agent in agents)
    count = f"{len(agents):,} subagent{'s' if len(agents) > 1 else ''}"
    words = "{} tokens of their own" if len(agents) > 1 else "{} tokens of its own"
    parts = (count, f"{working} running" if working else "", *_used(agents, words), _here(told))
    return " · ".join(filter(None, parts))


def _here(told: int) -> str:
    return f"{short(told)} here" if told else ""


def _used(agents: Sequence[AgentRecord], words: str) -> tuple[str, str]:
    """Tokens and cost of their requests; without a sum if some are unknown, which would look complete."""
    asked = [agent for agent in agents if agent.tally.responses]
    if not asked:
        return "", ""
    silent = any(not agent.tokens for agent in asked)
    used = "tokens not reported" if silent else words.format(short(sum(agent.tokens for agent in asked)))
    known = [agent.tally.cost for agent in asked if agent.tally.cost is not None]
    if len(known) < len(asked):
        return used, "price unknown"
    about = "about " if any(agent.tally.estimated for agent in asked) else ""
    return used, f"{about}{dollars(sum(known, Decimal(0)))}"


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
    """``label  value`` with aligned values; omits rows without a value."""
    kept = [(label, value) for label, value in rows if value]
    width = max((len(label) for label, _ in kept), default=0)
    return "\n".join(f"{label.ljust(width)}  {value}" for label, value in kept)


def span(seconds: float) -> str:
    """A duration in its largest unit: "12 seconds", "1 minute", "3 hours", "2 days"."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count = int(seconds // length)
        if count or unit == "second":
            return plural(count, unit)
    return ""


_PLANNING = ("plan", "preview", "dry-run")


async def _run_compact(session: Session, arguments: str) -> CommandResult:
    verb, _, rest = arguments.strip().partition(" ")
    item = rest.strip()
    # The words that stand alone begin a focus if more follows: /compact plan for the parser.
    match verb.lower().lstrip("-"):
        case "undo":
            return priced(session, UndoCompaction(item), session.prices.undo(item), "Undo the compaction")
        case "redo":
            return priced(session, RedoCompaction(item), session.prices.redo(item), "Redo the compaction")
        case "free" if not item:
            effect = None if session.view.busy else session.prices.clearing()
            return priced(session, Compact(without_model=True), effect, "Free space")
        case "now":
            plan, command = session.plan_compaction(), Compact(item)
            return _nothing_to_gain(plan, session) or _sent(session, command)
        case "history" if not item:
            return CommandResult.text(history_text(session))
        case "fold":
            return _fold(session, item)
        case word if word in _PLANNING and not item:
            return replace(_plan(session), screen="compact") if not session.view.busy else _plan(session)
        case _:
            pass
    plan, command = session.plan_compaction(), Compact(arguments.strip())
    if plan is None:
        return _sent(session, command)
    if nothing := _nothing_to_gain(plan, session):
        return nothing
    if session.view.busy:  # an offer would be refused when it is accepted
        return CommandResult((_table(plan), TextBlock("A turn is running; /compact works when it ends.", "warning")))
    title = f"Compact from {number(plan.tokens_before)} to about {number(plan.tokens_after)} tokens?"
    offer = Offer(title, command, ("Apply", "/compact undo restores it"), ("Cancel", "nothing changes"))
    if not command.focus and not plan.by_provider:  # the screen shows an editable plan
        return CommandResult(screen="compact", instead=(_table(plan),), offer=offer)
    by = (TextBlock(BY_PROVIDER.rstrip(), "dim"),) if plan.by_provider else ()
    return CommandResult((_table(plan), *by), offer=offer)


_RANGE: Final = lazy_pattern(r"(\d{1,7})(?:\s*(?:-|–|to|\.\.)\s*(\d{1,7}))?(?:\s+(.+))?", re.DOTALL)
LIKELY = "word " * 90
"""Stands for the few lines that the model would write."""


def _fold(session: Session, words: str) -> CommandResult:
    """Offer to fold the messages of some turns into a few lines."""
    match, picture = _RANGE.fullmatch(words), session.inspection.picture()
    if match is None:
        return CommandResult.text(
            "Name the turns: /compact fold 3-7 [your own lines]. /context shows turns.", "warning"
        )
    if picture is None:
        return CommandResult.text("No model is connected, so swecli cannot measure the context.", "warning")
    if session.view.busy:
        return CommandResult.text("A turn is running; fold turns when it ends.", "warning")
    first, last, text = int(match[1]), int(match[2] or match[1]), (match[3] or "").strip()
    names = foldable(item for item in picture.items if first <= item.turn <= last)
    if not names:
        return CommandResult.text(
            f"No message of turns {first} to {last} is in the context. {_turns(session)}", "warning"
        )
    effect = session.prices.fold(names, text or LIKELY)
    if isinstance(effect, str):
        return CommandResult.text(f"Nothing was changed: {effect}", "warning")
    if effect is None or effect.after >= effect.before:
        return CommandResult.text(
            "Nothing to gain: these messages are as short as the lines in their place.", "warning"
        )
    turns = f"turn {first}" if first == last else f"turns {first} to {last}"
    command = ApplyPlan(names, (), text or None, fold=True)
    by = "your lines" if text else "a few lines by the model"
    offer = Offer(f"Fold {turns}?", command, ("Apply", "/compact undo restores them"), ("Cancel", "nothing changes"))
    about = "" if text else "about "
    size = f"{number(effect.before)} to {about}{number(effect.after)} tokens"
    return CommandResult((TextBlock(f"Fold {turns} into {by}: {size}. {price_words(effect)}"),), offer=offer)


def priced(
    session: Session, command: Command, effect: Effect | None, what: str, later: Command | None = None
) -> CommandResult:
    """Carry out a change of the context at once if it costs no thoughts of the model; else name the price and offer it.
    ``later`` is the same at the next compaction, if it can wait."""
    if effect is None or not effect.thoughts or effect.refusals:
        session.send(command)
        return CommandResult()
    offer = Offer(f"{what}?", command, ("Apply", "it can be undone"), ("Cancel", "nothing changes"), later)
    return CommandResult((TextBlock(f"{what}: {price_words(effect)}"),), offer=offer)


def _nothing_to_gain(plan: CompactionPlan | None, session: Session) -> CommandResult | None:
    if plan is None or plan.worthwhile:
        return None
    budget = session.view.budget
    if budget is None:
        return CommandResult.text("Nothing to compact yet.")
    messages = plural(session.view.conversation.active, "message")
    part = f"{number(conversation_tokens(budget))} of {plural(budget.used, 'token')}"
    return CommandResult.text(f"Nothing to compact yet: little to gain ({messages}, {part}).")


def _sent(session: Session, command: Compact) -> CommandResult:
    session.send(command)
    return CommandResult()


def history_text(session: Session) -> str:
    """All compactions: time, effect, and the share of preserved facts."""
    records = session.inspection.timeline.compactions
    if not records:
        return "No compaction yet."
    rows = [
        (
            record.item,
            f"turn {record.turn}",
            record.trigger,
            f"{number(record.before)} → {number(record.after)}",
            f"{record.kept} of {plural(record.anchors, 'key detail')} kept" if record.anchors else "",
            session.inspection.compaction_state(record).replace("active", ""),
        )
        for record in records
    ]
    return f"{aligned(rows, '')}\n/compact undo ID undoes it and all later ones; /compact redo ID reapplies it."


def _plan(session: Session) -> CommandResult:
    plan = session.plan_compaction()
    if plan is None:
        return CommandResult.text("Not measured: no model is connected.", "warning")
    if not plan.worthwhile:
        return CommandResult.text("Nothing to compact: the whole conversation would be kept.")
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
        (
            "summary by the provider (estimate)" if plan.by_provider else "summary (estimate)",
            "1" if plan.summary_allowance else "0",
            number(plan.summary_allowance),
        ),
        ("whole request, before and after", "", f"{number(plan.tokens_before)} -> {number(plan.tokens_after)}"),
        ("re-sent uncached", "", number(plan.rewritten_tokens)),
        *((("the model's thoughts that are lost", number(plan.thoughts), ""),) if plan.thoughts else ()),
    )
    return TableBlock(("", "messages", "tokens"), (*rows, *_costs(plan)), "If you compact now")


def _costs(plan: CompactionPlan) -> tuple[tuple[str, str, str], ...]:
    if plan.cost is None or plan.saved_per_request is None:
        return (("cost now", "", "price unknown"),)
    return (
        ("cost now", "", dollars(Decimal(plan.cost))),
        ("saving per later request", "", dollars(Decimal(plan.saved_per_request))),
    )


BY_PROVIDER = "The provider writes the summary: you can undo it, not edit it, and Anthropic's you can read. "


def _words(plan: CompactionPlan) -> str:
    saved = 1 - plan.tokens_after / plan.tokens_before
    return (
        f"From {number(plan.tokens_before)} to about {number(plan.tokens_after)} tokens (-{percent(saved)}). "
        f"The record keeps your own messages, files, checks and todos. {BY_PROVIDER if plan.by_provider else ''}"
        "/compact now [focus] applies it, /compact undo restores it."
    )


COMPACT = SlashCommand(
    "compact",
    "Free space in the context; also undo, redo and plan",
    _run_compact,
    aliases=("compress", "summarize"),
    arguments="[focus | now | free | fold TURNS | plan | history | undo [ID] | redo [ID]]",
    words=fixed_words(
        now="compact without showing the plan",
        free="move old output to disk, without a summary",
        fold="TURNS: fold the messages of turns 3-7 into a few lines",
        plan="show what a compaction would do",
        history="list all compactions",
        undo="restore what the last compaction replaced",
        redo="reapply it",
    ),
    waits=lambda words: words.strip().lower().lstrip("-") not in (*_PLANNING, "history"),
)


_BAR_CELLS, _PART_CELLS = 40, 16
_SOURCES = {"measured": "based on reported usage", "estimated": "estimated", "unknown": "unknown"}
_LEVELS = {
    "ok": "",
    "warn": "It is filling up. /compact frees space.",
    "compact": "It is nearly full. /compact frees space.",
    "block": "It is full: nothing is sent until /compact frees space or /clear starts over.",
}
_BY_ITSELF = {
    "compact": "It is nearly full: swecli frees space before the next request.",
    "block": "It is full: swecli frees space before the next request.",
}
"""The same if compaction is automatic."""


Action = Literal["pin", "unpin", "drop", "offload", "restore"]
VERBS: Mapping[str, Action] = {
    "pin": "pin",
    "unpin": "unpin",
    "drop": "drop",
    "offload": "offload",
    "restore": "restore",
}


async def _run_context(session: Session, arguments: str) -> CommandResult:
    await session.start_settled()
    verb, _, rest = arguments.strip().partition(" ")
    match verb.lower():
        case "at" if rest.split():
            return await _at(session, rest.split())
        case "items":
            return CommandResult((_items(session.inspection.title, session.inspection.picture(), rest.split()),))
        case "show" if rest.strip():
            return _show_item(session, rest.strip())
        case "text":
            return CommandResult.text(whole_text(session))
        case word if word in VERBS and rest.split():
            names = rest.split()
            later = len(names) > 1 and names[-1] == LATER_WORD
            changes = tuple(ContextChange(VERBS[word], name) for name in (names[:-1] if later else names))
            command, waiting = ChangeContext(changes, later), ChangeContext(changes, later=True)
            effect = None if later or session.view.busy else session.prices.changes(changes)
            return priced(session, command, effect, f"{word.capitalize()} {' '.join(names)}", waiting)
        case word if word in VERBS or word == "show":
            return CommandResult.text(f"/context {word} needs an id; /context items lists them.", "warning")
        case _:
            words = arguments.split()
            inspection = session.inspection
            listed = _items(inspection.title, inspection.picture(), words) if words else None
            instead = listed or TextBlock(whole_text(session))
            return CommandResult(screen="context", argument=arguments.strip(), instead=(instead,))


CONTEXT = SlashCommand(
    "context",
    "See what fills the context; pin, drop, offload, restore items",
    _run_context,
    aliases=("tokens",),
    arguments="[words | items | text | at TURN [TURN] | ACTION ID]",
    words=fixed_words(
        items="list the items with their ids",
        text="show the figures as text",
        at="TURN: the context as it was then; with a second turn what changed between them",
    ),
    waits=lambda words: words.split(" ")[0].lower() in VERBS and len(words.split()) > 1,
    shows_tools=True,
)


def whole_text(session: Session) -> str:
    """The full text of ``/context`` for front-ends without a screen."""
    removal = session.inspection.next_removal() if session.view.budget is not None else ""
    coming = f"Removed next, {removal}." if removal else ""
    texts = (
        context_text(session.view, automatic=bool(removal)),
        coming,
        agents_text(session),
        rules_text(session.retention()),
    )
    return "\n".join(filter(None, texts))


def agents_text(session: Session) -> str:
    """The newest subagents with usage and size of their reports; empty without any."""
    agents, picture = session.view.agents, session.inspection.picture() if session.view.agents else None
    if not agents:
        return ""
    told = tokens_by_agent(picture.items) if picture is not None else {}
    rows = [agent_figures(agent, told.get(agent.id, 0)) for agent in agents[-SHOWN:]]
    return f"{agents_line(agents, sum(told.values()))}\n{aligned(rows)}"


async def _at(session: Session, words: Sequence[str]) -> CommandResult:
    """The context at an earlier turn, or what changed between two."""
    inspection = session.inspection
    pictures: list[Picture] = []
    for word in words[:2]:
        picture = await inspection.at(int(word)) if word.isdecimal() and len(word) < 9 else None
        if picture is None:
            return CommandResult.text(f"No request belongs to turn {word}. {_turns(session)}", "warning")
        pictures.append(picture)
    if len(pictures) == 1:
        instead = _items(inspection.title, pictures[0], ())
        return CommandResult(screen="context", argument=f"at {words[0]}", instead=(instead,))
    first, second = pictures
    change = difference(first.items, second.items)
    grown = second.budget.used - first.budget.used
    head = f"Turn {words[0]} to turn {words[1]}: {first.budget.used:,} to {second.budget.used:,} tokens ({grown:+,})"
    rows = [
        *(("+", item.id, number(item.tokens), inspection.title(item)[:LONGEST_TITLE]) for item in change.came),
        *(("-", item.id, number(item.tokens), inspection.title(item)[:LONGEST_TITLE]) for item in change.left),
        *(
            ("~", now.id, f"{number(was.tokens)} -> {number(now.tokens)}", inspection.title(now)[:LONGEST_TITLE])
            for was, now in change.changed
        ),
    ]
    if not rows:
        return CommandResult.text(f"{head}. The same items were in the context.")
    return CommandResult((TableBlock(("", "item", "tokens", ""), tuple(rows), head),))


def _turns(session: Session) -> str:
    points = session.inspection.timeline.points
    if not points:
        return "This session has made no request yet."
    return f"The requests of turns {points[0].turn} to {points[-1].turn} are recorded."


def _items(title: Callable[[ContextItem], str], picture: Picture | None, words: Sequence[str]) -> TextBlock:
    """One line for each item, with its id; only items that contain all of the words."""
    if picture is None:
        return TextBlock("Not measured: no model is connected.", "warning")
    rows: list[tuple[str, ...]] = []
    for item in picture.items:
        state = "pinned" if item.pinned else item.state
        row = (item.id, f"{item.tokens:,}", state, item.component, title(item)[:LONGEST_TITLE])
        if all(word.casefold() in " ".join(row).casefold() for word in words):
            rows.append(row)
    if not rows:
        return TextBlock("No item matches.")
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]:<{widths[3]}}  {row[4]}".rstrip()
        for row in rows
    ]
    head = f"{plural(len(rows), 'item')}; tokens of all: {sum(item.tokens for item in picture.items):,}"
    return TextBlock("\n".join([head, *lines]))


LONGEST_TITLE = 100
"""Characters of an item's title."""


def _show_item(session: Session, name: str) -> CommandResult:
    picture = session.inspection.picture()
    item = next((one for one in picture.items if one.id == name), None) if picture is not None else None
    if item is None:
        return CommandResult.text(f"Unknown item {name!r}; /context items lists them.", "warning")
    sent, said = session.inspection.text(item)
    if not said:
        return CommandResult.text(sent or "(nothing)")
    return CommandResult.text(f"Sent in its place:\n{sent or '(nothing)'}\n\nOriginal:\n{said}")


def context_text(view: SessionView, *, automatic: bool = False) -> str:
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
        f"Window {window_words(budget.window, budget.window_source)}, {number(budget.reserve)} of them kept "
        f"for the answer.{_thresholds(budget)}",
        conversation_text(view.conversation),
        provider_text(view.conversation),
        prompt_text(view.conversation),
        _scratchpad(view.scratchpad),
        (_BY_ITSELF if automatic else {}).get(budget.level, _LEVELS[budget.level]),
    ]
    return "\n".join(part for part in parts if part)


def _scratchpad(text: str) -> str:
    tokens = PieceEstimator().count(text)
    return f"The scratchpad has about {plural(tokens, 'token')}." if text else ""


def rules_text(rules: Sequence[RuleReport]) -> str:
    """Effect of the user's rules; empty without rules."""
    rows = [
        (
            rule.rule,
            f"{number(rule.removed)} removed",
            f"{plural(rule.saved, 'token')} saved",
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
    """Thresholds of the levels, from the settings."""
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
    also = f"{age} {thoughts_text(conversation.thoughts, conversation.dead)}".rstrip()
    if not summaries and active == total:
        return f"{plural(total, 'message')} in the conversation.{also}"
    return f"{plural(active, 'active message')} of {number(total)}, {plural(summaries, 'summary')}.{also}"


def provider_text(conversation: Conversation) -> str:
    """Sentences on what the provider does with the conversation by itself; empty if nothing."""
    return _sentences(conversation.by_provider)


def prompt_text(conversation: Conversation) -> str:
    """Sentences on a system prompt that was not made from the files of now; empty for others."""
    return _sentences(conversation.prompt)


def _sentences(clauses: Iterable[str]) -> str:
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)


def thoughts_text(alive: int, dead: int) -> str:
    """Sentence on the model's thoughts; empty without any."""
    left_out = f", {number(dead)} left out because what they followed has changed" if dead else ""
    return f"{plural(alive, 'thought')} of the model alive{left_out}." if alive or dead else ""


async def _run_wire(session: Session, arguments: str) -> CommandResult:
    verb, _, rest = arguments.strip().partition(" ")
    if verb == "save":
        return await _save_wire(session, rest.strip())
    draft = arguments.strip()
    return CommandResult(screen="wire", argument=draft, instead=(TextBlock(wire_text(session, draft)),))


WIRE = SlashCommand(
    "wire",
    "Show the exact next request",
    _run_wire,
    arguments="[message | save [FILE]]",
    words=fixed_words(save="write the request to a file"),
    shows_tools=True,
    under="context",
)


def wire_text(session: Session, draft: str = "") -> str:
    """The sections of the next request with their tokens; marks differences from the previous one."""
    wire = session.inspection.wire(draft)
    if wire is None:
        return "No model is connected, so there is no request to show."
    marks = {"same": " ", "new": "+", "changed": "~", "gone": "-"}
    rows = [
        f"{marks[one.change]} {one.name:<14}  {one.tokens:>7,}  {'┃' if one.breakpoint else ' '} {one.about}".rstrip()
        for one in wire.sections
    ]
    head = f"The next request{with_message(draft)}: {wire.tokens:,} tokens, {len(wire.body.encode()):,} bytes"
    to = f" to {wire.url}" if wire.url else ", in swecli's own form: this model is not on a network"
    return session.inspection.masked("\n".join([f"{head}{to}", *rows]))


_MESSAGE = 40
"""Characters of a message to show."""


def with_message(draft: str) -> str:
    """That the next request is shown as if with this message."""
    line = safe_line(draft)
    return f" with the message “{line if len(line) <= _MESSAGE else f'{line[: _MESSAGE - 1]}…'}”" if draft else ""


async def _save_wire(session: Session, name: str) -> CommandResult:
    try:
        place = await save_wire(session, str(located(name, session.view.cwd)) if name else "")
    except DestinationError as error:
        return CommandResult.text(str(error), "error")
    except OSError as error:
        return CommandResult.text(f"Could not save the request: {error}", "error")
    if place is None:
        return CommandResult.text("No model is connected, so there is no request to save.", "warning")
    return CommandResult.text(f"Saved to {place}, secrets masked.")


async def save_wire(session: Session, name: str = "", draft: str = "") -> Path | None:
    """Write the next request to a file of the working directory that only the user can read; None without a model.

    Raises:
        OSError: the file exists already, or can't be written.
    """
    wire = session.inspection.wire(draft)
    if wire is None:
        return None
    place = session.view.cwd / (name or f"swecli-wire-{session.view.session_id}-{session.view.totals.turns}.json")
    text = session.inspection.masked(wire.body) + "\n"

    def write() -> None:
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    await asyncio.to_thread(write)
    return place


SHOWN = 10
"""Requests and misses to list."""


async def _run_cache(session: Session, arguments: str) -> CommandResult:
    text = TextBlock(cache_text(session.view, arguments))
    return CommandResult(screen="cache", argument=arguments.strip(), instead=(text,))


CACHE = SlashCommand(
    "cache",
    "Show each request's cached part, and each miss with its cause",
    _run_cache,
    arguments="[words]",
    under="context",
)


def request_matches(request: CachedRequest, words: Iterable[str]) -> bool:
    """Whether all words, in lower case, are in a request's turn, model, misses or reports."""
    causes = " ".join(f"{miss.kind} {miss.cause} {miss.component}" for miss in request.misses)
    reports = " ".join((request.diagnosis, *map(dropped_words, request.dropped)))
    text = f"turn {request.turn} {request.model} {causes} {reports}".casefold()
    return all(word in text for word in words)


def cache_text(view: SessionView, words: str = "") -> str:
    """The prompt cache in numbers, with the newest requests, of those that match the words."""
    history, wanted = view.cache, words.casefold().split()
    reported = [request for request in history.requests if request.usage.cache_read is not None]
    if not reported:
        return no_cache_words(history)
    shown = [request for request in reported if request_matches(request, wanted)][-SHOWN:]
    matching = f" with “{safe_line(words)}”" if wanted else ""
    heading = f"Newest requests{matching} (prompt tokens, share read from the cache, cost):"
    if not shown:
        heading = f"No request matches “{safe_line(words)}”."
    newest = reported[-1].usage.cache_share or 0.0
    read = sum(request.usage.cache_read or 0 for request in reported)
    total = sum(request.usage.input_total or 0 for request in reported)
    lines = [
        f"Prompt cache: {percent(newest)} of the last request, {percent(read / total)} of the last"
        f" {plural(len(reported), 'request')} ({number(read)} of {plural(total, 'token')})",
        bar(newest, _BAR_CELLS),
        heading,
        _timeline(shown, view.price),
        _misses(history.misses, history.totals.missed, () if wanted else _further(history, shown)),
        prompt_text(view.conversation),
    ]
    return "\n".join(line for line in lines if line)


def no_cache_words(history: CacheHistory) -> str:
    """Reason for an empty list, as a sentence."""
    if history.requests:
        return "The provider reports no cached tokens."
    return "The provider reports no token counts." if history.silent else "No answer yet."


def _timeline(requests: Sequence[CachedRequest], price: Callable[[str, Usage], str | None]) -> str:
    """One line for each request, with its misses below it."""
    rows = aligned(
        (
            f"turn {request.turn}, {_clock(request.at)}",
            number(request.usage.input_total or 0),
            percent(request.usage.cache_share or 0.0),
            bar(request.usage.cache_share or 0.0, _PART_CELLS),
            _dollars(request.cost),
        )
        for request in requests
    )
    lines: list[str] = []
    for request, row in zip(requests, rows.splitlines(), strict=True):
        lines.append(row)
        for miss in request.misses:
            extra = miss_cost(request, miss.tokens, price)
            cost = f", {dollars(extra)} more" if extra else ""
            lines.append(f"    missed: {miss.cause} ({plural(miss.tokens, 'token')} again{cost})")
        if request.diagnosis:
            lines.append(f"    the provider's diagnosis: {request.diagnosis}")
        lines += (f"    {dropped_words(entry)}" for entry in request.dropped)
    return "\n".join(lines)


def _dollars(cost: str | None) -> str:
    try:
        return "" if cost is None else dollars(Decimal(cost))
    except InvalidOperation:
        return ""


def _further(history: CacheHistory, shown: Sequence[CachedRequest]) -> Sequence[RecordedMiss]:
    """Misses that belong to none of the shown requests."""
    told = [miss for request in shown for miss in request.misses]
    return [miss for miss in history.misses if miss not in told]


def _misses(misses: Sequence[RecordedMiss], tokens: int, further: Sequence[RecordedMiss]) -> str:
    if not misses:
        return "No misses."
    count = plural(len(misses), "miss")
    head = f"{count}, {plural(tokens, 'token')} processed again{'; others:' if further else '.'}"
    rows = [f"  turn {miss.turn}, {_clock(miss.at)}  {number(miss.tokens)}  {miss.cause}" for miss in further[-SHOWN:]]
    return "\n".join([head, *rows])


def _clock(at: float) -> str:
    return time.strftime("%H:%M", time.localtime(at))


_ID = lazy_pattern(r"\[?[a-z]\d+(\.result)?(\s*[-–,]\s*[a-z]\d+(\.result)?)*\]?|r[0-9a-f]{12}")
_FOR_THE_MODEL = "recall(id=…) returns one in full."


async def _run_recall(session: Session, arguments: str) -> CommandResult:
    if not arguments:
        return CommandResult.text("Search words, or an id such as t12.result: /recall database port", "warning")
    key = "id" if _ID.fullmatch(arguments) else "query"
    found = await session.command_tools.run("recall", {key: arguments})
    if found.is_error:
        return CommandResult.text(found.text, "error")
    if found.text == NOTHING_RECALLED:
        return CommandResult.text("No match among removed items. /find searches everything.", "dim")
    return CommandResult.text(found.text.replace(_FOR_THE_MODEL, "/recall with an id shows one in full."))


RECALL = SlashCommand(
    "recall", "Search what was removed from the context", _run_recall, arguments="[words | id]", while_busy=False
)


def plan_document(plan: CompactionPlan) -> dict[str, Any]:
    """Plan of a compaction. Tokens are of the whole request; ids are of ledger entries."""
    return {"type": "compaction_plan", **msgspec.to_builtins(plan), "worthwhile": plan.worthwhile}


def context_document(session: Session) -> dict[str, Any]:
    """The figures of ``/context``: the same measure, in tokens."""
    view = session.view
    budget, model = view.budget, view.model
    return {
        "type": "context",
        "session": view.session_id,
        "model": model.ref if model is not None else None,
        "messages": len(view.messages),
        "conversation": msgspec.to_builtins(view.conversation),
        "budget": msgspec.to_builtins(budget) if budget is not None else None,
        "share": round(budget.share, 6) if budget is not None else None,
        "rules": msgspec.to_builtins(session.retention()),
    }
