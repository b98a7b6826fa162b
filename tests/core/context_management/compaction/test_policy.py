"""When a clearing between two turns is worth a look."""

from __future__ import annotations

import pytest

from swecli.core.context_management.compaction.options import Allowances
from swecli.core.context_management.compaction.policy import COLD_LEAST, is_small
from swecli.core.protocol.budget import SYSTEM, USER, Budget, Component


def measure(conversation: int, effective: int) -> Budget:
    parts = (Component(SYSTEM, 4_000), Component(USER, conversation))
    used = 4_000 + conversation
    return Budget(parts, used, used, effective, effective, 0, "ok")


@pytest.mark.parametrize("effective", [1, 4_000, 60_000, 104_000, 1_000_000])
def test_a_conversation_is_small_only_where_no_batch_of_it_could_be_worth_clearing(effective: int) -> None:
    least = min(COLD_LEAST, Allowances.of(effective).worthwhile // 2)  # as near a summary, where batches are smallest
    assert not is_small(measure(least, effective))
    small = [size for size in range(0, 6_000, 50) if is_small(measure(size, effective))]
    assert all(size < least for size in small)
    assert small or least == 0
