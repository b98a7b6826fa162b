"""The widget in a running application: following, keeping the place, sizes, folding, searching, selecting."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot

from swecli.core.protocol.blocks import DiffBlock, MarkdownBlock, TextBlock
from swecli.core.protocol.events import Event, ItemCompleted, ItemDelta, ItemStarted, Rewound, TurnEnded
from swecli.tui.transcript import page as page_module
from swecli.tui.transcript.blocks import Remove
from swecli.tui.transcript.palette import DARK, LIGHT
from swecli.tui.transcript.rows import cells
from swecli.tui.transcript.view import Transcript
from tests.tui.frames import FRAMES
from tests.tui.transcript.events import answer, session, stream, tool, user
from tests.tui.transcript.test_hostile import TRAPS


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame is drawn when it comes."""
    FRAMES.watch(monkeypatch, every=True)


class Host(App[None]):
    """An application with nothing but a transcript."""

    def compose(self) -> ComposeResult:
        yield Transcript()

    def on_mount(self) -> None:
        self.copied: list[str] = []

    def on_transcript_copy_requested(self, message: Transcript.CopyRequested) -> None:
        self.copied.append(message.text)


@dataclass
class Play:
    """A running host."""

    app: Host
    pilot: Pilot[Any]
    view: Transcript
    seq: int = 1

    def apply(self, *bodies: Any) -> None:
        self.view.apply(stream(*bodies, first=self.seq))
        self.seq += len(bodies)

    def fill(self, turns: int, lines: int = 4) -> None:
        """Turns with one answer each whose lines say where they belong."""
        bodies: list[Any] = []
        for number in range(turns):
            text = "\n".join(f"turn {number} line {line}" for line in range(lines))
            bodies += [*user(f"u{number}", f"question {number}"), *answer(f"a{number}", text), TurnEnded("done")]
        self.apply(*bodies)

    def lines(self) -> list[str]:
        region = self.view.scrollable_content_region
        crop = Region(0, 0, region.width, region.height)
        return [strip.text.rstrip() for strip in self.view.render_lines(crop)]

    @property
    def at_end(self) -> bool:
        return self.view.scroll_offset.y == max(0, self.view.page.index.total - self.view.view_height)


@asynccontextmanager
async def playing(width: int = 60, height: int = 12) -> AsyncIterator[Play]:
    app = Host()
    async with app.run_test(size=(width, height)) as pilot:
        await pilot.pause()
        yield Play(app, pilot, app.query_one(Transcript))


async def test_the_end_is_followed_until_the_user_scrolls_up() -> None:
    async with playing() as play:
        play.fill(10)
        assert play.at_end
        assert play.lines()[-1] == " ✓ done"
        play.view.action_page_up()
        assert not play.view.following
        before = play.lines()
        play.apply(ItemStarted("x", "text"))
        for number in range(30):
            play.apply(ItemDelta("x", f"new line {number}\n"))
        assert play.lines() == before
        assert play.view.unseen >= 30
        play.view.action_scroll_end()
        assert play.view.following
        assert play.view.unseen == 0
        assert play.lines()[-1] == " new line 29"


async def test_scrolling_back_down_follows_again() -> None:
    async with playing() as play:
        play.fill(10)
        play.view.action_page_up()
        while not play.view.following:
            play.view.action_scroll_down()
        assert play.at_end


async def test_a_growing_block_in_sight_grows_below_the_place_that_is_kept() -> None:
    async with playing(height=10) as play:
        play.fill(3)
        play.apply(ItemStarted("x", "text"), ItemDelta("x", "\n".join(f"old {n}" for n in range(20)) + "\n"))
        play.view.action_scroll_up()
        top = play.lines()[0]
        for number in range(10):
            play.apply(ItemDelta("x", f"more {number}\n"))
            assert play.lines()[0] == top
        assert play.view.page.index.total > play.view.scroll_offset.y + play.view.view_height


