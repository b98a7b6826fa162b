"""/compact shows its plan, sends the command, and undoes."""

import pytest
from msgspec.structs import replace

from swecli.commands.compaction import COMPACT
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.engine.session_view import Conversation
from swecli.core.protocol.blocks import TableBlock
from swecli.core.protocol.budget import SUMMARIES, SYSTEM, USER, Budget, Component
from swecli.core.protocol.commands import Command, Compact, RedoCompaction, UndoCompaction
from tests.commands.support import CommandSession

PLAN = CompactionPlan(100_000, 30_000, 160_000, 12, 80, 15_000, 80_000, 6_400)


class Planned(CommandSession):
    """A session with a given plan that keeps what is sent to it."""

    def __init__(self, plan: CompactionPlan | None) -> None:
        super().__init__()
        self.plan = plan
        self.got: list[Command] = []

    def plan_compaction(self) -> CompactionPlan | None:
        return self.plan

    def send(self, command: Command) -> None:
        self.got.append(command)


async def test_the_focus_goes_with_the_command() -> None:
    session = Planned(PLAN)
    result = await COMPACT.run(session, "the login bug")
    assert session.got == []
    assert result.offer is not None
    assert result.offer.command == Compact("the login bug")
    assert "100,000 to about 30,000 tokens" in result.offer.title


async def test_now_asks_nothing() -> None:
    session = Planned(PLAN)
    assert not (await COMPACT.run(session, "now")).blocks
    await COMPACT.run(session, "now the login bug")
    assert session.got == [Compact(), Compact("the login bug")]


async def test_while_a_turn_runs_nothing_is_offered() -> None:
    session = Planned(PLAN)
    session.view.busy = True
    result = await COMPACT.run(session, "the login bug")
    assert (session.got, result.offer, result.screen) == ([], None, None)
    assert "A turn is running" in str(result.blocks[-1])


@pytest.mark.parametrize("focus", ["free memory in the parser", "plan of the parser", "history of the login bug"])
async def test_a_focus_may_begin_with_the_word_of_an_action(focus: str) -> None:
    session = Planned(PLAN)
    result = await COMPACT.run(session, focus)
    assert session.got == []
    assert result.offer is not None
    assert result.offer.command == Compact(focus)


async def test_undo_and_redo() -> None:
    session = Planned(PLAN)
    await COMPACT.run(session, "undo")
    await COMPACT.run(session, "--redo")
    assert session.got == [UndoCompaction(), RedoCompaction()]


async def test_the_plan_is_shown_and_nothing_is_sent() -> None:
    session = Planned(PLAN)
    result = await COMPACT.run(session, "plan")
    assert session.got == []
    table, words = result.blocks
    assert isinstance(table, TableBlock)
    assert table.rows[1][1:] == ("80", "80,000")
    assert "30,000" in str(words)


async def test_cache_and_cost_are_part_of_the_plan() -> None:
    without = (await COMPACT.run(Planned(PLAN), "plan")).blocks[0]
    assert isinstance(without, TableBlock)
    assert not any("costs" in row[0] for row in without.rows)
    plan = replace(PLAN, rewritten_tokens=26_000, cost="0.4215", saved_per_request="0.021")
    table = (await COMPACT.run(Planned(plan), "plan")).blocks[0]
    assert isinstance(table, TableBlock)
    assert [row[2] for row in table.rows[-3:]] == ["26,000", "$0.42", "$0.02"]


async def test_where_nothing_can_be_gained_nothing_is_done() -> None:
    session = Planned(CompactionPlan(900, 900, 160_000, 4, 0, 300, 0, 6_400))
    for arguments in ("", "now", "now the login bug"):
        result = await COMPACT.run(session, arguments)
        assert session.got == []
        assert "Nothing to compact" in str(result.blocks)
    parts = (Component(SYSTEM, 600), Component(USER, 40), Component(SUMMARIES, 260))
    session.view.budget = Budget(parts, 900, 900, 160_000, 200_000, 40_000, "ok", "measured")
    session.view.conversation = Conversation(active=4, total=9, summaries=1)
    told = str((await COMPACT.run(session, "now")).blocks)
    assert "4 messages, 300 of 900 tokens" in told
    without_model = Planned(None)
    assert "no model" in str((await COMPACT.run(without_model, "plan")).blocks)
