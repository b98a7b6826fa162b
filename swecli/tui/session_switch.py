"""Switching sessions in the interface: a new one, a copy, another stored one, or the same one reopened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from swecli.commands.base import jobs_words
from swecli.launch import StartError
from swecli.tui.dock.confirm import ask
from swecli.tui.main_screen import MainScreen
from swecli.tui.program import Program
from swecli.tui.session_controller import SessionController

if TYPE_CHECKING:
    from swecli.assembly.session_list import StoredSession
    from swecli.assembly.succession import OpenSession
    from swecli.core.engine.session import Session


class SessionSwitch:
    """Puts another session in the place of the open one. What is typed meanwhile waits for the other one; background
    jobs, which end with their session, are asked about first."""

    def __init__(
        self,
        screen: MainScreen,
        session: SessionController,
        program: Program,
    ) -> None:
        self._screen = screen
        self._session = session
        self._program = program

    def fork(self, name: str = "") -> None:
        """Continue in a copy of the open session, optionally with a new name."""
        view = self._session.view
        if view is None or self._program.sessions is None:
            self._screen.flash("Sessions are not stored here, so none can be forked")
        elif view.busy:
            self._screen.flash("A turn is running; press Esc to interrupt it, then fork")
        elif (port := self._session.port) is not None:
            opened = self._program.open.stored(view.session_id, fork=True)

            async def forked(back: OpenSession) -> None:
                parent = await port.name() or view.session_id
                await self._switch(opened, f"Forked from {parent}", back, name)

            self._after_jobs(lambda: self._screen.run_worker(forked(self._leave())))

    def _after_jobs(self, do: Callable[[], object]) -> None:
        """Leave the open session; if that ends background jobs, ask first."""
        if jobs := self._session.jobs:
            title, named = jobs_words(jobs)
            ask(self._screen, self._session, title, ("Stop and continue", named), do)
        else:
            do()

    def start_over(self) -> None:
        """Open a new session."""

        def begin() -> None:
            self._session.detach()
            self._screen.run_worker(self._clear())

        self._after_jobs(begin)

    async def _clear(self) -> None:
        await self._session.close(reason="clear")
        self._screen.transcript.clear()
        self._screen.post_message(SessionController.Wanted(self._program.open.next))

    def reopen(self, said: str) -> None:
        """Close and reopen the session because its initial settings changed."""
        self._replace(self._same_again(), said)

    def go_to(self, session: StoredSession) -> None:
        """Continue a listed session in place of the open one."""
        view = self._session.view
        if view is None:  # two that open at once would both be shown
            self._screen.flash("The session is still opening")
        elif view.busy:
            self._screen.flash("A turn is running; interrupt it before you continue another session")
        else:
            self._screen.close_list()
            self._replace(self._program.open.stored(session.id), f"Continued {session.id}", other=True)

    def _replace(self, opened: OpenSession, message: str, *, other: bool = False) -> None:
        """Open a session in place of the open one. Lines that wait go with it unless it is ``other``: they were sent
        for another conversation, maybe in another folder."""

        def replace() -> None:
            if other:
                self._session.take_back(self._session.later.take_all())
            self._screen.run_worker(self._switch(opened, message, self._leave()))

        self._after_jobs(replace)

    def _same_again(self) -> OpenSession:
        """Opens the open session again, or a new one if it has nothing to continue or is not stored."""
        view = self._session.view
        if view is not None and self._session.continuable and self._program.sessions is not None:
            return self._program.open.stored(view.session_id)
        return self._program.open.next

    def _leave(self) -> OpenSession:
        """Detach the open session: what is typed from now on waits for the next one. Returns the way back."""
        back = self._same_again()
        self._session.detach()
        return back

    async def _switch(self, open_session: OpenSession, message: str, back: OpenSession, name: str = "") -> None:
        """Close the detached session and open another one in its place, optionally named; if that fails, go back."""
        session = self._session
        self._screen.activity.flash("Opening the session…")
        await session.close(reason="resume")
        self._screen.transcript.clear()

        async def opened() -> Session:
            try:
                opened_session = await open_session()
            except StartError as error:
                opened_session = await back()
                self._screen.flash(str(error))
                return opened_session
            try:
                self._screen.flash(f"{message} as {await opened_session.rename(name)}" if name else message)
            except ValueError as error:
                self._screen.flash(f"{message}; {error}")
            return opened_session

        self._screen.post_message(SessionController.Wanted(opened))
