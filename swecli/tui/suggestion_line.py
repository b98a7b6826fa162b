"""The sentinel's suggestion above the prompt, or what the draft of a shell line does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.figures import tokens
from swecli.tui.forecast_line import SEPARATOR
from swecli.tui.keymap import Keymap
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_controller import SessionController
from swecli.tui.shell_lines import shell_words

if TYPE_CHECKING:
    from swecli.core.protocol.events import ContextSuggested

LEAST = 16
"""Cells below which a reason is dropped."""


class SuggestionLine:
    """Shows the suggestion with the keys that take or silence it."""

    def __init__(self, screen: MainScreen, session: SessionController, keymap: Keymap) -> None:
        self._screen = screen
        self._session = session
        self._keymap = keymap

    def shown(self, width: int) -> str:
        """The line in at most ``width`` cells; empty if there is nothing to say."""
        suggestion, draft = self._session.suggestion, self._screen.prompt.editor.text
        if suggestion is None:
            return shell_words(draft) if draft.startswith("!") else ""
        keys = self._keymap.shown("take_suggestion"), self._keymap.shown("silence_suggestion")
        return suggestion_words(suggestion, *keys, width)

    def answer(self, verb: str) -> None:
        """Take or silence the suggestion. Only a visible one can be silenced; taking it re-evaluates and asks first."""
        if self._session.suggestion is None and not (verb == "take" and self._session.at_rest):
            self._screen.activity.flash("No suggestion now; /sentinel looks again")
        else:
            self._screen.post_message(MainScreen.Wanted(f"/sentinel {verb}"))


def suggestion_words(body: ContextSuggested, take: str, silence: str, width: int) -> str:
    """Suggestion in at most ``width`` cells; the action is dropped last. ``take`` and ``silence`` are the keys."""
    freed = f", -{tokens(body.freed)}" if body.freed else ""
    act, never = f"{take}: {body.action}{freed}", f"{silence}: never"
    room = width - len(SEPARATOR.join(("", act, never)))
    candidates = (
        (body.reason, act, f"{never} again"),
        (body.reason, act, never),
        (f"{body.reason[: max(LEAST, room) - 1].rstrip(' :“`')}…", act, never),
        (act, f"{never} again"),
        (act, never),
        (act, silence),
        (act,),
        (f"{take}: {body.action}",),
    )
    lines = (SEPARATOR.join(parts) for parts in candidates)
    return next((line for line in lines if len(line) <= width), "")
