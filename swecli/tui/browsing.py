"""Letters pressed while the user browses the transcript: keys of actions, or the beginning of what somebody types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from textual import events

from swecli.tui.dock.panel import Clock
from swecli.tui.keymap import Keymap, event_name, shown
from swecli.tui.main_screen import MainScreen

if TYPE_CHECKING:
    from textual.timer import Timer

QUICK = 0.25
"""Seconds within which a different letter shows that somebody types, not browses."""
SAME_WORD = 1.0
"""Seconds after which a letter no longer belongs to what is typed then."""

WAITING = frozenset(("block_copy", "block_editor", "block_undo", "block_context"))
"""Actions that wait for ``QUICK``: typing must not start them."""

Outcome = Literal["act", "wait", "type"]


class Letters(Struct, frozen=True):
    """The letters pressed without a pause, the clock time of the last one, and whether its action waits."""

    pressed: str = ""
    at: float = 0.0
    waits: bool = False


def press(before: Letters, letter: str, action: str | None, now: float) -> tuple[Letters, Outcome]:
    """What a letter means after others: ``action`` is what it would do, None if nothing. With "type", all letters of
    the result belong to the prompt."""
    seconds = now - before.at
    earlier = before.pressed if seconds <= SAME_WORD else ""
    after = Letters(earlier + letter, now)
    quick = bool(earlier) and seconds <= QUICK
    if action is None or before.waits or (quick and letter != earlier[-1]):
        return after, "type"
    if action in WAITING:
        return Letters(after.pressed, now, waits=True), "wait"
    return after, "act"


class Browsing:
    """Browsing the transcript with keys. ``clock`` is monotonic seconds."""

    def __init__(self, screen: MainScreen, keymap: Keymap, clock: Clock) -> None:
        self._screen = screen
        self._keymap = keymap
        self._clock = clock
        self._letters = Letters()
        self._waits: Timer | None = None

    def begin(self) -> None:
        """Give the transcript the keys, and say which ones it takes."""
        transcript = self._screen.transcript
        transcript.focus()
        transcript.action_cursor_previous()
        keys = [
            next(iter(self._keymap.keys(name)), "") for name in ("block_toggle", "block_copy", "block_context", "close")
        ]
        toggles, copies, context, leaves = (shown(key) if key else "(no key)" for key in keys)
        words = f"{toggles} expands, {copies} copies, {context} shows the context then"
        self._screen.activity.flash(f"Browsing: {words} · {leaves} or typing ends it")

    def keeps(self, event: events.Key) -> bool:
        """Take a letter that belongs to a typed text, or whose action waits a moment; others are the transcript's."""
        screen, waited = self._screen, self._letters.waits
        browses = screen.transcript.has_focus and screen.dock.panel is None and screen.list_view is None
        if not browses or not event.is_printable or not event.character:
            if waited:
                self._act()
            self._letters = Letters()
            return False
        action = self._keymap.action("transcript", event.key)
        if action is not None and not screen.transcript.can(action):
            action = None
        self._letters, outcome = press(self._letters, event.character, action, self._clock())
        self._stop()
        if outcome == "type":
            text, self._letters = self._letters.pressed, Letters()
            screen.activity.end_flash()
            screen.transcript.cursor = None
            screen.prompt.editor.focus()
            screen.prompt.editor.add(text)
        elif outcome == "wait":
            self._waits = screen.app.set_timer(QUICK, self._act)  # the app sends keys
        return outcome != "act"

    def _act(self) -> None:
        """Carry out the waiting action of the newest letter."""
        self._stop()
        letters, self._letters = self._letters, Letters(self._letters.pressed, self._letters.at)
        if letters.waits and self._screen.transcript.has_focus:
            letter = letters.pressed[-1]
            self._screen.transcript._forward_event(events.Key(event_name(letter), letter))

    def _stop(self) -> None:
        if self._waits is not None:
            self._waits.stop()
            self._waits = None
