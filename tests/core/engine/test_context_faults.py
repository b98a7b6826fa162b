"""Whatever goes wrong around a full context, the session stays usable, after three model calls at the most."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from swecli.core.context_management.budget import edge
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import HybridCounter
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ModelInfo, ModelRequest, StreamEvent
from swecli.core.protocol.commands import Compact, SetModel, Submit, UndoCompaction
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    Event,
    ItemCompleted,
    ModelChanged,
    Notice,
    QuestionAsked,
    StepStarted,
    TurnEnded,
)
from swecli.core.protocol.messages import ImagePart
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, call, notes_in, until
from tests.core.engine.test_results import blobs

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(120))
SUMMARY = "## Goal\\nFind the bug.\\n## Done\\nRead many files; nothing changed yet.\\n## Next\\nRead the rest."
MOST_CALLS = 3


def reads(count: int, first: int = 0) -> str:
    return "\n".join(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(first, first + count))


def script(*steps: str, window: int = 24_000) -> str:
    return f"window = {window}\nmax_output = 2000\n" + "\n".join(steps)


def fill(b: Bench, files: int) -> None:
    for number in range(files):
        b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"


def check_gate(b: Bench, effective: int) -> None:
    """No step was sent above the block line: those that were blocked ended their turn."""
    blocked = [body for body in b.bodies(StepStarted) if body.budget.level == "block"]
    assert all(body.budget.upper >= edge(0.98, effective) for body in blocked)
    assert len(blocked) == sum(end.outcome == "blocked" for end in b.bodies(TurnEnded))


async def compact(b: Bench) -> None:
    before = len(b.bodies(CompactionCompleted)) + len(b.bodies(CompactionFailed))
    b.send(Compact())
    await until(
        lambda: (
            len(b.bodies(CompactionCompleted)) + len(b.bodies(CompactionFailed)) > before and not b.session.view.busy
        )
    )


async def check_usable(b: Bench, asked: list[ModelRequest]) -> None:
    """A small message gets an answer, after three calls at the most."""
    before = len(asked)
    assert (await b.say("Just say something.")).outcome == "done"
    assert len(asked) - before <= MOST_CALLS
    check_valid(tuple(b.session.view.messages))


class Model(ScriptedModel):
    """A scripted model of which something else is known."""

    def __init__(self, text: str, info: ModelInfo) -> None:
        super().__init__(parse_script(text))
        self._known = info

    @property
    def info(self) -> ModelInfo:
        return self._known


async def test_a_summary_that_never_comes(tmp_path: Path) -> None:
    stall = '[[step]]\ntext = "x"\nfault = { kind = "stall", after = 0, seconds = 1 }\n' * 3
    async with bench(script(reads(12), '[[step]]\ntext = "Read."', stall, window=200_000), tmp_path) as b:
        fill(b, 12)
        await b.say("Read the files.")
        before = len(b.model.requests)
        await compact(b)
        assert len(b.model.requests) - before <= MOST_CALLS
        done = b.bodies(CompactionCompleted)[0]
        assert "record" in done.strategies
        await check_usable(b, b.model.requests)


async def test_a_crash_between_any_two_facts_of_a_compaction(tmp_path: Path) -> None:
    text = script(reads(12), '[[step]]\ntext = "Read."', f'[[step]]\ntext = "{SUMMARY}"', window=200_000)
    async with bench(text, tmp_path) as b:
        fill(b, 12)
        await b.say("Read the files.")
        before = tuple(b.session.view.messages)
        await compact(b)
        after = tuple(b.session.view.messages)
        facts = list(b.facts)
    start = next(n for n, event in enumerate(facts) if isinstance(event.body, CompactionStarted))
    views = []
    for end in range(start - 1, len(facts) + 1):
        async with bench('[[step]]\ntext = "Here."', tmp_path, history=facts[:end]) as again:
            views.append(tuple(again.session.view.messages))
            await check_usable(again, again.model.requests)
            assert not again.session.view.busy
    assert set(map(len, views)) == {len(before), len(after)}
    switch = next(n for n, view in enumerate(views) if len(view) == len(after))
    assert all(view == before for view in views[:switch])
    assert all(view == after for view in views[switch:])


@pytest.mark.parametrize("tool", ["read_file", "run_command"])
async def test_a_single_result_of_two_megabytes(tmp_path: Path, tool: str) -> None:
    steps = script(f'[[step]]\ncall = [{call(tool, "huge")}]\n[[step]]\ntext = "Seen."')
    async with bench(steps, tmp_path) as b:
        b.allow_all = True
        b.gates.outputs["huge"] = "x = compute(y, z)  # a line\n" * 75_000
        assert (await b.say("Look at it.")).outcome == "done"
        check_gate(b, 22_000)
        assert len(b.model.requests) <= 2 + MOST_CALLS
        await check_usable(b, b.model.requests)


async def test_a_window_that_nobody_knows(tmp_path: Path) -> None:
    overflow = '[[step]]\nfault = { kind = "overflow", tokens = 40000, window = 30000 }'
    text = script(reads(8), overflow, f'[[step]]\ntext = "{SUMMARY}"', '[[step]]\ntext = "Now it fits."')
    model = Model(text, ModelInfo("scripted", "unknown", None, None))
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model) as b:
        fill(b, 8)
        end = await b.say("Read the files.")
        assert end.outcome == "done"
        assert b.session.view.budget is not None
        assert b.session.view.budget.window_source
        assert len(model.requests) <= 9 + MOST_CALLS
        await check_usable(b, model.requests)


async def test_a_window_smaller_than_the_system_prompt(tmp_path: Path) -> None:
    small = ScriptedModel(parse_script(script('[[step]]\ntext = "small"', window=1_000)))
    large = ScriptedModel(parse_script(script('[[step]]\ntext = "large"', window=200_000)))
    models = {"scripted/small": small, "scripted/large": large}
    context = ContextManager((), PromptTexts(base="Rules. " * 2_000))
    async with bench(
        '[[step]]\ntext = "x"', tmp_path, make_client=lambda name: models.get(name, small), context=context
    ) as b:
        end = await b.say("hi")
        assert (end.outcome, end.error_kind) == ("blocked", "context")
        assert "system prompt" in end.reason
        assert small.requests == []
        b.send(SetModel("scripted/large"))
        await until(lambda: bool(b.bodies(ModelChanged)))
        await check_usable(b, large.requests)


async def test_a_switch_to_a_model_with_a_smaller_window(tmp_path: Path) -> None:
    large = ScriptedModel(parse_script(script(reads(30), '[[step]]\ntext = "Read."', window=200_000)))
    small = ScriptedModel(
        parse_script(script(f'[[step]]\ntext = "{SUMMARY}"', '[[step]]\ntext = "Small."', window=16_000))
    )
    models = {"scripted/small": small}
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda name: models.get(name, large)) as b:
        fill(b, 30)
        await b.say("Read the files and never touch config.py.")
        b.send(SetModel("scripted/small"))
        await until(lambda: bool(b.bodies(ModelChanged)))
        assert (await b.say("Go on.")).outcome == "done"
        assert len(small.requests) <= MOST_CALLS
        check_gate(b, 14_000)
        text = "\n".join(message.text for message in b.session.view.messages)
        assert "never touch config.py" in text
        await check_usable(b, small.requests)


async def test_a_provider_that_reports_no_usage(tmp_path: Path) -> None:
    steps = [f"[[step]]\ncall = [{call('read_file', f'f{n}')}]\nusage = {{ silent = true }}" for n in range(40)]
    async with bench(script(*steps, '[[step]]\ntext = "Read."'), tmp_path) as b:
        fill(b, 40)
        assert (await b.say("Read the files.")).outcome == "done"
        assert b.bodies(CompactionCompleted)
        check_gate(b, 22_000)
        assert b.session.view.budget is not None
        await check_usable(b, b.model.requests)


async def test_usage_of_zero_is_no_usage(tmp_path: Path) -> None:
    steps = [f"[[step]]\ncall = [{call('read_file', f'f{n}')}]\nusage = {{ input = 0, output = 0 }}" for n in range(40)]
    async with bench(script(*steps, '[[step]]\ntext = "Read."'), tmp_path) as b:
        fill(b, 40)
        assert (await b.say("Read the files.")).outcome == "done"
        check_gate(b, 22_000)
        assert b.session.view.budget is not None
        assert b.session.view.budget.used > 1_000


async def test_images_take_room_and_can_be_compacted(tmp_path: Path) -> None:
    image = ImagePart("image/png", "aGVsbG8=" * 2_000, "screen.png")
    turns = '[[step]]\ntext = "I see."\nusage = { silent = true }\n' * 3
    async with bench(script(turns, f'[[step]]\ntext = "{SUMMARY}"', '[[step]]\ntext = "Gone."'), tmp_path) as b:
        for _ in range(3):
            turn = b.session.view.totals.turns + 1
            b.send(Submit("Look at these.", (image,) * 3))
            await until(lambda t=turn: any(e.turn == t and isinstance(e.body, TurnEnded) for e in b.events))
        assert b.session.view.budget is not None
        assert b.session.view.budget.used > 9 * 1_500
        before = b.session.view.budget.used
        await compact(b)
        assert b.bodies(CompactionCompleted)
        assert b.session.view.budget.used < 0.7 * before
        check_gate(b, 22_000)
        await check_usable(b, b.model.requests)


async def test_a_history_of_nothing_but_tool_calls(tmp_path: Path) -> None:
    async with bench(script(reads(60), '[[step]]\ntext = "Read."'), tmp_path) as b:
        fill(b, 60)
        assert (await b.say("Read them.")).outcome == "done"
        assert b.bodies(CompactionCompleted)
        check_gate(b, 22_000)
        await check_usable(b, b.model.requests)


async def test_two_compactions_in_a_row_ask_the_summariser_once(tmp_path: Path) -> None:
    text = script(reads(12), '[[step]]\ntext = "Read."', f'[[step]]\ntext = "{SUMMARY}"', window=200_000)
    async with bench(text, tmp_path) as b:
        fill(b, 12)
        await b.say("Read the files.")
        await compact(b)
        after = tuple(b.session.view.messages)
        calls = len(b.model.requests)
        await compact(b)
        assert len(b.model.requests) - calls <= MOST_CALLS
        if b.bodies(CompactionFailed):
            assert tuple(b.session.view.messages) == after
        await check_usable(b, b.model.requests)


async def test_a_clock_that_goes_backwards(tmp_path: Path) -> None:
    now = [1_000_000.0]

    def clock() -> float:
        now[0] -= 500.0
        return now[0]

    text = script(reads(30), '[[step]]\ntext = "Read."')
    async with bench(text, tmp_path, clock=clock, monotonic=clock) as b:
        fill(b, 30)
        assert (await b.say("Read the files.")).outcome == "done"
        assert b.bodies(CompactionCompleted)
        await check_usable(b, b.model.requests)


@pytest.mark.parametrize("content", ["<|endoftext|> and <|endofprompt|>\n" * 50, " " * 1_000_000, "\n" * 200_000])
async def test_odd_files_with_exact_counts(tmp_path: Path, capfd: pytest.CaptureFixture[str], content: str) -> None:
    counter = HybridCounter(delay=0)
    counter.warm_up().join()
    context = ContextManager((), monitor=TokenMonitor(counter))
    text = script(f'[[step]]\ncall = [{call("read_file", "odd")}]\n[[step]]\ntext = "Seen."', window=200_000)
    async with bench(text, tmp_path, context=context) as b:
        b.gates.outputs["odd"] = content
        assert (await b.say("Look at it.")).outcome == "done"
        await check_usable(b, b.model.requests)
    assert capfd.readouterr().err == ""


async def test_undoing_every_compaction_does_not_wedge_the_session(tmp_path: Path) -> None:
    text = script(reads(30), '[[step]]\ntext = "Read."', *['[[step]]\ntext = "Here."'] * 6)
    async with bench(text, tmp_path) as b:
        fill(b, 30)
        await b.say("Read the files.")
        assert b.bodies(CompactionCompleted)
        for _ in range(len(b.bodies(CompactionCompleted)) + 1):
            b.send(UndoCompaction())
        await until(lambda: any("no compaction to undo" in body.text for body in b.bodies(Notice)))
        await check_usable(b, b.model.requests)
        check_gate(b, 22_000)


class _Cancelled(Model):
    """Its summaries end in the middle, as if the connection were gone for good."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if request.messages[-1].id.startswith("compaction"):
            return
        async for event in super().stream(request):
            yield event