async def test_scrolling_up_through_unmeasured_blocks_never_jumps() -> None:
    async with playing(width=40, height=9) as play:
        play.fill(60, lines=7)
        seen = play.lines()
        for _ in range(900):
            if play.view.scroll_offset.y == 0:
                break
            play.view.action_scroll_up()
            now = play.lines()
            assert now[1:] == seen[:-1]
            seen = now
        assert play.view.scroll_offset.y == 0
        assert seen[0] == " › question 0"


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (200, 60), (3, 2), (41, 13)])
async def test_any_size_keeps_the_end_or_the_place(size: tuple[int, int]) -> None:
    async with playing() as play:
        play.view.apply(session())
        play.seq = 500
        play.fill(12)
        await play.pilot.resize_terminal(*size)
        await play.pilot.pause()
        assert play.at_end
        await play.pilot.resize_terminal(60, 12)
        await play.pilot.pause()
        assert play.at_end
        play.view.scroll_to_line(play.view.page.index.top(play.view.page.place("u5") or 0) + 1)
        assert play.lines()[0] == " › question 5"
        await play.pilot.resize_terminal(*size)
        await play.pilot.pause()
        await play.pilot.resize_terminal(60, 12)
        await play.pilot.pause()
        assert "question 5" in "".join(play.lines()[:2]) or play.at_end


async def test_more_room_above_the_end_does_not_stop_following() -> None:
    async with playing(width=40, height=5) as play:
        play.fill(2)
        words = " ".join(f"twenty-one-characters{number}" for number in range(10, 40))
        last = answer("a", "one\n\ntwo\n\nthree")
        play.apply(*answer("taller-than-estimated", words), *last, TurnEnded("done"))
        for height in (33, 5, 14, 40, 6):
            await play.pilot.resize_terminal(40, height)
            await play.pilot.pause()
            assert play.view.following
            assert play.at_end
            assert play.lines()[-1] == " ✓ done"


async def test_a_storm_of_sizes_and_actions_keeps_everything_consistent() -> None:
    rng = random.Random(7)
    async with playing() as play:
        play.view.apply(session())
        play.seq = 1_000
        play.apply(ItemStarted("live", "text"))
        actions: list[Callable[[], object]] = [
            play.view.action_page_up,
            play.view.action_page_down,
            play.view.action_scroll_up,
            play.view.action_scroll_home,
            play.view.action_scroll_end,
            play.view.action_cursor_previous,
            play.view.action_cursor_next,
            play.view.action_toggle_block,
            play.view.action_next_density,
            lambda: play.view.find("the"),
            play.view.action_find_next,
            lambda: play.apply(ItemDelta("live", "- word " * rng.randint(1, 30) + "\n" * rng.randint(0, 2))),
            lambda: play.view.show([MarkdownBlock("**shown**\n\ntext"), TextBlock("x")], "Title"),
        ]
        for _ in range(150):
            if rng.random() < 0.1:
                await play.pilot.resize_terminal(rng.randint(1, 120), rng.randint(1, 40))
                await play.pilot.pause()
            rng.choice(actions)()
            index, view = play.view.page.index, play.view
            assert 0 <= view.scroll_offset.y <= max(0, index.total - view.view_height)
            assert view.virtual_size.height == index.total
            assert len(play.lines()) == view.view_height
            first = index.at(int(view.scroll_offset.y)).block
            last = index.at(int(view.scroll_offset.y) + view.view_height - 1).block
            for number in range(first, min(last + 1, len(index))):
                assert index.is_exact(number)
                assert index.height(number) == len(view.page.rows(number))
            assert not view.following or play.at_end


async def test_only_what_is_in_sight_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []
    original = page_module.render_block

    def counting(block: Any, *args: Any, **options: Any) -> Any:
        rendered.append(block.id)
        return original(block, *args, **options)

    monkeypatch.setattr(page_module, "render_block", counting)
    async with playing(height=20) as play:
        play.fill(2_000)
        play.lines()
        assert len(rendered) < 40
        rendered.clear()
        play.apply(*tool("t", "search", "x", ItemCompleted("t", "ok", detail="1 match")))
        play.lines()
        assert set(rendered) == {"t"}
        rendered.clear()
        play.view.action_page_up()
        play.lines()
        assert len(rendered) < 40


async def test_one_batch_costs_one_size_and_streaming_paints_new_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async with playing(height=20) as play:
        play.fill(5)
        sizes: list[int] = []
        monkeypatch.setattr(play.view, "_set_size", lambda: sizes.append(1))
        play.apply(*user("u", "x"), *answer("b", "y"), *tool("t", "search", "x", ItemCompleted("t", "ok")))
        assert sizes == [1]
        monkeypatch.undo()
        play.apply(ItemStarted("s", "text"), ItemDelta("s", "one\n\ntwo\n\n" * 10))
        play.lines()
        rows = play.view.page.rows(play.view.page.place("s") or 0)
        strips = [row.painted for row in rows]
        play.apply(ItemDelta("s", "three"))
        play.lines()
        again = play.view.page.rows(play.view.page.place("s") or 0)
        kept = sum(row.painted is strip for row, strip in zip(again, strips, strict=False) if strip is not None)
        assert kept >= sum(strip is not None for strip in strips) - 2


