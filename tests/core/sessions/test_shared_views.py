"""Views that are read back are equal to what was stored, and hold no entry twice."""

from __future__ import annotations

from msgspec.structs import replace

from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import CompactionCompleted, Notice
from swecli.core.sessions.store import SharedViews


def _read(*entries: ViewEntry) -> CompactionCompleted:
    """As it comes from the store: every entry an object of its own."""
    return CompactionCompleted("k", tuple(replace(entry) for entry in entries), 10, 5, 2, 2, ("clearing",))


def test_equal_entries_are_one_object_and_others_stay_what_they_are() -> None:
    live, stub = ViewEntry("live", "a"), ViewEntry("stub", "a", "[cleared]", rule="a rule")
    other, summary = ViewEntry("live", "b"), ViewEntry("summary", "k", "so far", ("a", "b"))
    stored = [_read(live, other), _read(stub, other), _read(live, other, summary), _read(replace(summary, sources=()))]
    views = SharedViews()
    shared = [views.shared(body) for body in stored]
    assert shared == stored
    first, second, third, _ = (body.view for body in shared if isinstance(body, CompactionCompleted))
    assert second[1] is first[1]
    assert third[1] is first[1]
    assert views.shared(Notice("text")) == Notice("text")
