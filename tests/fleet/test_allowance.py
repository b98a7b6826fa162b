"""What all workers may spend together."""

from __future__ import annotations

from decimal import Decimal

from swecli.fleet.allowance import Allowance, Caps
from swecli.fleet.link import Ask, Spent


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_requests_are_refused_once_tokens_or_price_are_used_up() -> None:
    allowance = Allowance(Caps(tokens=100, price=Decimal("1.00")), tokens=40)
    assert allowance.exhausted == ""
    allowance.take(Spent("p", 59, "0.40"))
    assert allowance.exhausted == ""
    allowance.take(Spent("p", 1, "0.10"))
    assert allowance.exhausted == "the run's budget of 100 tokens is used up"
    priced = Allowance(Caps(price=Decimal("0.50")), price=Decimal("0.50"))
    assert priced.exhausted == "the run's budget of $0.50 is used up"


def test_a_price_that_is_unknown_ends_a_run_with_a_budget_of_money_only() -> None:
    for caps, ends in ((Caps(price=Decimal(1)), True), (Caps(tokens=1_000), False)):
        allowance = Allowance(caps)
        allowance.take(Spent("p", 5, None))
        assert bool(allowance.exhausted) is ends


def test_requests_per_minute_are_shared_and_counted_for_each_provider() -> None:
    clock = Clock()
    allowance = Allowance(Caps(requests_per_minute=2), clock=clock)
    assert allowance.delay(Ask("a", 1)) == 0
    clock.now = 10.0
    assert allowance.delay(Ask("a", 1)) == 0
    assert allowance.delay(Ask("a", 1)) == 50
    assert allowance.delay(Ask("b", 1)) == 0
    clock.now = 60.0
    assert allowance.delay(Ask("a", 1)) == 0
    assert allowance.delay(Ask("a", 1)) == 10


def test_tokens_per_minute_wait_for_room_and_a_larger_request_for_an_empty_minute() -> None:
    clock = Clock()
    allowance = Allowance(Caps(tokens_per_minute=100), clock=clock)
    assert allowance.delay(Ask("a", 60)) == 0
    clock.now = 5.0
    assert allowance.delay(Ask("a", 40)) == 0
    assert allowance.delay(Ask("a", 10)) == 55
    assert allowance.delay(Ask("a", 500)) == 60
    clock.now = 65.0
    assert allowance.delay(Ask("a", 500)) == 0


def test_a_provider_that_limits_one_worker_pauses_all_of_them() -> None:
    clock = Clock()
    allowance = Allowance(Caps(), clock=clock)
    allowance.take(Spent("a", 0, "0", pause=7.0))
    allowance.take(Spent("a", 0, "0", pause=2.0))
    assert allowance.delay(Ask("a", 1)) == 7
    assert allowance.delay(Ask("b", 1)) == 0
    clock.now = 7.0
    assert allowance.delay(Ask("a", 1)) == 0
