"""The context as it was at an earlier turn, what changed between two, and what will be removed next."""

import re
from pathlib import Path

from swecli.commands.context import CONTEXT
from swecli.core.context_management.past import difference
from swecli.core.protocol.blocks import TableBlock
from swecli.core.protocol.events import CompactionCompleted, StepStarted
from tests.core.engine.support import bench
from tests.core.engine.test_compaction import fill, script
from tests.core.engine.test_context_fuzz import SUMMARIES, summarised
from tests.core.engine.test_undo_with_references import reading, worked


async def test_an_earlier_turn_shows_its_items_and_its_measure(tmp_path: Path) -> None:
    async with bench(script(reading(14), window=16_000), tmp_path) as b:
        await worked(b, 14)
        assert b.bodies(CompactionCompleted)
        inspection = b.session.inspection
        budgets = {event.turn: event.body.budget for event in b.facts if isinstance(event.body, StepStarted)}
        for turn, budget in budgets.items():
            picture = await inspection.at(turn)
            assert picture is not None
            assert picture.budget == budget
            assert sum(item.tokens for item in picture.items) == budget.used
        early = await inspection.at(1)
        late = await inspection.at(14)
        assert early is not None
        assert late is not None
        change = difference(early.items, late.items)
        first = next(item for item in early.items if item.kind == "result")
        assert first.id in {item.id for item in change.left} | {was.id for was, _ in change.changed}
        assert change.came
        assert await inspection.at(99) is None


async def test_the_command_names_the_turns_that_there_are(tmp_path: Path) -> None:
    async with bench(script(reading(3), window=64_000), tmp_path) as b:
        await worked(b, 3)
        shown = await CONTEXT.run(b.session, "at 2")
        assert (shown.screen, shown.argument) == ("context", "at 2")
        for words in ("at 9", "at x", "at 2 9", "at 0", "at -1"):
            refused = await CONTEXT.run(b.session, words)
            assert "The requests of turns 1 to 3 are recorded." in str(refused.blocks), words
        told = await CONTEXT.run(b.session, "at 1 3")
        (table,) = told.blocks
        assert isinstance(table, TableBlock)
        assert table.title.startswith("Turn 1 to turn 3: ")
        assert {row[0] for row in table.rows} == {"+"}


async def test_old_results_are_named_before_they_are_cleared(tmp_path: Path) -> None:
    async with bench(script(reading(12), window=16_000), tmp_path) as b:
        await worked(b, 3)
        foreseen = b.session.inspection.next_removal()
        assert re.fullmatch(r"at 95%: \d+ old results, [\d.]+K?", foreseen)
        text = str((await CONTEXT.run(b.session, "text")).blocks)
        assert f"Removed next, {foreseen}." in text
        number = 3
        while not b.bodies(CompactionCompleted):
            await b.say(f"Read the files of turn {number}.")
            number += 1
        made = b.bodies(CompactionCompleted)[0]
        assert made.strategies == ("clearing",)
        assert made.cleared >= int(foreseen.split()[2])


async def test_the_tokens_named_are_those_that_the_measure_then_loses(tmp_path: Path) -> None:
    """With a tokenizer that makes far fewer tokens of results than the estimate, and without any report."""
    numbers = "\n".join(" ".join(str(one * 7_919 + line * 104_729) for one in range(6)) for line in range(60))
    for usage in ("", "usage = { silent = true }"):
        steps = reading(20).replace("[[step]]", f"[[step]]\n{usage}")
        async with bench(script(steps, window=16_000), tmp_path) as b:
            b.gates.outputs.update({f"f{number}": numbers for number in range(40)})
            number, foreseen = 0, ""
            while not b.bodies(CompactionCompleted):
                foreseen = b.session.inspection.next_removal()
                await b.say(f"Read the files of turn {number}.")
                number += 1
            made = b.bodies(CompactionCompleted)[0]
            count, named = re.fullmatch(r"at 95%: (\d+) old results, ([\d.]+)K", foreseen).groups()  # type: ignore[union-attr]
            assert made.strategies == ("clearing",)
            freed = (made.tokens_before - made.tokens_after) * int(count) / made.cleared
            assert abs(float(named) * 1_000 / freed - 1) < 0.06, (usage, foreseen, made)


async def test_a_summary_is_named_where_clearing_is_not_enough(tmp_path: Path) -> None:
    talk = "\n".join(f"[[step]]\nchunk = 'whole'\ntext = 'Thought {one}: {'word ' * 1_300}'" for one in range(12))
    steps = script(reading(1), talk, window=16_000)
    async with bench(steps, tmp_path, make_model=summarised(SUMMARIES["good"])) as b:
        await worked(b, 1)
        number = 0
        foreseen = ""
        while not b.bodies(CompactionCompleted):
            foreseen = b.session.inspection.next_removal()
            await b.say(f"Talk about {number}.")
            number += 1
        assert foreseen in (
            "at 95%: a summary of the older messages",
            "before the next request: a summary of the older messages",
        )
        assert "summary" in b.bodies(CompactionCompleted)[0].strategies


async def test_in_a_large_window_what_goes_between_turns_is_named(tmp_path: Path) -> None:
    async with bench(script(reading(40), window=80_000), tmp_path) as b:
        fill(b, 80)
        number = 0
        while (foreseen := b.session.inspection.next_removal()).startswith("at 95%"):
            assert not b.bodies(CompactionCompleted)
            await b.say(f"Read the files of turn {number}.")
            number += 1
        assert foreseen.startswith("between turns: ")
        await b.say("Go on.")
        (made,) = b.bodies(CompactionCompleted)
        assert made.cleared == int(foreseen.split()[2])
