"""Long sessions of several kinds in small and large windows: none ends stuck, none refuses an undo, hardly a result
is cut, no request is blocked or over the line. `make soak` runs all of them, longer and with other texts."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.instructions import load_instructions
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.protocol.commands import RedoCompaction, UndoCompaction
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ItemCompleted,
    ItemsOffloaded,
    Notice,
    StepStarted,
)
from swecli.core.protocol.messages import ToolResultPart
from swecli.core.tools.registry import ToolRegistry, builtin_tools, small_schemas
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_compaction import SUMMARY
from tests.core.engine.test_large_fixed_part import RULE
from tests.core.engine.test_results import blobs
from tests.support.thorough import THOROUGH, examples

WINDOWS = (8_192, 14_000, 32_000, 64_000, 200_000)
INSTRUCTIONS = (0, 1_500, 8_000)
"""Tokens of project instructions."""
USAGES = {"reported": "", "silent": "usage = { silent = true }"}
TURNS = examples(10, 40)
SMALL = 14_000
"""Smaller windows have no room for several of these results at once."""
MOST_CUT = 0.2 if THOROUGH else 0.0
"""Share of the results that may be cut: in a few of all sessions several large ones come in one step."""


class Script:
    """One session: the model's steps, the results of its calls, and what the user says, all from a seed."""

    def __init__(self, seed: str, window: int, usage: str) -> None:
        self.random = random.Random(crc32(seed.encode()))
        self.window = window
        self.steps: list[str] = []
        self.outputs: dict[str, str] = {}
        self.messages: list[str] = []
        self._usage = usage

    def words(self, least: int, most: int) -> str:
        return "words in it " * self.random.randint(least, most)

    def step(self, text: str) -> None:
        self.steps.append(f"[[step]]\n{text}\n{self._usage}")

    def reads(self, count: int, share: float) -> None:
        """Calls with results of up to this share of the window."""
        for _ in range(count):
            name = f"f{len(self.outputs)}"
            most = max(8, int(self.window * share / 12))
            lines = (f"line {number} of {name} with words" for number in range(self.random.randint(4, most)))
            self.outputs[name] = "\n".join(lines)
            self.step(f"call = [{call('read_file', name)}]")

    def answer(self, least: int, most: int) -> None:
        self.step(f'chunk = "whole"\ntext = "{self.words(least, most)}"')

    def asks(self, text: str) -> None:
        self.messages.append(text)

    def text(self) -> str:
        summary = f'[[step]]\nwhen = {{ last_user = "Write the summary" }}\ntext = "{SUMMARY}"\n'
        return f"window = {self.window}\nmax_output = 2000\n" + "\n".join(self.steps) + ("\n" + summary) * 40


def talk(script: Script) -> None:
    script.asks(script.words(1, 40))
    script.answer(5, 80)


def exploring(script: Script) -> None:
    script.asks("Look into it.")
    script.reads(script.random.randint(1, 4), 0.12)
    script.answer(2, 20)


def one_long_turn(script: Script) -> None:
    script.asks("Do all of it.")
    script.reads(12, 0.08)
    script.answer(2, 20)


def pasting(script: Script) -> None:
    script.asks(script.words(1, max(2, script.window // 24)))
    script.answer(2, 20)


def long_answers(script: Script) -> None:
    script.asks("Explain it.")
    script.answer(10, 400)


def large_results(script: Script) -> None:
    script.asks("Read the large one.")
    script.reads(2, 0.2)
    script.answer(2, 10)


def mixed(script: Script) -> None:
    script.random.choice((talk, exploring, pasting, long_answers, large_results))(script)


KINDS: dict[str, Callable[[Script], None]] = {
    kind.__name__: kind for kind in (talk, exploring, one_long_turn, pasting, long_answers, large_results, mixed)
}


def sessions() -> list[tuple[str, int, int, str]]:
    """In a short run each kind, window, size of instructions and way of reporting occurs, in other combinations."""
    everything = [
        (kind, window, instructions, usage)
        for kind in KINDS
        for window in WINDOWS
        for instructions in INSTRUCTIONS
        for usage in USAGES
    ]
    return everything if THOROUGH else everything[:: len(everything) // 14 - 1]


def manager(folder: Path, tokens: int) -> ContextManager | None:
    """With so many tokens of project instructions."""
    if not tokens:
        return None
    registry = ToolRegistry(builtin_tools())
    (folder / "AGENTS.md").write_text("".join(f"# Part {part}\n{RULE * 8}" for part in range(max(1, tokens // 145))))
    files = load_instructions(folder)
    return ContextManager(registry.schemas(), PromptTexts(files=files), small_tools=small_schemas(registry))


def refusal(b: Bench) -> str:
    return next((body.text for body in b.bodies(Notice) if "Cannot undo" in body.text), "")


async def undo_all(b: Bench) -> None:
    """Undo every compaction, then redo all: the context is as it was."""
    before = tuple(b.session.view.messages)
    made = b.session.inspection.timeline.compactions
    for number in range(sum(record.in_force for record in made)):
        b.send(UndoCompaction())
        await until(lambda n=number: len(b.bodies(CompactionUndone)) > n or refusal(b))
        assert not refusal(b), refusal(b)
        budget = b.session.view.budget
        assert budget is not None
        assert budget.level != "block"
        check_valid(tuple(b.session.view.messages))
    undone = len(b.bodies(CompactionUndone))
    for _ in range(undone):
        b.send(RedoCompaction())
    await until(lambda: len(b.bodies(CompactionRedone)) == undone)
    assert tuple(b.session.view.messages) == before


@pytest.mark.parametrize(("kind", "window", "instructions", "usage"), sessions())
async def test_a_long_session(tmp_path: Path, kind: str, window: int, instructions: int, usage: str) -> None:
    script = Script(f"{kind} {window} {os.environ.get('SWECLI_HISTORY', '')}", window, USAGES[usage])
    for _ in range(TURNS):
        KINDS[kind](script)
    context = manager(tmp_path, instructions)
    more: dict[str, Any] = {"context": context} if context is not None else {}
    async with bench(script.text(), tmp_path, blobs=blobs(), **more) as b:
        b.gates.outputs.update(script.outputs)
        for number, text in enumerate(script.messages):
            end = await b.say(text)
            assert end.outcome == "done", (number, end.outcome, end.reason)
        assert all(body.budget.level != "block" for body in b.bodies(StepStarted))
        stored = [item for body in b.bodies(ItemsOffloaded) for item in body.items if "do not fit" in item.reason]
        results = sum(
            bool(body.parts) and isinstance(body.parts[0], ToolResultPart) for body in b.bodies(ItemCompleted)
        )
        assert len(stored) <= MOST_CUT * results or window < SMALL, [item.reason for item in stored]
        if b.bodies(CompactionCompleted):
            await undo_all(b)
