"""Settings that the user changes while a session runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, get_args

from swecli.core.protocol.commands import SetEffort, SetMode, SetModel
from swecli.core.protocol.events import Mode
from swecli.tui.main_screen import MainScreen
from swecli.tui.program import Program
from swecli.tui.session_controller import SessionController
from swecli.tui.session_switch import SessionSwitch

if TYPE_CHECKING:
    from swecli.assembly.settings import Setting, Written


async def keep_setting(screen: MainScreen, program: Program, name: str, value: str, done: str) -> None:
    """Write a setting that already has its effect to the user's file. Reports what is ``done``, and the file."""
    try:
        path = await asyncio.to_thread(program.remember, name, value)
    except ValueError as error:
        screen.flash(f"{done} (for this session only: {error})")
    else:
        screen.post_message(MainScreen.PreferencesChanged())
        screen.flash(f"{done} (saved in {path})")


class SettingChanges:
    """Makes the session follow them at once, or asks to reopen it."""

    def __init__(self, screen: MainScreen, session: SessionController, program: Program, switch: SessionSwitch) -> None:
        self._screen = screen
        self._session = session
        self._program = program
        self._switch = switch
        self._pending: list[str] = []
        """Changed settings that apply from the next session on."""

    def changed(self, written: Written, setting: Setting) -> None:
        """Apply a written setting now, or note it for the next session."""
        if setting.effect == "session":
            self._pending.append(setting.name)
            return
        value = written.value
        match written.name:
            case "approval.mode":
                for mode in get_args(Mode):
                    if mode == value:
                        self._session.send(SetMode(mode))
            case "model.name" if isinstance(value, str):
                self._session.send(SetModel(value))
            case "model.effort" if value is None or isinstance(value, str):
                self._session.send(SetEffort(value))
            case name if name.startswith(("ui.", "keys.")):
                self._screen.post_message(MainScreen.PreferencesChanged())
            case _:
                self.follow()

    def follow(self) -> None:
        self._screen.run_worker(self._follow())

    async def _follow(self) -> None:
        """Make the session apply the current settings."""
        port = self._session.port
        if port is None:
            return  # a session still opening reads them itself
        try:
            await port.follow_settings()
        except ValueError as error:
            self._screen.flash(f"{error}; the session keeps its previous settings")

    def list_closed(self) -> None:
        """After a list closed, ask about settings that need a new session."""
        self._screen.close_list()
        pending, self._pending = self._pending, []
        view = self._session.view
        if not pending or view is None:
            return
        names = ", ".join(dict.fromkeys(pending))
        if self._program.sessions is None or view.busy or not self._session.continuable:
            self._screen.flash(f"{names}: applies from the next session (/clear starts one)")
            return
        from swecli.tui.dock.picker import Choice, Picker

        choices = [
            Choice("now", "now", "reopens this session with the new settings"),
            Choice("later", "later", "from the next session"),
        ]

        def picked(value: str) -> None:
            if value == "now":
                self._switch.reopen("Reopened with the new settings")

        self._screen.dock.show(Picker(f"Apply {names}", choices, picked))
