"""Random histories: the request is always valid and fits, nothing is lost, every compaction can be taken back.

``SWECLI_HISTORIES`` is how many are tried, beginning with the one that ``SWECLI_HISTORY`` numbers.
"""

from __future__ import annotations

import os

import pytest

from tests.properties.random_histories import play

COUNT = int(os.environ.get("SWECLI_HISTORIES", "64"))
FIRST = int(os.environ.get("SWECLI_HISTORY", "0"))
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_random_histories(part: int) -> None:
    played = play(range(FIRST + part, FIRST + COUNT, PARTS))
    if len(played) >= 16:  # the histories are worth trying: requests are sent, and room is made in several ways
        assert sum(history.requests for history in played) > 10 * len(played)
        assert sum(history.compactions for history in played) > len(played)
        assert sum(history.clearings for history in played) > len(played) // 5
