"""Views come off the stack as they were put on it, and take little room."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.context_management import view_stack
from swecli.core.context_management.view_stack import View, ViewStack
from swecli.core.protocol.context_events import ViewEntry
from tests.support.thorough import examples

ENTRIES = st.builds(
    ViewEntry,
    st.sampled_from(("live", "stub", "summary")),
    st.sampled_from([f"i{number}" for number in range(8)]),
    st.sampled_from(("", "text")),
)
VIEWS = st.lists(ENTRIES, max_size=12).map(tuple)


@settings(max_examples=examples(80, 400), deadline=None)
@given(st.lists(st.one_of(VIEWS, st.none()), max_size=12))
def test_it_gives_what_a_list_would(steps: list[View | None]) -> None:
    stack, plain = ViewStack(), list[tuple[str, View]]()
    for number, view in enumerate(steps):
        if view is not None:
            plain.append((f"k{number}", view))
            stack.push(*plain[-1])
        elif plain:
            assert stack.pop() == plain.pop()
        assert stack.item == (plain[-1][0] if plain else None)
        assert stack.all() == plain
    assert ViewStack(plain).all() == plain
    stack.clear()
    assert stack.item is None
    assert stack.all() == []


def test_a_hundred_views_of_a_long_session_share_what_they_have_in_common() -> None:
    view = tuple(ViewEntry("live", f"i{number}") for number in range(2_000))
    stack, views = ViewStack(), list[View]()
    tracemalloc.start()
    try:
        for number in range(100):
            stack.push(f"k{number}", view)
            start = 10 * number
            stubs = tuple(ViewEntry("stub", entry.id, "[cleared]") for entry in view[start : start + 10])
            added = tuple(ViewEntry("live", f"n{number}.{one}") for one in range(5))
            view = (*view[:start], *stubs, *view[start + 10 :], *added)
            views.append(view)
            if number < 99:
                views.clear()
        own = [
            tracemalloc.Filter(True, file) for file in (__file__, view_stack.__file__)
        ]  # other threads allocate, too
        snapshot = tracemalloc.take_snapshot().filter_traces(own)
        size = sum(trace.size for trace in snapshot.traces)
    finally:
        tracemalloc.stop()
    assert size < 500_000  # whole ones would be 100 x 2,000 x 8 bytes and more
