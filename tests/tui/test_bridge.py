"""The bridge: few updates for many events, order kept, nothing lost, and patience with a slow terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.protocol.events import Body, Event, ItemDelta, ItemStarted, Notice
from swecli.tui.session_controller import Bridge, merge
from tests.support.thorough import examples


def events(*bodies: Body) -> list[Event]:
    return [Event(seq, float(seq), "s", 1, body) for seq, body in enumerate(bodies, 1)]


async def stream(items: Sequence[Event]) -> AsyncIterator[Event]:
    for item in items:
        yield item


def test_consecutive_deltas_of_an_item_become_one() -> None:
    merged = merge(events(*(ItemDelta("a", f"{n} ") for n in range(5000))))
    assert len(merged) == 1
    assert isinstance(merged[0].body, ItemDelta)
    assert merged[0].body.text == "".join(f"{n} " for n in range(5000))


def test_deltas_of_two_items_stay_apart_and_others_keep_their_place() -> None:
    merged = merge(
        events(ItemDelta("a", "1"), ItemDelta("b", "x"), ItemDelta("a", "2"), Notice("stop"), ItemDelta("a", "3"))
    )
    assert [event.body for event in merged] == [
        ItemDelta("a", "12"),
        ItemDelta("b", "x"),
        Notice("stop"),
        ItemDelta("a", "3"),
    ]


def test_channels_are_not_mixed() -> None:
    merged = merge(
        events(ItemDelta("a", "out", "output"), ItemDelta("a", "{", "arguments"), ItemDelta("a", "!", "output"))
    )
    assert [event.body for event in merged] == [ItemDelta("a", "out!", "output"), ItemDelta("a", "{", "arguments")]


BODIES = st.one_of(
    st.builds(ItemDelta, st.sampled_from("ab"), st.text(max_size=3), st.sampled_from(["text", "output"])),
    st.builds(ItemStarted, st.sampled_from("ab"), st.just("text")),
)


@settings(deadline=None, max_examples=examples(60, 300))
@given(st.lists(BODIES, max_size=30))
def test_merging_changes_what_no_item_shows(bodies: list[Body]) -> None:
    def story(items: Sequence[Event]) -> dict[tuple[str, str], str]:
        told: dict[tuple[str, str], str] = {}
        for event in items:
            body = event.body
            if isinstance(body, ItemDelta):
                told[body.item, body.channel] = told.get((body.item, body.channel), "") + body.text
            else:
                for key in [(name, channel) for name in "ab" for channel in ("text", "output")]:
                    told[key] = told.get(key, "") + f"|{body.item}|"  # type: ignore[union-attr]
        return told

    assert story(merge(events(*bodies))) == story(events(*bodies))


async def test_five_thousand_deltas_are_few_updates() -> None:
    batches: list[Sequence[Event]] = []
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    bridge = Bridge(batches.append, sleep=sleep)
    await asyncio.gather(bridge.pump(stream(events(*(ItemDelta("a", "x") for _ in range(5000))))), bridge.run())
    text = "".join(event.body.text for batch in batches for event in batch if isinstance(event.body, ItemDelta))
    assert text == "x" * 5000
    assert len(batches) <= 3
    assert all(len(batch) == 1 for batch in batches)


async def test_a_frame_passes_between_two_updates() -> None:
    slept: list[float] = []
    applied = 0

    def apply(batch: Sequence[Event]) -> None:
        nonlocal applied
        applied += 1

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    async def trickle() -> AsyncIterator[Event]:
        for event in events(*(ItemDelta("a", "x") for _ in range(20))):
            yield event
            await asyncio.sleep(0)

    bridge = Bridge(apply, interval=lambda: 0.5, sleep=sleep)
    await asyncio.gather(bridge.pump(trickle()), bridge.run())
    assert slept.count(0.5) == applied


async def test_nothing_is_drawn_while_the_terminal_has_not_taken_the_last_frame() -> None:
    waiting = 3
    batches: list[Sequence[Event]] = []

    async def sleep(seconds: float) -> None:
        nonlocal waiting
        assert waiting == 0 or not batches
        waiting = max(0, waiting - 1)
        await asyncio.sleep(0)

    bridge = Bridge(batches.append, waiting=lambda: waiting, sleep=sleep)
    await asyncio.gather(bridge.pump(stream(events(Notice("one"), Notice("two")))), bridge.run())
    assert [len(batch) for batch in batches] == [2]


async def test_a_long_replay_comes_in_parts_so_that_keys_get_in() -> None:
    batches: list[Sequence[Event]] = []
    bridge = Bridge(batches.append, sleep=lambda seconds: asyncio.sleep(0))
    await asyncio.gather(bridge.pump(stream(events(*(Notice(str(n)) for n in range(9000))))), bridge.run())
    assert len(batches) >= 3
    assert sum(len(batch) for batch in batches) == 9000
