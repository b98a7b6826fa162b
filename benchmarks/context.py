"""What the accounting of the context costs: sizes of texts, and one measure per model request."""

from __future__ import annotations

import time
from collections.abc import Callable

from swecli.core.context_management.budget import Limits
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.tokens import PieceEstimator
from swecli.core.llm.types import ModelInfo, ModelRequest, SystemBlock
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart
from swecli.core.protocol.usage import Usage

MESSAGES = 1_000
INFO = ModelInfo("bench", "model", 1_000_000, 16_000)
RESULT = "    value = function(argument, other=3)  # comment\n" * 40


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    full = _turn_cost(MESSAGES)
    return [
        (f"accounting per turn at {MESSAGES:,} messages", full * 1e3, "ms"),
        (f"the same as a ratio to {MESSAGES // 10} messages", full / _turn_cost(MESSAGES // 10), "x"),
        ("the same as a ratio to counting all texts anew", full / _recount_cost(), "x"),
        ("estimating 1 MB of code", _seconds(lambda: PieceEstimator().count(RESULT * (1_000_000 // len(RESULT)))), "s"),
    ]


def _history(count: int) -> tuple[Message, ...]:
    messages: list[Message] = []
    for number in range(count // 2):
        call = ToolCallPart(f"c{number}", "read_file", f'{{"path":"src/file_{number}.py"}}')
        messages.append(Message("assistant", (TextPart("I look at the next file."), call), f"a{number}"))
        messages.append(Message("tool", (ToolResultPart(call.call_id, call.name, RESULT),), f"r{number}"))
    return tuple(messages)


def _request(messages: tuple[Message, ...]) -> ModelRequest:
    return ModelRequest((SystemBlock("You are a coding agent."),), (), messages, tail="todo")


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
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
