"""The private names of Textual that are used exist in the version that is installed."""

from __future__ import annotations

from textual import events
from textual.app import App, ComposeResult
from textual.drivers._writer_thread import WriterThread
from textual.screen import Screen
from textual.selection import SelectState
from textual.widgets import Static

from swecli.tui import compat
from tests.support.waiting import until
from tests.tui.frames import FRAMES


async def test_the_selection_of_a_screen_is_known() -> None:
    class Host(App[None]):
        def compose(self) -> ComposeResult:
            yield Static("some text")

    app = Host()
    async with app.run_test() as pilot:
        assert not compat.is_selecting(app.screen)
        await pilot.mouse_down(Static, offset=(1, 0))
        await pilot.hover(Static, offset=(4, 0))
        await pilot.pause()
        assert isinstance(app.screen._select_state, SelectState)
        assert compat.is_selecting(app.screen)
        compat.extend_selection(app.query_one(Static))
        await pilot.mouse_up(Static, offset=(4, 0))
        await pilot.pause()
        assert not compat.is_selecting(app.screen)
        assert compat.writer_depth(app) == 0


class Output:
    """Stands for the thread that writes to the terminal."""

    waiting = 0
    _queue = property(lambda self: self)

    def qsize(self) -> int:
        return self.waiting


async def test_nothing_is_drawn_until_the_terminal_has_taken_the_last_frame() -> None:
    class Host(App[None]):
        def get_default_screen(self) -> Screen[None]:
            return compat.PacedScreen(id="_default")

        def compose(self) -> ComposeResult:
            yield Static("one")

    app, output = Host(), Output()
    async with app.run_test() as pilot:
        app._driver._writer_thread = output  # type: ignore[union-attr]
        before = FRAMES.count
        output.waiting = 1
        for text in ("two", "three", "four"):
            app.query_one(Static).update(text)
            await pilot.pause(2 * compat.BACK_PRESSURE)
        assert FRAMES.count == before
        output.waiting = 0
        await until(lambda: FRAMES.count > before)
        assert FRAMES.count == before + 1
        assert "four" in app.export_screenshot()


async def test_a_look_at_a_region_before_the_layout_keeps_no_size_from_a_widget() -> None:
    heights: list[int] = []

    class Content(Static):
        def on_resize(self, event: events.Resize) -> None:
            heights.append(event.size.height)

    class Host(App[None]):
        CSS = "Content { height: 1fr; } .hidden { display: none; }"

        def get_default_screen(self) -> Screen[None]:
            return compat.PacedScreen(id="_default")

        def compose(self) -> ComposeResult:
            yield Content("text")
            yield Static("panel", id="panel")
            yield Static("prompt", classes="hidden")

    app = Host()
    async with app.run_test(size=(80, 24)):
        content, panel, hidden = app.query_one(Content), app.query_one("#panel"), app.query_one(".hidden")
        await until(lambda: heights[-1:] == [23])
        app.screen._compositor.update_widgets({hidden})  # type: ignore[arg-type]  # as when it has changed
        panel.styles.height = 5
        assert content.region.height == 19
        await until(lambda: heights[-1:] == [19])


async def test_a_late_frame_waits_for_a_batch_of_changes() -> None:
    class Host(App[None]):
        def get_default_screen(self) -> Screen[None]:
            return compat.PacedScreen(id="_default")

        def compose(self) -> ComposeResult:
            yield Static("one")

    app, output = Host(), Output()
    async with app.run_test() as pilot:
        screen = app.screen
        assert isinstance(screen, compat.PacedScreen)
        app._driver._writer_thread = output  # type: ignore[union-attr]
        output.waiting = 1
        app.query_one(Static).update("two")
        await until(lambda: screen._late)
        before = FRAMES.count
        with app.batch_update():
            output.waiting = 0
            screen._draw_on()
            await pilot.pause(2 * compat.BACK_PRESSURE)
            assert FRAMES.count == before
        await until(lambda: FRAMES.count > before)


def test_the_writer_has_a_queue() -> None:
    import io

    writer = WriterThread(io.StringIO())
    assert writer._queue.qsize() == 0
    writer.write("x")
    app = App[None]()
    app._driver = type("Driver", (), {"_writer_thread": writer})()  # type: ignore[assignment]
    assert compat.writer_depth(app) == 1


def test_without_the_names_the_features_are_off() -> None:
    class Bare:
        pass

    assert compat.writer_depth(Bare()) == 0  # type: ignore[arg-type]
    assert not compat.is_selecting(Bare())  # type: ignore[arg-type]
