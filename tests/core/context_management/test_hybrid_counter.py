"""Estimates until the vocabulary is there, exact counts afterwards, and never a pause of the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import (
    INLINE_CHARS,
    HybridCounter,
    PieceEstimator,
    o200k,
)
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.ranks import RanksError
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import Event, ItemCompleted, ItemStarted
from swecli.core.protocol.messages import Message, TextPart, Usage
from swecli.library.counting import TokenCounter, TransformersCounter
from tests.core.engine.support import bench, call

LINE = "The quick brown fox jumps over 13 lazy dogs; return {'status': 200}\n"


class Letters:
    """A vocabulary of letters."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def count(self, text: str) -> int:
        self.seen.append((len(text), threading.current_thread().name))
        return len(text)


def counter(letters: Any, **changes: Any) -> HybridCounter:
    return HybridCounter(lambda: letters, delay=0, **changes)


async def test_estimates_before_and_exact_counts_after_loading() -> None:
    hybrid = counter(Letters())
    assert hybrid.count(LINE) == PieceEstimator().count(LINE)
    assert not hybrid.exact
    hybrid.warm_up().join()
    assert hybrid.exact
    assert hybrid.count(LINE) == len(LINE)
    assert hybrid.count("") == 0


async def test_long_texts_are_counted_in_a_thread_and_only_once() -> None:
    letters = Letters()
    hybrid = counter(letters)
    hybrid.warm_up().join()
    long = LINE * 1_000
    estimate = hybrid.count(long)
    assert estimate == pytest.approx(PieceEstimator().count(long), rel=0.05)
    assert letters.seen == []
    await hybrid.count_ahead([long, "short"])
    assert hybrid.count(long) == len(long)
    await hybrid.count_ahead([LINE * 1_000])
    assert len(letters.seen) == 1
    assert letters.seen[0][1] != threading.current_thread().name


async def test_a_long_text_costs_little_in_passing() -> None:
    hybrid = counter(Letters())
    text = LINE * 40_000
    start = time.process_time()
    hybrid.count(text)
    in_passing = time.process_time() - start
    start = time.process_time()
    PieceEstimator().count(text)
    assert in_passing < (time.process_time() - start) / 10


@pytest.mark.parametrize("error", [ImportError("tiktoken is missing"), RanksError("broken"), OSError("gone")])
async def test_without_a_vocabulary_estimates_go_on_and_the_user_is_told(error: Exception) -> None:
    def load() -> Any:
        raise error

    told: list[str] = []
    hybrid = HybridCounter(load, delay=0)
    hybrid.tell = told.append
    hybrid.warm_up().join()
    assert not hybrid.exact
    assert len(told) == 1
    assert "estimates" in told[0]
    assert str(error) in told[0]
    await hybrid.count_ahead([LINE * 1_000])
    assert hybrid.count(LINE * 1_000) == PieceEstimator().count(LINE * 1_000)


def test_loading_begins_once() -> None:
    hybrid = counter(Letters())
    assert hybrid.warm_up() is hybrid.warm_up()


def entry(number: int, text: str) -> tuple[Event, Event]:
    started = Event(2 * number, 0.0, "s", 1, ItemStarted(f"u{number}", "user"))
    return started, Event(2 * number + 1, 0.0, "s", 1, ItemCompleted(f"u{number}", "ok", (TextPart(text),)))


async def test_the_context_manager_settles_only_what_is_new() -> None:
    letters = Letters()
    hybrid = counter(letters)
    hybrid.warm_up().join()
    context = ContextManager((), monitor=TokenMonitor(hybrid))
    ledger = Ledger()
    for number in range(3):
        for event in entry(number, "x" * (INLINE_CHARS + 1 + number)):
            ledger.apply(event)
        await context.settle(ledger)
    assert [length for length, _ in letters.seen] == [INLINE_CHARS + 1 + number for number in range(3)]


