"""What is derived from the whole view costs as much per turn in a long session as in a short one."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import pytest

from swecli.core.context_management import ledger as ledger_module
from swecli.core.context_management.cache import first_difference
from swecli.core.context_management.ledger import GROWN, PASSED, Ledger, Passes
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import CompactionUndone, ContextEdited
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart
from tests.support.rotten import HEALTHY, ROTTEN, Talk


def counted(ledger: Ledger) -> tuple[set[str], set[str]]:
    """The live and the present items, derived from the whole view."""
    view, entries = ledger.view, ledger.entries
    summaries = {one.id for one in view if one.kind == "summary"}
    live = {entries[one.id].item for one in view if one.kind == "live" and one.id in entries}
    shown = (name for one in view for name in (one.id, *one.sources) if name not in ledger.dropped)
    return live | summaries, {entries[name].item for name in shown if name in entries} | summaries


def newest(ledger: Ledger) -> tuple[dict[str, ToolCallPart | None], ViewEntry | None]:
    """The newest call of each tool word for word in the view, and the last rewritten entry, from the whole view."""
    view, entries = ledger.view, ledger.entries
    calls = [entries[one.id] for one in view if one.kind == "live" and one.id in entries]
    made = [one for one in view if one.kind in ("stub", "summary")]
    parts = {one.source: part for one in calls for part in one.parts if isinstance(part, ToolCallPart)}
    return {name: parts.get(name) for name in (*parts, "none")}, made[-1] if made else None


def outside(ledger: Ledger) -> set[str]:
    """Items neither in the view nor behind a summary, derived from the whole view."""
    shown = {name for one in ledger.view for name in (one.id, *one.sources)}
    told = {entry.item for name, entry in ledger.entries.items() if name in shown}
    return {entry.item for entry in ledger.entries.values()} - told


def is_as_counted(ledger: Ledger) -> bool:
    assert ledger.left == outside(ledger)
    calls, made = newest(ledger)
    assert {name: ledger.newest_call(name) for name in calls} == calls
    assert ledger.shown.made == made
    return (ledger.live_items(), ledger.present_items()) == counted(ledger)


@pytest.mark.parametrize("name", [*ROTTEN, *HEALTHY])
def test_items_of_the_view_are_the_same_after_each_event(name: str) -> None:
    make = ROTTEN[name][1] if name in ROTTEN else HEALTHY[name]
    ledger = Ledger()
    for event in make().events:
        ledger.apply(event)
        assert is_as_counted(ledger)


def test_items_outside_the_conversation_are_not_searched_for_again_while_it_grows() -> None:
    talk = Talk()
    for number in range(20):
        talk.user(f"Message {number}.")
        talk.read(f"{number}.py")
        assert talk.ledger.left == frozenset()
    with patch.object(ledger_module, "_covered", wraps=ledger_module._covered) as walked:
        for number in range(20):
            talk.user(f"More {number}.")
            assert talk.ledger.left == frozenset()
    assert walked.call_count == 0


def test_items_follow_compactions_and_choices() -> None:
    talk = Talk()
    for number in range(6):
        talk.user(f"Message {number}.")
        talk.read(f"{number}.py")
    dropped = next(one.id for one in talk.ledger.view if talk.ledger.entries[one.id].kind == "result")
    talk.tell(ContextEdited((), entries=(ViewEntry("dropped", dropped),)))
    assert is_as_counted(talk.ledger)
    talk.summarise()
    assert is_as_counted(talk.ledger)
    talk.user("One more.")
    assert is_as_counted(talk.ledger)
    talk.tell(CompactionUndone(talk.ledger.compactions[0][-1]))
    assert is_as_counted(talk.ledger)


def test_passes_over_a_long_view_become_rarer() -> None:
    talk, passes = Talk(), Passes()
    due: list[int] = []
    while len(talk.ledger.view) < 3 * PASSED:
        talk.user("More.")
        if passes.due(talk.ledger):
            due.append(len(talk.ledger.view))
    short = [entries for entries in due if entries <= PASSED]
    long = [entries for entries in due if entries > PASSED]
    assert short == list(range(1, PASSED + 1))
    assert all(after - before >= before * GROWN for before, after in pairwise(long))
    assert not passes.due(talk.ledger)
    talk.summarise()
    assert passes.due(talk.ledger)  # a view that was rewritten is another one


def test_the_first_difference_is_found_after_an_equal_beginning() -> None:
    before = tuple(Message("user", (TextPart(str(number)),), f"u{number}") for number in range(9))
    grown = (*before[:-1], Message("user", (TextPart("8"), TextPart("more")), "u8"))
    other = (*before[:4], Message("user", (TextPart("x"),), "u4"), *before[5:])
    assert first_difference(before, (*before, before[0])) is None
    assert first_difference(before, grown) is None
    assert first_difference(before, other) == (4, 0)
    assert first_difference(before, before[:-1]) == (8, 0)
