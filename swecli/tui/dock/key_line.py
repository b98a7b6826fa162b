"""The line of a panel that says which keys do what: pale while it is too early for them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.timer import Timer
from textual.widgets import Static

from swecli.tui.dock.approval_text import Hint, keys
from swecli.tui.dock.grace import Grace


class KeyLine(Static):
    """Shows as many keys as have room."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id, classes="dock--keys")
        self._hints: Sequence[Hint] = ()
        self._width = 1
        self._narrow = False
        self._grace: Grace | None = None
        self._timer: Timer | None = None

    def tell(self, hints: Sequence[Hint], width: int, *, narrow: bool) -> None:
        """Show these keys in so many cells."""
        self._hints, self._width, self._narrow = hints, width, narrow
        self._draw()

    def wait(self, grace: Grace | None) -> None:
        """Be pale until the keys count; None: they count."""
        self._grace = grace
        self._draw()
        if grace is not None and grace.left and self._timer is None:
            self._timer = self.set_timer(grace.left, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self.wait(self._grace)

    def _draw(self) -> None:
        early = self._grace is not None and self._grace.ignores()
        self.update(keys(self._hints, self._width, narrow=self._narrow, early=early))
