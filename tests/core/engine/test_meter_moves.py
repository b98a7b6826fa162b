"""The meter moves while an answer comes, and the figures of the conversation follow compactions."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from swecli.core.llm.types import Finished, ModelInfo, ModelRequest, ReasoningDelta, StreamEvent, TextDelta
from swecli.core.protocol.commands import ChangeContext, Compact, RunShell
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import CompactionCompleted, ContextEdited, ContextMeasured, ItemDelta, ModelResponded
from swecli.core.protocol.messages import Message, Origin, ReasoningPart, Response, Stop, TextPart, Usage
from tests.core.engine.support import bench, call, until


class Slow:
    """A model that says more only when the meter has shown what it said before."""

    info = ModelInfo("slow", "model", 32_000)

    def __init__(self) -> None:
        self.measured: Callable[[], int] = lambda: 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        for piece in (ReasoningDelta(0, "why so " * 60), TextDelta(1, "some words " * 90), TextDelta(1, "more " * 90)):
            before = self.measured()
            yield piece
            await until(lambda before=before: self.measured() > before, "a measure")
        parts = (ReasoningPart("why so " * 60), TextPart("some words " * 90 + "more " * 90))
        yield Finished(Message("assistant", parts, response=Response(Origin("", "", "slow"), Stop("end"), Usage(900))))

    async def close(self) -> None:
        """Nothing to release."""


async def test_the_meter_moves_while_an_answer_streams(tmp_path: Path) -> None:
    model = Slow()
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model) as b:
        model.measured = lambda: len(b.bodies(ContextMeasured))
        await b.say("Write.")
        bodies = [event.body for event in b.events]
        first = next(n for n, body in enumerate(bodies) if isinstance(body, ItemDelta))
        last = next(n for n, body in enumerate(bodies) if isinstance(body, ModelResponded))
        during = [body.budget for body in bodies[first:last] if isinstance(body, ContextMeasured)]
        assert len(during) == 3
        assert [budget.used for budget in during] == sorted({budget.used for budget in during})
        for budget in during:
            assert sum(part.tokens for part in budget.components) == budget.used
            assert "reasoning" in {part.name for part in budget.components}


async def test_messages_are_counted_as_active_and_in_all(tmp_path: Path) -> None:
    reads = "\n".join(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(12))
    script = f'window = 200000\naside = "It was read."\n{reads}\n[[step]]\ntext = "Read."'
    now = [1_000.0]
    async with bench(script, tmp_path, clock=lambda: now[0]) as b:
        for number in range(12):
            b.gates.outputs[f"f{number}"] = f"{number}\n" + "words of a file\n" * 400
        await b.say("Read the files.")
        now[0] += 3_600
        whole = b.session.view.conversation
        assert whole.active == whole.total == len(b.session.view.messages) == 26
        assert (whole.summaries, whole.oldest_age) == (0, 3_600.0)
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        after = b.session.view.conversation
        assert after.active == len(b.session.view.messages) < 26
        assert (after.total, after.summaries) == (26, 1)


async def test_the_environment_of_a_dropped_message_is_no_message(tmp_path: Path) -> None:
    async with bench('[[step]]\ntext = "x"\n[[step]]\ntext = "y"', tmp_path) as b:
        await b.say("Hello.")
        await b.say("Again.")
        before = b.session.view.conversation
        picture = b.session.inspection.picture()
        assert picture is not None
        first = next(item.id for item in picture.items if item.kind == "user")
        b.send(ChangeContext((ContextChange("drop", first),)))
        await until(lambda: bool(b.bodies(ContextEdited)), "the change")
        after = b.session.view.conversation
        assert (after.active, after.total) == (before.active - 1, before.total)


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
async def test_the_meter_shows_the_output_of_the_users_own_command(tmp_path: Path) -> None:
    async with bench('[[step]]\ntext = "x"', tmp_path) as b:
        await b.say("Hello.")
        before = b.session.view.budget
        b.send(RunShell("seq 1 500"))
        await until(lambda: not b.session.view.busy, "the end of the command")
        after, picture = b.session.view.budget, b.session.inspection.picture()
        assert before is not None
        assert after is not None
        assert picture is not None
        assert after.used > before.used + 500
        assert after.used == picture.budget.used
