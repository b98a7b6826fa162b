"""Results stay within their bounds and keep both ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.tools.bounding import bound, bound_result
from tests.support.thorough import examples


@given(
    text=st.lists(st.sampled_from(("\n", "a", "ä", "🙂", "word ", "\ud800", "x" * 50)), max_size=60).map("".join),
    max_bytes=st.integers(20, 400),
    max_lines=st.integers(2, 20),
)
@settings(deadline=None, max_examples=examples(120, 600))
def test_bounds_hold_and_both_ends_are_of_the_text(text: str, max_bytes: int, max_lines: int) -> None:
    cut = bound(text, max_bytes, max_lines)
    clean = text.replace("\ud800", "\ufffd")
    if not cut.omitted_bytes:
        assert cut.text == clean
        return
    head, rest = cut.text.split("\n[… ", 1)
    tail = rest.split(" left out …]\n", 1)[1]
    assert clean.startswith(head)
    assert clean.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + cut.omitted_bytes == len(clean.encode())
    assert len(head.encode()) + len(tail.encode()) <= max_bytes
    assert head.count("\n") + tail.count("\n") + 2 <= max_lines + 1


def test_small_results_stay_as_they_are() -> None:
    assert bound_result("one\ntwo\n") == "one\ntwo\n"


def test_cut_falls_at_line_ends() -> None:
    text = "".join(f"line {number:05}\n" for number in range(10_000))
    head, _, tail = bound_result(text, 4_000).partition("\n[… ")
    assert head.splitlines()[-1].startswith("line ")
    assert len(head.splitlines()[-1]) == 10
    assert len(tail.splitlines()[1]) == 10
