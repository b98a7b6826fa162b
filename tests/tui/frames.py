"""Frames of an application without a terminal: nobody sees them, and drawing them is a third of what such a test costs.

Each look of a test at the screen draws all of it, and so does the end if nobody has looked since the last frame: what
can not be drawn fails the test in which it appears. The frames between are counted and not drawn; ``make soak`` draws
every one, and so do the tests of panels that ask, of speed, of streams and of the transcript, and those in a real
terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual._compositor import Compositor

DRAW: Callable[..., Any] = Compositor.render_update


class Frames:
    """Counts frames; those of a screen that waits to be drawn are drawn as one."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: dict[Compositor, Any] = {}

    def watch(self, monkeypatch: pytest.MonkeyPatch, *, every: bool) -> None:
        """``every``: each frame is drawn when it comes."""
        self._waiting.clear()

        def render_update(compositor: Compositor, full: bool = False, screen_stack: Any = None, **more: Any) -> object:
            self.count += 1
            if full or every:
                return DRAW(compositor, full, screen_stack, **more)
            self._waiting[compositor] = screen_stack
            return None

        monkeypatch.setattr(Compositor, "render_update", render_update)

    def seen(self, compositor: Compositor) -> None:
        """A test has drawn all of the screen."""
        self._waiting.pop(compositor, None)

    def draw(self) -> None:
        """Draw what the screen in front has not drawn yet."""
        waiting, self._waiting = self._waiting, {}
        for compositor, stack in waiting.items():
            screen: Any = compositor.root
            if screen is not None and screen.is_attached and screen.is_current:
                DRAW(compositor, screen_stack=stack)


FRAMES = Frames()