async def test_the_block_cursor_opens_folds_and_copies() -> None:
    async with playing(height=30) as play:
        new = "".join(f"x{n} = {n}\n" for n in range(40))
        done = ItemCompleted("t", "ok", (), (DiffBlock("a.py", None, new),), "+40 -0")
        play.apply(*user("u", "write"), *tool("t", "write_file", "a.py", done), *answer("a", "It is **done**."))
        play.view.focus()
        await play.pilot.press("up")
        assert any(line.startswith("▌") and "done" in line for line in play.lines())
        await play.pilot.press("up")
        number = play.view.page.place("t")
        assert play.view.cursor == number
        assert any("Ctrl+O shows all" in line for line in play.lines())
        await play.pilot.press("enter")
        assert not any("Ctrl+O shows all" in line for line in play.lines())
        assert number is not None
        assert play.view.page.index.height(number) > 40
        await play.pilot.press("enter")
        assert play.view.page.index.height(number) < 20
        await play.pilot.press("y")
        assert play.app.copied[0].startswith("Write a.py  +40 -0")
        await play.pilot.press("escape")
        assert play.view.cursor is None


async def test_the_block_cursor_stays_at_its_block_when_an_earlier_one_goes() -> None:
    async with playing(height=30) as play:
        play.apply(*answer("a", "first"), *answer("b", "second"), *answer("c", "third"))
        play.view.action_cursor_previous()
        play.view.action_cursor_previous()
        assert play.view.cursor == 1
        play.view.change_blocks([Remove("a")])
        assert play.view.cursor == play.view.page.place("b") == 0
        assert [line for line in play.lines() if line.startswith("▌")] == ["▌second"]
        play.view.change_blocks([Remove("b")])
        assert play.view.cursor == play.view.page.place("c")
        play.view.change_blocks([Remove("c")])
        assert play.view.cursor is None


async def test_densities_go_from_usual_to_full_to_short() -> None:
    async with playing(height=30) as play:
        play.apply(*session_events(0, 12))
        usual = play.view.page.index.total
        play.view.action_next_density()
        assert any("Think well." in line and "Reasoning" not in line for line in play.lines())
        assert play.view.page.index.total > usual
        play.view.action_next_density()
        assert play.view.density == "short"
        assert play.view.page.index.total <= usual
        play.view.action_next_density()
        assert play.view.page.index.total == usual


def session_events(first: int, last: int) -> list[Any]:
    return [event.body for event in session()[first:last]]


async def test_a_search_finds_what_arrives_meanwhile() -> None:
    async with playing(height=10) as play:
        play.fill(3)
        assert play.view.find("needle") == 0
        play.apply(ItemStarted("a", "text"), ItemDelta("a", "the nee"))
        assert play.view.search_state.total == 0
        play.apply(ItemDelta("a", "dle\n" + "x\n" * 30))
        assert (play.view.search_state.current, play.view.search_state.total) == (0, 1)
        play.view.action_find_previous()
        assert (play.view.search_state.current, play.view.search_state.total) == (1, 1)
        assert any("the needle" in line for line in play.lines())
        play.apply(*answer("z", "a needle again"))
        assert (play.view.search_state.current, play.view.search_state.total) == (1, 2)
        play.view.action_find_next()
        assert any("a needle again" in line for line in play.lines())


async def test_a_search_continues_in_a_transcript_that_is_drawn_anew() -> None:
    async with playing(height=10) as play:
        play.apply(*answer("a", "a needle"))
        assert play.view.find("needle") == 1
        play.view.clear()
        assert (play.view.search_state.query, play.view.search_state.total) == ("needle", 0)
        play.apply(*answer("earlier", "an earlier needle"), *answer("a", "a needle"))
        assert play.view.search_state.total == 2
        play.view.action_find_previous()
        assert play.view.search_state.current == 2


