"""The inspector, the compaction plan and the wire view: their looks, keys, mouse and bad input."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from textual import events

from swecli.commands.base import Screen
from swecli.core.context_management.compaction.plan import PlannedItem
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.edits import Effect
from swecli.core.engine.inspection import Picture
from swecli.core.llm.types import ModelRequest, ToolSchema
from swecli.core.protocol.budget import TOOLS
from swecli.core.protocol.commands import ApplyPlan, ChangeContext, RedoCompaction, UndoCompaction
from swecli.core.protocol.context_events import ContextChange, ViewEntry
from swecli.core.protocol.events import CompactionCompleted, CompactionUndone, ContextEdited
from swecli.core.protocol.messages import Usage
from swecli.themes.files import known
from swecli.tui.preferences import Preferences
from swecli.tui.screens.cache import CacheBoard
from swecli.tui.screens.compaction import PlanBoard, _sizes
from swecli.tui.screens.context_chart import colours
from swecli.tui.screens.inspector import Inspector
from swecli.tui.screens.wire import WireBoard
from swecli.tui.transcript.palette import DARK, LIGHT, TERMINAL, palette_of
from tests.support.inspected import Inspected, cache_history, price, tell_requests
from tests.tui.golden import check
from tests.tui.support import Running, Session, running
from tests.tui.test_keys import answer
from tests.tui.test_looks import MIDDLE, SIZES, check_all

WIDE = (200, 60)


@pytest.fixture(autouse=True)
def one_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Screens show times of the day."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def prepared(inspected: Inspected) -> Session:
    session = Session()
    session.inspection = inspected.inspection  # type: ignore[attr-defined]
    session.draft_compaction = inspected.draft  # type: ignore[attr-defined]
    session.draft_summary = inspected.write  # type: ignore[attr-defined]
    session.view.cache = cache_history(60)
    session.view.price = price
    session.view.agents = tuple(inspected.agents.values())
    return session


async def has_keyboard(it: Running) -> None:
    """What is shown may not have the keyboard yet."""
    await it.until(lambda: it.app.main.list_view is not None and it.app.main.list_view.has_focus)


async def inspector(it: Running) -> None:
    it.app.interface.open("context")
    await it.shows("Context", "closes")
    await has_keyboard(it)


async def changes(it: Running) -> None:
    await inspector(it)
    await it.press("s", "d", "o", "p")
    await it.shows("3 changes", "leave the cache")


async def plan(it: Running) -> None:
    it.app.interface.open("compact")
    await it.shows("Compaction plan", "Summarised")


async def drafted(it: Running) -> None:
    await plan(it)
    await it.press("g")
    await it.shows("## Goal")


async def history(it: Running) -> None:
    await plan(it)
    await it.press("h")
    await it.shows("Compactions so far", "k9")


async def cache(it: Running) -> None:
    it.app.interface.open("cache")
    await it.shows("Prompt cache", "saved", "closes")
    await has_keyboard(it)


async def cache_misses(it: Running) -> None:
    await cache(it)
    await it.press("f", "up", "up")
    await it.shows("with misses", "tokens rewritten")


async def summary(it: Running) -> None:
    await history(it)
    await it.press("enter", "end")
    await it.shows("Summary of k9", "Write the test.")


async def wire(it: Running) -> None:
    it.app.interface.open("wire", "What is next?")
    await it.shows("the next request", "closes")


SCENES: dict[str, Callable[[Running], Awaitable[None]]] = {
    "context-inspector": inspector,
    "context-changes": changes,
    "context-plan": plan,
    "context-plan-drafted": drafted,
    "context-history": history,
    "context-history-summary": summary,
    "context-wire": wire,
    "context-cache": cache,
    "context-cache-misses": cache_misses,
}


@pytest.mark.parametrize("scene", SCENES)
async def test_screen(scene: str) -> None:
    async with running(session=prepared(Inspected().fill(8).rewritten())) as it:
        await it.until(lambda: "nord" in it.app.appearance.library.names)
        await SCENES[scene](it)
        await check_all(it, scene, SIZES if scene.startswith("context-cache") else (MIDDLE, WIDE))


async def test_subagents_in_the_inspector() -> None:
    async with running(session=prepared(Inspected().fill(3).delegated())) as it:
        await it.until(lambda: "nord" in it.app.appearance.library.names)
        await inspector(it)
        await it.shows("3 subagents · 1 running · 41K tokens of their own · price unknown · ")
        await it.press("slash", *"agent-1", "enter", "end")
        await it.shows("agent-1 (explore): Find the …", "done · 20% of 60K · used 14K · $0.01 · ")
        await check_all(it, "context-subagents", (MIDDLE, WIDE))
        await it.press("escape", "slash", *"agent-2", "enter")
        await it.shows("agent-2 (general) · running · ~20% of 60K · used 14K · $0.01")
        await it.press("escape", "slash", *"agent-3 note", "enter")
        await it.hides("agent-1 (explore)")
        board = it.app.main.list_view
        assert [item.agent for item in board.list.items if item.kind == "note"] == ["agent-3"]  # type: ignore[union-attr]


async def test_a_subagent_that_works_is_followed() -> None:
    inspected = Inspected().fill(3).delegated()
    async with running(session=prepared(inspected), size=(120, 40)) as it:
        await inspector(it)
        await it.shows("3 subagents · 1 running · 41K tokens of their own")
        agent = inspected.agents["agent-2"]
        agent.tally = agent.tally.plus(Usage(input_total=20_000, output_total=300), None)
        await it.shows("3 subagents · 1 running · 61K tokens of their own")


async def test_screen_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(session=prepared(Inspected().fill(8).rewritten())) as it:
        await it.until(lambda: it.app.theme == "terminal")
        await changes(it)
        await it.settled()
        check("context-changes-no-colour-80x24", it.screen())


async def test_the_cache_view_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(session=prepared(Inspected())) as it:
        await it.until(lambda: it.app.theme == "terminal")
        await cache(it)
        await it.settled()
        check("context-cache-no-colour-80x24", it.screen())


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (20, 5), (40, 12)])
@pytest.mark.parametrize("scene", ["context", "compact", "wire"])
async def test_small_windows(scene: str, size: tuple[int, int]) -> None:
    async with running(size=size, session=prepared(Inspected().fill(3))) as it:
        it.app.interface.open(scene)  # type: ignore[arg-type]
        await it.until(lambda: it.app.main.list_view is not None and it.app.main.list_view.is_mounted)
        await it.press("down", "d", "pagedown", "end", "tab", "enter", "escape")
        await it.pilot.resize_terminal(100, 30)
        await it.pilot.resize_terminal(*size)
        while it.app.main.list_view is not None:  # on the empty prompt, two more would open the messages to go back to
            await it.press("escape")


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (20, 5), (40, 12)])
async def test_the_cache_view_in_small_windows(size: tuple[int, int]) -> None:
    async with running(size=size, session=prepared(Inspected())) as it:
        it.app.interface.open("cache")
        await it.until(lambda: it.app.main.list_view is not None and it.app.main.list_view.is_mounted)
        await it.press("up", "pageup", "home", "end", "f", "up", "enter", "escape", "slash", *"tools", "enter")
        board = it.app.main.list_view
        await it.until(lambda: [miss.kind for miss in board.chosen.misses[:1]] == ["tools"])  # type: ignore[union-attr]
        await it.pilot.resize_terminal(100, 30)
        await it.shows("First to change: tool descriptions of hub · mcp__hub__say")
        await it.pilot.resize_terminal(*size)
        await it.press("escape", "escape", "escape")  # the words, the filter, the view
        await it.until(lambda: it.app.main.list_view is None)


async def test_requests_that_come_while_the_cache_view_is_open_are_followed() -> None:
    session = prepared(Inspected())
    session.view.cache = shown = cache_history(3)
    async with running(session=session) as it:
        await cache(it)
        board = it.app.main.list_view
        tell_requests(shown, 3, 7)
        await it.until(lambda: board._at == 6)  # type: ignore[union-attr]
        await it.press("up")
        tell_requests(shown, 7, 8)
        await it.shows("8 · all requests")
        assert board._at == 5  # type: ignore[union-attr]
        await it.press("end", "enter")
        await it.shows("Request 8, turn 3", "9,100 tokens rewritten", "mcp__hub__say")


async def test_the_mouse_in_the_cache_view() -> None:
    async with running(session=prepared(Inspected())) as it:
        await cache(it)
        line = next(n for n, text in enumerate(it.screen().split("\n")) if "53,700" in text)
        await it.pilot.click(offset=(20, line))
        await it.shows("Turn 18, ", "53,700 tokens · ")
        await it.pilot.click(offset=(20, line))
        await it.shows("Request 54, turn 18")
        await it.press("escape")
        line = next(n for n, text in enumerate(it.screen().split("\n")) if "60 · all requests" in text)
        await it.pilot.click(offset=(20, line))
        await it.shows("4 · with misses")


async def test_the_cache_view_says_plainly_what_is_not_told() -> None:
    session = prepared(Inspected())
    session.view.cache = cache_history(0)
    async with running(session=session) as it:
        it.app.interface.open("cache")
        await it.shows("No answer yet.")
        await it.press("escape")
        session.view.cache = cache_history(9, reports=False)
        it.app.interface.open("cache")
        await it.shows("The provider reports no cached tokens")
        await it.press("escape")
        session.view.cache = cache_history(9)
        session.view.price = lambda model, usage: None
        it.app.interface.open("cache")
        await it.shows("saving: price unknown", "1 miss: 9.1K rewritten")
        await it.press("up")
        await it.shows("9,100 tokens rewritten · price unknown")


async def test_the_cache_view_draws_ten_thousand_requests_as_quickly_as_few() -> None:
    """Counted, not timed: requests that are looked at and priced for a key."""
    session = prepared(Inspected())
    session.view.cache = cache_history(10_500)
    asked = 0

    def counted(model: str, usage: Usage) -> str | None:
        nonlocal asked
        asked += 1
        return price(model, usage)

    session.view.price = counted
    async with running(session=session, size=(120, 40)) as it:
        it.app.interface.open("cache")
        await it.shows("10,000 · all requests")
        board = it.app.main.list_view
        await it.until(lambda: board._sum[1])  # type: ignore[union-attr]
        asked = 0
        await it.press("up")
        await it.until(lambda: board._at == 10_498)  # type: ignore[union-attr]
        await it.shows("10,500 requests", "newest 10,000 requests", "turn 3500")
        assert asked <= 60


async def test_a_key_makes_only_the_rows_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(board: type, name: str) -> None:
        original = getattr(board, name)

        def counting(*given: object) -> object:
            made.append(name)
            return original(*given)

        monkeypatch.setattr(board, name, counting)

    counted(Inspector, "_item")
    counted(CacheBoard, "_drawn")
    async with running(session=prepared(Inspected().fill(8).rewritten()), size=(120, 40)) as it:
        await inspector(it)
        board = it.app.main.list_view
        await it.until(lambda: board.has_focus)  # type: ignore[union-attr]
        del made[:]
        await it.press("down")
        await it.until(lambda: board.list.at == 1)  # type: ignore[union-attr]
        assert made == ["_item", "_item"]
        await it.press("escape")
        await cache(it)
        board = it.app.main.list_view
        await it.until(lambda: board.has_focus and board._sum[1])  # type: ignore[union-attr]
        del made[:]
        await it.press("up")
        await it.until(lambda: board._at == 58)  # type: ignore[union-attr]
        assert made == ["_drawn", "_drawn"]


async def test_other_colours_draw_everything_again() -> None:
    async with running(session=prepared(Inspected().fill(8).rewritten()), size=(120, 40)) as it:
        await inspector(it)
        board = it.app.main.list_view
        await it.press("down")
        before = [[segment.style for segment in strip] for strip in board._strips]  # type: ignore[union-attr]
        it.app.theme = next(name for name in it.app.available_themes if name != it.app.theme)
        await it.pilot.pause()
        await it.press("down", "up")
        after = [[segment.style for segment in strip] for strip in board._strips]  # type: ignore[union-attr]
        assert not [n for n, (old, new) in enumerate(zip(before, after, strict=True)) if old and old == new]


async def test_where_no_price_is_known_the_context_screens_say_so() -> None:
    inspected = Inspected().fill(8).without_price()
    session = prepared(inspected)
    async with running(session=session, size=(120, 40)) as it:
        await inspector(it)
        await it.shows("Context ~", " ~")
        await changes(it)
        await it.shows("leave the cache · price unknown")
        await it.press("escape", "escape")
        await plan(it)
        await it.shows("price unknown", "leave the cache")


async def test_changes_are_seen_then_applied_together() -> None:
    inspected = Inspected().fill(8)
    session = prepared(inspected)
    async with running(session=session) as it:
        await changes(it)
        board = it.app.main.list_view
        staged = dict(board.list.staged)  # type: ignore[union-attr]
        await it.press("x")
        await it.hides("3 changes")
        await it.press("home", "d", "o", "p", "a")
        await it.until(lambda: session.sent(ChangeContext))
        [sent] = session.sent(ChangeContext)
        assert sent.changes == tuple(ContextChange(action, name) for name, action in staged.items())  # type: ignore[arg-type]
        assert {change.action for change in sent.changes} == {"drop", "offload", "pin"}


async def test_a_key_before_the_screen_had_the_keyboard_counts_once() -> None:
    async with running(session=prepared(Inspected().fill(2))) as it:
        await inspector(it)
        board = it.app.main.list_view
        await it.until(lambda: board.has_focus)  # type: ignore[union-attr]
        await it.app.on_key(events.Key("s", "s"))  # it went to nobody first and came up when the board had the focus
        assert board.list.sort == "size"  # type: ignore[union-attr]
        await it.press("z")  # the board leaves it alone, so it comes up to the application as well
        await it.press("s")
        assert board.list.sort == "age"  # type: ignore[union-attr]


async def test_a_call_and_its_result_are_one_row_with_the_tokens_of_both() -> None:
    inspected = Inspected().fill(2)
    picture = inspected.inspection.picture()
    assert picture is not None
    tokens = {item.id: item.tokens for item in picture.items}
    async with running(session=prepared(inspected)) as it:
        await inspector(it)
        view = it.app.main.list_view
        assert isinstance(view, Inspector)
        rows = {item.id: item for item in view.list.rows}
        assert "t2" in tokens
        assert "t2" not in rows
        assert rows["t2.result"].tokens == tokens["t2"] + tokens["t2.result"]
        assert sum(item.tokens for item in view.list.rows) == picture.budget.used
        await it.press("slash", *"t2.result", "enter", "p")
        assert view.list.changes == (ContextChange("pin", "t2.result"),)
        await it.press("enter")
        await it.shows('"path"', "rule 0 decides here")


async def test_what_was_dropped_is_sorted_by_the_size_that_is_shown() -> None:
    inspected = Inspected().fill(6)
    picture = inspected.inspection.picture()
    assert picture is not None
    largest = max((item for item in picture.items if item.kind == "result"), key=lambda item: item.tokens)
    call = largest.id.removesuffix(".result")
    away = tuple(ViewEntry("dropped", name) for name in (call, largest.id))
    inspected.said.tell(ContextEdited((ContextChange("drop", largest.id),), away))
    async with running(session=prepared(inspected)) as it:
        await inspector(it)
        view = it.app.main.list_view
        assert isinstance(view, Inspector)
        await it.press("s")
        await it.shows("by size")
        sizes = [view.shown_tokens(item) for item in view.list.rows]
        assert sizes == sorted(sizes, reverse=True)
        dropped = next(place for place, item in enumerate(view.list.rows) if item.id == largest.id)
        assert view.list.rows[dropped].tokens == 0
        assert dropped < len(view.list.rows) // 2


async def test_fixed_parts_and_summaries_can_be_read_only() -> None:
    async with running(session=prepared(Inspected().fill(2))) as it:
        await inspector(it)
        await it.press("d")
        await it.shows("in every request")
        await it.press("enter")
        await it.shows("exactly as sent")
        await it.press("escape", "escape")
        await it.until(lambda: it.app.main.list_view is None)


async def test_the_agent_works_while_it_is_open() -> None:
    inspected = Inspected().fill(4)
    session = prepared(inspected)
    async with running(session=session) as it:
        await inspector(it)
        await it.press("s", "d")
        await it.shows("1 change")
        session.view.busy = True
        await it.press("a")
        await it.shows("apply your changes when it ends")
        inspected.said.user("What came meanwhile")
        await it.press("slash", *"meanwhile")
        await it.shows("What came meanwhile")
        await it.press("escape")
        await it.shows("1 change")
        assert not session.sent(ChangeContext)


async def test_the_wire_view_follows_the_conversation_and_keeps_its_place() -> None:
    inspected = Inspected().fill(4)
    async with running(session=prepared(inspected)) as it:
        await wire(it)
        await has_keyboard(it)
        await it.press("slash", *"messages[1]", "enter")
        await it.sees(lambda screen: "messages[1]" in screen and "1 · all sections" in screen)
        await it.press("escape", "down")
        board = it.app.main.list_view
        assert isinstance(board, WireBoard)
        chosen = board._rows[board._at].name
        inspected.said.user("What came meanwhile")
        await it.until(lambda: any("What came meanwhile" in one.text for one in board._rows))
        assert board._rows[board._at].name == chosen


@pytest.mark.parametrize("first", [True, False])
async def test_the_wire_view_tells_a_first_request_from_one_that_shares_nothing(
    monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    before = None if first else ModelRequest((), (), (), max_output_tokens=1)
    monkeypatch.setattr(ContextManager, "newest_request", property(lambda self: before))
    async with running(session=prepared(Inspected().fill(4))) as it:
        await wire(it)
        await it.shows("First request of this run" if first else "No part matches the previous request")


async def test_a_click_below_the_list_of_the_wire_view_selects_nothing() -> None:
    async with running(session=prepared(Inspected().fill(20))) as it:
        await wire(it)
        board = it.app.main.list_view
        assert isinstance(board, WireBoard)
        line = next(n for n, text in enumerate(it.screen().split("\n")) if "closes" in text)
        await it.pilot.click(offset=(2, line))
        assert board._at == 0


async def test_the_hint_of_the_inspector_names_the_keys_in_use() -> None:
    keys = Preferences(keys={"drop": ("x",)})
    async with running(session=prepared(Inspected().fill(4)), preferences=lambda: keys) as it:
        await inspector(it)
        await it.press("a")
        await it.shows("Nothing staged: use p, x, o or r first")


async def test_the_chart_tells_new_from_cached_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(session=prepared(Inspected().fill(8).rewritten()), size=MIDDLE) as it:
        await it.until(lambda: it.app.theme == "terminal")
        await inspector(it)
        await it.shows("▇ cached ▒ new", "▒▒▒")
        await it.press("escape")
        await wire(it)
        await it.shows("▓▓▓")


async def test_without_a_model_the_screens_say_how_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    inspected = Inspected()
    session = prepared(inspected)
    monkeypatch.setattr(inspected.inspection, "picture", lambda: None)
    monkeypatch.setattr(inspected.inspection, "wire", lambda draft="": None)
    session.draft_compaction = lambda: None  # type: ignore[attr-defined]
    async with running(session=session) as it:
        names: tuple[Screen, ...] = ("context", "wire", "compact")
        for name in names:
            it.app.interface.open(name)
            await it.shows("planning is not" if name == "compact" else "No model is connected", "esc closes")
            await has_keyboard(it)
            await it.press("escape")
            await it.hides("esc closes")


async def test_the_context_of_an_earlier_turn_can_be_looked_at_only() -> None:
    inspected = Inspected().fill(4)
    session = prepared(inspected)

    async def at(turn: int) -> Picture | None:
        picture = inspected.inspection.picture()
        return picture if turn == 2 else None

    inspected.inspection.at = at  # type: ignore[method-assign]
    async with running(session=session, size=(100, 30)) as it:
        it.app.interface.open("context", "at 2")
        await it.shows("Context at turn 2", "tokens", "enter text")
        await it.hides("p pin")
        await it.press("d")
        await it.shows("nothing in it can be changed")
        await it.press("escape")
        it.app.interface.open("context", "at 9")
        await it.shows("Context at turn 9", "No request belongs to turn 9.")
        await it.press("escape")


async def test_a_key_leads_from_an_answer_to_its_context() -> None:
    inspected = Inspected().fill(4)
    session: Any = prepared(inspected)

    async def at(turn: int) -> Picture | None:
        return inspected.inspection.picture() if turn == 3 else None

    inspected.inspection.at = at  # type: ignore[method-assign]
    inspected.inspection.turn_of = lambda item: 3  # type: ignore[method-assign]
    session._turns = [answer("an answer")]  # type: ignore[assignment]
    async with running(session=session) as it:
        await it.say("go")
        await it.shows("an answer")
        await it.press("tab")
        await it.shows("w shows the context then")
        it.clock.now += 5
        await it.press("w")
        await it.shows("Context at turn 3", "enter text")


async def test_the_mouse_chooses_and_opens() -> None:
    async with running(session=prepared(Inspected().fill(4))) as it:
        await inspector(it)
        board = it.app.main.list_view
        line = next(n for n, text in enumerate(it.screen().split("\n")) if "t2.result" in text)
        await it.pilot.click(offset=(20, line))
        assert board.list.chosen.id == "t2.result"  # type: ignore[union-attr]
        await it.pilot.click(offset=(20, line))
        await it.shows("rule 0 decides here")


async def test_items_move_and_the_plan_is_applied() -> None:
    inspected = Inspected().fill(8)
    session = prepared(inspected)
    async with running(session=session, size=(120, 40)) as it:
        await drafted(it)
        draft = it.app.main.list_view._draft  # type: ignore[union-attr]
        first = draft.summarised[0]
        await it.press("tab", "tab", "home", "k")
        assert first not in draft.summarised
        await it.press("a")
        await it.until(lambda: session.sent(ApplyPlan))
        [sent] = session.sent(ApplyPlan)
        assert first not in sent.summarise
        assert sent.summary.startswith("## Goal")
        assert it.app.main.list_view is None


@pytest.mark.parametrize(
    ("after", "words"), [(1000, "tokens · "), (996, "tokens · "), (600, "(-40%)"), (1100, "(+10%)")]
)
async def test_the_plan_names_a_change_with_its_sign_and_no_change_not_at_all(after: int, words: str) -> None:
    async with running(session=prepared(Inspected().fill(8)), size=(120, 40)) as it:
        await plan(it)
        board = it.app.main.list_view
        assert isinstance(board, PlanBoard)
        result = board._result()
        assert result is not None
        head = board._head(replace(result, before=1000, after=after), 120, TERMINAL)[0]
        assert words in "".join(run[0] for run in head)


async def test_a_summary_edited_to_nothing_leaves_the_record() -> None:
    session = prepared(Inspected().fill(8))
    async with running(session=session, size=(120, 40)) as it:
        await drafted(it)
        await it.press("e")
        await it.until(lambda: it.app.main.list_view._editor is not None and it.app.main.list_view._editor.has_focus)  # type: ignore[union-attr]
        await it.press("ctrl+a", "delete", "escape")
        await it.until(lambda: it.app.main.list_view._editor is None)  # type: ignore[union-attr]


async def test_a_draft_that_comes_while_the_user_writes_is_kept_unless_they_wrote() -> None:
    inspected = Inspected().fill(8)
    async with running(session=prepared(inspected), size=(120, 40)) as it:
        await plan(it)
        board = it.app.main.list_view
        for typed in ("", "mine"):
            await it.press("e")
            await it.until(lambda: board._editor is not None and board._editor.has_focus)  # type: ignore[union-attr]
            await it.press(*typed)
            board._ask()  # type: ignore[union-attr]
            await it.until(lambda: not board._writing)  # type: ignore[union-attr]
            await it.press("escape")
            await it.until(lambda: board._editor is None)  # type: ignore[union-attr]
            assert ("mine" in board._summary) == bool(typed)  # type: ignore[union-attr]
            assert "## Goal" in board._summary  # type: ignore[union-attr]


async def test_an_editor_that_was_only_opened_changes_nothing() -> None:
    async with running(session=prepared(Inspected().fill(8)), size=(120, 40)) as it:
        await plan(it)
        board = it.app.main.list_view
        await it.press("e")
        await it.until(lambda: board._editor is not None and board._editor.has_focus)  # type: ignore[union-attr]
        await it.press("escape")
        await it.shows("No draft yet. g: let the model write one")
        assert board._summary is None  # type: ignore[union-attr]


async def test_the_editor_has_the_keyboard_although_its_key_came_before_the_plan_had_it() -> None:
    async with running(session=prepared(Inspected().fill(8)), size=(120, 40)) as it:
        it.app.interface.open("compact")
        await it.until(lambda: it.app.main.list_view is not None)
        board = it.app.main.list_view
        await board.take_key(events.Key("e", "e"))  # type: ignore[union-attr]
        await it.until(lambda: board._editor is not None and board._editor.is_mounted)  # type: ignore[union-attr]
        await it.pilot.pause()
        assert board._editor.has_focus  # type: ignore[union-attr]


async def test_the_score_is_told_of_a_summary_only() -> None:
    async with running(session=prepared(Inspected().fill(8)), size=(120, 40)) as it:
        await plan(it)
        await it.shows("No draft yet. g: let the model write one · e: write it yourself · a: apply")
        assert "kept:" not in it.screen()
        assert "things to keep" not in it.screen()
        await it.press("g")
        await it.shows("25 of 25 key details kept: 2 in this text, 23 in the record")


@pytest.mark.parametrize("scene", ["plan", "cache"])
async def test_what_is_cut_in_a_narrow_window_says_so(scene: str) -> None:
    async with running(session=prepared(Inspected().fill(8)), size=(40, 15)) as it:
        if scene == "cache":
            await cache(it)
        else:
            await plan(it)
        await it.settled()
        check(f"context-{scene}-40x15", it.screen())


async def test_the_sources_of_a_line_open() -> None:
    async with running(session=prepared(Inspected().fill(8)), size=(120, 40)) as it:
        await drafted(it)
        await it.press("down", "down", "down", "down")
        await it.shows("[")
        await it.press("enter")
        await it.shows("Sources of a line: ")


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_a_text_that_is_read_breaks_at_spaces_and_loses_nothing(size: tuple[int, int]) -> None:
    inspected = Inspected().fill(1)
    words = [f"word{number}" for number in range(120)]
    inspected.said.user(f"{' '.join(words)} {'x' * 300}\n\tindented\n\nthe end \x1b[31mred\x07")
    async with running(session=prepared(inspected), size=size) as it:
        await inspector(it)
        await it.press("slash", *"word0", "enter", "enter")
        await it.shows("exactly as sent", "the end")
        lines = [line.strip() for line in it.screen().split("\n")[2:]]
        told = lines[: lines.index("↑↓ PgUp PgDn scroll   esc back")]
        assert " ".join(told).split()[:120] == words
        assert max(map(len, told)) <= size[0] - 2
        assert "".join(told).count("x") == 300
        assert "indented" in told
        assert "the end" in "\n".join(told)
        assert "\x1b" not in it.screen()
        await it.press("escape")
        await it.shows("/ word0")


async def test_all_keys_of_a_screen_are_listed_where_they_have_no_room() -> None:
    async with running(session=prepared(Inspected().fill(8)), size=(80, 24)) as it:
        await inspector(it)
        await it.shows("? all keys   esc closes")
        await it.hides("f filter")
        await it.press("question_mark")
        await it.shows("sort by order, size, age or last use", "show only one kind of item", "pin the item", "closes")
        await it.press("escape")
        await it.shows("? all keys")
        await it.press("slash", "question_mark")
        await it.shows("/ ?")
    async with running(session=prepared(Inspected().fill(8)), size=(200, 60)) as it:
        await inspector(it)
        await it.shows("f filter", "s sort")
        await it.hides("all keys")
        await it.press("escape")
        await plan(it)
        await has_keyboard(it)
        await it.press("question_mark")
        await it.shows("in a compaction plan: edit the summary", "the earlier compactions", "cancels")


@pytest.mark.parametrize("width", [80, 100, 200])
async def test_the_cost_of_a_change_is_told_in_any_window(width: int) -> None:
    async with running(session=prepared(Inspected().fill(8)), size=(width, 24)) as it:
        await inspector(it)
        await it.press("s", "d")
        await it.shows("1 change: -2,", "tokens", "leave the cache · costs $0.0")
        foot = next(line for line in it.screen().split("\n") if "1 change" in line)
        assert "…" not in foot


async def test_an_item_has_the_same_size_in_the_inspector_and_in_the_plan() -> None:
    inspected = Inspected().fill(8)
    inspected.said.call("read_file", {"path": "src/last.py"}, "since the newest report\n" * 50)
    picture, draft = inspected.inspection.picture(), inspected.draft()
    assert picture is not None
    assert draft is not None
    shown = {item.id: item.tokens for item in picture.items if item.state != "fixed"}
    assert {item.id: item.tokens for item in draft.items} == shown
    fixed = sum(item.tokens for item in picture.items if item.state == "fixed")
    assert sum(shown.values()) + fixed == picture.budget.used
    wire = inspected.inspection.wire()
    assert wire is not None
    assert sum(section.tokens for section in wire.sections) == wire.tokens


async def test_the_sources_of_a_line_open_from_the_history() -> None:
    async with running(session=prepared(Inspected().fill(8).rewritten()), size=(120, 40)) as it:
        await summary(it)
        await it.press("enter")
        await it.shows(
            "Sources of a line: u1, t2",
            "Write the test.",
            "[u1 Request 0",
            "[t2 read_file src/f0.py]",
            "rule 0 decides here",
        )
        await it.press("escape", "escape")
        await it.shows("Compactions so far")
        await it.press("escape", "h", "enter", "enter")
        await it.shows("names no source")


async def test_a_plan_that_is_out_of_date_is_made_anew() -> None:
    inspected = Inspected().fill(8)
    session = prepared(inspected)
    async with running(session=session, size=(120, 40)) as it:
        await plan(it)
        inspected.said.user("What came meanwhile")
        await it.press("a")
        await it.shows("has changed; check")
        assert not session.sent(ApplyPlan)


async def test_undo_and_redo_in_the_history() -> None:
    inspected = Inspected().fill(8).rewritten()
    session = prepared(inspected)
    async with running(session=session, size=(120, 40)) as it:
        await history(it)
        await it.shows("Undo restores it: ", " tokens")
        await it.press("u")
        await it.until(lambda: session.sent(UndoCompaction))
        assert session.sent(UndoCompaction) == [UndoCompaction("k9")]
        inspected._tell(5, CompactionUndone("k9"))
        inspected.said.tell(CompactionUndone("k9"))
        await it.press("u")
        await it.until(lambda: session.sent(RedoCompaction))
        await it.shows("Redo: ")


async def test_what_a_later_compaction_replaced_is_not_offered_back() -> None:
    inspected = Inspected().fill(8).rewritten()
    for body in (CompactionUndone("k9"), CompactionCompleted("k10", (), 30_000, 12_000, 40, 12, ("record",))):
        inspected._tell(5, body)
        inspected.said.tell(body)
    session = prepared(inspected)
    async with running(session=session, size=(120, 40)) as it:
        await history(it)
        await it.shows("k10 turn 5", "active", "undo back to here")
        await it.press("down")
        await it.shows("replaced")
        await it.until(lambda: "undo back" not in it.screen() and "redo up" not in it.screen())
        await it.press("u")
        await it.shows("k9 cannot be redone")
        assert not session.sent(RedoCompaction)


async def test_a_key_with_the_opening_of_a_screen_is_the_screens() -> None:
    session = prepared(Inspected())
    session.view.cache = cache_history(9)
    async with running(session=session) as it:
        it.app.interface.open("cache")
        await it.at_once("up", "z")
        await it.settled()
        await it.shows("9,100 tokens rewritten")
        assert it.text == ""


def test_each_component_has_its_own_colour_in_the_bar_and_in_the_list() -> None:
    own = (
        "system prompt",
        "user instructions",
        "project instructions",
        "memory",
        "playbook",
        "skills",
        "tool descriptions",
        "user messages",
        "attached files",
        "summaries",
        "assistant messages",
        "retrieved pointers",
        "reasoning",
        "tool calls",
        "tool results",
        "notes of swecli",
    )
    names = (*own[:7], "tool descriptions of maps", *own[7:])
    for palette in (DARK, LIGHT, *map(palette_of, known())):
        styles = colours(palette, names)
        assert len({styles[name] for name in names}) == len(names), palette.name
        assert all(styles[name] == colours(palette, ())[name] for name in own), palette.name


def test_descriptions_of_tools_are_shown_as_json() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    inspection = Inspected(tools=(ToolSchema("peek", "Looks at a path.", schema),)).inspection
    picture = inspection.picture()
    assert picture is not None
    (item,) = [item for item in picture.items if item.state == "fixed" and item.source == TOOLS]
    assert inspection.text(item) == (f"peek\nLooks at a path.\n{json.dumps(schema, separators=(',', ':'))}", "")


async def test_a_range_is_marked_priced_and_folded() -> None:
    session = prepared(Inspected().fill(6))
    asked: list[tuple[str, ...]] = []

    def fold(names: tuple[str, ...], text: str) -> Effect | str:
        asked.append(names)
        if len(names) == 1:
            return "u0 is your newest message, so it is not removed."
        return Effect(30_000, 24_000, 9_000, None, None, thoughts=2)

    session.prices = SimpleNamespace(fold=fold)  # type: ignore[attr-defined]
    async with running(session=session, size=(120, 40)) as it:
        await inspector(it)
        await it.press("home", "m")  # a part of every request
        await it.shows("A range begins and ends with a message")
        await it.press("end", "m", "m")  # one item alone
        await it.shows("is your newest message")
        await it.press("escape", "home", *["down"] * 6, "m")
        await it.shows("m fold to here")
        assert "fold from here" not in it.screen()
        await it.press("a")
        await it.shows("Only one end of the range is marked")
        await it.press(*["down"] * 4, "m")
        await it.shows("Fold 5 items into a few lines: -6,000 tokens", "9.0K leave the cache", "2 thoughts", "≡ fold")
        await it.press("d")
        await it.shows("1 change:")
        await it.press("x", "up", "m", *["up"] * 3, "m", "a")
        await it.until(lambda: bool(session.sent(ApplyPlan)))
        assert session.sent(ApplyPlan) == [ApplyPlan(asked[-1], fold=True)]
        assert len(asked[-1]) == 4


async def test_a_view_without_rows_offers_no_key_to_read_one() -> None:
    async with running(session=prepared(Inspected().fill(2))) as it:
        await cache(it)
        await it.shows("enter read")
        await it.press("/", *"nowhere")
        await it.shows("No request matches.")
        await it.hides("enter read")


@pytest.mark.parametrize("room", [*range(4, 30), 80])
def test_sizes_of_a_column_are_never_cut(room: int) -> None:
    items = [PlannedItem(str(number), 1_000, "summarised", pinned=False) for number in range(13)]
    text = _sizes(items, room)
    assert len(text) <= max(room, len("13K"))
    assert text.endswith(("13K", "13K tokens"))
    assert text in "13 items · 13K tokens" or text == "13 · 13K"
