from __future__ import annotations

import pytest

from swecli.core.context_management.budget import Limits, gate_reason, level_of, percent
from swecli.core.protocol.budget import Budget, Component

PARTS = (
    Component("system prompt", 900),
    Component("tool results", 6_000),
    Component("user messages", 100),
    Component("tool calls", 2_500),
)


def budget(upper: int, effective: int = 10_000, source: str = "measured") -> Budget:
    level = level_of(upper, effective, Limits())
    return Budget(PARTS, upper - 100, upper, effective, effective + 2_000, 2_000, level, source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("upper", "level"),
    [
        (7_999, "ok"),
        (8_000, "warn"),
        (9_499, "warn"),
        (9_500, "compact"),
        (9_799, "compact"),
        (9_800, "block"),
        (20_000, "block"),
    ],
)
def test_the_level_is_that_of_the_upper_edge(upper: int, level: str) -> None:
    assert budget(upper).level == level
    assert bool(gate_reason(budget(upper))) == (level != "ok")


def test_a_block_names_size_largest_parts_and_what_helps() -> None:
    reason = gate_reason(budget(9_900))
    for word in ("99%", "9,900 of 10,000", "tool results 6,000", "tool calls 2,500", "/clear", "/model"):
        assert word in reason
    assert "nothing was sent" in reason
    assert "user messages" not in reason
    assert "about" not in reason
    assert "/compact" in gate_reason(budget(9_900), ("/compact makes room",))
    assert "Try:" not in gate_reason(budget(9_900), ())


def test_largest_components_come_first() -> None:
    assert "Largest: tool results 6,000, tool calls 2,500, system prompt 900." in gate_reason(budget(9_900))


def test_an_estimate_is_called_one() -> None:
    assert "about 85%" in gate_reason(budget(8_500, source="estimated"))


def test_percent_never_says_that_more_is_free_than_is() -> None:
    assert percent(budget(9_799)) == 97
    assert percent(budget(9_800)) == 98
    assert percent(budget(0)) == 0
    assert percent(budget(5, effective=0)) == 100


def test_a_window_without_room_says_so() -> None:
    assert "larger model" in gate_reason(budget(5, effective=0))
