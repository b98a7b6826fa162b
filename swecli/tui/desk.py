"""What slash commands need of the screen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from swecli.commands.base import Clip, Offer
from swecli.core.protocol.blocks import DisplayBlock
from swecli.tui import help
from swecli.tui.keys import KeyActions
from swecli.tui.link import CLOSE_TIME, OpenSession
from swecli.tui.login import Login
from swecli.tui.options import Options
from swecli.tui.pickers import Pickers
from swecli.tui.talk import ScreenName


class Desk:
    """Implements ``talk.Desk`` on the application."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options
        self._pickers = Pickers(app, options)
        self._login = Login(app, options)

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None:
        self._app.transcript.show(blocks, title)

    def flash(self, text: str) -> None:
        self._app.activity.flash(text)

    def put_back(self, text: str) -> None:
        self._app.prompt.editor.put(text)

    def leave(self) -> None:
        self._app.leave()

    def open_screen(self, name: ScreenName, words: str) -> None:
        """Open one of the screens, with something typed already."""
        screens = self._app.screens
        match name:
            case "help":
                screens.help(words)
            case "settings":
                screens.settings(words)
            case "permissions":
                screens.permissions(words)
            case "sessions":
                screens.sessions(words)

    def show_keys(self, words: str) -> None:
        """What every key does, or those that have to do with the words."""
        self.show(help.key_blocks(self._app.keymap, words), f"/keys {words}".rstrip())

    async def run_in_terminal(self, command: str, cwd: Path) -> tuple[str, int, float] | None:
        """Output, exit status and seconds of a command that had the terminal; None where that can't be given away."""
        from swecli.core.workspace.environment import scrubbed_environment
        from swecli.tui.user_shell import NoTerminal, run_in_terminal

        environment = scrubbed_environment(os.environ)
        for name in ("PAGER", "GIT_PAGER", "MANPAGER"):  # there is somebody who can turn pages
            environment.pop(name)
            if name in os.environ:
                environment[name] = os.environ[name]
        try:
            ran = await run_in_terminal(self._app, command, cwd, environment)
        except NoTerminal:
            return None
        return ran.output, ran.exit_status, ran.duration

    def offer(self, offer: Offer) -> None:
        """Ask whether something is to be done; Enter does it, Esc leaves it."""
        from swecli.tui.dock.picker import Choice, Picker

        choices = [Choice("yes", *offer.yes), Choice("no", *offer.no)]

        def picked(value: str) -> None:
            if value == "yes":
                self._app.stage.link.send(offer.command)

        self._app.slot.show(Picker(offer.title, choices, picked))

    def copy(self, clip: Clip) -> None:
        """Put a text on the clipboard, and say how far that is known to have worked."""
        self._app.copier.copy(clip.text, clip.what)

    def find(self, words: str) -> None:
        """Search the transcript, from words that were given or typed then."""
        self._app.find(words)

    def pick_mode(self) -> None:
        self._pickers.mode()

    def pick_model(self) -> None:
        self._app.run_worker(self._pickers.model())

    def pick_effort(self) -> None:
        self._pickers.effort()

    def pick_theme(self, name: str) -> None:
        self._pickers.theme(name)

    def log_in(self, provider: str) -> None:
        self._login.begin(provider)

    def start_over(self) -> None:
        if self._options.new_session is None:
            self.flash("Quit and start swecli again for a new session")
        else:
            self._app.run_worker(self._start_over(self._options.new_session))

    async def _start_over(self, open_session: OpenSession) -> None:
        await self._app.stage.close(CLOSE_TIME)
        self._app.transcript.clear()
        self._app.play(open_session)