async def test_search_goes_from_match_to_match_and_opens_what_is_folded() -> None:
    async with playing(height=10) as play:
        play.fill(6)
        reasoning = [ItemStarted("r", "reasoning"), ItemDelta("r", "x\n" * 300 + "the needle\n" + "y\n" * 300)]
        play.apply(*reasoning, TurnEnded("done"))
        play.apply(*answer("z", "a Needle here\nand a needle there"), *answer("zz", "nothing"))
        assert play.view.find("needle") == 2
        assert (play.view.search_state.current, play.view.search_state.total) == (2, 2)
        assert any("needle there" in line for line in play.lines())
        play.view.action_find_previous()
        assert any("a Needle here" in line for line in play.lines())
        play.view.action_find_previous()
        assert (play.view.search_state.current, play.view.search_state.total) == (1, 2)
        assert any("the needle" in line for line in play.lines())
        play.view.action_find_next()
        play.view.action_find_next()
        play.view.action_find_next()
        assert play.view.search_state.current == 1
        region = Region(0, 0, 59, 10)
        marked = [
            part.text
            for strip in play.view.render_lines(region)
            for part in strip
            if part.style and part.style.bgcolor == DARK.match_current.bgcolor
        ]
        assert marked == ["needle"]
        play.view.clear_find()
        assert play.view.find("not to be found anywhere") == 0


async def test_the_current_match_stays_current_at_another_width() -> None:
    def marked(play: Play) -> list[str]:
        found: list[str] = []
        for strip in play.view.render_lines(Region(0, 0, play.view.size.width - 1, play.view.size.height)):
            if any(part.style and part.style.bgcolor == DARK.match_current.bgcolor for part in strip):
                found.append(strip.text)
        return found

    async with playing(width=60, height=30) as play:
        words = "\n\n".join(f"{'long words ' * 8}needle {number} {'more words ' * 6}" for number in range(4))
        play.apply(*answer("a", words))
        play.view.find("needle")
        play.view.action_find_previous()
        assert len(marked(play)) == 1
        assert "needle 2" in marked(play)[0]
        for width in (41, 100, 60):
            await play.pilot.resize_terminal(width, 30)
            await play.pilot.pause()
            (line,) = marked(play)
            assert "needle 2" in line
        play.view.action_find_previous()
        assert "needle 1" in marked(play)[0]


async def drag(play: Play, start: tuple[int, int], end: tuple[int, int]) -> str | None:
    await play.pilot.mouse_down(Transcript, offset=start)
    await play.pilot.hover(Transcript, offset=end)
    await play.pilot.pause()
    await play.pilot.mouse_up(Transcript, offset=end)
    await play.pilot.pause()
    return play.app.screen.get_selected_text()


async def test_selected_text_is_copied_without_margins_and_with_wrapped_rows_joined() -> None:
    async with playing(width=30, height=12) as play:
        play.apply(*user("u", "first\nsecond"), *answer("a", "a paragraph that is wrapped here\n\n- an item of a list"))
        lines = play.lines()
        assert lines[:2] == [" › first", "   second"]
        assert await drag(play, (3, 0), (8, 1)) == "first\nsecond"
        top = next(n for n, line in enumerate(lines) if "a paragraph" in line)
        assert await drag(play, (1, top), (27, top + 1)) == "a paragraph that is wrapped here"
        assert await drag(play, (4, 0), (5, 0)) == "ir"
        item = next(n for n, line in enumerate(lines) if "• an item" in line)
        assert await drag(play, (0, item), (28, item)) == "an item of a list"
        marked = [
            part.text
            for strip in play.view.render_lines(Region(0, item, 29, 1))
            for part in strip
            if part.style and part.style.bgcolor != Style().bgcolor and "item" in part.text
        ]
        assert marked


async def test_wide_characters_are_selected_by_what_is_under_the_mouse() -> None:
    async with playing(width=30, height=6) as play:
        play.apply(*answer("a", "日本語 text"))
        assert await drag(play, (1, 0), (3, 0)) == "日本"


async def test_a_selection_stays_with_its_text_when_heights_above_become_exact() -> None:
    async with playing(width=40, height=9) as play:
        play.fill(40, lines=7)
        chosen = await drag(play, (1, 2), (30, 3))
        assert chosen
        for _ in range(12):
            play.view.action_page_up()
        assert play.app.screen.get_selected_text() == chosen


async def test_scrolling_while_the_mouse_is_down_extends_the_selection() -> None:
    async with playing(width=40, height=9) as play:
        play.fill(10)
        await play.pilot.mouse_down(Transcript, offset=(1, 5))
        await play.pilot.hover(Transcript, offset=(20, 4))
        await play.pilot.pause()
        before = play.app.screen.get_selected_text() or ""
        for _ in range(6):
            play.view.action_scroll_up()
        after = play.app.screen.get_selected_text() or ""
        assert len(after.splitlines()) >= len(before.splitlines()) + 6
        await play.pilot.mouse_up(Transcript, offset=(20, 4))


async def test_no_color_leaves_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with playing(height=30) as play:
        play.view.apply(session())
        for strip in play.view.render_lines(Region(0, 0, 59, 30)):
            for part in strip:
                for colour in (part.style.color, part.style.bgcolor) if part.style else ():
                    assert colour is None or colour.is_default or len(set(colour.get_truecolor())) == 1


