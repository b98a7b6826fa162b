"""The items of the context with their tokens, which add up to the meter's number. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.compaction.clearing import arguments_of, target_of
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.entry_bodies import stub_parts
from swecli.core.context_management.ledger import RECORD, RESULT, Entry, Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompts import REPORT, unmarked
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import ASSISTANT, ATTACHED, CALLS, NOTES, REASONING, RESULTS, SUMMARIES, USER, Budget
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.figures import plural

ItemState = Literal["live", "offloaded", "dropped", "summarised", "gone", "fixed"]
"""``fixed``: a part of every request, such as the system prompt. ``gone``: removed by a compaction without a
summary."""

CONVERSATION: Final = (USER, NOTES, ATTACHED, SUMMARIES, ASSISTANT, REASONING, CALLS, RESULTS)
"""Components that consist of items of the ledger."""
SUMMARY: Final = "summary"
"""``ContextItem.kind`` of a compaction's text."""
NO_AGENTS: Final[Mapping[str, str]] = {}
_COMPONENTS: Final[Mapping[str, str]] = {
    "user": USER,
    "attachment": ATTACHED,
    "note": NOTES,
    SUMMARY: SUMMARIES,
    "text": ASSISTANT,
    "opaque": ASSISTANT,
    "reasoning": REASONING,
    "call": CALLS,
    "result": RESULTS,
}


class ContextItem(Struct, frozen=True):
    """One present or former item of the context. ``tokens`` is its present size; times are Unix seconds, 0 without one;
    ``used`` is when it, or its file, was last accessed. ``sources`` are the ids behind a summary. ``agent`` is the
    subagent of a call, its result or a report."""

    id: str
    kind: str
    source: str
    component: str
    tokens: int
    state: ItemState
    pinned: bool = False
    turn: int = 0
    created: float = 0.0
    used: float = 0.0
    sources: tuple[str, ...] = ()
    agent: str = ""


def items_of(
    ledger: Ledger, budget: Budget, monitor: TokenMonitor, info: ModelInfo, agents: Mapping[str, str] = NO_AGENTS
) -> tuple[ContextItem, ...]:
    """All items in the order of the request, the fixed parts first, followed by those no longer sent word for word.

    The tokens add up to ``budget.used``, which has to be the measure of the ledger's view. ``agents`` has the calls of
    subagents, each with the subagent's id.
    """
    wanted = {part.name: part.tokens for part in budget.components}
    by_component: dict[str, dict[str, float]] = {}
    for name, (component, size) in _sizes(ledger, monitor, info).items():
        by_component.setdefault(component, {})[name] = size
    viewed = {entry.id for entry in ledger.view}
    placed: dict[str, tuple[str, int]] = {}
    for component, sizes in by_component.items():
        spread = _spread(wanted.pop(component, 0), sizes)
        placed.update((name, (component, tokens)) for name, tokens in spread.items())
    besides = ((name, *placement) for name, placement in placed.items() if name not in viewed)
    parts = (*((name, name, size) for name, size in wanted.items() if size), *besides)
    fixed = (ContextItem(f"[{name}]", "fixed", name, component, size, "fixed") for name, component, size in parts)
    used = last_uses(ledger)
    present = (_shown(ledger, entry, placed.get(entry.id), used) for entry in ledger.view)
    items = (*fixed, *present, *_absent(ledger, used))
    return tuple(_of_agent(ledger, item, agents) for item in items) if agents else items


def calls_with_results(items: Sequence[ContextItem]) -> Mapping[str, ContextItem]:
    """The call of each result that stands in one row with it, by the result's id. A call that was shortened while its
    result was not keeps a row of its own, where it can be restored."""
    calls = {item.id: item for item in items if item.kind == "call"}
    results = ((item, calls.get(item.id.removesuffix(RESULT))) for item in items if item.kind == "result")
    return {result.id: call for result, call in results if call is not None and call.state in ("live", result.state)}


def in_one_row(items: Sequence[ContextItem], calls: Mapping[str, ContextItem]) -> tuple[ContextItem, ...]:
    """The items with each of ``calls`` added to its result: the tokens of both, pinned if one is."""
    joined = {call.id for call in calls.values()}
    return tuple(_with_call(item, calls.get(item.id)) for item in items if item.id not in joined)


