"""Budgets of single components, and room beside what is in every request."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.context_management.budget import (
    FIXED,
    LEAST_ROOM,
    ComponentLimits,
    Limits,
    edge,
    in_tokens,
    limited,
    no_room,
    over_limit,
)
from swecli.core.protocol.budget import PROJECT_INSTRUCTIONS, RESULTS, SYSTEM, TOOLS, USER, Budget, Component
from tests.support.thorough import examples

WINDOWS = [4_000, 8_000, 32_000, 200_000, 1_000_000]
LIMITS = ComponentLimits(instructions=0.05, tools=0.10, tool_results=0.40, tool_result=0.08)


def budget(effective: int, limits: ComponentLimits = LIMITS, **parts: int) -> Budget:
    names = {"system": SYSTEM, "instructions": PROJECT_INSTRUCTIONS, "tools": TOOLS, "results": RESULTS, "user": USER}
    components = tuple(Component(names[name], tokens) for name, tokens in parts.items())
    used = sum(parts.values())
    measured = limited(components, limits, effective)
    block = edge(Limits().block, effective)
    return Budget(measured, used, used + used // 10, effective, effective * 5 // 4, 0, "ok", block_at=block)


@pytest.mark.parametrize("effective", WINDOWS)
def test_each_component_is_within_its_limit_or_named(effective: int) -> None:
    for share in (0.01, 0.05, 0.10, 0.31):
        found = budget(effective, instructions=int(effective * share), tools=int(effective * share), user=10)
        text = "\n".join(over_limit(found))
        assert ("project instructions" in text) is (share > 0.05)
        assert ("tool descriptions" in text) is (share > 0.10)
        assert "user messages" not in text


def test_the_worst_is_named_first_with_its_share_and_what_helps() -> None:
    first, second = over_limit(budget(8_000, instructions=2_480, tools=1_000, results=100))
    assert first == (
        "project instructions: 2,480 tokens, 31% of the window; its limit is 400. "
        "Shorten the project's instruction files."
    )
    assert second.startswith("tool descriptions: 1,000 tokens")


def test_shares_and_tokens() -> None:
    assert [in_tokens(amount, 1_000) for amount in (None, 0.1, 1.0, 1, 250, 0.0001)] == [None, 100, 1_000, 1, 250, 1]
    assert LIMITS.of_result(8_000) == 640
    assert ComponentLimits().of_result(8_000) is None


@pytest.mark.parametrize("amount", [0.0, -0.5, 1.5, 0, -3, float("nan")])
def test_bad_amounts_name_the_component(amount: float) -> None:
    with pytest.raises(ValueError, match="tools must be a share"):
        ComponentLimits(tools=amount)


def test_without_limits_nothing_is_said() -> None:
    found = budget(8_000, ComponentLimits(), instructions=5_000, tools=2_000)
    assert over_limit(found) == ()
    assert [part.limit for part in found.components] == [None, None]


def test_fixed_parts_that_leave_no_room_name_the_largest() -> None:
    text = no_room(budget(8_000, ComponentLimits(), system=900, instructions=1_000, tools=6_000, user=5))
    assert "7,900 of the 8,000 tokens" in text
    assert "The largest part is tool descriptions with 6,000. Use fewer tools or servers." in text
    assert no_room(budget(8_000, ComponentLimits(), system=900, tools=1_000, user=6_000)) == ""
    assert no_room(budget(8_000, ComponentLimits())) == ""


@settings(max_examples=examples(40, 200), deadline=None)
@given(st.integers(1, 200_000), st.integers(1, 200_000), st.integers(0, 200_000), st.sampled_from(WINDOWS))
def test_no_room_says_exactly_when_a_small_message_does_not_fit(
    system: int, tools: int, user: int, effective: int
) -> None:
    found = budget(effective, ComponentLimits(), system=system, tools=tools, user=user)
    parts = [part.tokens for part in found.components if part.name.startswith(FIXED)]
    fixed = sum(parts) * found.upper / found.used
    assert bool(no_room(found)) is (fixed + LEAST_ROOM > found.block_at)
