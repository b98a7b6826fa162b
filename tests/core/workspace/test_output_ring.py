"""Bounded output loses only its middle and says how much."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.workspace.command_output import LiveText, OutputRing
from tests.support.thorough import examples


@given(pieces=st.lists(st.binary(max_size=30), max_size=20), head=st.integers(0, 20), tail=st.integers(1, 20))
@settings(deadline=None, max_examples=examples(80, 400))
def test_small_output_is_whole_and_large_output_is_counted(pieces: list[bytes], head: int, tail: int) -> None:
    ring = OutputRing(head, tail)
    for piece in pieces:
        ring.add(piece)
    whole = b"".join(pieces)
    assert ring.total == len(whole)
    assert ring.omitted == max(0, len(whole) - head - tail)
    if not ring.omitted:
        assert ring.text() == whole.decode("utf-8", "replace")


def test_cut_falls_between_characters() -> None:
    ring = OutputRing(5, 5)
    ring.add("äöüäöüäöü".encode())
    assert ring.text() == "äö\n[… 8 bytes of output not kept …]\nöü"


def test_live_text_keeps_the_newest() -> None:
    live = LiveText(5)
    live.add(b"0123456789\xc3")
    assert live.take() == "\n[… 5 characters …]\n56789"
    live.add(b"\xa4")
    assert live.take() == "ä"
    assert not live.waiting