def foldable(items: Iterable[ContextItem]) -> tuple[str, ...]:
    """Ids of those items that a few lines can replace."""
    return tuple(
        item.id for item in items if item.state in ("live", "offloaded") and not item.pinned and item.kind != SUMMARY
    )


def _with_call(item: ContextItem, call: ContextItem | None) -> ContextItem:
    if call is None:
        return item
    return replace(item, tokens=item.tokens + call.tokens, pinned=item.pinned or call.pinned)


def _of_agent(ledger: Ledger, item: ContextItem, agents: Mapping[str, str]) -> ContextItem:
    entry = ledger.entries.get(item.id)
    if entry is None or entry.kind not in ("call", "result", "note"):
        return item
    agent = agents.get(entry.item, "")
    if entry.kind == "note":
        report = REPORT.match(original_text(ledger, item.id))
        agent = report[1] if report is not None and report[1] in agents.values() else ""
    return replace(item, agent=agent) if agent else item


def _component(ledger: Ledger, shown: ViewEntry) -> str:
    known = ledger.entries.get(shown.id)
    return _COMPONENTS[known.kind if known is not None else SUMMARY]


def _shown(ledger: Ledger, shown: ViewEntry, placed: tuple[str, int] | None, used: Mapping[str, float]) -> ContextItem:
    known = ledger.entries.get(shown.id)
    component, tokens = placed or (_component(ledger, shown), 0)
    if known is None:
        return ContextItem(shown.id, SUMMARY, "", SUMMARIES, tokens, "live", sources=shown.sources)
    states: Mapping[str, ItemState] = {"stub": "offloaded", "dropped": "dropped"}
    return _item(ledger, known, tokens, states.get(shown.kind, "live"), used, component)


def _item(
    ledger: Ledger, entry: Entry, tokens: int, state: ItemState, used: Mapping[str, float], component: str = ""
) -> ContextItem:
    return ContextItem(
        entry.id,
        entry.kind,
        entry.source,
        component or _COMPONENTS[entry.kind],
        tokens,
        state,
        entry.id in ledger.pinned,
        entry.turn,
        entry.created,
        max(entry.created, used.get(entry.item, 0.0)),
    )


def _absent(ledger: Ledger, used: Mapping[str, float]) -> Iterable[ContextItem]:
    """Items behind a summary or removed by a compaction. Rewound entries are not part of the conversation."""
    viewed = {entry.id for entry in ledger.view}
    behind = {source for entry in ledger.view for source in entry.sources}
    for entry in ledger.entries.values() if behind else ():
        if entry.id in behind and entry.id not in viewed:
            yield _item(ledger, entry, 0, "summarised", used)


def _sizes(ledger: Ledger, monitor: TokenMonitor, info: ModelInfo) -> dict[str, tuple[str, float]]:
    """Component and tokens of each entry of the view, as the meter counts them. A message is counted as a whole;
    several entries of one component share its tokens in proportion to their own sizes."""
    messages = project(ledger)
    counts = {message.id: sizes for message, sizes in zip(messages, monitor.shares(messages, info), strict=True)}
    groups: dict[tuple[str, str], list[ViewEntry]] = {}
    for shown in ledger.view:
        if shown.kind == "dropped":
            continue
        owner, component = owner_of(ledger, shown.id), _component(ledger, shown)
        known = counts.get(owner, {})
        if component not in known and len(known) == 1:  # a note has a component of its own
            component = next(iter(known))
        groups.setdefault((owner, component), []).append(shown)
    each = EntrySizes(monitor, info)
    measured: dict[str, tuple[str, float]] = {}
    for (owner, component), members in groups.items():
        size = counts.get(owner, {}).get(component, 0.0)
        weights = [1] if len(members) == 1 else [max(1, each.viewed(member, ledger)) for member in members]
        measured.update(
            (member.id, (component, size * weight / sum(weights)))
            for member, weight in zip(members, weights, strict=True)
        )
    owners = {owner for owner, _ in groups}
    first = next((name for name in counts if name in ledger.entries and name not in owners), None)
    if first is not None:  # dropped, but for the environment that came with it
        measured[ENVIRONMENT] = next(iter(counts[first].items()))
    return measured


ENVIRONMENT: Final = "environment"
"""The environment note of the user's first message if the message itself was dropped."""


