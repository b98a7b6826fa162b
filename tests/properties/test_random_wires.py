"""Whatever servers of any wire form answer, what swecli sends next is what that form allows, and nothing is lost.

``SWECLI_JOURNEYS`` is how many sessions are tried; ``make soak`` tries more and longer ones.
"""

from __future__ import annotations

import os

import pytest

from tests.properties.random_wires import travel
from tests.support.thorough import THOROUGH

JOURNEYS = int(os.environ.get("SWECLI_JOURNEYS", "3"))
FIRST = int(os.environ.get("SWECLI_HISTORY", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + JOURNEYS))
async def test_a_long_session_through_all_wire_forms(seed: int) -> None:
    journey = await travel(seed, (25, 25, 20) if THOROUGH else (8, 8))
    assert len(journey.said) == (70 if THOROUGH else 16)
    assert len(journey.server.asked) > len(journey.said)
