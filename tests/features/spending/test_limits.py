"""Budgets ask before they are crossed, stop where nobody can be asked, and are overstepped by one answer at most."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from swecli.core.protocol.commands import Answer, Submit
from swecli.core.protocol.events import Notice, QuestionAsked, TurnEnded
from swecli.core.protocol.messages import Usage
from swecli.features.spending.companion import ONCE, STOP
from swecli.features.spending.limits import (
    Amount,
    DayAccount,
    Span,
    SpendingLimits,
    Spent,
    crossing,
    day_of,
)
from tests.core.engine.support import Bench, bench, call, until

STEPS = "\n".join(
    f"[[step]]\ncall = [{call('read_file', str(n))}]\nusage = {{ input = 1000, output = 10 }}" for n in range(8)
)
NOW = 1_700_000_000.0


def priced(model: str, usage: Usage) -> str | None:
    """A cent for an answer, a tenth of one for a prompt alone."""
    return "0.01" if usage.output_total else "0.001"


def limits(**given: Amount) -> dict[str, Any]:
    amounts: Any = given
    return {"spending": SpendingLimits(amounts), "price": priced}


async def answered(b: Bench, number: int, label: str) -> str:
    """Answer the n-th question with the option that begins with the label; gives its text back."""
    await until(lambda: len(b.bodies(QuestionAsked)) > number, f"question {number}")
    asked = b.bodies(QuestionAsked)[number]
    (question,) = asked.questions
    option = next(option.label for option in question.options if option.label.startswith(label))
    b.send(Answer(asked.request, ((option,),), by="user"))
    return question.text


async def test_the_user_decides_before_a_budget_is_crossed(tmp_path: Path) -> None:
    async with bench(STEPS, tmp_path, **limits(session=Amount(Decimal("0.025")))) as b:
        b.send(Submit("go"))
        text = await answered(b, 0, ONCE)
        assert text.startswith("$0.0300 of the $0.0250 of this session are spent.")
        assert len(b.model.requests) == 3
        await answered(b, 1, "Raise to $0.0500")
        await answered(b, 2, STOP)
        assert len(b.model.requests) == 5
        await until(lambda: bool(b.bodies(TurnEnded)))
        (end,) = b.bodies(TurnEnded)
        assert (end.outcome, end.error_kind) == ("interrupted", "budget")
        assert end.reason.startswith("stopped at a budget: $0.0500 of the $0.0500 of this session")


async def test_what_is_written_at_a_budget_stops_and_waits_as_the_next_message(tmp_path: Path) -> None:
    async with bench(STEPS, tmp_path, **limits(turn=Amount(Decimal("0.025")))) as b:
        b.send(Submit("go"))
        await until(lambda: bool(b.bodies(QuestionAsked)))
        b.send(Answer(b.bodies(QuestionAsked)[0].request, (("Only read the first two",),), by="user"))
        await until(lambda: bool(b.bodies(TurnEnded)) and not b.session.view.busy)
        assert (b.bodies(TurnEnded)[0].outcome, b.bodies(TurnEnded)[0].error_kind) == ("interrupted", "budget")
        assert len(b.model.requests) == 3
        assert [queued.text for queued in b.session.view.queue] == ["Only read the first two"]
        assert any("not sent" in body.text for body in b.bodies(Notice) if body.topic == "budget")


@pytest.mark.parametrize(
    ("amounts", "requests", "reason"),
    [
        ({"turn": Amount(Decimal("0.02"))}, 2, "$0.0200 of the $0.0200 of this turn are spent"),
        ({"turn": Amount(None, 2_500)}, 2, "2,020 of the 2,500 tokens of this turn are used, and the next request"),
        ({"session": Amount(None, 10)}, 0, "0 of the 10 tokens of this session are used, and the next request"),
        ({"day": Amount(Decimal("0.0305"))}, 3, "$0.0300 of the $0.0305 of today are spent, and the next request"),
    ],
)
async def test_without_a_user_the_turn_ends_before_the_request(
    tmp_path: Path, amounts: dict[str, Any], requests: int, reason: str
) -> None:
    async with bench(STEPS, tmp_path, **limits(**amounts)) as b:
        b.send(Submit("go"))
        await until(lambda: bool(b.bodies(QuestionAsked)))
        b.send(Answer(b.bodies(QuestionAsked)[0].request, (), by="headless"))
        await until(lambda: bool(b.bodies(TurnEnded)))
        (end,) = b.bodies(TurnEnded)
        assert (end.outcome, end.error_kind) == ("limit", "budget")
        assert reason in end.reason
        assert len(b.model.requests) == requests


async def test_a_turn_budget_begins_anew_with_each_turn(tmp_path: Path) -> None:
    script = '[[step]]\ntext = "x"\nusage = { input = 1000, output = 10 }\n' * 3
    async with bench(script, tmp_path, **limits(turn=Amount(Decimal("0.015")))) as b:
        for _ in range(3):
            assert (await b.say("go")).outcome == "done"
        assert b.bodies(QuestionAsked) == []


async def test_an_unknown_price_is_asked_about_once(tmp_path: Path) -> None:
    given = {**limits(turn=Amount(Decimal(5))), "price": lambda model, usage: None}
    async with bench(STEPS + '\n[[step]]\ntext = "x"', tmp_path, **given) as b:
        b.send(Submit("go"))
        assert "a price is unknown" in await answered(b, 0, "Continue without this budget")
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert len(b.model.requests) == 9
        assert len(b.bodies(QuestionAsked)) == 1


async def test_a_provider_without_usage_is_bounded_by_what_is_sent(tmp_path: Path) -> None:
    steps = "\n".join(f"[[step]]\ncall = [{call('read_file', str(n))}]" for n in range(4))
    async with bench(steps, tmp_path, **limits(turn=Amount(None, 1))) as b:
        b.send(Submit("go"))
        await answered(b, 0, STOP)
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.model.requests == []


def test_what_is_in_the_way_is_told_with_its_setting() -> None:
    budgets: dict[Span, Amount] = {"turn": Amount(Decimal(1), 500), "day": Amount(Decimal(2))}
    none = Spent()
    assert crossing({}, {}, Spent(Decimal(9), 9_000_000)) is None
    assert crossing(budgets, {"turn": Spent(Decimal("0.5"), 400)}, Spent(Decimal("0.5"), 100)) is None
    found = crossing(budgets, {"turn": Spent(Decimal("0.5"), 400)}, Spent(Decimal("0.1"), 200))
    assert found is not None
    assert (found.setting, found.raised) == ("budget.turn_tokens", 1000)
    found = crossing(budgets, {"turn": none, "day": Spent(Decimal("4.5"))}, Spent(Decimal("0.1")))
    assert found is not None
    assert (found.setting, found.raised) == ("budget.day", 6)
    found = crossing(budgets, {"day": none}, Spent(unpriced=True))
    assert found is not None
    assert found.needed is None


async def test_a_day_has_all_sessions_and_ends_at_midnight() -> None:
    asked: list[tuple[float, str]] = []

    def stored(start: float, end: float, without: str) -> Spent:
        asked.append((start, without))
        if start != day_of(NOW)[0]:
            return Spent()
        return Spent(Decimal(3)) if not without else Spent(Decimal(2))  # a dollar of this session is from today

    account = DayAccount(stored, "s", Spent(Decimal(4)))
    assert (await account.spent(NOW, Spent(Decimal(4)))).dollars == 3
    assert (await account.spent(NOW + 1, Spent(Decimal("4.5")))).dollars == Decimal("3.5")
    assert len(asked) == 2
    assert (await account.spent(NOW - 30, Spent(Decimal("4.5")))).dollars == Decimal("3.5")  # a clock that was put back
    assert len(asked) == 3
    tomorrow = day_of(NOW)[1] + 60
    assert (await account.spent(tomorrow, Spent(Decimal("4.5")))).dollars == 0
    assert (await account.spent(tomorrow + 1, Spent(Decimal(5)))).dollars == Decimal("0.5")
    await asyncio.sleep(0)


async def test_what_a_run_spent_before_its_first_check_counts_once_in_the_day() -> None:
    total = Spent(Decimal(5))

    def stored(start: float, end: float, without: str) -> Spent:
        return Spent(Decimal(2)) if without else Spent(Decimal(5))  # 2 by others, 1 by an earlier run, 2 by this one

    account = DayAccount(stored, "s", Spent(Decimal(3)))
    assert (await account.spent(NOW, total)).dollars == 5
    assert (await account.spent(NOW + 1, Spent(Decimal(6)))).dollars == 6
    unstored = DayAccount(lambda start, end, without: Spent(), "s", Spent())
    assert (await unstored.spent(NOW, total)).dollars == 5
