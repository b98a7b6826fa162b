"""What the terminal is told besides the screen: its title, its progress bar, and that somebody is waited for.

Only decisions and sequences; whoever holds an ``Announcer`` writes what it returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from swecli.safe_text import safe_line
from swecli.tui.passthrough import through
from swecli.tui.preferences import Notify, Progress

if TYPE_CHECKING:
    from swecli.tui.state import UiState

Doing = Literal["rests", "works", "waits"]

MAX_TEXT = 120
"""Characters of a notification or a title."""

_OSC9 = frozenset(("iTerm.app", "WezTerm", "ghostty", "WarpTerminal"))
_OSC777 = ("foot", "rxvt")
_PROGRESS = frozenset(("ghostty", "WezTerm"))
_MARKS: Mapping[Doing, str] = {"rests": "", "works": "● ", "waits": "? "}
_STATES: Mapping[Doing, str] = {"rests": "0;0", "works": "3;0", "waits": "4;100"}
"""State and share of the progress sequence: none, going on for an unknown time, held up."""
_OUTCOMES = {
    "done": "has finished",
    "interrupted": "was interrupted",
    "blocked": "is blocked",
    "limit": "reached a limit",
    "error": "ended with an error",
}


class Announcer:
    """Follows the state of the screen. ``place`` names the folder in titles and notifications."""

    def __init__(self, environ: Mapping[str, str], place: str) -> None:
        self._environ = environ
        self._place = place
        self._notify: Notify = "off"
        self._title = self._progress = False
        self._doing: Doing = "rests"
        self._titled = ""
        self._busy = False
        self._asked: str | None = None

    def adopt(self, *, notify: Notify, title: bool, progress: Progress) -> None:
        """Take over the settings; until then nothing is told."""
        self._notify = usual_notification(self._environ) if notify == "auto" else notify
        self._title = title and self._environ.get("TERM", "") not in ("", "linux", "dumb", "unknown")
        self._progress = shows_progress(self._environ) if progress == "auto" else progress == "on"

    def follow(self, state: UiState, *, watched: bool) -> str:
        """What to write to the terminal now that the state is this; ``watched`` is whether it has the focus."""
        out = "" if watched else self._notification(state)
        self._busy = state.busy
        self._asked = state.requests[0].request if state.requests else None
        doing: Doing = "waits" if state.requests else "works" if state.busy else "rests"
        if self._title:
            out += self._retitle(f"{_MARKS[doing]}{self._place}")
        if self._progress and doing != self._doing:
            out += self._osc(f"9;4;{_STATES[doing]}")
        self._doing = doing
        return out

    def farewell(self) -> str:
        """Takes back what was told, for the end of the program. Safe to write at any moment."""
        out = ""
        if self._progress and self._doing != "rests":
            out += self._osc("9;4;0;0")
        return out + ("\x1b[23;0t" if self._titled else "")

    def _retitle(self, title: str) -> str:
        if title == self._titled:
            return ""
        # The shell's title is put on the terminal's stack before the first of ours.
        save = "" if self._titled else "\x1b[22;0t"
        self._titled = title
        text = safe_line(title)[:MAX_TEXT]
        screen = bool(self._environ.get("STY")) and not self._environ.get("TMUX")
        return save + (f"\x1bk{text}\x1b\\" if screen else f"\x1b]0;{text}\x07")

    def _notification(self, state: UiState) -> str:
        asked = state.requests[0].request if state.requests else None
        if asked is not None and asked != self._asked:
            return self._tell(f"{self._place}: waits for your answer")
        if self._busy and not state.busy and not state.requests and state.ended is not None:
            return self._tell(f"{self._place}: the turn {_OUTCOMES.get(state.ended.outcome, 'has ended')}")
        return ""

    def _tell(self, text: str) -> str:
        shown = safe_line(text)[:MAX_TEXT]
        match self._notify:
            case "bell":
                return "\x07"
            case "osc9":
                return self._osc(f"9;{shown}")
            case "osc777":
                return self._osc(f"777;notify;swecli;{shown.replace(';', ',')}")
            case _:
                return ""

    def _osc(self, body: str) -> str:
        # A BEL at the end: within screen's own wrapping an ST would end that.
        return through(f"\x1b]{body}\x07", self._environ)


def usual_notification(environ: Mapping[str, str]) -> Notify:
    """What this terminal is known to show as a notification, or else the bell."""
    if environ.get("TERM_PROGRAM") in _OSC9 or environ.get("WEZTERM_PANE") or environ.get("KITTY_WINDOW_ID"):
        return "osc9"
    if environ.get("TERM", "").startswith(_OSC777):
        return "osc777"
    return "bell"


def shows_progress(environ: Mapping[str, str]) -> bool:
    """Whether this terminal is known to have a progress bar. Others may show the sequence as a notification."""
    if environ.get("TMUX") or environ.get("STY"):
        return False
    return bool(environ.get("WT_SESSION") or environ.get("ConEmuANSI")) or environ.get("TERM_PROGRAM") in _PROGRESS
