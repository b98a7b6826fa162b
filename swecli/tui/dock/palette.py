"""The command palette: commands, modes, models and themes in one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swecli.commands.base import listed
from swecli.tui.dock.mode import ModeChoice
from swecli.tui.dock.picker import Choice, Picker
from swecli.tui.main_screen import MainScreen
from swecli.tui.model_choice import ModelChoice
from swecli.tui.prompt.command_table import CommandTable
from swecli.tui.prompt.completion import usage_of
from swecli.tui.session_controller import SessionController
from swecli.tui.status_bar import LOOKING
from swecli.tui.themes.picker import ThemeChoice

RECENT: Final = 60.0
"""Seconds for which the palette uses the models that the servers listed before."""


class Palette:
    def __init__(
        self,
        screen: MainScreen,
        session: SessionController,
        commands: CommandTable,
        modes: ModeChoice,
        models: ModelChoice,
        themes: ThemeChoice,
    ) -> None:
        self._screen = screen
        self._session = session
        self._commands = commands
        self._modes = modes
        self._models = models
        self._themes = themes

    def open(self) -> None:
        self._screen.run_worker(self._show(), group="palette", exclusive=True)

    async def _show(self) -> None:
        with self._screen.activity.beside(LOOKING):
            refs = await self._models.known.names()
        picker = Picker("Command palette", self._choices(refs), self._do)
        self._screen.dock.show(picker)
        models = await self._models.known.find(refs, RECENT)
        if picker.is_attached:
            picker.add(_model_choices([ref for ref in models if ref not in refs], self._models.known.current))

    def _choices(self, models: Sequence[str]) -> list[Choice]:
        """Entries that make sense now: none that needs an idle session while a turn runs, and nothing that is in effect
        already."""
        commands = [
            Choice(f"command {command.name}", usage_of(command), command.summary)
            for command in listed(self._commands.all())
            if not self._session.state.busy or command.while_busy
        ]
        offered = _model_choices(models, self._models.known.current)
        return [*commands, *self._modes.choices(), *offered, *self._themes.choices()]

    def _do(self, value: str) -> None:
        kind, _, what = value.partition(" ")
        match kind:
            case "mode":
                self._modes.set(what)
            case "model":
                self._models.set(what)
            case "theme":
                self._themes.pick(what)
            case _:
                command = next(command for command in self._commands.all() if command.name == what)
                if command.arguments.startswith("<"):
                    self._screen.prompt.editor.put(f"/{what} ")
                else:
                    self._screen.post_message(MainScreen.Wanted(f"/{what}"))


def _model_choices(refs: Sequence[str], present: str | None) -> list[Choice]:
    """Entries that switch to another model than the present one."""
    return [Choice(f"model {ref}", f"model: {ref}") for ref in refs if ref != present]
