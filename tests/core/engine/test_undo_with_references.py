"""An undo of a compaction brings back what the window has room for: old results as references, then a later start."""

from pathlib import Path

import pytest

from swecli.core.protocol.commands import (
    ChangeContext,
    Compact,
    RedoCompaction,
    UndoCompaction,
)
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ContextEdited,
    Notice,
    StepStarted,
)
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_compaction import SUMMARY, fill, script
from tests.core.engine.test_context_edits import results
from tests.core.engine.test_context_fuzz import SUMMARIES, summarised

TURNS = 14


def reading(turns: int, *, files: int = 2) -> str:
    steps: list[str] = []
    for turn in range(turns):
        for number in range(files):
            steps.append(f"[[step]]\ncall = [{call('read_file', f'f{turn * files + number}')}]")
        steps.append(f'[[step]]\ntext = "Turn {turn} is done."')
    return "\n".join(steps)


async def worked(b: Bench, turns: int, *, files: int = 2) -> None:
    fill(b, turns * files)
    for turn in range(turns):
        assert (await b.say(f"Read the files of turn {turn}.")).outcome == "done"


def used_share(b: Bench) -> float:
    budget = b.session.view.budget
    assert budget is not None
    return budget.upper / budget.effective


def notices(b: Bench) -> str:
    return "\n".join(body.text for body in b.bodies(Notice))


@pytest.mark.parametrize("window", [12_000, 16_000, 24_000, 48_000])
async def test_every_automatic_compaction_can_be_undone(tmp_path: Path, window: int) -> None:
    async with bench(script(reading(TURNS), '[[step]]\ntext = "still here"', window=window), tmp_path) as b:
        await worked(b, TURNS)
        made = b.bodies(CompactionCompleted)
        assert made
        assert all(body.undo for body in made)
        compacted = tuple(b.session.view.messages)
        for number in range(len(made)):
            b.send(UndoCompaction())
            await until(lambda n=number: len(b.bodies(CompactionUndone)) == n + 1 or "Cannot" in notices(b))
            assert "Cannot" not in notices(b)
            assert used_share(b) <= 0.90
            check_valid(tuple(b.session.view.messages))
        assert "f27" in str(b.session.view.messages)  # the newest result is there word for word
        for _ in made:
            b.send(RedoCompaction())
        await until(lambda: len(b.bodies(CompactionRedone)) == len(made))
        assert tuple(b.session.view.messages) == compacted
        assert (await b.say("and now?")).outcome == "done"
        assert len(b.bodies(CompactionCompleted)) == len(made)
        assert all(body.budget.level != "block" for body in b.bodies(StepStarted))


async def test_the_line_after_a_compaction_says_what_an_undo_restores(tmp_path: Path) -> None:
    async with bench(script(reading(TURNS), window=24_000), tmp_path) as b:
        await worked(b, TURNS)
        newest = b.bodies(CompactionCompleted)[-1]
        before = len(b.events)
        b.send(UndoCompaction())
        await until(lambda: bool(b.bodies(CompactionUndone)))
        undone = [event.body.text for event in b.events[before:] if isinstance(event.body, Notice)][-1]
        assert ("as references" in newest.undo) == ("as references" in undone), (newest.undo, undone)


async def test_results_become_references_the_largest_old_ones_first(tmp_path: Path) -> None:
    steps = f'{reading(6)}\n[[step]]\ntext = "{SUMMARY}"'
    async with bench(script(steps, window=200_000), tmp_path) as b:
        await worked(b, 6)
        b.gates.outputs["f0"] = "x"
        whole = tuple(b.session.view.messages)
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        compacted = tuple(b.session.view.messages)
        facts = list(b.facts)
    async with bench(script(window=20_000), tmp_path, history=facts) as small:
        small.send(UndoCompaction())
        await until(lambda: bool(small.bodies(CompactionUndone)))
        text = "\n".join(str(message) for message in small.session.view.messages)
        assert "[cleared:" in text
        assert "line 119 of a file" in text  # the newest results stay
        assert "as references" in notices(small)
        small.send(RedoCompaction())
        await until(lambda: bool(small.bodies(CompactionRedone)))
        assert tuple(small.session.view.messages) == compacted
        facts = [*facts, *(event for event in small.facts if event not in facts)]
    async with bench(script(window=200_000), tmp_path, history=facts) as large:
        large.send(UndoCompaction())
        await until(lambda: len(large.bodies(CompactionUndone)) >= 1)
        assert tuple(large.session.view.messages) == whole


async def test_an_older_part_stays_summarised_where_references_are_not_enough(tmp_path: Path) -> None:
    turns = 20
    long = "word " * 400
    answers = "\n".join(f'[[step]]\nchunk = "whole"\ntext = "{number}: {long}"' for number in range(turns))
    async with bench(script(answers, f'[[step]]\ntext = "{SUMMARY}"', window=200_000), tmp_path) as b:
        for turn in range(turns):
            await b.say(f"Question {turn}?")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        facts = list(b.facts)
    async with bench(script(window=9_000), tmp_path, history=facts) as small:
        small.send(UndoCompaction())
        await until(lambda: bool(small.bodies(CompactionUndone)))
        assert "back to turn " in notices(small)
        assert f" of {turns}" in notices(small)
        assert used_share(small) <= 0.90
        messages = small.session.view.messages
        assert "Find the bug." in str(messages[0])  # the summary still covers the older turns
        assert f"{turns - 1}: word" in str(messages)
        check_valid(tuple(messages))
        restarted = list(small.facts)
        shown = tuple(messages)
    async with bench(script(window=9_000), tmp_path, history=restarted) as again:
        assert tuple(again.session.view.messages) == shown


