"""/compact shows its plan and asks: Enter applies it, Esc leaves everything as it is."""

from textual import events

from swecli.commands.context import COMPACT
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.protocol.commands import Compact
from tests.tui.support import COMMANDS, Session, running


class Planned(Session):
    def plan_compaction(self) -> CompactionPlan | None:
        return CompactionPlan(100_000, 30_000, 160_000, 12, 80, 15_000, 80_000, 6_400)


async def test_enter_applies_the_plan_that_is_shown() -> None:
    async with running(session=Planned(), commands=lambda: (*COMMANDS, COMPACT)) as it:
        await it.say("/compact the bug")
        await it.shows("Compact from 100,000 to about 30,000 tokens?")
        assert "summarised" in it.screen()
        assert it.session.sent(Compact) == []
        it.clock.now += 1
        await it.press("enter")
        await it.until(lambda: it.session.sent(Compact) == [Compact("the bug")])


async def test_esc_leaves_it() -> None:
    async with running(session=Planned(), commands=lambda: (*COMMANDS, COMPACT)) as it:
        await it.say("/compact")
        await it.shows("Compact from")
        await it.press("escape")
        await it.hides("Compact from 100,000")
        assert it.session.sent(Compact) == []


async def test_what_is_typed_on_after_the_command_applies_nothing_and_goes_to_the_prompt() -> None:
    async with running(session=Planned(), commands=lambda: (*COMMANDS, COMPACT)) as it:
        await it.say("/compact")
        await it.shows("Compact from")
        for key in ("y", "e", "s", "space", "n", "o", "w", "enter", "enter"):
            await it.press(key)
            it.clock.now += 0.1
        it.app.post_message(events.Paste(" and this"))
        await it.until(lambda: it.text == "yes now and this")
        assert it.session.sent(Compact) == []
        it.clock.now += 1
        await it.press("down", "up", "enter")
        await it.until(lambda: it.session.sent(Compact) == [Compact("")])
        await it.shows("› yes now and this")
