"""Opening sessions on the screen, from the settings and the questions about trust to the greeting."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swecli.assembly.succession import OpenSession
    from swecli.core.engine.session_view import SessionView
    from swecli.core.protocol.commands import Submit
    from swecli.tui.app import SwecliApp


class SessionStart:
    """Opens the first session of a run and those that take its place."""

    def __init__(self, app: SwecliApp) -> None:
        self._app = app
        self._newest = ""
        """Id of the newest earlier session of this folder."""
        self._adopts_draft = True
        """Whether the next session adopts the draft of a killed run."""
        self._lists_sessions = app.program.begins_with_sessions
        """Whether the next session opens below the list of the others."""

    async def play_first(self) -> None:
        """Open the session of this start, which gets the first prompt. A slash may begin a command or a path; such a
        prompt is interpreted like typed input."""
        from swecli.core.protocol.commands import Submit

        app, first = self._app, self._app.program.first_prompt
        if first and first.lstrip().startswith("/"):
            app.run_worker(app.interface.input.submit(first), group="input")
            first = None
        await self.play(app.program.open.first, Submit(first) if first else None)

    async def play(self, open_session: OpenSession, first: Submit | None = None) -> None:
        """Open a session and show it until it ends. ``first`` is sent before anything typed meanwhile."""
        from swecli.launch import StartError

        app = self._app
        told = await app.preferences.follow()  # the questions about trust look as the user wants
        if await self._ask_trust():
            await app.preferences.follow(told)
        if self._adopts_draft:
            self._adopts_draft = False
            app.main.prompt.adopt_draft()
        try:
            await app.session.play(open_session, first)
        except StartError as error:
            app.failure = error
            app.exit(return_code=int(error.exit_code))

    async def _ask_trust(self) -> bool:
        """Whether there was a question, whose answer may have changed the settings that count."""
        program, main = self._app.program, self._app.main
        if program.trust is None:
            return False
        from swecli.tui.dock.trust import ask_trust

        notices = await ask_trust(program.trust, main.dock)
        main.warn(notices or ())
        return notices is not None

    async def greeting(self, view: SessionView) -> tuple[tuple[str, str], ...]:
        """The greeting of a new session; remembers the newest earlier one, which it offers."""
        from swecli.tui.greeting import greeting

        app, stored = self._app, self._app.program.sessions
        earlier = await asyncio.to_thread(lambda: stored().earlier(view.session_id)) if stored is not None else ()
        self._newest = earlier[0].id if earlier else ""
        return greeting(view, earlier, app.keymap.shown, app.wall(), os.environ.get("HOME", ""))

    def opened(self) -> None:
        """Show the list of sessions if the run begins with it."""
        from swecli.tui.openers import show_sessions

        if self._lists_sessions:
            show_sessions(self._app.interface, everywhere=self._app.program.of_all_folders)
        self._lists_sessions = False

    def continue_newest(self) -> None:
        """Continue the newest earlier session in place of one that has not begun."""
        app, activity = self._app, self._app.main.activity
        if not app.loaded or not self._newest:
            activity.flash("There is no earlier session of this folder")
        elif app.session.continuable or app.session.state.busy:
            activity.flash("This session has begun; /resume lists the others")
        else:
            app.run_worker(app.interface.input.submit(f"/resume {self._newest}"), group="input")
