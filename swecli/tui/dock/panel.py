"""What all panels of the docked slot share: they take the keyboard, and they ignore keys that were meant for
what was there before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from textual import events
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from swecli.tui.dock.grace import Clock, Grace

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Command
    from swecli.tui.dock.command_editor import CommandEditor
    from swecli.tui.line_input import LineInput


TOO_SMALL = "Enlarge the window: what is asked has no room here."

NARROW = 62
"""Columns below which panels use short forms."""

Weight = Literal["decides", "moves", "letter", "nothing"]
"""What a key is to a panel: it decides something, or looks at something; a letter without meaning; or neither."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a panel knows of the prompt whose place it takes. ``typed`` is when (by ``clock``) the user last typed at a
    draft that is not sent; ``stray`` takes letters that were meant for it, ``pasted`` what was pasted."""

    clock: Clock = time.monotonic
    typed: Callable[[], float | None] = lambda: None
    whole: Callable[[DockPanel, bool], None] = lambda panel, on: None
    """Gives a panel the whole screen, or takes it back."""
    stray: Callable[[str], None] = lambda text: None
    pasted: Callable[[str], None] = lambda text: None


class DockPanel(Vertical, can_focus=True):
    """A panel in place of the prompt. It posts ``Finished`` and leaves closing to the app."""

    around = Surroundings()
    cramped = False
    """Whether not even the whole screen has room for what is asked: nothing can be decided then."""
    grace: Grace | None = None
    """Weighs the keys of a panel that appeared without being asked for; made when it is on the screen."""

    DEFAULT_CSS = """
    DockPanel { height: auto; border-top: solid $accent; padding: 0 1; }
    DockPanel.-tight { padding: 0; }
    DockPanel .dock--title { height: auto; text-style: bold; }
    DockPanel .dock--note { height: auto; color: $foreground-muted; text-style: $muted-style; }
    DockPanel .dock--keys { height: auto; }
    DockPanel .dock--small { dock: top; width: 100%; height: 100%; color: $warning; }
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

    def measure(self, columns: int, best: int, least: int) -> int:
        """Lines that the panel has. ``best`` are those that it should have, else it takes the whole screen; with less
        than ``least``, or than ``columns``, it is cramped."""
        size, usual = self.screen.size, self.available()
        whole = best > usual
        self.around.whole(self, whole)
        self.cramped = columns > size.width or least > size.height
        told = self.query(".dock--small")
        if self.cramped and not told:
            self.mount(Static(TOO_SMALL, classes="dock--small", markup=False))
        elif told and not self.cramped:
            told.remove()
        self.styles.height = "auto" if not self.cramped else max(2, size.height)
        rows = max(usual, size.height) if whole else usual
        self.styles.max_height = rows
        return rows

    def on_resize(self) -> None:
        self.fit()

    def fit(self) -> None:
        """Take no more of the screen than there is for it."""
        self.styles.max_height = self.available()
        self.set_class(self.screen.size.width < NARROW, "-tight")

    @property
    def field(self) -> LineInput | CommandEditor | None:
        """What is typed in now, if there is something."""
        return None

    def appear(self) -> None:
        """From now on the panel is to be seen."""
        self.grace = Grace(self.around.clock, self.around.typed(), self.around.stray)

    async def on_key(self, event: events.Key) -> None:
        """Tab would take the keyboard away from the question; what is typed before the line has the keyboard is meant
        for the line. Letters that mean nothing are meant for the prompt."""
        field = self.field
        if event.key in ("tab", "shift+tab"):
            event.stop()
            event.prevent_default()
        elif field is not None:
            if not field.has_focus:
                await field.take_key(event)
        else:
            self._weigh(event)

    def _weigh(self, event: events.Key) -> None:
        weight, letter = self.weight(event.key), (event.character or "") if event.is_printable else ""
        if weight == "decides" and self.cramped:
            event.stop()
            event.prevent_default()
            return
        if weight == "nothing" and letter:
            weight = "letter"
        if weight == "nothing":
            return
        event.stop()
        event.prevent_default()
        if self.grace is None:
            self.around.stray(letter)
        elif weight == "letter":
            self.grace.typed(letter)
        elif self.grace.counts(letter, decides=weight == "decides"):
            self.take(event.key)
        self.weighed()

    def weight(self, key: str) -> Weight:
        """What a key is to this panel while no line is typed in."""
        return "nothing"

    def take(self, key: str) -> None:
        """Do what a key means that counts."""

    def weighed(self) -> None:
        """A key came that the panel knows, or a letter."""

    def on_paste(self, event: events.Paste) -> None:
        """Where no line is typed in, a paste is meant for the prompt."""
        event.stop()
        event.prevent_default()
        field = self.field
        if field is not None:
            if not field.has_focus:
                field.post_message(events.Paste(event.text))
            return
        if self.grace is not None:
            self.grace.typed("")
        self.around.pasted(event.text)
        self.weighed()

    def show_place(self, place: tuple[int, int]) -> None:
        """Which of how many waiting requests this is: ``(2, 3)``. Panels that don't show it ignore it."""

    def toggle_expanded(self) -> bool:
        """Ctrl+O: show more, or less again. Whether the panel can."""
        return False

    def escape(self) -> None:
        """Esc was pressed: one step back, or out."""
        self.post_message(self.Finished())
