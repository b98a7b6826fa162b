"""The running session behind the screen: opened after the first frame, fed to the widgets, closed at the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Protocol

from swecli.core.protocol.commands import Answer, Command, Interrupt, ReplyPermission
from swecli.core.protocol.events import Event, FileChanged, TurnEnded, TurnStarted
from swecli.tui import reduction
from swecli.tui.bridge import FRAME, Bridge
from swecli.tui.link import OpenSession, SessionLink
from swecli.tui.state import UiState
from swecli.tui.status import Facts

AWAY_FRAME = 1 / 10
"""Seconds between two updates while nobody looks, or over a remote line."""


class Screen(Protocol):
    """What the stage needs of the screen."""

    @property
    def watched(self) -> bool:
        """Whether the terminal has the focus."""
        ...

    def waiting_writes(self) -> int:
        """Writes that the terminal has not taken yet."""
        ...

    def show_events(self, batch: Sequence[Event]) -> None:
        """Put events into the transcript."""
        ...

    def session_opened(self) -> None:
        """A prompt that is sent now is worked on now."""
        ...

    def show_state(self) -> None:
        """Bring everything around the transcript up to date with the stage."""
        ...


class Stage:
    """Owns the session's link, the bridge and the reduced state. ``branch`` is read in a thread."""

    def __init__(self, screen: Screen, branch: Callable[[], str]) -> None:
        self._screen = screen
        self._read_branch = branch
        self._branch = ""
        self._spoke = False
        self._reading: asyncio.Task[None] | None = None
        self._remote = bool(os.environ.get("SSH_CONNECTION"))
        self.link = SessionLink()
        self.state = UiState()

    @property
    def opened(self) -> bool:
        """Whether a session is there."""
        return self.link.port is not None

    @property
    def spoke(self) -> bool:
        """Whether there was a conversation to continue."""
        return self._spoke

    def show(self) -> None:
        """Bring the screen up to date."""
        self._screen.show_state()

    def is_busy(self) -> bool:
        """Whether a turn runs, as far as the screen knows."""
        return self.state.busy

    async def play(self, open_session: OpenSession, first: Command | None = None) -> None:
        """Open a session and show it until it ends. ``first`` is sent before what the user typed meanwhile."""
        port = await open_session()
        bridge = Bridge(self._apply, waiting=self._screen.waiting_writes, interval=self._interval)
        pump = asyncio.create_task(bridge.pump(port.subscribe(replay=True)))
        try:
            await asyncio.sleep(0)  # the subscription begins
            if first is not None:
                port.send(first)
            self.link.attach(port)
            self.refresh_branch()
            self._screen.session_opened()
            await asyncio.gather(pump, bridge.run())
        finally:
            pump.cancel()

    async def close(self, timeout: float) -> None:
        """End the session and forget what was shown of it."""
        await self.link.close(timeout)
        self.state = UiState(last_answer=self.state.last_answer, changed=self.state.changed)

    def interrupt(self) -> None:
        """Stop the turn; the screen says so at once."""
        self.state.interrupting = True
        self.link.send(Interrupt())
        self._screen.show_state()

    def answer(self, command: Command) -> None:
        """Send a reply; its request is done with for the screen before the session says so."""
        if isinstance(command, ReplyPermission | Answer):
            self.state.requests = [entry for entry in self.state.requests if entry.request != command.request]
        self.link.send(command)
        self._screen.show_state()

    def facts(self) -> Facts:
        """What the status bar shows."""
        view = self.link.view
        if view is None:
            return Facts("default", "…", branch=self._branch)
        usage, model = view.last_usage, view.model
        return Facts(
            mode=view.mode,
            model=None if model is None else model.ref,
            budget=view.budget,
            cache_share=None if usage is None else usage.cache_share,
            cost=view.totals.cost,
            branch=self._branch,
            sandbox=self.state.sandbox,
            jobs=sum(1 for job in view.jobs if job.status == "running"),
        )

    def refresh_branch(self) -> None:
        """Look at the repository again."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._look())

    async def _look(self) -> None:
        branch = await asyncio.to_thread(self._read_branch)
        if branch != self._branch:
            self._branch = branch
            self._screen.show_state()

    def _apply(self, batch: Sequence[Event]) -> None:
        self._screen.show_events(batch)
        self._spoke = self._spoke or any(isinstance(event.body, TurnStarted) for event in batch)
        reduction.feed(self.state, batch)
        if any(isinstance(event.body, TurnEnded | FileChanged) for event in batch):
            self.refresh_branch()
        self._screen.show_state()

    def _interval(self) -> float:
        return FRAME if self._screen.watched and not self._remote else AWAY_FRAME
