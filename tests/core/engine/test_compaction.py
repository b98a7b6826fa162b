"""The context is kept within its window, nothing is lost, and every compaction can be taken back."""

from pathlib import Path

import pytest

from swecli.core.context_management.compaction.options import (
    CompactContext,
    CompactDecision,
    CompactionOptions,
    ImportanceStrategy,
    TruncationStrategy,
)
from swecli.core.protocol.commands import Compact, Interrupt, RedoCompaction, Submit, UndoCompaction
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextMeasured,
    ItemCompleted,
    Notice,
    StepStarted,
    TurnEnded,
)
from swecli.core.tools.session_tools import CompactContextTool
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, call, until

SUMMARY = "## Goal\\nFind the bug.\\n## Done\\nRead many files; nothing changed yet.\\n## Next\\nRead the rest."
LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(120))


def fill(b: Bench, files: int) -> None:
    for number in range(files):
        b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"


def check_never_too_large(b: Bench) -> None:
    """No request left above the block line."""
    for body in b.bodies(StepStarted):
        assert body.budget.level != "block", body.budget


def script(*steps: str, window: int = 24_000) -> str:
    return f"window = {window}\nmax_output = 2000\n" + "\n".join(steps)


async def test_a_long_turn_is_compacted_in_the_middle_and_goes_on(tmp_path: Path) -> None:
    steps = []
    for number in range(40):
        steps.append(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]")
    async with bench(script(*steps, '[[step]]\ntext = "All read."'), tmp_path) as b:
        fill(b, 40)
        end = await b.say("Please never touch config.py. Read all the files.")
        assert end.outcome == "done", end
        assert b.bodies(CompactionCompleted)
        check_never_too_large(b)
        for request in b.model.requests:
            check_valid(request.messages)
        text = "\n".join(message.text for message in b.session.view.messages)
        assert "Please never touch config.py" in text
        assert b.gates.ended == [f"f{number}" for number in range(40)]


async def fill_and_compact(b: Bench, focus: str = "") -> None:
    fill(b, 12)
    await b.say("Read the files f0 to f11, and do not change any of them.")
    b.send(Compact(focus))
    await until(lambda: bool(b.bodies(CompactionCompleted) or b.bodies(CompactionFailed)) and not b.session.view.busy)


TWELVE = "\n".join(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(12))
BIG = script(TWELVE, '[[step]]\ntext = "Read them all."', f'[[step]]\ntext = "{SUMMARY}"', window=200_000)


async def test_compact_by_hand_shrinks_keeps_the_users_words_and_reports(tmp_path: Path) -> None:
    async with bench(BIG + '\n[[step]]\ntext = "still here"', tmp_path) as b:
        await fill_and_compact(b, "the bug")
        done = b.bodies(CompactionCompleted)[0]
        assert done.tokens_after <= 0.35 * done.tokens_before
        assert done.strategies == ("summary",)
        text = "\n".join(message.text for message in b.session.view.messages)
        assert "do not change any of them" in text
        assert "Find the bug." in text
        assert "f11: read" in text or "f11" in text
        asked = b.model.requests[-1]
        assert "the bug" in asked.messages[-1].text
        before = b.model.requests[-2]
        assert asked.messages[: len(before.messages)] == before.messages
        assert (asked.system, asked.tools) == (before.system, before.tools)
        assert b.session.view.budget is not None
        assert abs(b.session.view.budget.used - done.tokens_after) <= 2
        check_valid(tuple(b.session.view.messages))
        assert (await b.say("and now?")).outcome == "done"
        assert len(b.bodies(CompactionCompleted)) == 1


async def test_undo_and_redo_give_the_same_requests(tmp_path: Path) -> None:
    async with bench(BIG, tmp_path) as b:
        before: list[object] = []
        fill(b, 12)
        await b.say("Read the files f0 to f11.")
        before.append(tuple(b.session.view.messages))
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        compacted = tuple(b.session.view.messages)
        b.send(UndoCompaction())
        assert tuple(b.session.view.messages) == before[0]
        b.send(RedoCompaction())
        assert tuple(b.session.view.messages) == compacted
        b.send(UndoCompaction())
        b.send(UndoCompaction())
        await until(lambda: any("no compaction to undo" in body.text for body in b.bodies(Notice)))
        assert b.bodies(Notice)[-1].level == "warning"  # so that a run without an interface prints it
        assert tuple(b.session.view.messages) == before[0]


