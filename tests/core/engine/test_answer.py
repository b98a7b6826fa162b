"""When the text of a running answer is stored: at the latest in a fixed time, at once where the stream pauses; and each
piece of it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from swecli.core.engine import model_call
from swecli.core.engine.model_call import CHECKPOINT_SECONDS, PAUSE_SECONDS, Answer
from swecli.core.engine.recorder import Recorder
from swecli.core.llm.types import CallText, TextDelta, ToolArgsDelta, ToolCallStarted
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted
from swecli.core.protocol.messages import Origin, TextPart


@dataclass
class Timer:
    at: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Loop:
    """A loop's clock and timers, moved by hand."""

    now: float = 100.0
    timers: list[Timer] = field(default_factory=list[Timer])

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(at, callback))
        return self.timers[-1]

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self.call_at(self.now + delay, callback)

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := sorted((t for t in self.timers if t.at <= end and not t.cancelled), key=lambda t: t.at):
            self.now = max(self.now, due[0].at)
            self.timers.remove(due[0])
            due[0].callback()
        self.now = end


class Log:
    def __init__(self) -> None:
        self.stored: list[str] = []
        self.ended: list[ItemCompleted] = []

    def append(self, event: Event) -> None:
        self.ended += [event.body] if isinstance(event.body, ItemCompleted) else []
        if isinstance(event.body, ItemCheckpointed):
            assert isinstance(event.body.part, TextPart)
            assert event.body.begins == len("".join(self.stored))
            self.stored.append(event.body.part.text)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr(model_call.asyncio, "get_running_loop", lambda: made)
    return made


def streamed(loop: Loop, gaps: list[float]) -> list[str]:
    """What was stored of an answer whose letters come with these gaps before them."""
    log = Log()
    recorder = Recorder("s", (), lambda publish: log, loop.time)  # type: ignore[arg-type, return-value]
    running = Answer(recorder, Origin("", "", "fake/m"), loop.time)
    for gap in gaps:
        loop.advance(gap)
        running.feed(TextDelta(0, "x"))
    return log.stored


@pytest.mark.parametrize("before", [1, 20, 200])
def test_a_tail_is_stored_as_soon_as_the_stream_pauses(loop: Loop, before: int) -> None:
    stored = streamed(loop, [0.01] * before)
    loop.advance(PAUSE_SECONDS)
    assert "".join(stored) == "x" * before


def test_a_steady_stream_is_stored_once_in_a_while(loop: Loop) -> None:
    stored = streamed(loop, [0.01] * 400)
    assert len(stored) == pytest.approx(4 / CHECKPOINT_SECONDS, abs=2)


@pytest.mark.parametrize("gap", [0.1, 0.15, 0.4, 3.0])
def test_the_tail_of_a_slow_stream_waits_no_longer_than_a_pause(loop: Loop, gap: float) -> None:
    stored = streamed(loop, [gap] * 100)
    loop.advance(0.1)
    assert stored == ["x"] * 100


def test_a_long_answer_is_stored_once(loop: Loop) -> None:
    stored = streamed(loop, [0.001] * 20_000)
    loop.advance(PAUSE_SECONDS)
    assert "".join(stored) == "x" * 20_000
    assert len(stored) <= 20 / CHECKPOINT_SECONDS + 2


def test_what_ended_is_not_stored_again(loop: Loop) -> None:
    stored = streamed(loop, [0.01] * 5)
    loop.advance(10)
    assert stored == ["x" * 5]
    assert [timer for timer in loop.timers if not timer.cancelled] == []


def test_an_interrupted_call_keeps_its_target_without_its_arguments(loop: Loop) -> None:
    log = Log()
    recorder = Recorder("s", (), lambda publish: log, loop.time)  # type: ignore[arg-type, return-value]
    running = Answer(recorder, Origin("", "", "fake/m"), loop.time)
    running.feed(ToolCallStarted(0, "c", "write_file"))
    for text in ('{"path": "a', '.txt", "content": "some te'):
        running.feed(ToolArgsDelta(0, text))
    running.cut("interrupted", "interrupted")
    assert [(ended.status, ended.title, ended.parts) for ended in log.ended] == [("interrupted", "a.txt", ())]


def test_a_call_that_was_being_written_as_text_is_kept_when_the_answer_is_cut(loop: Loop) -> None:
    log = Log()
    recorder = Recorder("s", (), lambda publish: log, loop.time)  # type: ignore[arg-type, return-value]
    answer = Answer(recorder, Origin("", "", "fake/m"), loop.time)
    answer.feed(TextDelta(0, "I write. "))
    answer.feed(CallText(0, '<tool_call>{"name": "write_file", ', "write_file"))
    answer.feed(CallText(0, '"arguments": {"content": "a', "write_file"))
    assert answer.visible
    assert answer.written == len('I write. <tool_call>{"name": "write_file", "arguments": {"content": "a')
    answer.cut("interrupted", "interrupted")
    [ended] = log.ended
    assert ended.parts == (TextPart('I write. <tool_call>{"name": "write_file", "arguments": {"content": "a'),)


def test_what_was_no_call_counts_once(loop: Loop) -> None:
    grown: list[str] = []
    recorder = Recorder("s", (), lambda publish: Log(), loop.time)  # type: ignore[arg-type, return-value]
    answer = Answer(recorder, Origin("", "", "fake/m"), loop.time, lambda texts: grown.extend(texts.values()))
    answer.feed(CallText(0, "<tool_call>{"))
    loop.advance(PAUSE_SECONDS)
    answer.feed(CallText(0, "}"))
    answer.feed(TextDelta(0, "<tool_call>{}"))
    answer.feed(TextDelta(0, " is empty"))
    loop.advance(CHECKPOINT_SECONDS)
    assert "".join(grown) == "<tool_call>{} is empty"
    assert answer.written == len("<tool_call>{} is empty")
