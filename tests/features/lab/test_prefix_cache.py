"""The simulated prompt cache follows the published rules."""

from __future__ import annotations

import pytest
from msgspec import structs
from msgspec.structs import replace

from swecli.core.llm.types import ModelRequest, SystemBlock, ToolSchema
from swecli.core.protocol.messages import Message, TextPart
from swecli.features.lab.prefix_cache import Charge, Framed, PrefixCache


def tokens(block: object) -> int:
    """A text of digits has as many tokens as it says."""
    match block:
        case Framed(part=TextPart(text=text)) | SystemBlock(text=text) | str(text):
            return int(text.split()[0])
        case _:
            return 100


def said(*texts: str) -> tuple[Message, ...]:
    roles = ("user", "assistant")
    return tuple(Message(roles[at % 2], (TextPart(text),), f"m{at}") for at, text in enumerate(texts))


def request(*texts: str, marks: tuple[int, ...] | None = None) -> ModelRequest:
    system = (SystemBlock("2000 rules", breakpoint=True),)
    tools = (ToolSchema("read", "", {}),)
    last = (len(texts) - 1,) if marks is None else marks
    return ModelRequest(system, tools, said(*texts), last)


def test_what_was_marked_is_read_the_next_time() -> None:
    cache = PrefixCache(tokens)
    assert cache.charge(request("500 a")) == Charge(0, 2_600, 0)
    assert cache.charge(request("500 a", "50 b", "300 c")) == Charge(2_600, 350, 0)
    assert cache.charge(request("500 a", "50 b", "300 c", "9 d", "1 e")) == Charge(2_950, 10, 0)


def test_a_change_is_missed_from_there_on() -> None:
    cache = PrefixCache(tokens)
    cache.charge(request("500 a", "50 b", "300 c"))
    assert cache.charge(request("500 x", "50 b", "300 c")) == Charge(2_100, 850, 0)
    changed = replace(request("500 a"), tools=(ToolSchema("write", "", {}),))
    assert cache.charge(changed).read == 0
    assert cache.charge(request("500 a", "50 b"), model="other").read == 0


def test_without_a_mark_nothing_is_kept_or_read() -> None:
    cache = PrefixCache(tokens)
    assert cache.charge(request("500 a", marks=())) == Charge(0, 2_100, 500)
    assert cache.charge(request("500 a", marks=())) == Charge(2_100, 0, 500)


def test_short_prefixes_are_not_kept() -> None:
    cache = PrefixCache(tokens, minimum=4_096)
    assert cache.charge(request("500 a")) == Charge(0, 0, 2_600)
    assert cache.charge(request("500 a")) == Charge(0, 0, 2_600)


def test_a_mark_looks_back_twenty_blocks_and_no_further() -> None:
    texts = ["500 a", *["10 x"] * 19]
    cache = PrefixCache(tokens)
    cache.charge(request("500 a"))
    assert cache.charge(request(*texts, marks=(19,))).read == 2_600
    far = PrefixCache(tokens)
    far.charge(request("500 a"))
    assert far.charge(request(*texts, "10 y", marks=(20,))).read == 2_100


def test_borders_of_messages_are_part_of_the_prefix() -> None:
    apart = request("500 a", "50 b", "40 c")
    joined = Message("assistant", (TextPart("50 b"), TextPart("40 c")), "m1")
    cache = PrefixCache(tokens)
    together = replace(apart, messages=(apart.messages[0], joined), breakpoints=(1,))
    assert cache.charge(together).total == 2_690
    split = Message("assistant", (TextPart("40 c"),), "m2")
    messages = (apart.messages[0], structs.replace(joined, parts=joined.parts[:1]), split)
    assert cache.charge(replace(apart, messages=messages)).read == 2_100


def test_more_than_four_marks_are_refused() -> None:
    with pytest.raises(ValueError, match="5 breakpoints"):
        PrefixCache(tokens).charge(request("1 a", "2 b", "3 c", "4 d", marks=(0, 1, 2, 3)))


def test_what_is_not_used_for_five_minutes_is_gone() -> None:
    now = [0.0]
    cache = PrefixCache(tokens, lambda: now[0])
    cache.charge(request("500 a"))
    now[0] = 299.0
    assert cache.charge(request("500 a")).read == 2_600
    now[0] = 598.0
    assert cache.charge(request("500 a")).read == 2_600
    now[0] = 898.0
    assert cache.charge(request("500 a")).read == 0
    cache.forget()
    assert cache.charge(request("500 a")).read == 0


def test_automatic_caches_need_no_marks_and_go_in_steps() -> None:
    cache = PrefixCache(tokens, style="automatic")
    assert cache.charge(request("500 a", marks=())) == Charge(0, 0, 2_600)
    assert cache.charge(request("500 a", "50 b", marks=())) == Charge(2_560, 0, 90)


def test_the_price() -> None:
    assert Charge(1_000, 100, 10).cost(output=4) == 100 + 125 + 10 + 20
    assert Charge(900, 100, 0).share == 0.9
