"""What all panels of the docked slot share: they take the keyboard, and they ignore keys that were meant for
what was there before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.containers import Vertical
from textual.message import Message

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Command
    from swecli.tui.line_input import LineInput


GRACE = 0.3
"""Seconds after its appearance in which a panel ignores keys that would decide something."""

TYPING = 1.0
"""Seconds after a letter that decides nothing: whoever writes a sentence does not look at the panel yet."""

NARROW = 62
"""Columns below which panels use short forms."""

Clock = Callable[[], float]


class Grace:
    """The time after an appearance in which keys don't count. ``clock`` is monotonic seconds."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._until = clock() + GRACE

    @property
    def left(self) -> float:
        """Seconds in which keys are still ignored; 0 when they count."""
        return max(0.0, self._until - self._clock())

    def ignores(self) -> bool:
        """Whether a key that comes now is to be ignored."""
        return self.left > 0

    def typed(self) -> None:
        """A letter came that means nothing here: it was meant for the prompt, and so may be those after it."""
        self._until = max(self._until, self._clock() + TYPING)


class DockPanel(Vertical, can_focus=True):
    """A panel in place of the prompt. It posts ``Finished`` and leaves closing to the app."""

    DEFAULT_CSS = """
    DockPanel { height: auto; border-top: solid $accent; padding: 0 1; }
    DockPanel.-tight { padding: 0; }
    DockPanel .dock--title { height: auto; text-style: bold; }
    DockPanel .dock--note { height: auto; color: $foreground-muted; text-style: $muted-style; }
    DockPanel .dock--keys { height: auto; }
    DockPanel Input { height: 1; border: none; padding: 0; background: $panel; }
    DockPanel Input:focus { border: none; background-tint: transparent; }
    DockPanel Input > .input--placeholder { color: $foreground-muted; text-style: $muted-style; }
    DockPanel Input > .input--selection { text-style: $selection-style; }
    """

    @dataclass
    class Finished(Message):
        """The panel is done; ``command`` is what the user decided, if the session has to know."""

        command: Command | None = None

    def available(self) -> int:
        """Lines that the panel may take: the screen without status bar, activity line and two lines of the
        transcript."""
        return max(3, self.screen.size.height - 4)

    def on_resize(self) -> None:
        self.fit()

    def fit(self) -> None:
        """Take no more of the screen than there is for it."""
        self.styles.max_height = self.available()
        self.set_class(self.screen.size.width < NARROW, "-tight")

    @property
    def field(self) -> LineInput | None:
        """The line that is typed in now, if there is one."""
        return None

    async def on_key(self, event: events.Key) -> None:
        """Tab would take the keyboard away from the question; what is typed before the line has the keyboard is meant
        for the line."""
        field = self.field
        if event.key in ("tab", "shift+tab"):
            event.stop()
            event.prevent_default()
        elif field is not None and not field.has_focus:
            await field.take_key(event)

    def show_place(self, place: tuple[int, int]) -> None:
        """Which of how many waiting requests this is: ``(2, 3)``. Panels that don't show it ignore it."""

    def toggle_expanded(self) -> bool:
        """Ctrl+O: show more, or less again. Whether the panel can."""
        return False

    def escape(self) -> None:
        """Esc was pressed: one step back, or out."""
        self.post_message(self.Finished())