async def test_undo_survives_a_restart(tmp_path: Path) -> None:
    async with bench(BIG, tmp_path) as b:
        fill(b, 12)
        await b.say("Read the files f0 to f11.")
        before = tuple(b.session.view.messages)
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        compacted = tuple(b.session.view.messages)
        facts = list(b.facts)
    async with bench('[[step]]\ntext = "x"', tmp_path, history=facts) as again:
        assert tuple(again.session.view.messages) == compacted
        again.send(UndoCompaction())
        assert tuple(again.session.view.messages) == before


@pytest.mark.parametrize("undone_before", [False, True])
async def test_an_undo_or_redo_in_a_later_run_reports_the_sizes_of_the_compaction(
    tmp_path: Path, undone_before: bool
) -> None:
    odd = f'[[step]]\nchunk = "whole"\ntext = "{"word " * 3_000}"\nusage = {{ input = 5000, output = 6000 }}\n'
    later = '[[step]]\ntext = "Yes."\nusage = { input = 11500, output = 5 }\n'
    async with bench(script(odd, later, f'[[step]]\ntext = "{SUMMARY}"', window=200_000), tmp_path) as b:
        await b.say("Write something long.")
        await b.say("Was that all?")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted) or b.bodies(CompactionFailed)))
        done = b.bodies(CompactionCompleted)[0]
        if undone_before:
            b.send(UndoCompaction())
        facts = list(b.facts)
    before, after = f"{done.tokens_before:,}", f"{done.tokens_after:,}"
    async with bench('[[step]]\ntext = "x"', tmp_path, history=facts) as again:
        again.send(RedoCompaction() if undone_before else UndoCompaction())
        moved = "redone" if undone_before else "undone"
        await until(lambda: any(f"Compaction {moved}" in body.text for body in again.bodies(Notice)), moved)
        words = f" to {after} tokens" if undone_before else f" {after} to {before} tokens"
        assert words in again.bodies(Notice)[-1].text


FAULTS = {
    "error": '[[step]]\nfault = { kind = "bad_request" }',
    "overloaded": '[[step]]\nfault = { kind = "overloaded" }\n' * 3,
    "overflow": '[[step]]\nfault = { kind = "overflow", tokens = 999999, window = 1000 }\n' * 3,
    "empty": '[[step]]\nfault = { kind = "empty" }\n' * 3,
    "a tool call": f"[[step]]\ncall = [{call('read_file', 'f0')}]\n" * 3,
    "cut": '[[step]]\ntext = "## Goal and so on, a text of some length"\nfault = { kind = "cut", after = 30 }\n' * 3,
    "length": '[[step]]\ntext = "## Goal and so on, a text of some length"\nstop = "length"\n' * 3,
    "larger than before": f'[[step]]\nchunk = 200\ntext = "{"word " * 30_000}"',
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_summariser_that_fails_still_leaves_a_usable_session(tmp_path: Path, fault: str) -> None:
    steps = script(TWELVE, '[[step]]\ntext = "Read them all."', FAULTS[fault], window=200_000)
    async with bench(steps + '\n[[step]]\ntext = "usable"', tmp_path) as b:
        before_calls = 13
        await fill_and_compact(b)
        assert len(b.model.requests) - before_calls <= 3
        (done,) = b.bodies(CompactionCompleted)
        assert done.tokens_after <= 0.7 * done.tokens_before
        assert "record" in done.strategies or "truncation" in done.strategies
        assert "summary" not in done.strategies
        assert "do not change any of them" in "\n".join(m.text for m in b.session.view.messages)
        assert "word word" not in "\n".join(m.text for m in b.session.view.messages)
        check_valid(tuple(b.session.view.messages))


async def test_interrupting_a_compaction_changes_nothing(tmp_path: Path) -> None:
    steps = script(
        TWELVE,
        '[[step]]\ntext = "Read them all."',
        '[[step]]\nfault = { kind = "stall", after = 0 }\ntext = "x"',
        window=200_000,
    )
    async with bench(steps, tmp_path) as b:
        fill(b, 12)
        await b.say("Read the files.")
        before = tuple(b.session.view.messages)
        b.send(Compact())
        await until(lambda: len(b.model.requests) == 14)
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(CompactionFailed)) and not b.session.view.busy)
        assert tuple(b.session.view.messages) == before
        assert b.bodies(ItemCompleted)[-1].status == "interrupted"


