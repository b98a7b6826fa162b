"""Sizes of messages outlive the messages, as long as they may be asked for."""

from __future__ import annotations

import gc
import tracemalloc

from swecli.core.context_management import counter
from swecli.core.context_management.counter import KEPT_BESIDE, SizeCache
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart


def _said(number: int, text: str) -> Message:
    return Message("user", (TextPart(text),), f"m{number}")


def test_a_content_that_comes_back_has_the_size_that_it_had() -> None:
    sizes = SizeCache()
    first = [_said(number, f"{number} " * 50) for number in range(4)]
    before = sizes.messages(first)
    stubs = [first[0], _said(1, "[cleared]"), *first[2:]]
    cleared = sizes.messages(stubs)
    assert cleared[1] is not before[1]
    assert cleared[0] is before[0]
    again = sizes.messages([_said(number, f"{number} " * 50) for number in range(4)])
    assert all(one is two for one, two in zip(again, before, strict=True))
    assert sizes.messages(stubs)[1] is cleared[1]


def test_the_same_text_in_another_call_is_another_content() -> None:
    sizes = SizeCache()

    def message(call: str, name: str, text: str) -> Message:
        return Message("assistant", (ToolCallPart(call, name, text),), "m")

    first = sizes.messages([message("c1", "read_file", "{}")])[0]
    sizes.messages([])
    assert sizes.messages([message("c2", "read_file", "{}")])[0] is not first
    sizes.messages([])
    assert sizes.messages([message("c1", "write_file", "{}")])[0] is not first
    sizes.messages([])
    assert sizes.messages([message("c1", "read_file", "{}")])[0] is first


def test_texts_that_left_the_conversation_are_not_kept() -> None:
    sizes = SizeCache()
    tracemalloc.start()
    try:
        long = [Message("tool", (ToolResultPart("c", "t", f"{n}" * 5_000),), f"m{n}") for n in range(50)]
        sizes.messages(long)
        sizes.messages([_said(number, "[cleared]") for number in range(50)])
        del long
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 100_000


def test_the_oldest_are_forgotten() -> None:
    sizes = SizeCache()
    for start in range(0, 4 * KEPT_BESIDE, 1_000):
        sizes.messages([_said(start + number, "short") for number in range(1_000)])
    assert len(sizes._messages) <= 1_000 + KEPT_BESIDE + counter._SLACK  # pyright: ignore[reportPrivateUsage]
