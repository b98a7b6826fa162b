"""A compaction is undone in the middle of a turn, twice, after files have changed, in a session of an earlier version
and in one of 10,000 messages: the earlier view comes back, and the conversation goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from swecli.core.protocol.codec import decode_body
from swecli.core.protocol.commands import Compact, RedoCompaction, Submit, UndoCompaction
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    Event,
    Notice,
    TurnEnded,
)
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_compaction import SUMMARY, script
from tests.core.engine.test_undo_with_references import reading, worked
from tests.support.said import Said
from tests.support.thorough import examples

EARLIER = Path(__file__).parents[2] / "data" / "earlier-session.jsonl"
"""A session of six turns and a compaction, recorded with a version whose compactions had no words about their undo."""
MESSAGES = examples(2_000, 10_000)


async def undo(b: Bench) -> None:
    before = len(b.bodies(CompactionUndone))
    b.send(UndoCompaction())
    await until(lambda: len(b.bodies(CompactionUndone)) > before)


async def redo(b: Bench) -> None:
    before = len(b.bodies(CompactionRedone))
    b.send(RedoCompaction())
    await until(lambda: len(b.bodies(CompactionRedone)) > before)


async def compact(b: Bench, *, without_model: bool = False) -> None:
    before = len(b.bodies(CompactionCompleted))
    b.send(Compact(without_model=without_model))
    await until(lambda: len(b.bodies(CompactionCompleted)) > before and not b.session.view.busy)


@pytest.mark.parametrize("times", [1, 2])
async def test_in_the_middle_of_a_turn(tmp_path: Path, times: int) -> None:
    late = f"[[step]]\ncall = [{call('read_file', 'late')}]", '[[step]]\ntext = "I read it."'
    steps = [reading(4), f'[[step]]\nchunk = "whole"\ntext = "{SUMMARY}"', *late, '[[step]]\ntext = "Go on."']
    async with bench(script(*steps, window=64_000), tmp_path) as b:
        await worked(b, 4)
        before = tuple(b.session.view.messages)
        await compact(b)
        b.gates.held.add("late")
        b.send(Submit("Read the late one."))
        await until(lambda: "late" in b.gates.started)
        for _ in range(times):
            b.send(UndoCompaction())
        waits = lambda: [body for body in b.bodies(Notice) if "A turn is running; try again" in body.text]  # noqa: E731
        await until(lambda: len(waits()) == times)
        b.gates.release("late")
        await b.idle()
        assert b.bodies(TurnEnded)[-1].outcome == "done"
        assert not b.bodies(CompactionUndone)
        await undo(b)
        messages = tuple(b.session.view.messages)
        assert messages[: len(before)] == before
        check_valid(messages)
        b.send(UndoCompaction())
        await until(lambda: any("There is no compaction to undo" in body.text for body in b.bodies(Notice)))
        assert tuple(b.session.view.messages) == messages
        assert (await b.say("And now?")).outcome == "done"


async def test_after_files_have_changed(tmp_path: Path) -> None:
    async with bench(script(reading(4), f'[[step]]\nchunk = "whole"\ntext = "{SUMMARY}"'), tmp_path) as b:
        await worked(b, 4)
        before = tuple(b.session.view.messages)
        await compact(b)
        after = tuple(b.session.view.messages)
        for name in ("f0", "f1"):
            (tmp_path / name).write_text("something else by now\n")
        (tmp_path / "f2").mkdir()
        os.symlink(tmp_path / "nowhere", tmp_path / "f3")
        await undo(b)
        assert tuple(b.session.view.messages) == before
        await redo(b)
        assert tuple(b.session.view.messages) == after


async def test_in_a_session_of_an_earlier_version(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in EARLIER.read_text().splitlines()]
    history = [
        Event(one["seq"], float(one["seq"]), "s", one["turn"], decode_body(json.dumps(one["body"]).encode()))
        for one in lines
    ]
    async with bench('window = 14000\n[[step]]\ntext = "It is."', tmp_path, history=history) as b:
        compacted = tuple(b.session.view.messages)
        await undo(b)
        texts = "\n".join(result.text for message in b.session.view.messages for result in message.tool_results)
        assert all(f"line 59 of part {part}" in texts for part in range(6))
        check_valid(tuple(b.session.view.messages))
        await redo(b)
        assert tuple(b.session.view.messages) == compacted
        assert (await b.say("Is it there?")).outcome == "done"


async def test_in_a_session_of_many_messages(tmp_path: Path) -> None:
    said = Said()
    for number in range(MESSAGES // 4):
        said.user(f"Request {number}.")
        said.call("read_file", {"target": f"f{number}"}, f"line of f{number}\n" * 30)
        said.answer(f"The rule of request {number} is in f{number}.")
    async with bench('window = 1000000\n[[step]]\ntext = "It is."', tmp_path, history=said.events) as b:
        before = tuple(b.session.view.messages)
        assert len(before) >= MESSAGES * 0.99
        await compact(b, without_model=True)
        after = tuple(b.session.view.messages)
        assert after != before
        await undo(b)
        assert tuple(b.session.view.messages) == before
        await redo(b)
        assert tuple(b.session.view.messages) == after
        assert (await b.say("Is it there?")).outcome == "done"
