"""What is told of the next request, against recorded requests and what was really sent."""

from __future__ import annotations

import statistics
from decimal import Decimal

from msgspec import structs

from benchmarks.recorded import Recording, Texts, load
from benchmarks.replay import MAX_OUTPUT, WINDOW, _added, _answer
from swecli.core.context_management.budget import Limits
from swecli.core.context_management.forecast import Forecast, RequestTrend, draft_tokens, forecast
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import SHORTEST_CACHE, ModelInfo, ModelRequest, SystemBlock
from swecli.core.protocol.budget import SYSTEM, Budget, Component
from swecli.core.protocol.events import (
    Body,
    CompactionUndone,
    Event,
    ModelChanged,
    ModelResponded,
    Price,
    SessionStarted,
    StepStarted,
)
from swecli.core.protocol.messages import Message, Origin, Usage

PRICE = Price("3", "15", "0.3")
NOW = 1_000.0


def priced(usage: Usage) -> str | None:
    return str(PRICE.of(usage))


def unpriced(usage: Usage) -> str | None:
    return None


def budget(used: int, *parts: Component) -> Budget:
    return Budget((*parts, Component("rest", used)), used, used + 100, 90_000, 100_000, 10_000, "ok", compact_at=85_000)


def feed(trend: RequestTrend, *bodies: Body, turn: int = 1, at: float = NOW) -> None:
    for body in bodies:
        trend.apply(Event(1, at, "s", turn, body))


def answered(prompt: int | None, cached: int | None = None, output: int = 100, written: int | None = None) -> Body:
    usage = Usage(input_total=prompt, cache_read=cached, cache_write=written, output_total=output)
    return ModelResponded("m", (), Origin("", "", ""), usage=usage)


def warm() -> RequestTrend:
    """Two turns with a model that keeps prompts."""
    trend = RequestTrend()
    feed(trend, SessionStarted("/w", "p/m", "default", "0"))
    feed(trend, StepStarted(1, budget(20_000, Component(SYSTEM, 4_000))), answered(20_000, 0))
    feed(trend, StepStarted(2, budget(26_000, Component(SYSTEM, 4_000))), turn=2)
    feed(trend, answered(26_000, 19_900), turn=2)
    return trend


def played(recording: Recording) -> list[tuple[Forecast, Usage]]:
    """A forecast before each recorded request but the first, with what was reported of it."""
    texts, trend = Texts(), RequestTrend()
    monitor = TokenMonitor(texts)
    info = ModelInfo("p", recording.model.rpartition("/")[2], WINDOW, MAX_OUTPUT)
    system: tuple[SystemBlock, ...] = ()
    messages: list[Message] = []
    found: list[tuple[Forecast, Usage]] = []
    for number, call in enumerate(recording.calls):
        usage = Usage(input_total=call.prompt, cache_read=call.cached, output_total=call.output)
        if number and call.prompt:
            before = monitor.measure(ModelRequest(system, (), tuple(messages)), Limits(), info)
            draft = round(sum(part.tokens for part in call.added) * monitor.ratio(info))
            found.append((forecast(before, draft, trend, NOW, priced), usage))
        system += tuple(SystemBlock(texts.of(part)) for part in call.added if part.role == "system")
        messages += _added(call, texts, number)
        request = ModelRequest(system, (), tuple(messages))
        feed(trend, StepStarted(number, monitor.measure(request, Limits(), info)), turn=number)
        monitor.observe(request, usage, info)
        feed(trend, answered(call.prompt, call.cached, call.output), turn=number)
        if parts := _answer(call, texts, number):
            messages.append(Message("assistant", parts, f"a{number}"))
    return found


def test_sizes_and_costs_of_recorded_requests() -> None:
    pairs: list[tuple[Forecast, Usage]] = []
    for recording in load()[:4]:
        pairs += played(recording)
    assert len(pairs) >= 100
    errors = [abs(told.tokens - usage.prompt) / usage.prompt for told, usage in pairs]
    assert statistics.median(errors) <= 0.05
    inside = [told.cost is not None and told.cost[0] <= (PRICE.of(usage) or 0) <= told.cost[1] for told, usage in pairs]
    assert sum(inside) / len(inside) >= 0.9
    widths = [float(told.cost[1] / told.cost[0]) for told, _ in pairs if told.cost and told.cost[0]]
    assert statistics.median(widths) <= 5  # a range that holds everything tells nothing


