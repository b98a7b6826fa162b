"""What the accounting of the context costs: sizes of texts, and one measure per model request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from swecli.core.context_management.budget import Limits
from swecli.core.context_management.compaction.clearing import clear
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.counter import HybridCounter, PieceEstimator
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.llm.types import ModelInfo, ModelRequest, SystemBlock
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemStarted, ModelResponded
from swecli.core.protocol.messages import Message, Origin, TextPart, ToolCallPart, ToolResultPart, Usage

MESSAGES = 1_000
ITEMS = 10_000
PATHOLOGICAL = {
    "code": "value = call(other)\n",
    "letters": "abcdefgh",
    "blanks": " ",
    "punctuation": "!",
    "CJK": "\u6f22",
}
INFO = ModelInfo("bench", "model", 1_000_000, 16_000)
RESULT = "    value = function(argument, other=3)  # comment\n" * 40


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    full, large = _turn_cost(MESSAGES), _turn_cost(10 * MESSAGES)
    clearing, ratio = _clearing_cost()
    return [
        (f"accounting per turn at {MESSAGES:,} messages", full * 1e3, "ms (goal 1)"),
        (f"accounting per turn at {10 * MESSAGES:,} messages", large * 1e3, "ms (goal 5)"),
        ("the same as a ratio to counting all texts anew", full / _recount_cost(), "x"),
        (f"messages of the next request at {10 * MESSAGES:,} messages", _projection_cost() * 1e3, "ms"),
        (f"clearing pass over {ITEMS:,} items", clearing * 1e3, "ms (goal 50)"),
        ("  share of the tokens that it frees", ratio * 100, "%"),
        ("counting 1 MB, the slowest of " + ", ".join(PATHOLOGICAL), _slowest_text(), "s (goal 0.5)"),
        ("estimating 1 MB of code", _seconds(lambda: PieceEstimator().count(RESULT * (1_000_000 // len(RESULT)))), "s"),
        ("error of the meter after 10 turns, tokenizer 1.35x off", _fake_tokenizer_error() * 100, "% (goal 3)"),
    ]


def _slowest_text() -> float:
    """Seconds that the slowest of the texts takes, in a counter with the vocabulary."""
    counter = HybridCounter()
    asyncio.run(counter.count_ahead(["x" * 100], exact=True))

    def count(text: str) -> float:
        long = (text * (1_000_000 // len(text) + 1))[:1_000_000]
        return _seconds(lambda: asyncio.run(counter.count_ahead([long], exact=True)))

    return max(count(text) for text in PATHOLOGICAL.values())


def _said(count: int) -> Ledger:
    """A ledger of so many calls with their results."""
    ledger = Ledger()
    seq = 0
    for number in range(count):
        item = f"t{number}"
        call = ToolCallPart(f"c{number}", "run_command", f'{{"command":"make part_{number}"}}')
        result = ToolResultPart(call.call_id, call.name, f"{number}\n{RESULT}")
        for body in (
            ItemStarted(item, "tool", call.name),
            ItemCheckpointed(item, call),
            ModelResponded(f"m{number}", (item,), Origin("bench", "bench", "model")),
            ItemCompleted(item, "ok", (result,)),
        ):
            seq += 1
            ledger.apply(Event(seq, 0.0, "bench", 1, body))
    return ledger


def _clearing_cost() -> tuple[float, float]:
    """Seconds of one pass whose texts were counted before, as in a session, and the share that it frees."""
    ledger = _said(ITEMS // 2)
    sizes = EntrySizes(TokenMonitor(), INFO)
    total = sizes.view(ledger.view, ledger)
    cleared = clear(ledger, ledger.view, sizes, 40_000)
    return min(_seconds(lambda: clear(ledger, ledger.view, sizes, 40_000)) for _ in range(5)), cleared.freed / total


def _projection_cost() -> float:
    """Seconds for the messages of the next request, when one step was added."""
    ledger = _said(5 * MESSAGES)
    project(ledger)
    seconds: list[float] = []
    for number in range(20):
        item = f"u{number}"
        ledger.apply(Event(10**6 + number, 0.0, "bench", 1, ItemStarted(item, "user")))
        ledger.apply(Event(10**6 + number, 0.0, "bench", 1, ItemCompleted(item, "ok", (TextPart("go on"),))))
        seconds.append(_seconds(lambda: project(ledger)))
    return min(seconds)


def _fake_tokenizer_error() -> float:
    """Error of the predicted prompt after ten reports of a provider whose tokens are 1.35 times the estimate."""
    truth = TokenMonitor()
    monitor = TokenMonitor()
    history = _history(40)
    error = 0.0
    for turn in range(1, 12):
        request = _request(history[: 2 * turn])
        predicted = monitor.measure(request, Limits(), INFO).used
        reported = round(1.35 * truth.measure(request, Limits(), INFO).used / truth.ratio(INFO))
        error = abs(predicted - reported) / reported
        monitor.observe(request, Usage(input_total=reported, output_total=40), INFO)
    return error


def _history(count: int) -> tuple[Message, ...]:
    messages: list[Message] = []
    for number in range(count // 2):
        call = ToolCallPart(f"c{number}", "read_file", f'{{"path":"src/file_{number}.py"}}')
        messages.append(Message("assistant", (TextPart("I look at the next file."), call), f"a{number}"))
        messages.append(Message("tool", (ToolResultPart(call.call_id, call.name, RESULT),), f"r{number}"))
    return tuple(messages)


def _request(messages: tuple[Message, ...]) -> ModelRequest:
    return ModelRequest((SystemBlock("You are a coding agent."),), (), messages)


def _turn_cost(count: int) -> float:
    """Seconds for one measure and one report, in a session that was measured before."""
    history = _history(count)
    monitor = TokenMonitor()
    monitor.observe(_request(history[:-2]), Usage(input_total=count * 300, output_total=40), INFO)

    # Fresh message objects with the same parts, as a projection makes them.
    request = _request(tuple(Message(message.role, message.parts, message.id) for message in history))

    def turn() -> None:
        monitor.measure(request, Limits(), INFO)
        monitor.observe(request, Usage(input_total=count * 301, output_total=40), INFO)

    turn()
    return min(_seconds(turn) for _ in range(20))


def _recount_cost() -> float:
    request = _request(_history(MESSAGES))
    return _seconds(lambda: TokenMonitor().measure(request, Limits(), INFO))


def _seconds(action: Callable[[], object]) -> float:
    """Processor seconds, of all threads: what else runs on the machine does not count."""
    start = time.process_time()
    action()
    return time.process_time() - start
