"""No request is blocked and nothing is compacted because of an estimate that could have been counted."""

from __future__ import annotations

import json
from pathlib import Path

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import HybridCounter, O200kTokenizer, PieceEstimator, o200k
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import CompactionCompleted, ContextMeasured, Notice
from swecli.core.protocol.messages import Message, TextPart, Usage
from tests.core.engine.support import Bench, bench, until
from tests.support.instructions import instructions

PROSE = json.loads((Path(__file__).parents[2] / "data" / "prose.json").read_text(encoding="utf-8"))
SILENT = "window = 32000\n"
"""A server that reports no usage, with a window of 32k."""


class Wild(PieceEstimator):
    """As wrong as the estimates for Russian once were."""

    def count(self, text: str) -> int:
        return 3 * super().count(text)


def context(counter: HybridCounter | None = None) -> tuple[ContextManager, HybridCounter]:
    counter = counter or HybridCounter(o200k, delay=3_600)
    counter._estimator = Wild()  # pyright: ignore[reportPrivateUsage]
    return ContextManager((), monitor=TokenMonitor(counter)), counter


def steps(*texts: str) -> str:
    return SILENT + "".join(f'[[step]]\ntext = "{text}"\nusage = {{ silent = true }}\n' for text in texts)


async def newest(b: Bench) -> ContextMeasured:
    await until(lambda: bool(b.bodies(ContextMeasured)))
    return b.bodies(ContextMeasured)[-1]


async def test_a_long_first_message_in_russian_is_sent(tmp_path: Path) -> None:
    manager, counter = context()
    text = PROSE["russian"] * 96
    assert 9_000 < o200k().count(text) < 10_000
    async with bench(steps("Да."), tmp_path, context=manager) as b:
        assert (await b.say(text)).outcome == "done"
        assert not b.bodies(CompactionCompleted)
        assert not [body for body in b.bodies(Notice) if "full" in body.text]
    assert counter.exact


async def test_many_messages_are_not_compacted_because_of_estimates(tmp_path: Path) -> None:
    manager, _ = context()
    async with bench(steps(*["Da."] * 8), tmp_path, context=manager) as b:
        for number in range(8):
            assert (await b.say(f"{number}: " + PROSE["russian"] * 8)).outcome == "done"
        assert not b.bodies(CompactionCompleted)


async def test_a_small_context_does_without_the_vocabulary(tmp_path: Path) -> None:
    manager, counter = context()
    async with bench(steps("Yes."), tmp_path, context=manager) as b:
        assert (await b.say("Is it there?")).outcome == "done"
    assert not counter.exact


async def test_a_compacted_session_with_reported_usage_does_without_the_vocabulary(tmp_path: Path) -> None:
    counter = HybridCounter(o200k, delay=3_600)
    manager = ContextManager((), monitor=TokenMonitor(counter))
    answer = "The file was read, and nothing in it has to change. " * 60
    summary = "## Goal\\nRead all. ## Findings\\n" + "what was found in file_7.py:12 is said here; " * 20
    texts = (*[answer] * 20, summary, *["Fine."] * 3)
    script = "window = 32000\n" + "".join(f'[[step]]\ntext = "{text}"\n' for text in texts)
    async with bench(script, tmp_path, context=manager) as b:
        for number in range(20):
            await b.say(f"{number}: " + "Read the next file and say what is in it. " * 40)
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)), "compaction")
        assert (await b.say("Go on.")).outcome == "done"
    assert not counter.exact


async def test_instructions_in_another_script_are_no_false_alarm(tmp_path: Path) -> None:
    _, counter = context()
    texts = PromptTexts(base="Short.", files=instructions(PROSE["russian"] * 60))
    manager = ContextManager((), texts, monitor=TokenMonitor(counter))
    async with bench(steps("Yes."), tmp_path, context=manager) as b:
        assert (await b.say("Is it there?")).outcome == "done"
        await until(lambda: counter.exact)
        assert not [body for body in b.bodies(Notice) if "The fixed part of every request" in body.text]


async def test_without_a_vocabulary_estimates_decide(tmp_path: Path) -> None:
    def missing() -> O200kTokenizer:
        raise ImportError("tiktoken is missing")

    manager, counter = context(HybridCounter(missing, delay=3_600))
    async with bench(steps("Yes."), tmp_path, context=manager) as b:
        assert (await b.say(PROSE["russian"] * 100)).outcome == "blocked"
    assert not counter.exact


async def test_the_package_of_a_compaction_is_counted_exactly(tmp_path: Path) -> None:
    manager, _ = context()
    summary = "## Goal\\nRead all. ## Findings\\n" + "what was found in file_7.py:12 is said here; " * 20
    async with bench(steps(*["Fine."] * 6, summary), tmp_path, context=manager) as b:
        for number in range(6):
            await b.say(f"{number}: " + PROSE["vietnamese"] * 20)
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)), "compaction")
        shown = (await newest(b)).budget
        vocabulary = o200k()
        ratio = manager.monitor.ratio(b.model.info)
        real = sum(vocabulary.count(part.text) for m in b.session.view.messages for part in m.parts)  # type: ignore[union-attr]
        fixed = sum(vocabulary.count(block.text) for block in b.model.requests[0].system)
        own = 4 * len(b.session.view.messages)
        assert abs(shown.used - ratio * (real + fixed + own)) <= 0.01 * shown.used


async def test_what_was_reported_outlives_exact_counts() -> None:
    """A session that was measured by reports does not jump when its texts are counted better."""
    manager, _ = context()
    info = ModelInfo("p", "m", 200_000, 8_000)
    messages = [Message("user", (TextPart(PROSE["hindi"] * 30),), "m0")]
    for number in range(4):
        prepared = manager.prepare(messages, info=info)
        manager.update_usage(prepared.request, Usage(input_total=5_000 + 4_000 * number, output_total=10), info)
        messages.append(Message("assistant", (TextPart("Yes."),), f"a{number}"))
        messages.append(Message("user", (TextPart(PROSE["hindi"] * 30 + str(number)),), f"u{number}"))
    settled = messages[:-2]
    before = manager.measure(settled, info).used
    assert await manager.count_exactly(messages, info)
    assert abs(manager.measure(settled, info).used - before) <= 2
    assert not await manager.count_exactly(messages, info)
