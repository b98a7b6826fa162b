"""A session is continued from its snapshot: nothing is counted twice, and what can't be read does not end it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs
from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.ports import Snapshot, SnapshotError, SnapshotMeasure
from swecli.core.protocol.budget import SYSTEM, is_tools
from swecli.core.protocol.commands import UndoCompaction
from swecli.core.protocol.events import (
    CompactionCompleted,
    ContextMeasured,
    ContextRestored,
    Event,
    ItemCompleted,
    ModelChanged,
    ModelResponded,
    Notice,
    SessionStarted,
    Unknown,
)
from swecli.core.protocol.messages import Message
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, new_notes, until
from tests.core.engine.test_compaction import BIG, fill, fill_and_compact, script
from tests.support.said import Said

MORE = BIG + '\n[[step]]\ntext = "Still here."'
AGAIN = script('[[step]]\ntext = "Still here."', window=200_000)
LONG = "Read the files f0 to f11. " + "some more words " * 300


class Kept:
    """Snapshots in memory."""

    def __init__(self) -> None:
        self.newest: Snapshot | None = None
        self.saved = 0
        self.trouble = ""
        self.damage = ""

    def save_snapshot(self, snapshot: Snapshot) -> str:
        if not self.trouble:
            self.newest, self.saved = snapshot, self.saved + 1
        return self.trouble

    def get_snapshot(self) -> Snapshot | None:
        if self.damage:
            raise SnapshotError(self.damage)
        return self.newest

    def get_measure(self) -> SnapshotMeasure | None:
        newest = self.get_snapshot()
        return newest.measure if newest is not None else None


class Counting:
    """A counter that knows what it was asked."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._estimator = PieceEstimator()

    def count(self, text: str) -> int:
        self.texts.append(text)
        return self._estimator.count(text)


async def measured(b: Bench) -> int:
    await until(lambda: b.session.view.budget is not None)
    assert b.session.view.budget is not None
    return b.session.view.budget.used


async def told(b: Bench) -> None:
    """Wait for what a session says when it begins."""
    await until(lambda: bool(b.bodies(ModelChanged) or b.bodies(ContextMeasured)))


def notices(b: Bench) -> list[str]:
    return [body.text for body in b.bodies(Notice) if isinstance(body, Notice)]


def context(counter: Counting) -> ContextManager:
    return ContextManager((), monitor=TokenMonitor(counter))


async def session(kept: Kept, folder: Path, counter: Counting | None = None) -> tuple[list[Event], list[Message], int]:
    async with bench(BIG, folder, snapshots=kept, context=context(counter or Counting())) as b:
        fill(b, 12)
        await b.say(LONG)
        return b.facts, list(b.session.view.messages), await measured(b)


async def test_nothing_old_is_counted_again(tmp_path: Path) -> None:
    kept, first, again = Kept(), Counting(), Counting()
    facts, messages, before = await session(kept, tmp_path, first)
    assert kept.newest is not None
    assert kept.newest.messages == tuple(messages)
    assert kept.newest.measure.token_count == before
    async with bench(MORE, tmp_path, history=list(facts), snapshots=kept, context=context(again)) as b:
        assert await measured(b) == before
        assert b.session.view.budget is not None
        assert b.session.view.budget.source == "measured"
        spoken = {text for message in messages for text in [message.text] if text}
        assert spoken & set(first.texts)
        assert not spoken & set(again.texts)
        assert sum(map(len, again.texts)) < sum(map(len, first.texts)) / 10
    assert kept.saved == 1, "nothing was said, so nothing was written"


async def test_one_of_before_the_newest_messages_counts_for_what_it_knows(tmp_path: Path) -> None:
    kept = Kept()
    facts, _, _ = await session(kept, tmp_path)
    old = kept.newest
    async with bench(MORE, tmp_path, history=list(facts), snapshots=kept) as b:
        await b.say("And now? " + "word " * 400)
        before, more = await measured(b), b.facts
    kept.newest = old  # as after a kill: the record has more than the snapshot
    async with bench(MORE, tmp_path, history=list(more), snapshots=kept) as b:
        after = await measured(b)
        assert abs(after - before) <= 0.01 * before
        await told(b)
        assert not b.bodies(ContextRestored)


