"""The timeline of the prompt cache: each miss at the request that met it, with what it cost."""

from __future__ import annotations

from decimal import Decimal

from swecli.core.context_management.cache import CachedRequest, CacheHistory, CacheMoney, miss_cost
from swecli.core.protocol.context_events import PromptPart
from swecli.core.protocol.events import (
    Body,
    CacheBreak,
    Event,
    ModelChanged,
    ModelResponded,
    Price,
    PromptPrefix,
    Rewound,
    SessionStarted,
    StepEnded,
)
from swecli.core.protocol.messages import DroppedThoughts, Origin, ProviderReport, Usage

PRICE = Price("3", "15", "0.3")
ASKED = Usage(input_total=10_000, cache_read=2_000, output_total=10)


def history(*bodies: Body) -> CacheHistory:
    made = CacheHistory()
    for body in (SessionStarted("/w", "p/m", "default", "0"), *bodies):
        made.apply(Event(1, 5.0, "s", 1, body))
    return made


def answer(usage: Usage | None = ASKED) -> Body:
    return ModelResponded("m", (), Origin("", "", ""), usage=usage)


def test_a_miss_is_told_at_the_request_that_met_it() -> None:
    made = history(
        answer(),
        CacheBreak("the tools changed", 70),
        StepEnded(1, ASKED, "0.5"),
        CacheBreak("the model changed", 80),
        ModelChanged("p/other"),
        answer(),
        StepEnded(2, ASKED, None),
    )
    first, second = made.requests
    assert [(miss.cause, miss.tokens) for miss in first.misses] == [("the tools changed", 70)]
    assert [miss.cause for miss in second.misses] == ["the model changed"]
    assert (first.model, first.cost, second.model, second.cost) == ("p/m", "0.5", "p/other", None)
    assert (len(made.misses), made.totals.missed) == (2, 150)


def reported(report: ProviderReport) -> Body:
    return ModelResponded("m", (), Origin("", "", ""), usage=ASKED, report=report)


def test_thoughts_that_stay_dropped_count_once() -> None:
    two, three = (ProviderReport((DroppedThoughts("prefix", count),)) for count in (2, 3))
    made = history(answer(), reported(two), reported(two), reported(three), answer())
    assert [request.dropped for request in made.requests] == [
        (),
        (DroppedThoughts("prefix", 2),),
        (),
        (DroppedThoughts("prefix", 1),),
        (),
    ]


def test_the_providers_diagnosis_is_kept_if_it_names_a_cause() -> None:
    made = history(reported(ProviderReport(miss="tools_changed")), reported(ProviderReport(miss="unavailable")))
    assert [request.diagnosis for request in made.requests] == ["the tools changed", ""]


def test_without_usage_there_is_no_request_and_no_failure() -> None:
    made = history(answer(None), CacheBreak("lost", 5), StepEnded(1, None, None))
    assert made.requests == ()
    assert len(made.misses) == 1


def test_what_the_cache_was_worth_is_added_up_in_parts() -> None:
    made = history(
        *(answer(Usage(input_total=10_000, cache_read=8_000, output_total=1)) for _ in range(5)),
        CacheBreak("lost", 1_000, "provider"),
        answer(Usage(input_total=500, output_total=1)),
    )
    asked: list[str] = []

    def price(model: str, usage: Usage) -> str | None:
        asked.append(model)
        return str(PRICE.of(usage))

    money = CacheMoney(price)
    part, done = money.of(made, 2)
    assert (part.priced, done) == (2, False)
    whole, done = money.of(made, 100)
    assert (whole.priced, whole.unpriced, done) == (5, 0, True)
    assert whole.saved == 5 * Decimal("0.0216")
    assert whole.lost == Decimal("0.0027")
    before = len(asked)
    assert money.of(made, 100) == (whole, True)
    assert len(asked) == before  # the newest told of no cache, the others are priced already
    assert CacheMoney(lambda model, usage: None).of(made, 100)[0].unpriced == 5


def test_only_the_newest_requests_are_remembered_and_found_by_their_numbers() -> None:
    made = history(*(answer(Usage(input_total=number + 1, cache_read=0, output_total=1)) for number in range(10_005)))
    assert (made.first, made.count, made.totals.requests) == (5, 10_005, 10_005)
    assert [one.usage.input_total for one in made.slice(0, 7)] == [6, 7]
    assert [one.usage.input_total for one in made.slice(10_004, 10_010)] == [10_005]
    assert made.slice(10_005, 10_010) == []


def test_a_session_that_goes_on_knows_what_was_sent_last() -> None:
    prefix = PromptPrefix((PromptPart("read_file", "a"),), (PromptPart("system prompt", "b"),), "high")
    assert history(answer()).sent is None
    made = history(answer(), prefix, Rewound("u1", name="", text="not sent"))
    sent = made.sent
    assert sent is not None
    assert (sent.model, sent.prefix, sent.tokens, sent.reads, sent.since) == ("p/m", prefix, 10_000, True, None)
    made = history(answer(), prefix, Rewound("u1", name="r1"))
    assert made.sent is not None
    assert made.sent.since is not None
    assert made.sent.since.kind == "rewind"


def test_a_miss_costs_what_the_cache_would_have_saved() -> None:
    request = CachedRequest(1, 0.0, ASKED, "p/m")
    assert miss_cost(request, 1_000_000, lambda model, usage: str(PRICE.of(usage))) == Decimal("2.7")
    assert miss_cost(request, 1_000, lambda model, usage: None) is None
    assert miss_cost(request, 1_000, lambda model, usage: "rubbish") is None
