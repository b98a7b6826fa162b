"""What the user has around the screen: title, progress and notifications of the terminal, and a status line of
their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.tui.announcements import Announcer
from swecli.tui.preferences import Preferences

if TYPE_CHECKING:
    from swecli.core.engine.view import SessionView
    from swecli.tui.state import UiState
    from swecli.tui.status import Facts
    from swecli.tui.status_script import StatusScript


class Outside:
    """``write`` puts a sequence to the terminal, ``show_line`` replaces the status bar (None brings it back), and
    ``complain`` tells the user something once."""

    def __init__(
        self,
        write: Callable[[str], None],
        show_line: Callable[[str | None], None],
        complain: Callable[[str], None],
    ) -> None:
        self._write = write
        self._show_line = show_line
        self._complain = complain
        self._announcer = Announcer(os.environ, Path.cwd().name or "/")
        self._script: StatusScript | None = None
        self._command: tuple[str, float] | None = None

    def adopt(self, preferences: Preferences) -> None:
        """Take over what the user has set."""
        self._write(self._announcer.farewell())
        self._announcer = Announcer(os.environ, Path.cwd().name or "/")
        self._announcer.adopt(notify=preferences.notify, title=preferences.title, progress=preferences.progress)
        text = (preferences.status_line or "").strip()
        command = (text, preferences.status_line_timeout) if text else None
        if command != self._command:
            self._replace_script(command)

    def follow(self, state: UiState, facts: Facts, view: SessionView | None, *, watched: bool, columns: int) -> None:
        """The screen shows this now. Never blocks."""
        if sequences := self._announcer.follow(state, watched=watched):
            self._write(sequences)
        if self._script is not None:
            from swecli.tui.status_script import document

            self._script.update(document(facts, view, columns), Path.cwd() if view is None else view.cwd)

    async def close(self) -> None:
        """Nothing of this goes on."""
        if self._script is not None:
            await self._script.close()

    def farewell(self) -> str:
        """What gives the terminal its own title back. Safe to ask for at any moment."""
        return self._announcer.farewell()

    def _replace_script(self, command: tuple[str, float] | None) -> None:
        from swecli.tui.status_script import StatusScript

        if self._script is not None:
            self._script.stop()
        self._command = command
        self._show_line(None)
        self._script = None if command is None else StatusScript(*command, self._show_line, self._complain)