class Asked(Letters):
    """Knows each time whether exact counts were worth the memory."""

    def __init__(self) -> None:
        super().__init__()
        self.exact: list[bool] = []

    async def count_ahead(self, texts: Iterable[str], *, exact: bool = True) -> None:
        self.exact.append(exact)


async def test_the_vocabulary_is_loaded_only_where_estimates_leave_much_open() -> None:
    asked, ledger = Asked(), Ledger()
    context = ContextManager((), monitor=TokenMonitor(asked))
    info = ModelInfo("openai", "gpt-x", 100_000, 10_000)

    async def worth(*lengths: int, reported: bool) -> bool:
        messages = [Message("user", (TextPart("x" * length),), f"m{n}") for n, length in enumerate(lengths)]
        prepared = context.prepare(messages, info=info)
        await context.settle(ledger)
        if reported:
            context.update_usage(prepared.request, Usage(input_total=prepared.budget.used), info)
        return asked.exact[-1]

    assert not await worth(30_000, reported=False)  # nothing is decided below half of the window
    assert await worth(60_000, reported=True)  # the model has reported nothing of it yet
    assert not await worth(60_000, 1_000, reported=True)  # little is new
    assert await worth(60_000, 1_000, 20_000, reported=False)  # much is new


async def test_a_session_counts_a_large_result_before_it_matters(tmp_path: Path) -> None:
    letters = Letters()
    hybrid = counter(letters)
    hybrid.warm_up().join()
    context = ContextManager((), monitor=TokenMonitor(hybrid))
    script = f'window = 900000\n[[step]]\ncall = [{call("read_file", "big")}]\n[[step]]\ntext = "Read."'
    async with bench(script, tmp_path, context=context) as b:
        b.gates.outputs["big"] = "y" * 40_000
        assert (await b.say("go")).outcome == "done"
        budget = b.session.view.budget
        assert budget is not None
        assert (40_000, threading.current_thread().name) not in letters.seen
        assert [length for length, _ in letters.seen if length == 40_000] == [40_000]


async def test_the_event_loop_goes_on_while_a_megabyte_is_counted() -> None:
    hybrid = HybridCounter(o200k, delay=0)
    await asyncio.to_thread(hybrid.warm_up().join)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticker = asyncio.create_task(tick())
    await hybrid.count_ahead(["abcdefgh" * 250_000])
    ticker.cancel()
    assert ticks >= 5


def test_counting_can_be_chosen_by_name() -> None:
    assert TokenCounter("chars").count("12345678") == 2
    assert TokenCounter("chars", chars_per_token=2).count("12345678") == 4
    exact = TokenCounter()
    assert exact.method == "tiktoken"
    assert exact.load()
    assert exact.count(LINE) == o200k().count(LINE)
    with pytest.raises(ValueError, match="tiktoken, transformers, chars"):
        TokenCounter("words")  # type: ignore[arg-type]


def test_counting_with_transformers_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="needs a model"):
        TokenCounter("transformers")
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ImportError, match="pip install"):
        TokenCounter("transformers", model="some/model")


class _FakeTokenizer:
    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        if "\ud800" in text:
            raise UnicodeEncodeError("utf-8", text, 0, 1, "surrogates not allowed")
        return list(range(len(text.split())))


def test_counting_with_transformers_uses_the_local_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    class AutoTokenizer:
        @staticmethod
        def from_pretrained(model: str, *, local_files_only: bool) -> _FakeTokenizer:
            assert local_files_only
            if model == "absent":
                raise OSError("not cached")
            return _FakeTokenizer()

    fake = type("transformers", (), {"AutoTokenizer": AutoTokenizer})
    monkeypatch.setitem(__import__("sys").modules, "transformers", fake)
    assert TokenCounter("transformers", model="qwen").count("three words here") == 3
    assert TransformersCounter("qwen").count("\ud800") == 1
    with pytest.raises(ValueError, match="no tokenizer for 'absent'"):
        TransformersCounter("absent")
