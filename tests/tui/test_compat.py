"""The private names of Textual that are used exist in the version that is installed."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.drivers._writer_thread import WriterThread
from textual.selection import SelectState
from textual.widgets import Static

from swecli.tui import compat


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
