"""A view that is restored from a snapshot because events of the record can't be read."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.projection import project
from swecli.core.context_management.restoring import restoration, view_of
from swecli.core.ports import Snapshot, SnapshotMeasure
from swecli.core.protocol.events import ItemCompleted, ItemStarted, ModelResponded, Unknown
from swecli.core.protocol.messages import ToolCallPart
from tests.support.said import Said


def repeating() -> Said:
    """Two answers whose calls have the same id, as some local servers number them."""
    said = Said()
    said.user("Read both.")
    for item, path in (("t8", "a.py"), ("t9", "b.py")):
        call = ToolCallPart("call_0", "read_file", f'{{"path": "{path}"}}')
        said.call_as(item, call, f"text of {path}")
    said.answer("Read.")
    return said


@pytest.mark.parametrize("lost", [(ItemCompleted,), (ItemStarted,), (ItemStarted, ItemCompleted), (ModelResponded,)])
def test_a_lost_half_of_a_call_with_a_repeated_id_finds_the_other_one(lost: tuple[type, ...]) -> None:
    said = repeating()
    before = project(said.ledger)
    assert [result.text for message in before for result in message.tool_results] == ["text of a.py", "text of b.py"]
    snapshot = Snapshot(before, SnapshotMeasure(0, len(said.events), "p/m"), view_of(said.ledger, before))
    facts = [
        replace(event, body=Unknown("unreadable", {"type": "unreadable"}))
        if isinstance(event.body, lost)
        and ("t9" in getattr(event.body, "items", ()) or getattr(event.body, "item", "") == "t9")
        else event
        for event in said.events
    ]
    ledger = Ledger()
    for event in facts:
        ledger.apply(event)
    found = restoration("r1", snapshot, facts, ledger)
    assert found is not None
    ledger.apply(replace(said.events[-1], seq=len(facts) + 1, body=found))
    assert project(ledger) == before