def owner_of(ledger: Ledger, name: str) -> str:
    """The id of the message that contains an entry."""
    known = ledger.entries.get(name)
    if known is None or known.kind in ("user", "note", "attachment"):
        return name
    return f"{known.message}.results" if known.kind == "result" else known.message


def _spread(total: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Whole tokens by weight that add up to ``total``: the largest remainders get one more."""
    weight = sum(weights.values())
    if weight <= 0:
        return {name: total if number == 0 else 0 for number, name in enumerate(weights)}
    shares = {name: total * each / weight for name, each in weights.items()}
    whole = {name: int(share) for name, share in shares.items()}
    left = total - sum(whole.values())
    for name in sorted(shares, key=lambda key: whole[key] - shares[key])[:left]:
        whole[name] += 1
    return whole


def last_uses(ledger: Ledger) -> dict[str, float]:
    """Time of the last access to each item's file, by item: read or changed again."""
    return ledger.files.last_uses()


# --- texts of an item -------------------------------------------------------------------------------------

LONGEST: Final = 200
"""Longest title in characters."""


def title_of(ledger: Ledger, item: ContextItem) -> str:
    """One-line title of an item."""
    if item.kind == SUMMARY:
        count = len(item.sources)
        first = ledger.view[0] if ledger.view else None
        provider = first is not None and first.id == item.id and first.provider is not None
        if item.id.endswith(RECORD):
            return f"Record of {plural(count, 'earlier item')}, beside the provider's summary"
        return f"Summary of {plural(count, 'earlier item')}{', written by the provider' if provider else ''}"
    entry = ledger.entries.get(item.id)
    return title_of_entry(ledger, entry) if entry is not None else item.source or item.id


def title_of_entry(ledger: Ledger, entry: Entry) -> str:
    """One-line title of an entry."""
    record = ledger.items.get(entry.item)
    if entry.kind == "attachment" and record is not None and record.call is not None:
        return f"attached {target_of(record.call)}"[:LONGEST]
    if entry.kind in ("call", "result"):
        call = record.call if record is not None else next(iter(_calls(entry)), None)
        target = target_of(call) if call is not None else ""
        if call is not None and not target:
            target = " ".join(str(value) for value in arguments_of(call).values())[:LONGEST]
        return f"{entry.source} {target}".strip()
    text = "".join(part_text(part) for part in entry.body.parts)
    if entry.kind == "note":
        text = unmarked(text)
    return next((" ".join(line.split())[:LONGEST] for line in text.splitlines() if line.strip()), "(nothing)")


def _calls(entry: Entry) -> Iterable[ToolCallPart]:
    return (part for part in entry.parts if isinstance(part, ToolCallPart))


def part_text(part: Part) -> str:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text) | ToolResultPart(text=text):
            return text
        case ToolCallPart(arguments=arguments):
            return arguments
        case _:
            return ""


def text_sent(ledger: Ledger, item: str) -> str | None:
    """The exact text of an entry in the next request; empty if it sends none, None if there is no such entry."""
    shown = next((viewed for viewed in ledger.view if viewed.id == item), None)
    entry = ledger.entries.get(item)
    if shown is None:
        return "" if entry is not None else None
    if entry is None:
        return shown.text
    if shown.kind == "dropped":
        return ""
    parts: Sequence[Part] = entry.parts
    if shown.kind == "stub":
        parts = stub_parts(entry.body.outline, shown.text)
    sent = _in_messages(project(ledger), entry, parts)
    return "\n".join(filter(None, map(part_text, sent)))


def _in_messages(messages: Sequence[Message], entry: Entry, parts: Sequence[Part]) -> Sequence[Part]:
    """The parts in the form that the messages have: text that imitates a note of swecli is escaped there."""
    if entry.kind == "result":
        calls = {part.call_id for part in parts if isinstance(part, ToolResultPart)}
        owner = f"{entry.message}.results"
        sent = [
            part
            for message in messages
            if message.id == owner
            for part in message.tool_results
            if part.call_id in calls
        ]
        return sent or parts
    return parts


def original_text(ledger: Ledger, item: str) -> str:
    """The original text, whether it is still sent or not."""
    entry = ledger.entries.get(item)
    return "\n".join(filter(None, map(part_text, entry.parts))) if entry is not None else ""
