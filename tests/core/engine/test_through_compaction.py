"""Three compactions, then all of them taken back: what is no conversation never changes, what was said comes back."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Compact, SetMode, UndoCompaction
from swecli.core.protocol.events import CompactionCompleted, CompactionUndone
from swecli.core.protocol.messages import Message
from swecli.core.tools.run_command import RunCommand
from swecli.core.tools.session_tools import UpdateTodos
from tests.core.engine.support import Bench, bench, call, notes_in, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

SUMMARY = "## Goal\\nFind the bug.\\n## Done\\nRead many files.\\n## Next\\nRead the rest."
LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(120))
ROUNDS = 3
TODOS = [f"Finish the piece number {n}" for n in range(3)]


def step(tool: str, **arguments: object) -> str:
    return f'[[step]]\n[[step.call]]\ntool = "{tool}"\narguments = {json.dumps(json.dumps(arguments))}'


def script() -> str:
    steps = ["window = 200000\nmax_output = 2000"]
    steps += [step("run_command", command="sleep 300", background=True)]
    steps += [step("update_todos", todos=[{"text": text, "status": "pending"} for text in TODOS])]
    for number in range(ROUNDS):
        steps += [f"[[step]]\ncall = [{call('read_file', f'f{number * 8 + file}')}]" for file in range(8)]
        steps += ['[[step]]\ntext = "Read them."', f'[[step]]\ntext = "{SUMMARY}"']
    steps += [f"[[step]]\ncall = [{call('write_file', 'notes.md')}]", '[[step]]\ntext = "It was refused."']
    return "\n".join(steps)


async def compact(b: Bench) -> None:
    before = len(b.bodies(CompactionCompleted))
    b.send(Compact())
    await until(lambda: len(b.bodies(CompactionCompleted)) > before and not b.session.view.busy, "compaction")


async def test_instructions_mode_todos_and_jobs_stay_and_every_step_is_taken_back(tmp_path: Path) -> None:
    async with bench(script(), tmp_path, tools=[RunCommand(), UpdateTodos()], policy=Policy(yolo=True)) as b:
        for number in range(ROUNDS * 8):
            b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"
        states: list[tuple[Message, ...]] = []
        for number in range(ROUNDS):
            assert (await b.say(f"The wish number {number}: read the next files.")).outcome == "done"
            b.send(SetMode("plan"))
            states.append(tuple(b.session.view.messages))
            await compact(b)
            states.append(tuple(b.session.view.messages))
        assert (await b.say("Now write the notes.")).outcome == "done"

        newest, first = b.model.requests[-1], b.model.requests[0]
        assert newest.system == first.system
        assert newest.tools == first.tools
        seen = "\n".join(message.text for message in newest.messages)
        assert [text for text in TODOS if text not in seen] == []
        assert "j1 `sleep 300`" in notes_in(newest)
        assert "Plan mode is on" in notes_in(newest)
        assert "notes.md" not in b.gates.started
        assert [f"The wish number {number}" in seen for number in range(ROUNDS)] == [True] * ROUNDS
        assert len(b.session.view.todos) == len(TODOS)
        assert [job.status for job in b.session.view.jobs] == ["running"]


def begin_of(number: int, messages: tuple[Message, ...]) -> int:
    """Where the round begins in the newest messages, which stand word for word behind a summary."""
    wish = f"The wish number {number}: read the next files."
    return next(place for place, message in enumerate(messages) if message.text == wish)


def contents(messages: Sequence[Message]) -> list[tuple[str, str, tuple[str, ...]]]:
    """All that was said and returned. Ids of calls aside: the scripted model counts from those that it sees, so that
    they repeat and are told apart in the request."""
    return [(m.role, m.text, tuple(result.text for result in m.tool_results)) for m in messages]


async def test_all_are_taken_back_to_the_same_words(tmp_path: Path) -> None:
    async with bench(script(), tmp_path, tools=[RunCommand(), UpdateTodos()], policy=Policy(yolo=True)) as b:
        for number in range(ROUNDS * 8):
            b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"
        said: list[Message] = []
        for number in range(ROUNDS):
            assert (await b.say(f"The wish number {number}: read the next files.")).outcome == "done"
            whole = tuple(b.session.view.messages)
            said += whole[begin_of(number, whole) if said else 0 :]
            await compact(b)
        for number in range(ROUNDS):
            b.send(UndoCompaction())
            await until(lambda n=number: len(b.bodies(CompactionUndone)) == n + 1, "undo")
        assert contents(b.session.view.messages) == contents(said)
