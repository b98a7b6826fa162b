"""/compact shows its plan and asks: Enter applies it, Esc leaves everything as it is."""

from textual import events

from swecli.commands.compaction import COMPACT
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.protocol.commands import Compact, RedoCompaction, UndoCompaction
from swecli.core.protocol.events import CompactionCompleted, CompactionStarted, CompactionUndone, ItemStarted, Notice
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
        await it.say("/compact the bug")
        await it.shows("Compact from")
        await it.press("escape")
        await it.hides("Compact from 100,000")
        assert it.session.sent(Compact) == []


async def test_what_is_typed_on_after_the_command_applies_nothing_and_goes_to_the_prompt() -> None:
    async with running(session=Planned(), commands=lambda: (*COMMANDS, COMPACT)) as it:
        await it.say("/compact the bug")
        await it.shows("Compact from")
        for key in ("y", "e", "s", "space", "n", "o", "w", "enter", "enter"):
            await it.press(key)
            it.clock.now += 0.1
        it.app.post_message(events.Paste(" and this"))
        await it.until(lambda: it.text == "yes now and this")
        assert it.session.sent(Compact) == []
        it.clock.now += 1
        await it.press("down", "up", "enter")
        await it.until(lambda: it.session.sent(Compact) == [Compact("the bug")])
        await it.shows("› yes now and this")


async def test_a_compaction_that_was_made_is_taken_back_and_brought_back_by_a_key_on_its_line() -> None:
    async with running() as it:
        it.session.emit(ItemStarted("k1", "compaction"))
        it.session.emit(CompactionStarted("k1", "auto", "chain", 90_000, 100_000))
        it.session.emit(CompactionCompleted("k1", (), 90_000, 20_000, 80, 12, ("summary",), effective=100_000))
        await it.shows("70,000 saved", "/compact undo")
        await it.until(lambda: it.app.loaded and it.editor.has_focus)
        await it.press("tab")
        await it.until(lambda: it.app.main.transcript.has_focus)
        await it.shows("u undoes this compaction and all later ones")
        await it.press("u")
        await it.until(lambda: it.session.sent(UndoCompaction) == [UndoCompaction("k1")])
        assert it.text == ""
        it.session.emit(CompactionUndone("k1"))
        await it.shows("Compaction of 90,000 tokens (undone)")
        await it.press("u")
        await it.until(lambda: it.session.sent(RedoCompaction) == [RedoCompaction("k1")])


async def test_the_key_means_nothing_on_other_lines() -> None:
    async with running() as it:
        it.session.emit(Notice("Something else.", "info", "context"))
        await it.shows("Something else.")
        await it.until(lambda: it.app.loaded and it.editor.has_focus)
        await it.press("tab")
        await it.until(lambda: it.app.main.transcript.has_focus)
        await it.press("u")
        assert not it.session.sent(UndoCompaction)
        assert "undoes this compaction" not in it.screen()
