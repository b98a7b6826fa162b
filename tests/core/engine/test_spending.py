"""What is used is counted once, whatever becomes of the answer; a cap on the price holds."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from swecli.core.engine.settings import TurnLimits
from swecli.core.engine.state import Spending
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Interrupt, SetModel, Submit
from swecli.core.protocol.events import Price, SideAnswered, StepEnded, StepStarted, TurnEnded
from swecli.core.protocol.messages import Usage, usage_words
from tests.core.engine.support import bench, call, until
from tests.core.engine.test_model_choice import Family, family_bench

STEPS = "\n".join(
    f"[[step]]\ncall = [{call('read_file', str(n))}]\nusage = {{ input = 1000, cache_read = {n * 100}, output = 10 }}"
    for n in range(5)
)


def penny(model: str, usage: Usage) -> str | None:
    return "0.01"


async def test_sums_by_model_and_by_turn(tmp_path: Path) -> None:
    one = '[[step]]\ntext = "x"\nusage = { input = 100, cache_read = 40, output = 5 }\n'
    family = Family(main=one * 3, other=one)
    async with family_bench(family, tmp_path, price=penny) as b:
        await b.say("a")
        await b.say("b")
        b.send(SetModel("p/other"))
        await b.say("c")
        spending = b.session.view.spending
        assert {name: (t.responses, t.usage.input_total, t.cost) for name, t in spending.by_model.items()} == {
            "p/main": (2, 200, Decimal("0.02")),
            "p/other": (1, 100, Decimal("0.01")),
        }
        assert [tally.responses for tally in spending.by_turn.values()] == [1, 1, 1]
        assert spending.total.usage.cache_share == 0.4
        assert (b.session.view.totals.input_tokens, b.session.view.totals.cost) == (300, Decimal("0.03"))


async def test_a_question_beside_the_conversation_is_paid_for_too(tmp_path: Path) -> None:
    family = Family(main='[[step]]\ntext = "x"', small='[[step]]\ntext = "y"\nusage = { input = 7, output = 1 }')
    async with family_bench(family, tmp_path, side_models={"small": "p/small"}, price=penny) as b:
        await b.session.questions.ask("s", "q")
        await until(lambda: bool(b.bodies(SideAnswered)))
        assert b.session.view.spending.by_model["p/small"].usage.input_total == 7
        assert b.session.view.totals.cost == Decimal("0.01")


def test_one_unknown_price_makes_the_sum_unknown_and_no_other() -> None:
    spending = Spending()
    spending.add("a/b", 1, Usage(10, None, None, 1), "0.5")
    spending.add("c/d", 2, Usage(10, None, None, 1), None)
    spending.add("a/b", 2, None, "rubbish")
    assert spending.total.cost is None
    assert spending.by_turn[1].cost == Decimal("0.5")
    assert spending.by_model["a/b"].cost is None


async def test_a_price_cap_is_overstepped_by_one_answer_at_most(tmp_path: Path) -> None:
    limits = TurnLimits(max_price=Decimal("0.025"))
    async with bench(STEPS, tmp_path, limits=limits, price=penny) as b:
        end = await b.say("go")
        assert (end.outcome, end.error_kind) == ("limit", "max_price")
        assert "$0.0300; the cap is $0.025" in end.reason
        assert len(b.model.requests) == 3
        assert (await b.say("go on")).error_kind == "max_price"
        assert len(b.model.requests) == 3


async def test_without_a_known_price_a_cap_ends_the_turn_after_one_answer(tmp_path: Path) -> None:
    async with bench(STEPS, tmp_path, limits=TurnLimits(max_price=Decimal(5))) as b:
        end = await b.say("go")
        assert (end.outcome, end.error_kind) == ("limit", "max_price")
        assert "unknown price" in end.reason
        assert len(b.model.requests) == 1


async def test_an_interrupted_answer_is_counted(tmp_path: Path) -> None:
    script = '[[step]]\ntext = "one two three four"\nfault = { kind = "stall", after = 8 }'
    async with bench(script, tmp_path, price=penny) as b:
        b.send(Submit("go"))
        await until(lambda: any(event.body.__class__.__name__ == "ItemDelta" for event in b.events))
        await until(lambda: "two" in "".join(getattr(event.body, "text", "") for event in b.events))
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)))
        (step,) = b.bodies(StepEnded)
        assert (step.estimated, step.cost, step.usage.output_total) == (True, "0.01", 2)
        (end,) = b.bodies(TurnEnded)
        assert (end.estimated, end.usage) == (True, step.usage)
        assert usage_words(end.usage, estimated=end.estimated).startswith("about ")


@pytest.mark.parametrize("held", [True, False])
async def test_a_step_whose_tools_are_interrupted_is_counted_once(tmp_path: Path, held: bool) -> None:
    async with bench(STEPS, tmp_path, price=penny, policy=Policy(yolo=True)) as b:
        b.gates.held |= {"1"} if held else set()
        b.send(Submit("go"))
        await until(lambda: "1" in b.gates.started)
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)))
        ended = b.bodies(StepEnded)
        assert len({step.step for step in ended}) == len(ended)
        assert len(ended) >= 2
        assert len(b.bodies(StepStarted)) - len(ended) in (0, 1)
        assert not any(step.estimated for step in ended[:2])


async def test_a_request_that_alone_goes_past_the_cap_on_tokens_is_not_sent(tmp_path: Path) -> None:
    async with bench(STEPS, tmp_path, limits=TurnLimits(max_tokens=10)) as b:
        end = await b.say("word " * 100)
        assert (end.outcome, end.error_kind) == ("limit", "max_tokens")
        assert "10 are left of the cap of 10" in end.reason
        assert b.model.requests == []
        assert await b.session.questions.ask("s", "word " * 100) is None
        assert b.model.requests == []


async def test_the_cap_on_tokens_is_passed_by_one_answer_at_most(tmp_path: Path) -> None:
    async with bench(STEPS, tmp_path, limits=TurnLimits(max_tokens=2_500)) as b:
        end = await b.say("go")
        assert (end.outcome, end.error_kind) == ("limit", "max_tokens")
        assert len(b.model.requests) == 2


def test_a_price_that_becomes_known_counts_for_what_was_asked_before() -> None:
    spending = Spending()
    usage = Usage(input_total=1_000_000, cache_read=500_000, output_total=100_000)
    spending.add("a/b", 1, usage, None)
    spending.add("c/d", 1, usage, None)
    spending.add("a/b", 2, usage, "0.5")
    spending.settle("a/b", Price("2", "10", "0.2"))
    assert (spending.by_model["a/b"].cost, spending.by_model["c/d"].cost) == (Decimal("2.6"), None)
    assert (spending.by_turn[1].cost, spending.by_turn[2].cost) == (None, Decimal("0.5"))
    assert spending.total.cost is None
    spending.settle("c/d", Price("rubbish", "1"))
    assert spending.total.cost is None
    spending.settle("c/d", Price("0", "0"))
    assert spending.total.cost == Decimal("2.6")
    spending.settle("c/d", Price("9", "9"))
    assert spending.total.cost == Decimal("2.6")


async def test_a_price_is_kept_and_counts_in_the_session_and_after_it_is_resumed(tmp_path: Path) -> None:
    step = '[[step]]\ntext = "x"\nusage = { input = 1000000, output = 0 }\n'
    kept: dict[str, Price] = {}

    def keep(model: str, price: Price) -> str:
        kept[model] = price
        return "config.toml"

    def priced(model: str, usage: Usage) -> str | None:
        return "1" if kept else None

    async with bench(step * 2, tmp_path, name="scripted/test", price=priced, keep_price=keep) as b:
        assert list(b.session.offers.unpriced) == ["scripted/test"]
        await b.say("a")
        assert b.session.view.totals.cost is None
        assert list(b.session.offers.unpriced) == ["scripted/test"]
        assert await b.session.offers.set_price("scripted/test", Price("3", "15")) == "config.toml"
        assert b.session.view.totals.cost == Decimal(3)
        assert list(b.session.offers.unpriced) == []
        await b.say("b")
        assert b.session.view.totals.cost == Decimal(4)
        facts = list(b.facts)
    async with bench(step, tmp_path, history=facts, price=priced, keep_price=keep) as b:
        assert b.session.view.totals.cost == Decimal(4)
    async with bench(step, tmp_path) as b:
        assert list(b.session.offers.unpriced) == []
        with pytest.raises(ValueError, match="can't be set"):
            await b.session.offers.set_price("a/b", Price("1", "1"))


async def test_a_request_without_an_answer_shows_no_price(tmp_path: Path) -> None:
    async with bench('[[step]]\nfault = { kind = "auth" }\n', tmp_path) as b:
        assert (await b.say("hi")).outcome == "error"
        assert b.session.view.totals.cost is None
