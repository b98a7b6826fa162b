"""The order of what a session does at a budget stays as it is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.engine.settings import TurnLimits
from swecli.core.protocol.commands import Submit
from swecli.features.spending.companion import ONCE, STOP
from tests.core.engine.sequence import check, watched
from tests.core.engine.support import call, until
from tests.core.engine.test_sequence import answered, budget, folder, session

__all__ = ["folder"]


async def test_budget_and_caps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = "usage = { input = 1000, output = 10 }\n"
    script = "\n".join(f"[[step]]\ncall = [{call('read_file', str(number))}]\n{usage}" for number in range(7))
    limits = {"limits": TurnLimits(max_steps=3), **budget(1_500)}
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order, **limits) as b:
            order.note("« go")
            b.send(Submit("go"))
            await answered(b, 0, ONCE)
            await answered(b, 1, STOP)
            await until(lambda: b.session.view.totals.turns == 1 and not b.session.view.busy)
            order.note("« go on")
            b.send(Submit("go on"))
            for number in (2, 3):
                await answered(b, number, "Raise")
            await until(lambda: b.session.view.totals.turns == 2 and not b.session.view.busy)
            await b.idle()
    check("budget", order.turns)
