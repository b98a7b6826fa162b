"""What a slash command can ask for that only this front-end has, and what opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from swecli.commands.base import Screen
from swecli.safe_text import safe_line
from swecli.tui import help
from swecli.tui.keys import KeyActions
from swecli.tui.link import CLOSE_TIME, OpenSession
from swecli.tui.login import Login
from swecli.tui.options import Options
from swecli.tui.pickers import Pickers


class Doors:
    """One door for each name. What is opened gets the words that came with the command."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options
        pickers, screens = Pickers(app, options), app.screens
        self._doors: Mapping[Screen, Callable[[str], object]] = {
            "quit": lambda _: app.leave(),
            "clear": lambda _: self._start_over(),
            "pick_mode": lambda _: pickers.mode(),
            "pick_model": lambda _: app.run_worker(pickers.model()),
            "pick_effort": lambda _: pickers.effort(),
            "pick_theme": pickers.theme,
            "keys": self._show_keys,
            "find": app.find,
            "login": Login(app, options).begin,
            "help": screens.help,
            "settings": screens.settings,
            "permissions": screens.permissions,
            "sessions": screens.sessions,
            "jobs": screens.jobs,
            "add_folder": self._add_folder,
        }

    def open(self, name: Screen, words: str = "") -> None:
        """Open it, with these words typed or looked for where that makes sense."""
        self._doors[name](words)

    def _show_keys(self, words: str) -> None:
        """What every key does, or those that have to do with the words."""
        self._app.transcript.show(help.key_blocks(self._app.keymap, words), f"/keys {words}".rstrip())

    def _add_folder(self, path: str) -> None:
        """Open the session again, to work in one more folder."""
        if self._options.add_folder is None:
            self._app.activity.flash(f"Quit, and start with --add-dir {safe_line(path)}")
        else:
            self._options.add_folder(Path(path))
            self._app.screens.open_again(f"{path} belongs to the session now")

    def _start_over(self) -> None:
        new = self._options.new_session
        if new is None:
            self._app.activity.flash("Quit and start swecli again for a new session")
        else:
            self._app.run_worker(self._open_in_place(new))

    async def _open_in_place(self, new: OpenSession) -> None:
        await self._app.stage.close(CLOSE_TIME)
        self._app.transcript.clear()
        self._app.play(new)
