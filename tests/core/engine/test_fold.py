"""A stretch in the middle is folded into a few lines, priced before, undone byte for byte, and its rules stay."""

from pathlib import Path

from swecli.commands.compaction import COMPACT
from swecli.core.protocol.commands import ApplyPlan, RedoCompaction, UndoCompaction
from swecli.core.protocol.events import CompactionCompleted, CompactionRedone, CompactionUndone
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, until
from tests.core.engine.test_compaction import script
from tests.core.engine.test_undo_with_references import reading, worked

LINES = "Tried the cache first; it was a dead end. The fault is in `pay.py`."


async def fold(b: Bench, words: str) -> ApplyPlan:
    result = await COMPACT.run(b.session, f"fold {words}")
    assert result.offer is not None, result.blocks
    command = result.offer.command
    assert isinstance(command, ApplyPlan)
    before = len(b.bodies(CompactionCompleted))
    b.send(command)
    await until(lambda: len(b.bodies(CompactionCompleted)) > before and not b.session.view.busy)
    return command


async def test_turns_in_the_middle_are_folded_by_hand_and_come_back(tmp_path: Path) -> None:
    async with bench(script(reading(8), '[[step]]\ntext = "go on"', window=200_000), tmp_path) as b:
        await worked(b, 8)
        before = tuple(b.session.view.messages)
        told = await COMPACT.run(b.session, f"fold 3-6 {LINES}")
        await fold(b, f"3-6 {LINES}")
        made = b.bodies(CompactionCompleted)[-1]
        assert f"{made.tokens_before:,} to {made.tokens_after:,} tokens" in str(told.blocks)
        after = b.session.view.messages
        text = "\n".join(message.text for message in after)
        assert LINES in text
        assert "Read the files of turn 2." in text  # turn 3 of the session
        assert "# State, from the record" not in text
        assert "f0" in str(after[:4])
        assert "f15" in str(after[-3:])
        check_valid(tuple(after))
        b.send(UndoCompaction())
        await until(lambda: bool(b.bodies(CompactionUndone)))
        assert tuple(b.session.view.messages) == before
        b.send(RedoCompaction())
        await until(lambda: bool(b.bodies(CompactionRedone)))
        assert tuple(b.session.view.messages) == tuple(after)
        assert (await b.say("and now?")).outcome == "done"


async def test_the_model_writes_the_lines_about_this_stretch_only(tmp_path: Path) -> None:
    lines = f'[[step]]\nwhen = {{ last_user = "Write only about" }}\ntext = "{LINES}"'
    async with bench(script(reading(6), lines, window=64_000), tmp_path) as b:
        await worked(b, 6)
        command = await fold(b, "2-4")
        asked = b.model.requests[-1].messages[-1].text
        assert f"from [{command.summarise[0]}]" in asked
        assert LINES in "\n".join(message.text for message in b.session.view.messages)


async def test_what_can_not_be_folded_says_why(tmp_path: Path) -> None:
    async with bench(script(reading(3), window=64_000), tmp_path) as b:
        await worked(b, 3)
        for words, why in (
            ("", "Name the turns"),
            ("x", "Name the turns"),
            ("9", "No message of turns 9 to 9"),
            ("1-3", "is your newest message"),
            (f"2 {'word ' * 9_000}", "Nothing to gain"),
        ):
            result = await COMPACT.run(b.session, f"fold {words}")
            assert result.offer is None
            assert why in str(result.blocks), (words, result.blocks)
        assert not b.bodies(CompactionCompleted)
