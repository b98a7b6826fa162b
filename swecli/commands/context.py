"""Commands about what is in the context: /context and /recall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from swecli.commands.base import LATER_WORD, CommandResult, SlashCommand, fixed_words
from swecli.commands.compaction import priced, recorded_turns
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.context_management.past import difference
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.budget import Budget, window_words
from swecli.core.protocol.commands import ChangeContext
from swecli.core.protocol.context_events import ContextChange
from swecli.core.tools.read_result import NOTHING_RECALLED
from swecli.figures import aligned, bar, dollars, number, percent, plural, portion, span
from swecli.figures import tokens as short
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.context_management.compaction.clearing import RuleReport
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


BAR_CELLS, PART_CELLS = 40, 16
_AGENTS = 10
"""Most subagents to list."""
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
    rows = [agent_figures(agent, told.get(agent.id, 0)) for agent in agents[-_AGENTS:]]
    return f"{agents_line(agents, sum(told.values()))}\n{aligned(rows)}"


async def _at(session: Session, words: Sequence[str]) -> CommandResult:
    """The context at an earlier turn, or what changed between two."""
    inspection = session.inspection
    pictures: list[Picture] = []
    for word in words[:2]:
        picture = await inspection.at(int(word)) if word.isdecimal() and len(word) < 9 else None
        if picture is None:
            return CommandResult.text(f"No request belongs to turn {word}. {recorded_turns(session)}", "warning")
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


def _items(title: Callable[[ContextItem], str], picture: Picture | None, words: Sequence[str]) -> TextBlock:
    """One line for each item, with its id; only items that contain all of the words."""
    if picture is None:
        return TextBlock("Not measured: no model is connected.", "warning")
    rows: list[tuple[str, ...]] = []
    for item in picture.items:
        state = "pinned" if item.pinned else item.state
        name = "" if item.state == "fixed" else title(item)[:LONGEST_TITLE]  # the id names those
        row = (item.id, f"{item.tokens:,}", state, item.component, name)
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
    item = next((entry for entry in picture.items if entry.id == name), None) if picture is not None else None
    if item is None:
        return CommandResult.text(f"Unknown item {name!r}; /context items lists them.", "warning")
    sent, original = session.inspection.text(item)
    if not original:
        return CommandResult.text(sent or "(nothing)")
    return CommandResult.text(f"Sent in its place:\n{sent or '(nothing)'}\n\nOriginal:\n{original}")


def context_text(view: SessionView, *, automatic: bool = False) -> str:
    budget, model = view.budget, view.model
    if budget is None:
        lines = ["Not measured yet; the first request measures it."]
        if model is not None and model.window:
            lines.append(f"{model.ref} has a window of {window_words(model.window, model.window_source)}.")
        return "\n".join(lines)
    sign = "" if budget.source == "measured" else "~"
    tokens = PieceEstimator().count(view.scratchpad)
    parts = [
        f"Context {budget.shown}: {sign}{number(budget.used)} of {number(budget.effective)} tokens"
        f" ({_SOURCES[budget.source]})",
        bar(budget.share, BAR_CELLS),
        _components(budget),
        f"Window {window_words(budget.window, budget.window_source)}, {number(budget.reserve)} of them kept "
        f"for the answer.{_thresholds(budget)}",
        conversation_text(view.conversation),
        provider_text(view.conversation),
        prompt_text(view.conversation),
        f"The scratchpad has about {plural(tokens, 'token')}." if view.scratchpad else "",
        (_BY_ITSELF if automatic else {}).get(budget.level, _LEVELS[budget.level]),
    ]
    return "\n".join(part for part in parts if part)


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
    return (name, number(tokens), portion(share), bar(share, PART_CELLS, ends=False), limit)


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


_ID = lazy_pattern(r"\[?[a-z]\d+(\.result)?(\s*[-–,]\s*[a-z]\d+(\.result)?)*\]?|r[0-9a-f]{12}")
_FOR_THE_MODEL = "recall(id=…) returns one in full."


async def _run_recall(session: Session, arguments: str) -> CommandResult:
    if not arguments:
        return CommandResult.text("Search words, or an id such as t12.result: /recall database port", "warning")
    key = "id" if _ID.fullmatch(arguments) else "query"
    result = await session.command_tools.run("recall", {key: arguments})
    if result.is_error:
        return CommandResult.text(result.text, "error")
    if result.text == NOTHING_RECALLED:
        return CommandResult.text("No match among removed items. /find searches everything.", "dim")
    return CommandResult.text(result.text.replace(_FOR_THE_MODEL, "/recall with an id shows one in full."))


RECALL = SlashCommand(
    "recall", "Search what was removed from the context", _run_recall, arguments="[words | id]", while_busy=False
)


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
