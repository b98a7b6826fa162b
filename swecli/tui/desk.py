"""What slash commands need of the screen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from swecli.commands.base import Clip, Offer, Screen
from swecli.core.protocol.blocks import DisplayBlock
from swecli.tui.doors import Doors
from swecli.tui.keys import KeyActions
from swecli.tui.options import Options


class Desk:
    """Implements ``talk.Desk`` on the application."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._doors = Doors(app, options)

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None:
        self._app.transcript.show(blocks, title)

    def flash(self, text: str) -> None:
        self._app.activity.flash(text)

    def put_back(self, text: str) -> None:
        self._app.prompt.editor.put(text)

    def open(self, name: Screen, words: str = "") -> None:
        """Open what a command asks for."""
        self._doors.open(name, words)

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

        self._app.slot.show(Picker(offer.title, choices, picked, narrow=False))

    def copy(self, clip: Clip) -> None:
        """Put a text on the clipboard, and say how far that is known to have worked."""
        self._app.copier.copy(clip.text, clip.what)