async def test_a_compaction_writes_one_and_an_undo_makes_it_worthless(tmp_path: Path) -> None:
    kept = Kept()
    async with bench(MORE, tmp_path, snapshots=kept) as b:
        await fill_and_compact(b)
        assert b.bodies(CompactionCompleted)
        await until(lambda: kept.saved > 0, "the snapshot of the compaction")
        compacted = kept.newest
        b.session.send(UndoCompaction())
        await until(lambda: len(b.session.view.messages) > len(compacted.messages if compacted else ()))
        before, facts, messages = await measured(b), b.facts, list(b.session.view.messages)
    assert compacted is not None
    async with bench(MORE, tmp_path, history=list(facts), snapshots=kept) as b:
        assert await measured(b) == before
    kept.newest = compacted  # as after a kill: it knows nothing of the undo
    async with bench(MORE, tmp_path, history=list(facts), snapshots=kept) as b:
        assert list(b.session.view.messages) == messages
        assert await measured(b) > 2 * compacted.measure.token_count
        assert b.session.view.budget is not None
        assert b.session.view.budget.source == "estimated"


async def test_another_model_takes_over_the_sizes_but_not_the_figure(tmp_path: Path) -> None:
    kept = Kept()
    facts, _, _ = await session(kept, tmp_path)
    assert kept.newest is not None
    kept.newest = replace(kept.newest, measure=replace(kept.newest.measure, model="other/model", token_count=999_999))
    async with bench(MORE, tmp_path, history=list(facts), snapshots=kept) as b:
        assert await measured(b) < 100_000


def lost(facts: list[Event], which: Callable[[Event], bool]) -> list[Event]:
    gone = Unknown("unreadable", {"type": "unreadable"})
    return [structs.replace(event, body=gone) if which(event) else event for event in facts]


def results(event: Event) -> bool:
    return isinstance(event.body, ItemCompleted) and event.body.item.startswith("t")


LOSSES: dict[str, Callable[[Event], bool]] = {
    "results": results,
    "answers": lambda event: isinstance(event.body, ModelResponded),
    "messages": lambda event: isinstance(event.body, ItemCompleted),
    "everything": lambda event: True,
    "all but the start": lambda event: not isinstance(event.body, SessionStarted),
}


@pytest.mark.parametrize("which", LOSSES)
async def test_what_can_not_be_read_comes_from_it(tmp_path: Path, which: str) -> None:
    kept = Kept()
    facts, messages, before = await session(kept, tmp_path)
    damaged = lost(facts, LOSSES[which])
    async with bench(AGAIN, tmp_path, history=list(damaged), snapshots=kept) as b:
        await told(b)
        assert b.bodies(ContextRestored)
        assert any("unreadable" in text for text in notices(b))
        restored = b.session.view.messages
        check_valid(tuple(restored))
        assert [(m.role, m.text) for m in restored[1:]] == [(m.role, m.text) for m in messages[1:]]
        assert restored[0].text.endswith(messages[0].text)
        assert abs(await measured(b) - before) <= 0.05 * before
        await b.say("And now?")
        assert "Still here." in b.session.view.messages[-1].text
        again, after = b.facts, list(b.session.view.messages)
    assert len({event.seq for event in again}) == len(again)
    async with bench(AGAIN, tmp_path, history=list(again), snapshots=kept) as b:
        assert list(b.session.view.messages) == after
        assert sum(isinstance(event.body, ContextRestored) for event in again) == 1
        await told(b)
        assert not b.bodies(ContextRestored)


async def test_after_a_compaction_the_summary_comes_from_it(tmp_path: Path) -> None:
    kept = Kept()
    async with bench(MORE, tmp_path, snapshots=kept) as b:
        await fill_and_compact(b)
        facts, messages = b.facts, list(b.session.view.messages)
    damaged = lost(facts, lambda event: isinstance(event.body, CompactionCompleted))
    async with bench(AGAIN, tmp_path, history=list(damaged), snapshots=kept) as b:
        assert [m.text for m in b.session.view.messages] == [m.text for m in messages]
        await b.say("And now?")
        check_valid(tuple(b.session.view.messages))


async def test_what_does_not_matter_changes_nothing(tmp_path: Path) -> None:
    kept = Kept()
    facts, messages, _ = await session(kept, tmp_path)
    damaged = lost(facts, lambda event: isinstance(event.body, Notice) or event.body.type == "step_ended")
    async with bench(AGAIN, tmp_path, history=list(damaged), snapshots=kept) as b:
        assert list(b.session.view.messages) == messages
        await told(b)
        assert not b.bodies(ContextRestored)


async def test_a_missing_or_damaged_one_is_told_and_the_record_counts(tmp_path: Path) -> None:
    kept = Kept()
    facts, messages, before = await session(kept, tmp_path)
    kept.newest = None
    async with bench(AGAIN, tmp_path, history=list(facts), snapshots=kept) as b:
        assert list(b.session.view.messages) == messages
        assert abs(await measured(b) - before) <= 0.01 * before
        await told(b)
        assert not any("snapshot" in text for text in notices(b))  # an earlier swecli may have been killed
    kept.damage = "no JSON"
    async with bench(AGAIN, tmp_path, history=list(facts), snapshots=kept) as b:
        assert list(b.session.view.messages) == messages
        await told(b)
        assert any("damaged (no JSON)" in text for text in notices(b))


