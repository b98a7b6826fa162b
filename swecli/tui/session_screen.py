"""The running session behind the screen: its events, merged once per frame, feed the widgets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

from msgspec.structs import replace
from textual.timer import Timer

from swecli.core.protocol.commands import Answer, Command, Interrupt, ReplyPermission
from swecli.core.protocol.events import Event, FileChanged, ItemDelta, Rewound, TurnEnded, TurnStarted
from swecli.tui import compat, state
from swecli.tui.first_run import FirstRun
from swecli.tui.keys import KeyActions
from swecli.tui.options import Options
from swecli.tui.session_link import OpenSession, SessionLink
from swecli.tui.state import UiState
from swecli.tui.status_bar import Facts

SETTLED = 2.0
"""Seconds after a session was opened, or after the last of what was said in it before, until the start is over."""
REPLAYED = 500
"""Events at once that only come from a stored session."""


class View:
    """Implements ``stage.Screen`` on the application. The first prompt waits in the prompt while no model is
    connected; ``opened`` is called once a session is there and what was said in it before is shown."""

    def __init__(self, app: KeyActions, options: Options, opened: Callable[[], None]) -> None:
        self._app = app
        self._first_prompt = options.first_prompt or ""
        self._first_run = FirstRun(app, options)
        self._first_screen = options.screens.first
        self._opened = opened
        self._settling: Timer | None = None
        self._new = False

    @property
    def watched(self) -> bool:
        return self._app.app_focus

    def waiting_writes(self) -> int:
        return compat.writer_depth(self._app)

    def session_opened(self) -> None:
        self._new = True
        self.show_state()
        self._settling = self._app.set_timer(SETTLED, self._opened)
        if self._first_screen == "sessions":
            self._app.screens.sessions()
        self._first_screen = None

    def show_events(self, batch: Sequence[Event]) -> None:
        self._app.transcript.apply(batch)
        if len(batch) > REPLAYED and self._settling is not None:
            self._settling.reset()
        view = self._app.stage.link.view
        for event in batch:
            if isinstance(event.body, Rewound) and event.body.text and view and event.seq > view.started_seq:
                self._app.desk.put_back(event.body.text)
        if self._new and view is not None:
            self._new = False
            if view.model is None:
                self._welcome()

    def show_state(self) -> None:
        app = self._app
        if not app.screen_stack:  # the session outlives the screen for a moment
            return
        stage = app.stage
        app.activity.show(stage.state, starting=not stage.opened)
        facts = stage.facts()
        app.status.show(facts)
        app.outside.follow(stage.state, facts, stage.link.view, watched=app.app_focus, columns=app.size.width)
        app.todos.show(stage.state.todos)
        app.prompt.show_session(stage.opened, stage.state.busy, stage.state.queue)
        app.slot.show_requests(stage.state.requests)

    def _welcome(self) -> None:
        if not self._app.prompt.editor.text:
            self._app.prompt.editor.put(self._first_prompt)
        if self._app.place.current is None:  # the list of sessions is not to lose the keyboard to a list of models
            self._first_run.begin()


FRAME = 1 / 30
"""Seconds between two updates of the screen at most."""

BACK_PRESSURE = 0.010
"""Seconds between two looks at an output queue that the terminal has not emptied yet."""

MAX_BATCH = 4000
"""Events of one update at most, so that a long replay does not hold up a key press."""


def merge(events: Sequence[Event]) -> list[Event]:
    """The same stream with fewer deltas: consecutive ones of an item and channel become one. Deltas of
    different items may change places with each other, never with any other event."""
    merged: list[Event] = []
    texts: dict[int, list[str]] = {}
    open_at: dict[tuple[str, str], int] = {}
    for event in events:
        body = event.body
        if not isinstance(body, ItemDelta):
            open_at.clear()
            merged.append(event)
            continue
        key = (body.item, body.channel)
        index = open_at.get(key)
        if index is None:
            open_at[key] = len(merged)
            merged.append(event)
        else:
            first = merged[index].body
            assert isinstance(first, ItemDelta)
            texts.setdefault(index, [first.text]).append(body.text)
    for index, parts in texts.items():
        event = merged[index]
        assert isinstance(event.body, ItemDelta)
        merged[index] = replace(event, body=replace(event.body, text="".join(parts)))
    return merged


class Bridge:
    """Takes events as they come and passes them on in batches.

    ``apply`` is called with the merged events of one frame. ``waiting`` says how many writes the terminal
    has not taken yet: nothing is drawn on top of them, which is what keeps the keyboard alive on a slow link.
    """

    def __init__(
        self,
        apply: Callable[[Sequence[Event]], None],
        *,
        waiting: Callable[[], int] = lambda: 0,
        interval: Callable[[], float] = lambda: FRAME,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._apply = apply
        self._waiting = waiting
        self._interval = interval
        self._sleep = sleep
        self._pending: list[Event] = []
        self._dirty = asyncio.Event()
        self._ended = False

    def push(self, event: Event) -> None:
        """Take one event. Never blocks."""
        self._pending.append(event)
        self._dirty.set()

    async def pump(self, events: AsyncIterator[Event]) -> None:
        """Take a whole stream until it ends, then pass on what is left."""
        taken = 0
        async for event in events:
            self.push(event)
            taken += 1
            if taken % MAX_BATCH == 0:  # a replay that is ready at once must let the keyboard in
                await asyncio.sleep(0)
        self._ended = True
        self._dirty.set()

    async def run(self) -> None:
        """Pass on batches until the stream has ended."""
        while True:
            await self._dirty.wait()
            while self._waiting() > 0:
                await self._sleep(BACK_PRESSURE)
            batch, self._pending = self._pending[:MAX_BATCH], self._pending[MAX_BATCH:]
            if not self._pending and not self._ended:
                self._dirty.clear()
            if batch:
                self._apply(merge(batch))
            elif self._ended:
                return
            await self._sleep(0 if self._pending else self._interval())


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
        self.link.send(Interrupt(skip=True))
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
        state.feed(self.state, batch)
        if any(isinstance(event.body, TurnEnded | FileChanged) for event in batch):
            self.refresh_branch()
        self._screen.show_state()

    def _interval(self) -> float:
        return FRAME if self._screen.watched and not self._remote else AWAY_FRAME