async def test_another_palette_draws_everything_anew() -> None:
    async with playing(height=30) as play:
        play.view.apply(session())
        before = play.lines()

        def colours() -> set[str]:
            strips = play.view.render_lines(Region(0, 0, 59, 30))
            return {str(part.style.color) for strip in strips for part in strip if part.style}

        dark = colours()
        play.view.set_palette(LIGHT)
        assert play.lines() == before
        assert colours() != dark


async def test_what_commands_show_stands_between_the_events() -> None:
    async with playing(height=20) as play:
        play.fill(1)
        play.view.show([TextBlock("[red]text[/red]")], "Help")
        play.view.show([])
        play.apply(*user("u9", "next"))
        text = "\n".join(play.lines())
        assert text.index("done") < text.index("Help") < text.index("[red]text[/red]") < text.index("next")


async def test_a_rewind_and_a_new_session_leave_a_consistent_view() -> None:
    async with playing(height=12) as play:
        play.fill(8)
        play.view.action_page_up()
        play.apply(Rewound("u3"), *user("u9", "again"))
        assert len(play.lines()) == 12
        play.view.action_scroll_end()
        assert "Rewound" in "\n".join(play.lines())
        play.view.clear()
        assert set(play.lines()) == {""}
        assert play.view.virtual_size.height == 0
        play.fill(1)
        assert " › question 0" in play.lines()


async def test_events_before_the_widget_is_shown_are_not_lost() -> None:
    class Early(App[None]):
        def compose(self) -> ComposeResult:
            view = Transcript()
            view.apply(early)
            yield view

    early: list[Event] = stream(*user("u", "early"))
    app = Early()
    async with app.run_test(size=(40, 6)) as pilot:
        await pilot.pause()
        view = app.query_one(Transcript)
        assert view.render_lines(Region(0, 0, 39, 1))[0].text.rstrip() == " › early"


@pytest.mark.parametrize("width", [7, 40])
async def test_hostile_text_is_painted_as_text_of_the_right_width(width: int) -> None:
    async with playing(width=width, height=30) as play:
        bodies: list[Any] = []
        for number, text in enumerate(TRAPS.values()):
            done = ItemCompleted(f"t{number}", "error", (), (TextBlock(text), DiffBlock(text, None, text)), text)
            bodies += [*user(f"u{number}", text), *answer(f"a{number}", text)]
            bodies += tool(f"t{number}", "run_command", text, done, text)
        play.apply(*bodies)
        play.view.find("x")
        for _ in range(120):
            crop = Region(0, 0, play.view.painter.width, play.view.view_height)
            for strip in play.view.render_lines(crop):
                assert strip.cell_length == crop.width
                assert sum(cells(part.text) for part in strip) == crop.width
                assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in strip.text)
            if not int(play.view.scroll_offset.y):
                break
            play.view.scroll_to_line(int(play.view.scroll_offset.y) * 9 // 10 - 1)


async def test_turns_are_walked_by_their_messages() -> None:
    async with playing() as play:
        play.fill(6, lines=9)
        await play.pilot.pause()
        assert play.at_end
        seen = []
        for _ in range(4):
            play.view.action_turn_previous()
            await play.pilot.pause()
            seen.append(play.lines()[1].strip())
        assert seen == [f"› question {number}" for number in (5, 4, 3, 2)]
        assert not play.view.following
        play.view.action_turn_next()
        await play.pilot.pause()
        assert play.lines()[1].strip() == "› question 3"
        for _ in range(3):
            play.view.action_turn_next()
            await play.pilot.pause()
        assert play.at_end
        assert play.view.following
        for _ in range(9):
            play.view.action_turn_previous()
            await play.pilot.pause()
        assert play.lines()[0].strip() == "› question 0"


async def test_jumping_in_an_empty_transcript_does_nothing() -> None:
    async with playing() as play:
        play.view.action_turn_previous()
        play.view.action_turn_next()
        assert play.view.following


async def test_a_running_step_counts_its_seconds_until_it_ends() -> None:
    async with playing() as play:
        play.view._clock = lambda: 1_000_000_000.0
        *begun, end = tool("t", "run_command", "make", ItemCompleted("t", "ok"))
        play.apply(*begun)
        assert play.view._ticker is not None
        play.view._tick()
        assert any("make   " in line and line.endswith("m") for line in play.lines())
        play.apply(end)
        assert play.view._ticker is None