async def test_one_that_is_missing_after_a_compaction_is_told(tmp_path: Path) -> None:
    async with bench(MORE, tmp_path, snapshots=Kept()) as b:
        await fill_and_compact(b)
        facts, messages = b.facts, list(b.session.view.messages)
    async with bench(AGAIN, tmp_path, history=list(facts), snapshots=Kept()) as b:
        assert list(b.session.view.messages) == messages
        await told(b)
        assert any("no snapshot" in text for text in notices(b))


async def test_a_store_that_fails_is_told_once_and_the_session_goes_on(tmp_path: Path) -> None:
    kept = Kept()
    kept.trouble = "The snapshot can't be stored (disk full)."
    async with bench(MORE, tmp_path, snapshots=kept) as b:
        await fill_and_compact(b)
        await b.say("And now?")
        assert b.bodies(CompactionCompleted)
    assert [text for text in notices(b) if "can't be stored" in text] == [kept.trouble]


async def test_looking_at_a_session_does_not_make_it_larger(tmp_path: Path) -> None:
    """A session tells the model once that nobody watches."""
    kept, facts, shown = Kept(), list[Event](), list[int]()
    for look in range(7):
        headless = ContextManager((), PromptTexts(headless=True))
        async with bench(BIG if not look else AGAIN, tmp_path, history=facts, snapshots=kept, context=headless) as b:
            if not look:
                fill(b, 12)
                await b.say(LONG)
                assert "Nobody can answer" in new_notes(b.model.requests[0])
            shown.append(await measured(b))
            await until(lambda: bool(b.bodies(ContextMeasured)))
            assert b.bodies(ContextMeasured)[-1].budget == b.session.view.budget
            facts = list(b.facts)
    assert set(shown) == {shown[0]}


async def test_the_meter_is_the_same_before_and_after_a_turn_that_did_not_end_well(tmp_path: Path) -> None:
    blocked = 'window = 4000\n[[step]]\ntext = "Never sent."'
    headless = ContextManager((), PromptTexts(base="Short.", headless=True))
    async with bench(blocked, tmp_path, context=headless) as b:
        assert (await b.say("word " * 6_000)).outcome == "blocked"
        before, facts = b.session.view.budget, list(b.facts)
    async with bench(blocked, tmp_path, history=facts, context=ContextManager((), PromptTexts(base="Short."))) as b:
        await told(b)
        assert before is not None
        assert await measured(b) == before.used


def fixed(b: Bench) -> dict[str, int]:
    budget = b.session.view.budget
    assert budget is not None
    return {part.name: part.tokens for part in budget.components if part.name == SYSTEM or is_tools(part.name)}


@pytest.mark.parametrize("with_snapshot", [True, False])
async def test_a_runaway_answer_leaves_the_fixed_part_as_it_is(tmp_path: Path, with_snapshot: bool) -> None:
    kept = Kept() if with_snapshot else None
    runaway = f'window = 8192\n[[step]]\ntext = "{"ab" * 300}"\nstop = "length"\nusage = {{ output = 3000 }}\n'
    async with bench(runaway, tmp_path, snapshots=kept) as b:
        await b.say("Count to a thousand.")
        before, facts = fixed(b), b.facts
    async with bench(
        script('[[step]]\ntext = "Still here."', window=8_192), tmp_path, history=list(facts), snapshots=kept
    ) as b:
        await until(lambda: b.session.view.budget is not None)
        now = fixed(b)
        assert now.keys() == before.keys()
        assert all(abs(now[name] - tokens) <= 0.03 * tokens + 2 for name, tokens in before.items())
        assert (await b.say("Go on.")).outcome == "done"


async def test_the_state_of_a_long_session_is_written_when_a_quarter_is_new(tmp_path: Path) -> None:
    """Its size grows with the session; the cost of a turn must not."""
    said = Said()
    for number in range(300):
        said.user(f"Request {number}.")
        said.answer(f"It is {number}.")
    kept, states = Kept(), list[bool]()
    async with bench(AGAIN, tmp_path, snapshots=kept, history=said.events) as b:
        recorder, snapshots = b.session._recorder, b.session._context_parts.snapshots
        for new in (1, 600, 600, 600):
            for number in range(new):
                recorder.emit(Notice(f"Notice {number}."))
            saved = kept.saved
            snapshots.save_soon(b.model)
            await until(lambda before=saved: kept.saved > before)
            assert kept.newest is not None
            states.append(bool(kept.newest.state))
    assert states == [True, False, True, False]
    assert kept.newest.state  # the end always writes it