async def test_a_summary_whose_stream_just_ends(tmp_path: Path) -> None:
    info = ModelInfo("scripted", "test", 24_000, 2_000)
    model = _Cancelled(script(reads(30), '[[step]]\ntext = "Read."'), info)
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model) as b:
        fill(b, 30)
        assert (await b.say("Read the files.")).outcome == "done"
        assert b.bodies(CompactionCompleted)
        check_gate(b, 22_000)


def facts_until(facts: list[Event], kind: type[object]) -> list[Event]:
    """The facts before the first of a kind."""
    return facts[: next(n for n, event in enumerate(facts) if isinstance(event.body, kind))]


async def test_a_crash_in_the_middle_of_an_automatic_compaction(tmp_path: Path) -> None:
    async with bench(script(reads(30), '[[step]]\ntext = "Read."'), tmp_path) as b:
        fill(b, 30)
        await b.say("Read the files; never touch config.py.")
        facts = facts_until(list(b.facts), CompactionCompleted)
    text = script(f'[[step]]\ntext = "{SUMMARY}"', '[[step]]\ntext = "Here."', '[[step]]\ntext = "Here."')
    async with bench(text, tmp_path, history=facts) as again:
        check_valid(tuple(again.session.view.messages))
        assert (await again.say("Go on.")).outcome == "done"
        assert len(again.model.requests) <= MOST_CALLS
        open_items = [body for body in again.bodies(ItemCompleted) if body.status == "interrupted"]
        assert open_items


class Forgetful(ScriptedModel):
    """Reads the same files again after each summary."""

    def __init__(self, text: str) -> None:
        super().__init__(parse_script(text))
        self.summaries = 0

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if "summar" not in request.messages[-1].text:
            return super().stream(request)
        self.summaries += 1
        return ScriptedModel(parse_script(f'window = 24000\n[[step]]\ntext = "{SUMMARY}"')).stream(request)


async def test_a_model_that_reads_again_what_each_compaction_removed(tmp_path: Path) -> None:
    model = Forgetful(script(*[reads(13)] * 40))
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model, blobs=blobs()) as b:
        fill(b, 13)
        b.send(Submit("Read the files."))
        await until(lambda: bool(b.bodies(QuestionAsked)) or bool(b.bodies(TurnEnded)))
        (asked,) = b.bodies(QuestionAsked)
        assert "The model is in a loop: read_file gave the same result" in asked.questions[0].text
        assert len(model.requests) < 400
        assert any("You are in a loop" in notes_in(request) for request in model.requests)