async def test_an_overflow_that_we_did_not_see_coming_is_compacted_and_tried_once_more(tmp_path: Path) -> None:
    steps = script(
        TWELVE,
        '[[step]]\nfault = { kind = "overflow", tokens = 40000, window = 30000 }',
        f'[[step]]\ntext = "{SUMMARY}"',
        '[[step]]\ntext = "Now it fits."',
        window=200_000,
    )
    async with bench(steps, tmp_path) as b:
        fill(b, 12)
        end = await b.say("Read the files.")
        assert end.outcome == "done"
        assert len(b.bodies(CompactionCompleted)) == 1
        assert b.session.view.messages[-1].text == "Now it fits."


async def test_what_can_not_shrink_ends_in_a_clear_stop(tmp_path: Path) -> None:
    steps = script('[[step]]\ntext = "hi"\n' * 9, window=8_000)
    async with bench(steps, tmp_path) as b:
        end = await b.say("word " * 9_000)
        assert end.outcome == "blocked"
        assert end.error_kind == "context"
        assert "user messages" in end.reason
        assert b.model.requests == []
        assert b.bodies(CompactionFailed)
        again = await b.say("Then do something small.")
        assert again.outcome == "done"
        assert all(sum(len(m.text) for m in request.messages) < 8_000 * 5 for request in b.model.requests)
        assert len(b.model.requests) <= 1 + 3


async def test_the_hook_can_cancel_and_can_write_the_summary_itself(tmp_path: Path) -> None:
    seen: list[CompactContext] = []

    async def hook(context: CompactContext) -> CompactDecision:
        seen.append(context)
        if len(seen) == 1:
            return CompactDecision(cancel=True)
        return CompactDecision(custom_summary="The hook's own words about everything that was read.")

    async with bench(BIG, tmp_path, compaction=CompactionOptions(on_pre_compact=hook)) as b:
        await fill_and_compact(b)
        assert b.bodies(CompactionFailed)[0].reason == "cancelled by a hook"
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        assert "The hook's own words" in "\n".join(m.text for m in b.session.view.messages)
        assert len(b.model.requests) == 13
        assert seen[0].trigger == "manual"
        assert seen[0].current_tokens > seen[0].target_tokens * 0


@pytest.mark.parametrize(
    "options",
    [
        CompactionOptions(strategy="truncation", truncation=TruncationStrategy(keep_recent=4)),
        CompactionOptions(strategy="importance", importance=ImportanceStrategy(keep_recent=2, tool_use_score=0.1)),
    ],
)
async def test_strategies_without_a_model(tmp_path: Path, options: CompactionOptions) -> None:
    async with bench(BIG, tmp_path, compaction=options) as b:
        await fill_and_compact(b)
        done = b.bodies(CompactionCompleted)[0]
        assert done.strategies == (options.strategy,)
        assert len(b.model.requests) == 13
        check_valid(tuple(b.session.view.messages))


async def test_two_compactions_in_a_row_and_a_third_keep_the_facts(tmp_path: Path) -> None:
    rounds = f'{TWELVE}\n[[step]]\ntext = "Read."\n[[step]]\ntext = "{SUMMARY}"\n'
    async with bench(script(rounds * 3, window=200_000), tmp_path) as b:
        fill(b, 12)
        for number in range(3):
            await b.say(f"Round {number}: you must keep port {7000 + number} free.")
            b.send(Compact())
            await until(lambda n=number: len(b.bodies(CompactionCompleted)) > n and not b.session.view.busy)
        text = "\n".join(message.text for message in b.session.view.messages)
        for number in range(3):
            assert f"you must keep port {7000 + number} free" in text
        ledger_ids = {entry for body in b.bodies(CompactionCompleted) for view in body.view for entry in view.sources}
        known = {body.item for body in b.bodies(ItemCompleted)}
        assert {one.removesuffix(".result") for one in ledger_ids} <= known


