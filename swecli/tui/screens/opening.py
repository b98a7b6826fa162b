"""Which screens there are, how each is opened, and what follows from what was done in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from swecli.core.protocol.commands import CancelItem, Interrupt, SetEffort, SetMode, SetModel
from swecli.core.protocol.events import Mode
from swecli.core.workspace.jobs import JobInfo, JobsError
from swecli.safe_text import safe_line
from swecli.tui.screens.list_screen import ScreenView, Sheet
from swecli.tui.screens.ports import ScreenPorts, Setting, ShownCommand, StoredSession, Written
from swecli.tui.session_link import CLOSE_TIME, OpenSession, SessionNotOpened
from swecli.tui.transcript.blocks import ToolBlock

if TYPE_CHECKING:
    from swecli.core.engine.view import SessionPort
    from swecli.tui.keys import KeyActions
    from swecli.tui.options import Options
    from swecli.tui.session_screen import Stage
    from swecli.tui.state import Running
    from swecli.tui.transcript.view import Transcript


@dataclass(frozen=True, slots=True)
class Action:
    """``value`` names what is done: a kind, a blank, and what it is done with."""

    value: str
    label: str
    detail: str = ""


def entries(app: KeyActions, models: Sequence[str]) -> list[Action]:
    """What makes sense now: nothing that waits for the end of a turn while one runs, no mode, model or theme that is
    there already."""
    from swecli.commands.session import MODE_MEANINGS

    view = app.stage.link.view
    busy = app.stage.is_busy()
    found = [
        Action(f"command {command.name}", f"/{command.name} {command.arguments}".rstrip(), command.summary)
        for command in app.talk.commands
        if not busy or command.while_busy
    ]
    present = view.mode if view is not None else None
    found += [
        Action(f"mode {mode}", f"mode: {mode}", meaning) for mode, meaning in MODE_MEANINGS.items() if mode != present
    ]
    model = view.model.ref if view is not None and view.model is not None else None
    found += [Action(f"model {ref}", f"model: {ref}") for ref in models if ref != model]
    appearance = app.appearance
    found += [
        Action(f"theme {name}", f"theme: {name}")
        for name in ("auto", *appearance.library.names)
        if name != appearance.wanted
    ]
    return found


def run(app: KeyActions, value: str) -> None:
    """Do what was picked."""
    kind, _, what = value.partition(" ")
    match kind:
        case "mode":
            app.talk.set_mode(what)
        case "model":
            app.talk.set_model(what)
        case "theme":
            app.run_worker(app.talk.submit(f"/theme {what}"), group="talk")
        case _:
            command = next(command for command in app.talk.commands if command.name == what)
            if command.arguments.startswith("<"):
                app.prompt.editor.put(f"/{what} ")
            else:
                app.run_worker(app.talk.submit(f"/{what}"), group="talk")


class ScreenHost:
    """Holds the one screen that is open, if any."""

    def __init__(self, app: KeyActions) -> None:
        self._app = app
        self.current: ScreenView | None = None

    def open(self, sheet: Sheet, words: str = "") -> None:
        """Show a screen, with something typed already, in place of the one that is open."""
        view = ScreenView(sheet, words)
        if self.current is not None:
            self.current.remove()
        self.current = view
        self._app.transcript.display = False
        self._app.query_one("#place").mount(view)
        self._app.slot.cover(view.take_focus)

    def close(self) -> None:
        """Back to the transcript."""
        view, self.current = self.current, None
        if view is not None:
            view.remove()
            self._app.transcript.display = True
            self._app.slot.uncover()

    def escape(self) -> None:
        """Esc, for the screen."""
        if self.current is not None:
            self.current.escape()


class CommandsAtWork:
    """Implements ``CommandsPort`` on the open session. What a command in the foreground wrote is known from the
    transcript, its end at least."""

    def __init__(self, stage: Stage, transcript: Transcript) -> None:
        self._stage = stage
        self._transcript = transcript

    def read(self) -> Sequence[ShownCommand]:
        port = self._stage.link.port
        waited = [self._waited(item, run) for item, run in self._stage.state.running.items() if run.is_command]
        return [*waited, *(_job(job) for job in (port.view.jobs if port is not None else ()))]

    async def output(self, name: str) -> str:
        block = self._block(name)
        if block is not None:
            return block.output
        try:
            return await self._port().job_output(name)
        except JobsError as error:
            raise ValueError(str(error)) from error

    async def stop(self, name: str) -> str:
        running = self._stage.state.running.get(name)
        if running is not None:
            # What the user started has no call that could be stopped alone.
            self._stage.link.send(Interrupt() if running.kind == "user" else CancelItem(name))
            return "Stopping it; its output is in the transcript"
        try:
            job = await self._port().stop_job(name)
        except JobsError as error:
            raise ValueError(str(error)) from error
        return f"{job.id} was stopped" if job.status == "killed" else f"{job.id} had already ended"

    def _port(self) -> SessionPort:
        port = self._stage.link.port
        if port is None:
            raise ValueError("The session is not open")
        return port

    def _block(self, item: str) -> ToolBlock | None:
        blocks = self._transcript.page.blocks
        place = blocks.place(item) if item in self._stage.state.running else None
        block = blocks[place] if place is not None else None
        return block if isinstance(block, ToolBlock) else None

    def _waited(self, item: str, running: Running) -> ShownCommand:
        block = self._block(item)
        size = len(block.output.encode("utf-8", "replace")) if block is not None else 0
        beyond = block is not None and block.output_cut
        about = "your own" if running.kind == "user" else "the turn waits for it"
        return ShownCommand(
            item,
            running.title or running.name,
            running.since,
            size=size,
            beyond=beyond,
            about=about,
            job=False,
            item=item,
        )


def _job(job: JobInfo) -> ShownCommand:
    about = f"pid {job.pid}" if job.status == "running" else job.note
    return ShownCommand(
        job.id,
        job.command,
        job.started,
        None if job.status == "running" else job.ended or job.started,
        job.exit_status,
        stopped=job.status == "killed",
        size=job.size,
        about=about,
        item=job.item,
    )


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
            self.tell("No settings to change here; `swecli config` shows them")
        else:
            self._app.place.open(SettingsSheet(self.ports.settings(), self._changed, self.tell), words)

    def permissions(self, words: str = "") -> None:
        """The permission rules."""
        from swecli.tui.screens.permissions import PermissionsSheet

        if self.ports.permissions is None:
            self.tell("No stored rules here; `swecli permissions` shows a folder's rules")
        else:
            self._app.place.open(PermissionsSheet(self.ports.permissions(), self.tell, self._pending.append), words)

    def sessions(self, words: str = "") -> None:
        """The stored sessions."""
        from swecli.tui.screens.sessions import SessionsSheet

        port = self.ports.sessions
        if port is None:
            self.tell("Nothing is stored here, so there is no session to resume")
            return
        view = self._app.stage.link.view
        present = view.session_id if view is not None else ""
        sheet = SessionsSheet(port(), self._go_on, self.tell, present=present, clock=self._app.wall)
        self._app.place.open(sheet, words)

    def jobs(self, words: str = "") -> None:
        """What runs, and the jobs that have ended."""
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
            self.tell("Answer the model's question first")

    def palette(self) -> None:
        """Everything that can be done, in one list."""
        self._app.run_worker(self._palette(), group="palette", exclusive=True)

    async def _palette(self) -> None:
        from swecli.tui.dock.picker import Choice, Picker

        models = await asyncio.to_thread(self._options.models)
        found = entries(self._app, models)
        choices = [Choice(entry.value, entry.label, entry.detail) for entry in found]
        self._app.slot.show(Picker("Do what?", choices, lambda value: run(self._app, value)))

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
            self.tell(f"{names}: from the next session on (/clear starts one)")
            return
        from swecli.tui.dock.picker import Choice, Picker

        choices = [
            Choice("now", "now", "reopens this session with the new settings and its conversation"),
            Choice("later", "later", "from the next session on"),
        ]

        def picked(value: str) -> None:
            if value == "now":
                self.open_again("Reopened with the new settings")

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
            self.tell("A turn is running; press Esc twice to interrupt it, then continue another session")
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