def test_what_is_cached_what_is_new_and_when_the_cache_is_cold() -> None:
    told = forecast(budget(26_100), 200, warm(), NOW + 260, priced)
    assert (told.tokens, told.cold_in) == (26_300, 40.0)
    assert told.cached is not None
    assert 25_000 <= told.cached <= 26_000
    assert told.new == told.tokens - told.cached
    cold = forecast(budget(26_100), 200, warm(), NOW + SHORTEST_CACHE, priced)
    assert (cold.cached, cold.cold_in) == (0, 0.0)
    assert told.cost is not None
    assert cold.cost is not None
    assert told.cost[0] < cold.cost[0]


def test_turns_that_are_left_by_the_growth_of_the_last_ones() -> None:
    assert forecast(budget(26_100), 0, warm(), NOW, priced).turns_left == (85_000 - 26_230) // 6_000
    assert forecast(budget(84_990), 0, warm(), NOW, priced).turns_left == 0
    assert forecast(budget(100), 0, RequestTrend(), NOW, priced).turns_left is None
    assert forecast(budget(26_100), 80_000, warm(), NOW, priced).turns_left == 0
    assert forecast(budget(26_100), 90_000, warm(), NOW, priced).turns_left is None  # no compaction makes room for it


def test_a_corrected_estimate_is_no_growth() -> None:
    trend = RequestTrend()
    for turn, (size, source) in enumerate([(3_000, "estimated"), (9_000, "measured"), (9_100, "measured")]):
        feed(trend, StepStarted(turn, structs.replace(budget(size), source=source)), turn=turn)
    assert trend.growth == 100


def test_a_rewritten_conversation_and_another_model_are_not_cached() -> None:
    trend = warm()
    feed(trend, CompactionUndone("k1"))
    told = forecast(budget(26_100), 0, trend, NOW, priced)
    assert told.cached is not None
    assert told.cached <= 4_000
    feed(trend, ModelChanged("p/other"))
    told = forecast(budget(26_100), 0, trend, NOW, priced)
    assert (told.cached, told.cold_in) == (None, None)


def test_without_usage_without_a_price_and_with_a_clock_that_jumps() -> None:
    trend = RequestTrend()
    feed(trend, StepStarted(1, budget(500)), ModelResponded("m", (), Origin("", "", "")), answered(None))
    told = forecast(budget(600), 10, trend, NOW, unpriced)
    assert (told.tokens, told.cached, told.cost, told.cold_in) == (610, None, None, None)
    back = forecast(budget(26_100), 0, warm(), NOW - 90_000, priced)
    assert back.cold_in == SHORTEST_CACHE
    ahead = forecast(budget(26_100), 0, warm(), NOW + 9e9, priced)
    assert ahead.cold_in == 0
    assert forecast(budget(10), 0, warm(), NOW, lambda usage: "rubbish").cost is None


def test_a_provider_that_bills_writing_is_reckoned_with() -> None:
    trend = warm()
    feed(trend, answered(27_000, 26_000, written=900), turn=3)
    seen: list[Usage] = []

    def price(usage: Usage) -> str:
        seen.append(usage)
        return "1"

    told = forecast(budget(27_100), 50, trend, NOW, price)
    assert told.cost == (Decimal(1), Decimal(1))
    assert all((usage.cache_read or 0) + (usage.cache_write or 0) == usage.input_total for usage in seen)


def test_a_long_draft_is_judged_by_samples() -> None:
    text = "some words of a draft " * 100
    assert 0.8 <= draft_tokens(text * 100) / (100 * draft_tokens(text)) <= 1.2
    assert draft_tokens("") == 0
    assert draft_tokens("", 1) > 0
