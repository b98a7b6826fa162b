"""Servers that answer nothing, with success, where the conversation is too long for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.engine import silent_overflow as overflow
from swecli.core.engine.settings import TurnLimits
from swecli.core.engine.silent_overflow import SET_WINDOW, silent_overflow
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import CompactionCompleted, StepEnded
from swecli.core.protocol.messages import Message, Origin, Part, ReasoningPart, Response, Stop, StopKind, Usage
from tests.core.engine.support import bench, call
from tests.core.engine.test_compaction import SUMMARY, fill

INFO = ModelInfo("local", "m", 32_768, window_source="assumed")
THOUGHT = ReasoningPart("hm " * 4_000)


def answer(stop: StopKind | None, usage: Usage | None = None, *parts: Part) -> Message:
    return Message("assistant", parts, response=Response(Origin("p", "h", "m"), Stop(stop), usage))


def budget(used: int) -> Budget:
    return Budget((), used, used, 26_000, 32_768, 6_768, "ok")


@pytest.mark.parametrize(
    ("message", "limit", "used", "window"),
    [
        (answer("length", Usage(8_191, output_total=1)), None, 9_000, 8_192),  # Ollama
        (answer("length", Usage(9_000, output_total=0)), 4_096, 9_000, None),
        (answer("length", None), 4_096, 9_000, None),
        (answer("length", Usage(30_000, output_total=2_768), THOUGHT), None, 26_000, 32_768),  # OpenAI
        (answer("context_full", Usage(9_000)), None, 9_000, None),
        (answer(None), None, 25_000, None),  # LM Studio: only the end mark
        (answer("end", Usage(32_700)), None, 9_000, None),
    ],
)
def test_an_answer_of_nothing_at_a_full_window(
    message: Message, limit: int | None, used: int, window: int | None
) -> None:
    error = silent_overflow(message, limit, budget(used), INFO)
    assert error is not None
    assert (error.kind, error.window, error.hint) == ("context_overflow", window, SET_WINDOW)


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (answer("length", Usage(9_000, output_total=4_096), THOUGHT), 4_096),
        (answer("length", None, THOUGHT), None),
        (answer(None), None),
        (answer("end", Usage(9_000, output_total=0)), None),
        (answer("refusal"), None),
        (answer("pause"), None),
    ],
)
def test_other_answers_of_nothing(message: Message, limit: int | None) -> None:
    assert silent_overflow(message, limit, budget(9_000), INFO) is None


NOTHING = '[[step]]\ntext = ""\nstop = "length"\n'
READS = "".join(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]\n" for number in range(12))


async def test_the_conversation_is_compacted_once(tmp_path: Path) -> None:
    script = f'window = 200000\n{READS}{NOTHING}[[step]]\ntext = "{SUMMARY}"\n[[step]]\ntext = "Now it fits."'
    async with bench(script, tmp_path) as b:
        fill(b, 12)
        assert (await b.say("Read the files.")).outcome == "done"
        assert len(b.bodies(CompactionCompleted)) == 1
        assert b.session.view.messages[-1].text == "Now it fits."
        assert all(body.usage is not None for body in b.bodies(StepEnded))


async def test_a_second_answer_of_nothing_ends_the_turn(tmp_path: Path) -> None:
    script = f'window = 200000\n{READS}{NOTHING}[[step]]\ntext = "{SUMMARY}"\n{NOTHING * 4}'
    async with bench(script, tmp_path) as b:
        fill(b, 12)
        end = await b.say("Read the files.")
        assert (end.outcome, end.error_kind) == ("blocked", "context_overflow")
        assert "answered nothing" in end.reason
        assert SET_WINDOW in end.reason
        assert len(b.bodies(CompactionCompleted)) == 1
        assert len(b.model.requests) == 15


async def test_a_short_conversation_ends_with_what_to_set(tmp_path: Path) -> None:
    async with bench(f"window = 200000\n{NOTHING * 3}", tmp_path) as b:
        end = await b.say("hi")
        assert end.outcome == "blocked"
        assert SET_WINDOW in end.reason
        assert len(b.model.requests) == 1


async def test_two_empty_answers_name_the_window_as_well(tmp_path: Path) -> None:
    async with bench('window = 200000\n[[step]]\ntext = ""\n[[step]]\ntext = ""\n', tmp_path) as b:
        assert SET_WINDOW in (await b.say("hi")).reason


async def test_a_nearly_full_request_that_is_cut_before_all_words_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overflow, "NEARLY_FULL", 0.01)
    cut = '[[step]]\ntext = "x"\nfault = { kind = "cut", after = 0 }\n'
    script = f'window = 200000\n{READS}{cut}[[step]]\ntext = "{SUMMARY}"\n[[step]]\ntext = "Now it fits."'
    async with bench(script, tmp_path, limits=TurnLimits(max_retries=0)) as b:
        fill(b, 12)
        assert (await b.say("Read the files.")).outcome == "done"
        assert len(b.bodies(CompactionCompleted)) == 1
