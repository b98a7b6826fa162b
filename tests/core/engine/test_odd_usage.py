"""Reports that can't be true: said, not believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import CompactionCompleted, Event, ItemsOffloaded, Notice
from swecli.core.protocol.messages import Message, TextPart, Usage
from tests.core.engine.support import bench, call, until
from tests.core.engine.test_results import blobs

WORDS = "what about this part of the program? "


def said(events: list[Notice]) -> list[str]:
    return [body.text for body in events if "uses its own count" in body.text]


@pytest.mark.parametrize("kind", ["eightfold", "cumulative"])
@pytest.mark.parametrize("window", [8_000, 32_000])
async def test_a_session_goes_on_by_the_count(tmp_path: Path, kind: str, window: int) -> None:
    size, total, steps = 500, 0, []
    for _ in range(12):
        size += window // 40
        total += size
        steps.append(
            f'[[step]]\ntext = "Answer."\nusage = {{ input = {8 * size if kind == "eightfold" else total} }}\n'
        )
    steps = [f"window = {window}\n", *steps]
    facts: list[Event] = []
    async with bench("".join(steps), tmp_path, context=ContextManager(())) as b:
        for number in range(12):
            end = await b.say(f"{number}: " + WORDS * (window // 400))
            assert end.outcome == "done", (number, end.reason)
        assert not b.bodies(CompactionCompleted)
        assert len(said(b.bodies(Notice))) == 1
        before, facts = b.session.view.budget, list(b.facts)
        assert before is not None
        assert before.used < 0.7 * before.effective
    async with bench("".join(steps), tmp_path, history=facts, context=ContextManager(())) as b:
        after = b.session.view.budget
        assert after is not None
        assert after.used < 0.8 * after.effective
        assert (await b.say("And now?")).outcome == "done"


@pytest.mark.parametrize("size", [2_050, 2_051, 4_096, 16_387])
async def test_a_prompt_that_the_server_cuts_is_told_once_and_teaches_nothing(tmp_path: Path, size: int) -> None:
    """Ollama keeps half of its window, others the whole."""
    honest = '[[step]]\ntext = "Answer."\n'
    cut = f'[[step]]\ntext = "Answer."\nusage = {{ input = {size} }}\n'
    async with bench(f"window = 128000\n{honest}{cut * 3}", tmp_path, context=ContextManager(())) as b:
        await b.say("first " + WORDS * (size // 4))
        before = b.session.view.budget
        assert before is not None
        for _ in range(3):
            assert (await b.say("And this? " + WORDS * 20)).outcome == "done"
        told = [body for body in b.bodies(Notice) if "silently cuts" in body.text]
        assert len(told) == 1
        assert f"read only {size:,} of about" in told[0].text
        assert "num_ctx" in told[0].hint
        after = b.session.view.budget
        assert after is not None
        assert after.used > before.used


def test_a_size_to_which_servers_cut_is_believed_if_it_is_about_right() -> None:
    manager, info = ContextManager((), monitor=TokenMonitor()), ModelInfo("p", "m", 64_000)
    messages = [Message("user", (TextPart(WORDS * 220),), "u")]
    prepared = manager.prepare(messages, info=info)
    about = 1 << (prepared.budget.used.bit_length() - 1)
    messages = [Message("user", (TextPart(WORDS * 220 + "word " * (2 * about - prepared.budget.used)),), "u")]
    request = manager.prepare(messages, info=info).request
    manager.update_usage(request, Usage(input_total=2 * about + 2, output_total=5), info)
    assert manager.disbelieved is None
    assert manager.measure(messages, info).source == "measured"


async def test_a_wild_report_does_not_push_results_out(tmp_path: Path) -> None:
    step = f"[[step]]\ncall = [{call('read_file', 'a')}]\nusage = {{ input = 24000 }}\n"
    script = f'window = 32000\n{step}[[step]]\ntext = "x"'
    async with bench(script, tmp_path, blobs=blobs()) as b:
        b.gates.outputs["a"] = "a line of words in a file\n" * 600
        assert (await b.say("read " + WORDS * 100)).outcome == "done"
        assert not b.bodies(ItemsOffloaded)


def test_a_model_with_another_tokenizer_is_believed() -> None:
    """Twice as many tokens as counted is what some vocabularies really take."""
    manager, info = ContextManager((), monitor=TokenMonitor()), ModelInfo("p", "m", 64_000)
    messages: list[Message] = []
    for number in range(6):
        messages.append(Message("user", (TextPart(WORDS * 60),), f"u{number}"))
        request = manager.prepare(messages, info=info).request
        count = sum(manager.monitor.count_once(message) for message in messages)
        manager.update_usage(request, Usage(input_total=1_500 + 2 * count, output_total=5), info)
        messages.append(Message("assistant", (TextPart("Yes."),), f"a{number}"))
        assert manager.disbelieved is None
    assert manager.measure(messages, info).source == "measured"


async def test_a_summary_that_is_far_too_long_gives_way_to_the_record(tmp_path: Path) -> None:
    long = "".join(f"## Goal and what was found in file_{at}.py is told at great length. " for at in range(400))
    answers = "".join(f'[[step]]\nchunk = 200\ntext = "{"long answer " * 400}"\n' for _ in range(5))
    async with bench(f'window = 32000\n{answers}[[step]]\ntext = "{long}"\n', tmp_path) as b:
        for _ in range(5):
            await b.say("Never touch a.py. " + WORDS * 60)
        calls = len(b.model.requests)
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)), "compaction")
        done = b.bodies(CompactionCompleted)[0]
        assert done.summary == ""
        assert "record" in done.strategies
        assert len(b.model.requests) == calls + 1
        assert any("above the limit of" in body.text for body in b.bodies(Notice))