async def test_the_meter_is_right_at_the_start_and_after_everything(tmp_path: Path) -> None:
    async with bench(BIG, tmp_path) as b:
        await until(lambda: bool(b.bodies(ContextMeasured)))
        assert b.session.view.budget is not None
        at_start = b.session.view.budget.used
        assert at_start > 0
        await fill_and_compact(b)
        measured = b.bodies(ContextMeasured)[-1].budget
        assert measured == b.session.view.budget
        assert measured.used > at_start


async def test_a_command_while_a_turn_runs_is_refused_with_a_word(tmp_path: Path) -> None:
    async with bench(f'[[step]]\ncall = [{call("read_file", "a")}]\n[[step]]\ntext = "ok"', tmp_path) as b:
        b.gates.held.add("a")
        b.send(Submit("go"))
        await until(lambda: b.gates.started == ["a"])
        b.send(Compact())
        await until(lambda: any("turn is running" in body.text for body in b.bodies(Notice)))
        b.gates.release("a")
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.bodies(CompactionStarted) == []


async def test_an_interrupt_ends_the_wish_of_the_model_for_room(tmp_path: Path) -> None:
    steps = script(
        TWELVE,
        f'[[step]]\ncall = [{{ tool = "compact_context", arguments = {{}} }}, {call("read_file", "held")}]',
        '[[step]]\ntext = "As it was."',
        window=200_000,
    )
    async with bench(steps, tmp_path, tools=[CompactContextTool()]) as b:
        fill(b, 12)
        b.gates.held.add("held")
        b.send(Submit("Read the files, then make room."))
        await until(lambda: any("swecli will compact" in text for text in b.tool_texts().values()))
        await until(lambda: "held" in b.gates.started)
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)) and not b.session.view.busy)
        assert (await b.say("No, go on.")).outcome == "done"
        assert b.session.view.messages[-1].text == "As it was."
        assert not b.bodies(CompactionStarted)


async def test_the_model_can_ask_for_room(tmp_path: Path) -> None:
    steps = script(
        TWELVE,
        '[[step]]\ncall = [{ tool = "compact_context", arguments = {} }]',
        f'[[step]]\ntext = "{SUMMARY}"',
        '[[step]]\ntext = "Going on."',
        window=200_000,
    )
    async with bench(steps, tmp_path, tools=[CompactContextTool()]) as b:
        fill(b, 12)
        end = await b.say("Read the files, then make room.")
        assert end.outcome == "done"
        started, done = b.bodies(CompactionStarted), b.bodies(CompactionCompleted)
        assert [body.trigger for body in started] == ["model"]
        assert done[0].tokens_after < done[0].tokens_before
        assert b.session.view.messages[-1].text == "Going on."
        check_valid(tuple(b.session.view.messages))


async def test_a_summary_longer_than_what_it_replaces_gives_way_to_the_record(tmp_path: Path) -> None:
    talk = "\n".join(f'[[step]]\ntext = "Answer {number}. {"It was said at length. " * 60}"' for number in range(8))
    long = f'[[step]]\ntext = "{SUMMARY}\\n## Details\\n{"All of it in other words. " * 300}"'
    async with bench(script(talk, long, long, window=200_000), tmp_path) as b:
        for number in range(8):
            await b.say(f"question {number}")
        b.send(Compact(""))
        await until(lambda: bool(b.bodies(CompactionCompleted) or b.bodies(CompactionFailed)))
        (done,) = b.bodies(CompactionCompleted)
        assert "summary" not in done.strategies
        assert done.tokens_after < done.tokens_before
        assert "All of it in other words" not in "\n".join(m.text for m in b.session.view.messages)
