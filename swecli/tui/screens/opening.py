"""Which screens there are, how each is opened, and what follows from what was done in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from swecli.core.protocol.commands import SetEffort, SetMode, SetModel
from swecli.core.protocol.events import Mode
from swecli.safe_text import safe_line
from swecli.tui.link import CLOSE_TIME, OpenSession, SessionNotOpened
from swecli.tui.screens.ports import ScreenPorts, Setting, StoredSession, Written

if TYPE_CHECKING:
    from swecli.tui.keys import KeyActions
    from swecli.tui.options import Options


class Screens:
    """Opens screens on the application."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options
        self._pending: list[str] = []
        """Settings that were changed and count from the next session on."""

    @property
    def ports(self) -> ScreenPorts:
        """What there is to show."""
        return self._options.screens

    def tell(self, text: str) -> None:
        """A short message."""
        self._app.activity.flash(safe_line(text), 6.0)

    # --- opening ---

    def help(self, words: str = "") -> None:
        """Keys and commands."""
        from swecli.tui.screens.help import HelpSheet

        def take(text: str) -> None:
            self._app.place.close()
            self._app.prompt.editor.put(text)

        commands = self._app.talk.commands
        self._app.place.open(HelpSheet(commands, self._app.keymap, take), words)

    def settings(self, words: str = "") -> None:
        """Every setting."""
        from swecli.tui.screens.settings import SettingsSheet

        if self.ports.settings is None:
            self.tell("There are no settings to change here; `swecli config` shows them")
        else:
            self._app.place.open(SettingsSheet(self.ports.settings(), self._changed, self.tell), words)

    def permissions(self, words: str = "") -> None:
        """The permission rules."""
        from swecli.tui.screens.permissions import PermissionsSheet

        if self.ports.permissions is None:
            self.tell("There are no stored rules here; `swecli permissions` shows those of a folder")
        else:
            self._app.place.open(PermissionsSheet(self.ports.permissions(), self.tell, self._pending.append), words)

    def sessions(self, words: str = "") -> None:
        """The stored sessions."""
        from swecli.tui.screens.sessions import SessionsSheet

        port = self.ports.sessions
        if port is None:
            self.tell("Nothing is stored here, so there is no session to go back to")
            return
        view = self._app.stage.link.view
        present = view.session_id if view is not None else ""
        sheet = SessionsSheet(port(), self._go_on, self.tell, present=present, clock=self._app.wall)
        self._app.place.open(sheet, words)

    def jobs(self, words: str = "") -> None:
        """What runs, and the jobs that have ended."""
        from swecli.tui.commands_at_work import CommandsAtWork
        from swecli.tui.screens.jobs import JobsSheet

        app = self._app
        port = CommandsAtWork(app.stage, app.transcript)
        app.place.open(JobsSheet(port, self.tell, self.ask, app.wall), words)

    def ask(self, question: str, yes: tuple[str, str], do: Callable[[], None]) -> None:
        """Ask before something is done; Esc leaves it."""
        from swecli.tui.dock.picker import Choice, Picker

        choices = [Choice("yes", *yes), Choice("no", "Leave it", "nothing is done")]
        picker = Picker(question, choices, lambda value: do() if value == "yes" else None)
        self._app.slot.show(picker)
        if self._app.slot.panel is not picker:
            self.tell("Answer the question of the model first")

    def palette(self) -> None:
        """Everything that can be done, in one list."""
        self._app.run_worker(self._palette(), group="palette", exclusive=True)

    async def _palette(self) -> None:
        from swecli.tui.dock.picker import Choice, Picker
        from swecli.tui.screens import palette

        models = await asyncio.to_thread(self._options.models)
        found = palette.entries(self._app, models)
        choices = [Choice(entry.value, entry.label, entry.detail) for entry in found]
        self._app.slot.show(Picker("Do what?", choices, lambda value: palette.run(self._app, value)))

    # --- what follows ---

    def open_again(self, told: str) -> None:
        """Close the session and open it again, as what it begins with has changed."""
        view, port, new = self._app.stage.link.view, self.ports.sessions, self._options.new_session
        if view is not None and port is not None and self._app.stage.spoke:
            self._app.run_worker(self._switch(port().open(view.session_id), told))
        elif new is not None:
            self._app.run_worker(self._switch(new, told))

    def closed(self) -> None:
        """A screen was closed: settings that wait for a session are asked about."""
        self._app.place.close()
        pending, self._pending = self._pending, []
        view, port = self._app.stage.link.view, self.ports.sessions
        if not pending or view is None:
            return
        names = ", ".join(dict.fromkeys(pending))
        if port is None or view.busy or not self._app.stage.spoke:
            self.tell(f"{names}: from the next session on (/clear begins one)")
            return
        from swecli.tui.dock.picker import Choice, Picker

        choices = [
            Choice("now", "now", "opens this session again with the new settings; what was said stays"),
            Choice("later", "later", "from the next session on"),
        ]

        def picked(value: str) -> None:
            if value == "now":
                self.open_again("Opened again with the new settings")

        self._app.slot.show(Picker(f"Use {names}", choices, picked))

    def _changed(self, written: Written, setting: Setting) -> None:
        if setting.effect == "session":
            self._pending.append(setting.name)
            return
        link, value = self._app.stage.link, written.value
        match written.name:
            case "approval.mode":
                for mode in get_args(Mode):
                    if mode == value:
                        link.send(SetMode(mode))
            case "model.name" if isinstance(value, str):
                link.send(SetModel(value))
            case "model.effort" if value is None or isinstance(value, str):
                link.send(SetEffort(value))
            case _:
                self._app.run_worker(self._adopt())

    async def _adopt(self) -> None:
        self._app.adopt(await asyncio.to_thread(self._options.preferences))

    def _go_on(self, session: StoredSession) -> None:
        port = self.ports.sessions
        view = self._app.stage.link.view
        assert port is not None
        if view is not None and view.busy:
            self.tell("A turn is running; Esc here and once more interrupts it, then continue another session")
            return
        self._app.place.close()
        self._app.run_worker(self._switch(port().open(session.id), f"Continued {session.id}"))

    async def _switch(self, open_session: OpenSession, told: str) -> None:
        """Close the session and open another one in its place; where that fails, the one before comes back."""
        app, port = self._app, self.ports.sessions
        view = app.stage.link.view
        before = view.session_id if view is not None and app.stage.spoke else None
        app.activity.flash("Opening the session…")
        await app.stage.close(CLOSE_TIME)
        app.transcript.clear()

        async def opened() -> object:
            try:
                session = await open_session()
            except SessionNotOpened as error:
                back = port().open(before) if port is not None and before is not None else self._options.new_session
                if back is None:
                    raise
                session = await back()
                self.tell(str(error))
            else:
                self.tell(told)
            return session

        app.play(opened)  # pyright: ignore[reportArgumentType] - both branches give a port