async def test_restoring_single_items_makes_room(tmp_path: Path) -> None:
    async with bench(script(reading(6), window=200_000), tmp_path) as b:
        await worked(b, 6)
        names = results(b)
        b.send(ChangeContext(tuple(ContextChange("drop", name) for name in names[:3])))
        await until(lambda: bool(b.bodies(ContextEdited)))
        facts = list(b.facts)
    async with bench(script(window=21_000), tmp_path, history=facts) as small:
        picture = small.session.inspection.picture()
        assert picture is not None
        change = tuple(ContextChange("restore", name) for name in names[:3])
        effect = small.session.inspection.effect(picture, change)
        assert effect is not None
        assert effect.references
        assert not effect.over
        small.send(ChangeContext(change))
        await until(lambda: bool(small.bodies(ContextEdited)))
        (edited,) = small.bodies(ContextEdited)
        assert abs(edited.tokens_after - effect.after) <= 0.01 * effect.after
        assert used_share(small) <= 0.90
        assert {entry.id for entry in edited.entries if entry.kind == "live"} >= set(names[:3])
        assert sum(entry.kind == "stub" for entry in edited.entries) == effect.references
        assert f"{effect.references} old result" in notices(small)


async def test_one_huge_message_is_compacted_by_hand_and_comes_back(tmp_path: Path) -> None:
    async with bench(script('[[step]]\ntext = "ok"', f'[[step]]\ntext = "{SUMMARY}"', window=16_000), tmp_path) as b:
        await b.say("word " * 8_000)
        before = tuple(b.session.view.messages)
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        (made,) = b.bodies(CompactionCompleted)
        assert made.tokens_after <= 0.35 * made.tokens_before
        assert "word word" in str(b.session.view.messages[0])  # its beginning is quoted
        b.send(UndoCompaction())
        await until(lambda: bool(b.bodies(CompactionUndone)))
        assert tuple(b.session.view.messages) == before


async def test_compactions_undone_at_once_are_redone_as_far_as_they_need_to_fit(tmp_path: Path) -> None:
    """The view after the first of them alone never fitted the window."""
    turns = 8
    talk = "\n".join(f"[[step]]\nchunk = 'whole'\ntext = 'Thought {one}: {'word ' * 1_300}'" for one in range(turns))
    steps = script(reading(4), talk, window=16_384)
    async with bench(steps, tmp_path, make_model=summarised(SUMMARIES["good"])) as b:
        await worked(b, 4)
        b.send(Compact(without_model=True))
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        first = b.bodies(CompactionCompleted)[0].item
        for turn in range(turns):
            await b.say(f"Talk about {turn}.")
        made = [body.item for body in b.bodies(CompactionCompleted)]
        compacted = tuple(b.session.view.messages)
        newest, all_of_them = (b.session.inspection.moved(item) for item in (made[-1], first))
        assert newest is not None
        assert all_of_them is not None
        assert all_of_them[1].used >= newest[1].used - 1  # to undo more brings back no less
        b.send(UndoCompaction(first))
        await until(lambda: len(b.bodies(CompactionUndone)) == len(made))
        assert f"{len(made)} compactions undone" in notices(b)
        assert f"/compact redo {made[-1]} reapplies them" in notices(b)
        back = b.session.inspection.moved(first)
        assert back is not None
        b.send(RedoCompaction())
        await until(lambda: len(b.bodies(CompactionRedone)) == len(made))
        assert tuple(b.session.view.messages) == compacted
        assert f"/compact undo {first} undoes them" in notices(b)
        budget = b.session.view.budget
        assert budget is not None
        assert budget.used == back[1].used


async def test_what_an_undo_left_behind_a_summary_is_not_lost_with_the_next(tmp_path: Path) -> None:
    """The newest undo has no room for all: its summary stays, and covers more than the compaction before replaced."""
    turns = 14
    talk = "\n".join(f"[[step]]\nchunk = 'whole'\ntext = 'Thought {one}: {'word ' * 1_300}'" for one in range(turns))
    steps = script(talk, window=16_384)
    async with bench(steps, tmp_path, make_model=summarised(SUMMARIES["good"])) as b:
        for turn in range(turns):
            await b.say(f"Talk about {turn}.")
        made = [body.item for body in b.bodies(CompactionCompleted)]
        assert len(made) >= 2
        for number in range(len(made)):
            b.send(UndoCompaction())
            await until(lambda n=number: len(b.bodies(CompactionUndone)) > n)
            assert not b.session._recorder.ledger.left
        facts = list(b.facts)
    async with bench(script(window=400_000), tmp_path, history=facts) as large:
        for _ in made:
            large.send(RedoCompaction())
        await until(lambda: len(large.bodies(CompactionRedone)) == len(made))
        large.send(UndoCompaction(made[0]))
        await until(lambda: len(large.bodies(CompactionUndone)) >= len(made))
        text = str(large.session.view.messages)
        assert [turn for turn in range(turns) if f"Thought {turn}: word" not in text] == []
        assert not large.session._recorder.ledger.left
