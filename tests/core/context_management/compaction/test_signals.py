"""The chain is adjusted to the kind of conversation, and says why."""

import pytest

from swecli.core.context_management.compaction.options import Allowances, EntrySizes
from swecli.core.context_management.compaction.policy import (
    LONG_CONVERSATION,
    ConversationSignals,
    adjusted,
    signals_of,
)
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelInfo
from tests.support.said import Said

USUAL = Allowances.of(100_000)
INFO = ModelInfo("p", "m", 128_000)


def test_an_ordinary_conversation_has_the_usual_chain() -> None:
    plan = adjusted(ConversationSignals(0.1, 0.6, 30), USUAL, 10)
    assert (plan.allowances, plan.recent, plan.no_clearing, plan.reasons) == (USUAL, 10, "", ())


def test_after_many_failures_more_of_the_newest_part_stays() -> None:
    plan = adjusted(ConversationSignals(0.4, 0.6, 30), USUAL, 10)
    assert plan.allowances.protected > USUAL.protected
    assert plan.allowances.tail > USUAL.tail
    assert plan.reasons == ("40% of the newest calls failed, so it keeps more of the newest part",)
    assert adjusted(ConversationSignals(0.4, 0.6, 30), USUAL, 10, fixed_tail=True).allowances.tail == USUAL.tail


def test_where_little_is_tool_output_nothing_is_cleared_first() -> None:
    assert "only 10% of the conversation" in adjusted(ConversationSignals(0.0, 0.1, 30), USUAL, 10).no_clearing


def test_a_long_conversation_keeps_twice_as_many_messages() -> None:
    plan = adjusted(ConversationSignals(0.0, 0.6, LONG_CONVERSATION), USUAL, 10)
    assert plan.recent == 20
    assert "keeps the newest 20" in plan.reasons[0]


@pytest.mark.parametrize(("failures", "density"), [(2, 0.0), (6, 0.6)])
def test_signals_are_read_from_the_conversation(failures: int, density: float) -> None:
    said = Said()
    said.user("Make the tests green.")
    for number in range(failures):
        said.call("run_command", {"command": f"make {number}"}, "failed", exit_status=1)
    for number in range(failures - 2):
        said.call("run_command", {"command": f"ls {number}"}, "a b c")
    found = signals_of(said.ledger, said.ledger.view, EntrySizes(TokenMonitor(), INFO))
    assert found.error_density == pytest.approx(density)
    assert 0.5 < found.tool_density < 1
    assert found.message_count == 1 + failures + max(0, failures - 2)
