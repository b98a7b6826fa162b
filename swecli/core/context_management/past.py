"""The context as it was at an earlier turn, from the record. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from swecli.core.context_management.items import ContextItem
from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import MAIN, Event, StepStarted


class Past(Struct, frozen=True):
    """The conversation at the newest request of ``turn``, which was sent at ``at`` (Unix seconds), and its measure."""

    ledger: Ledger
    budget: Budget
    turn: int
    at: float


def past_at(events: Iterable[Event], turn: int) -> Past | None:
    """The context at the newest request of a turn; None if the turn made none. ``events`` are those of the whole
    session, in order."""
    main_events: list[Event] = []
    request = -1
    for event in events:
        if event.turn > turn:
            break
        if event.agent != MAIN:
            continue
        if isinstance(event.body, StepStarted) and event.turn == turn:
            request = len(main_events)
        main_events.append(event)
    if request < 0:
        return None
    ledger = Ledger()
    for event in main_events[:request]:
        ledger.apply(event)
    started = main_events[request]
    assert isinstance(started.body, StepStarted)
    return Past(ledger, started.body.budget, turn, started.ts)


class Difference(Struct, frozen=True):
    """What a later context has more, less and in another form than an earlier one; ``changed`` has pairs of before and
    after. Tokens of the whole requests."""

    came: tuple[ContextItem, ...]
    left: tuple[ContextItem, ...]
    changed: tuple[tuple[ContextItem, ContextItem], ...]


_SENT = frozenset(("live", "offloaded", "fixed"))


def difference(earlier: Iterable[ContextItem], later: Iterable[ContextItem]) -> Difference:
    """Items are told apart by id; those that are not sent count as absent."""
    before = {item.id: item for item in earlier if item.state in _SENT}
    after = {item.id: item for item in later if item.state in _SENT}
    return Difference(
        tuple(item for name, item in after.items() if name not in before),
        tuple(item for name, item in before.items() if name not in after),
        tuple(
            (before[name], item)
            for name, item in after.items()
            if name in before
            and (before[name].state != item.state or (item.state == "fixed" and _grew(before[name], item)))
        ),
    )


def _grew(before: ContextItem, after: ContextItem) -> bool:
    return abs(after.tokens - before.tokens) > 0.05 * max(1, before.tokens)
