"""What a session foretells of its next request, against the request that is sent then."""

from __future__ import annotations

from pathlib import Path

from swecli.core.protocol.events import StepStarted
from tests.core.engine.support import bench
from tests.core.engine.test_prompt_cache import Clock, cached_model, fill, steps


async def test_the_request_that_follows_is_as_it_was_foretold(tmp_path: Path) -> None:
    clock = Clock()
    turns = "\n".join(f'{steps(3, 3 * turn)}\n[[step]]\ntext = "Read."' for turn in range(4))
    model = cached_model(f"window = 60000\nmax_output = 8000\n{turns}", clock)
    async with bench(
        '[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model, clock=clock, price=lambda _m, _u: "0.01"
    ) as b:
        fill(b, 12)
        assert b.session.view.forecast("hello") is None or b.session.view.budget is not None
        for turn in range(4):
            text = f"Read the next files, round {turn}, and say what is in them."
            told = b.session.view.forecast(text)
            steps_before, charges_before = len(b.bodies(StepStarted)), len(model.charges)
            await b.say(text)
            sent = b.bodies(StepStarted)[steps_before].budget.used
            if turn:
                assert told is not None
                assert abs(told.tokens - sent) / sent <= 0.05
                assert told.cached is not None
                read = model.charges[charges_before].read
                assert abs(told.cached - read) / read <= 0.1
                assert told.cold_in is not None
                assert 0 < told.cold_in <= 300
                assert told.cost is not None
            clock.now += 60
        told = b.session.view.forecast("go on")
        assert told is not None
        assert told.turns_left is not None
        larger = b.session.view.forecast("go on", attached=1_000)
        assert larger is not None
        assert abs(larger.tokens - told.tokens - 1_000 * b.session.view.ratio) <= 1
        clock.now += 900
        cold = b.session.view.forecast("go on")
        assert cold is not None
        assert (cold.cached, cold.cold_in) == (0, 0)
