"""Where screens are shown: in place of the transcript, above the slot. So a question of the model, which takes the
slot, is seen and answered while a screen is open, and the screen is there again afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.tui.screens.sheet import Sheet
from swecli.tui.screens.view import ScreenView

if TYPE_CHECKING:
    from swecli.tui.keys import KeyActions


class Place:
    """Holds the one screen that is open, if any."""

    def __init__(self, app: KeyActions) -> None:
        self._app = app
        self.current: ScreenView | None = None

    def open(self, sheet: Sheet, words: str = "") -> None:
        """Show a screen, with something typed already, in place of the one that is open."""
        view = ScreenView(sheet, words)
        if self.current is not None:
            self.current.remove()
        self.current = view
        self._app.transcript.display = False
        self._app.query_one("#place").mount(view)
        self._app.slot.cover(view.take_focus)

    def close(self) -> None:
        """Back to the transcript."""
        view, self.current = self.current, None
        if view is not None:
            view.remove()
            self._app.transcript.display = True
            self._app.slot.uncover()

    def escape(self) -> None:
        """Esc, for the screen."""
        if self.current is not None:
            self.current.escape()
