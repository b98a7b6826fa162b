"""The session behind the screen: opened while keys already work, its events merged per frame and shown, closed in
order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual.message import Message
from textual.timer import Timer

from swecli.commands.base import running_jobs
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import (
    Answer,
    Background,
    Command,
    EditQueue,
    Interrupt,
    ReplyPermission,
    Rewind,
    SetMode,
)
from swecli.core.protocol.events import (
    MAIN,
    Event,
    FileChanged,
    ItemDelta,
    ItemStarted,
    Mode,
    ModeChanged,
    Notice,
    Rewound,
    TurnEnded,
    TurnStarted,
)
from swecli.safe_text import safe_line
from swecli.tui import compat, session_state
from swecli.tui.later import Later
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_state import UiState
from swecli.tui.status_bar import STARTING, Facts
from swecli.tui.terminal import TerminalStatus

if TYPE_CHECKING:
    from swecli.assembly.succession import OpenSession
    from swecli.core.context_management.forecast import Forecast
    from swecli.core.engine.companion import EndReason
    from swecli.core.engine.message_weight import WeighedMention, Weight
    from swecli.core.engine.session import Session
    from swecli.core.engine.session_view import SessionView
    from swecli.core.protocol.events import ContextSuggested, Queued

FRAME = 1 / 30
"""Minimum seconds between two screen updates."""

BEGIN = 2.0
"""Seconds that input behind an early message waits for that message's turn."""

MAX_BATCH = 4000
"""Maximum events per update, so that a long replay does not delay a key press."""


def merge(events: Sequence[Event]) -> list[Event]:
    """The same stream with consecutive deltas of an item and channel merged. Deltas of different items may swap places
    with each other, never with another event."""
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
    """Collects events and passes them on in batches.

    ``apply`` receives the merged events of one frame. ``waiting`` returns how many writes the terminal has not taken:
    nothing is drawn until they are, which keeps the keyboard responsive on a slow link.
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

    async def pump(self, events: AsyncIterator[Event]) -> None:
        """Collect a stream until it ends, then pass on the rest."""
        taken = 0
        async for event in events:
            self._pending.append(event)
            self._dirty.set()
            taken += 1
            if taken % MAX_BATCH == 0:  # let key events in during a replay
                await asyncio.sleep(0)
        self._ended = True
        self._dirty.set()

    async def run(self) -> None:
        """Pass on batches until the stream ends."""
        while True:
            await self._dirty.wait()
            while self._waiting() > 0:
                await self._sleep(compat.BACK_PRESSURE)
            batch, self._pending = self._pending[:MAX_BATCH], self._pending[MAX_BATCH:]
            if not self._pending and not self._ended:
                self._dirty.clear()
            if batch:
                has_deltas = any(isinstance(event.body, ItemDelta) for event in batch)
                self._apply(merge(batch) if has_deltas else batch)
            elif self._ended:
                return
            await self._sleep(0 if self._pending else self._interval())


AWAY_FRAME = 1 / 10
"""Seconds between two updates in the background or over a remote line."""
CLOSE_TIME = 3.0
"""Seconds for an orderly end of the session when the user quits."""
SETTLED = 2.0
"""Seconds after opening or after the end of the replay until the start phase ends."""
MODE_REST = 1.5
"""Seconds without another mode change after which the mode settles waiting requests."""
SHOWN_TURNS = 60
"""Turns of a stored session shown at first, at most ``recorder.HELD_TURNS``."""
FURTHER = 4
"""Factor by which the shown turns grow when the user scrolls further back."""
REPLAYED = 500
"""Events in one batch that indicate a replay."""


class SessionController:
    """Holds the session's port once it is open and queues commands until then. Keeps the state that events produce and
    updates the screen from it.

    ``branch`` is read in a thread; ``greet`` returns a new session's greeting; ``settled`` is called once a session is
    open and its history is shown; ``wall`` is Unix seconds.
    """

    @dataclass
    class Wanted(Message):
        """Asks to open a session in place of the closed one."""

        open_session: OpenSession

    class Opened(Message):
        """The session is open; a sent prompt is processed at once."""

    class Planned(Message):
        """A turn in plan mode ended; its answer may be a plan."""

    class Unconnected(Message):
        """The opened session has no model."""

    class KeyRefused(Message):
        """The provider refused the key of the model."""

    class Connected(Message):
        """That session got its first model, whichever way it was chosen."""

    def __init__(
        self,
        screen: MainScreen,
        terminal: TerminalStatus,
        branch: Callable[[], str] = lambda: "",
        greet: Callable[[SessionView], Awaitable[tuple[tuple[str, str], ...]]] | None = None,
        settled: Callable[[], None] = lambda: None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._screen = screen
        self._terminal = terminal
        self._read_branch = branch
        self._greet = greet
        self._settled = settled
        self._wall = wall
        self._settling: Timer | None = None
        self._branch = ""
        self._reading: asyncio.Task[None] | None = None
        self._remote = bool(os.environ.get("SSH_CONNECTION"))
        self._waiting: list[Command] = []
        self._coming_mode: Mode | None = None
        self._resting: Timer | None = None
        self._open, self._begun, self._rest = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._new = False
        """Whether none of its events has been shown."""
        self._unconnected = False
        self.port: Session | None = None
        self._detached: Session | None = None
        self._ending: asyncio.Future[None] | None = None
        """The end of the session that was closed last."""
        self.state = UiState()
        self.later = Later(self.show)
        """Lines that wait until the session is free."""
        self.spoke = False
        """Whether a session of this run had a conversation to continue."""
        self.continuable = False
        """Whether the open session has one."""
        self.interrupts = 0
        self._announced = False
        """Whether the screen shows an interrupt that has not begun."""
        self._gives_back = False
        """Whether the next message that a rewind takes out is one that was interrupted."""
        self.earlier = 0
        """Number of messages not shown."""
        self._turns = SHOWN_TURNS
        """Minimum number of newest turns shown."""
        self._place: Callable[[], bool] | None = None
        """Restores the scroll position once its content is shown again; returns whether it could."""
        self.before_call: Callable[[], None] | None = None
        """Called once, before the next tool call appears."""
        self.left: Callable[[], None] = lambda: None
        """Called when the open session is left for another one, or for good."""
        self._newest = self._replayed = 0
        """Sequence numbers of the newest shown event, and of the newest when the number of shown turns last changed."""
        self._showing: asyncio.Task[None]

    @property
    def view(self) -> SessionView | None:
        return None if self.port is None else self.port.view

    @property
    def jobs(self) -> list[str]:
        """Background jobs that end with the session."""
        view = self.view
        return [] if view is None else running_jobs(view.jobs)

    @property
    def busy(self) -> bool:
        """Whether work goes on in the session, shown already or not."""
        return self.state.busy or (self.port is not None and self.port.view.busy)

    @property
    def mentionable_words(self) -> tuple[str, ...]:
        """Mentionable words besides files."""
        return () if self.port is None else tuple(mentionable.word for mentionable in self.port.mentionables)

    async def opened(self) -> None:
        """Wait until a session is open."""
        await self._open.wait()

    async def begun(self) -> None:
        """Wait until the first turn of this run is shown, or the session had time to begin it."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._begun.wait(), BEGIN)

    async def rested(self) -> None:
        """Wait until no turn is shown as running."""
        while self.state.busy:
            self._rest.clear()
            await self._rest.wait()

    async def play(self, open_session: OpenSession, first: Command | None = None) -> None:
        """Open a session and show it until it ends. ``first`` is sent before anything typed meanwhile."""
        port = await open_session()
        self._screen.transcript.greet(() if self._greet is None else await self._greet(port.view))
        self._turns = SHOWN_TURNS
        self.earlier = max(0, port.view.totals.turns - SHOWN_TURNS)
        self._replayed = self._newest = 0
        self._place = None
        self._update_earlier()
        self._showing = asyncio.create_task(self._stream(port, SHOWN_TURNS))
        try:
            await asyncio.sleep(0)  # let the subscription start
            if first is not None:
                port.send(first)
            self._attach(port)
            self.refresh_branch()
            self.show()
            self._settling = self._screen.set_timer(SETTLED, self._settled)
            self._screen.post_message(self.Opened())
            while True:
                showing = self._showing
                await asyncio.wait([showing])
                if showing is self._showing:
                    if not showing.cancelled():
                        await showing
                    return
        finally:
            self._showing.cancel()

    async def _stream(self, port: Session, turns: int | None) -> None:
        """Show the newest turns (None: all) and new events until the session ends."""
        bridge = Bridge(self._apply, waiting=partial(compat.writer_depth, self._screen.app), interval=self._interval)
        pump = asyncio.create_task(bridge.pump(port.subscribe(replay=True, turns=turns)))
        try:
            await asyncio.gather(pump, bridge.run())
        finally:
            pump.cancel()

    def _update_earlier(self) -> None:
        transcript = self._screen.transcript
        transcript.earlier = bool(self.earlier)
        if self.earlier:
            named = "1 earlier message is" if self.earlier == 1 else f"{self.earlier:,} earlier messages are"
            text = f"{named} not shown; PgUp at the top loads more, Home or a search loads the whole session"
            transcript.show((TextBlock(text, "dim"),))

    def show_all(self) -> None:
        """Show all turns of a long session. Only between turns."""
        self._show_turns(None, None)

    def show_earlier(self, *, whole: bool) -> None:
        """Show earlier turns above the current view, or the ``whole`` session from its start, when the user scrolls
        past the top. Only between turns."""
        transcript = self._screen.transcript
        first = transcript.first_message
        if whole or not first:
            self._show_turns(None, transcript.show_top)
        elif self._place is not None:
            transcript.earlier = True  # a held key: the previous request is in progress
        else:
            self._show_turns(self._turns * FURTHER, lambda: transcript.show_before(first))

    def _show_turns(self, turns: int | None, go_to: Callable[[], bool] | None) -> None:
        """Redraw with this many of the newest turns; None: all."""
        port, transcript = self.port, self._screen.transcript
        if port is None or not self.earlier:
            return
        if self.state.busy:
            transcript.earlier = True  # allow another request
            self._screen.activity.flash("Earlier messages load when the turn ends")
            return
        total = port.view.totals.turns
        self._turns = min(turns or total, total)
        self.earlier, self._replayed, self._place = total - self._turns, self._newest, go_to
        transcript.clear()
        self._update_earlier()
        self._screen.activity.flash("Loading the whole session…" if not self.earlier else "Loading earlier messages…")
        before = self._showing
        self._showing = asyncio.create_task(self._stream(port, self._turns if self.earlier else None))
        before.cancel()

    def _attach(self, port: Session) -> None:
        """Attach the open session and send queued commands."""
        self.port, self._new = port, True
        self._open.set()
        waiting, self._waiting = self._waiting, []
        for command in waiting:
            port.send(command)

    def send(self, command: Command) -> None:
        """Send a command, or queue it until the session is open."""
        if isinstance(command, SetMode):
            self._forget_mode()
        if self.port is None:
            self._waiting.append(command)
        else:
            self.port.send(command)

    @property
    def mode(self) -> Mode | None:
        """Displayed mode: the session's, or the one selected while cycling."""
        return self._coming_mode or (None if self.view is None else self.view.mode)

    def come_to_mode(self, mode: Mode, then: Callable[[], None]) -> None:
        """Cycle to a mode. While requests wait, the session learns of it only after ``MODE_REST``, so that a mode
        passed on the way settles nothing. Calls ``then`` when it has been told."""

        def come() -> None:
            self.send(SetMode(mode))
            then()

        if not self.state.requests:
            come()
            return
        self._forget_mode()
        self._coming_mode = mode
        self._resting = self._screen.set_timer(MODE_REST, come)
        self.show()

    def _forget_mode(self) -> None:
        self._coming_mode = None
        if self._resting is not None:
            self._resting.stop()
            self._resting = None

    def detach(self) -> None:
        """Send nothing more to the open session, which ``close`` then ends: commands and input wait for the next."""
        self._forget_mode()
        self.left()
        self._detached, self.port = self.port or self._detached, None
        self.continuable = False
        self._open.clear()

    async def close(self, timeout: float = CLOSE_TIME, reason: EndReason = "other") -> None:
        """End the session within ``timeout`` seconds, or wait for its end if that has begun, show no more of it, and
        forget its shown state. ``reason`` is for hooks."""
        self.detach()
        port, self._detached = self._detached, None
        parting: list[str] = []
        if port is None and self._ending is not None:  # the program quits while the user leaves for another session
            await asyncio.wait((self._ending,), timeout=timeout)
        if port is not None:
            listening = asyncio.create_task(_notices(port.subscribe(), parting))
            await asyncio.sleep(0)  # let the subscription start
            self._ending = asyncio.ensure_future(port.close(reason))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.gather(self._ending, listening), timeout)  # both end with the session
            self._showing.cancel()  # its last events belong to no other session
            await asyncio.wait([self._showing])
        run = port.files.run_changes if port is not None else None
        changed = session_state.changed_in_run(self.state, run)
        self.state = UiState(
            last_answer=self.state.last_answer, earlier=changed, parting=(*self.state.parting, *parting)
        )

    def announce_interrupt(self, *, withdrawn: bool) -> None:
        """Show an interrupt that is about to come, or no longer if it is ``withdrawn``."""
        if self._announced if withdrawn else not self.state.interrupting:
            self._announced = self.state.interrupting = not withdrawn
            self.show()

    def interrupt(self) -> None:
        """Stop the turn and show that at once. Queued input returns to the prompt in order."""
        self.interrupts += 1
        self._announced = False
        self.state.interrupting = True
        self._take_back()
        self.send(Interrupt(skip=True))
        self.show()

    def _take_back(self) -> None:
        waiting = () if self.view is None else self.view.queue
        for queued in waiting:
            self.send(EditQueue(queued.id, None))
        self.take_back((*waiting, *self.later.take_all()))

    def _give_back(self) -> None:
        """Return a message to the empty prompt that was interrupted before any answer: it leaves the conversation."""
        ended = self.state.ended
        interrupted = ended is not None and ended.outcome == "interrupted" and not ended.error_kind
        if interrupted and self.state.unanswered and not self._screen.prompt.editor.text:
            self._gives_back = True
            self.send(Rewind(self.state.turn_item))

    def take_back(self, queue: Sequence[Queued], *, wanted: bool = False) -> None:
        """Return unsent input to the prompt, in order. ``wanted``: the user asked for it."""
        left_out = self._screen.prompt.take_back(queue, wanted=wanted) if queue else ()
        if left_out:
            self._screen.activity.flash(f"Not run: {safe_line(', '.join(left_out))} (Up recalls it)", 8.0)

    def recall(self, queued: Queued) -> None:
        """Return a waiting message to the prompt, unless it has begun meanwhile or a key right before took it back."""
        if not self.later.take(queued.id):
            if self.view is None or all(other.id != queued.id for other in self.view.queue):
                return
            self.send(EditQueue(queued.id, None))
        self.take_back((queued,), wanted=True)

    def move_to_background(self) -> bool:
        """Move the running commands to the background; False if there is none."""
        items = [item for item, running in self.state.running.items() if running.is_command]
        for item in items:
            self.send(Background(item))
        return bool(items)

    def answer(self, command: Command) -> None:
        """Send a reply and remove its request from the screen before the session confirms."""
        if isinstance(command, ReplyPermission | Answer):
            session_state.answered(self.state, command.request, self._wall())
        self.send(command)
        self.show()
        if isinstance(command, ReplyPermission):
            self._screen.prompt.history.add(command.note)  # words for the model, like those of a message

    def no_images(self) -> str:
        """Why the model can't take images; empty if it can, or may."""
        model = None if self.view is None else self.view.model
        if model is None or model.images is not False:
            return ""
        return f"{model.ref} does not accept images; the path was pasted as text"

    def weigh(self, text: str, images: int = 0) -> Weight:
        """Size of this input relative to the window."""
        from swecli.core.engine.message_weight import weigh

        view = self.view
        return weigh(text, images, None) if view is None else weigh(text, images, view.budget, view.ratio)

    def foresee(self) -> Forecast | None:
        """Forecast of the next request if the draft were sent now; None if there would be none, or while a turn
        runs."""
        view, prompt = self.view, self._screen.prompt
        editor, draft = prompt.editor, prompt.editor.text
        if view is None or self.state.busy or not draft.strip() or draft.startswith(("/", "!")):
            return None
        return view.forecast(editor.message, len(editor.attachments.used(draft)), prompt.mentions.tokens)

    @property
    def suggestion(self) -> ContextSuggested | None:
        """Context suggestion; None during work or while a panel, list or draft is open."""
        return self.view.suggestion if self.at_rest and self.view is not None else None

    @property
    def at_rest(self) -> bool:
        """Whether there is no work, panel, list or draft."""
        screen, state = self._screen, self.state
        if state.busy or state.running or state.queue:
            return False
        return screen.dock.panel is None and screen.list_view is None and not screen.prompt.editor.text

    async def weigh_mentions(self, words: Sequence[str]) -> tuple[WeighedMention, ...]:
        """Size of what these ``@`` mentions would attach; empty without a session."""
        from swecli.core.engine.message_weight import weigh_mentions

        view = self.view
        if view is None or not words:
            return ()
        others = () if self.port is None else self.port.mentionables
        return await weigh_mentions(words, view.cwd, view.roots, view.model, others)

    async def mentions_shown(self, words: Sequence[str]) -> tuple[str, int]:
        """One-line text of ``weigh_mentions``, and their estimated tokens."""
        from swecli.core.engine.message_weight import mentions_line

        weighed = await self.weigh_mentions(words)
        return mentions_line(weighed, self.weigh("")), sum(mention.tokens for mention in weighed)

    # --- the screen ---

    def show(self) -> None:
        """Update everything around the transcript."""
        screen, state, view = self._screen, self.state, self.view
        app = screen.app
        if not app.screen_stack:  # the session briefly outlives the screen
            return
        facts = self._facts()
        screen.activity.show(state, starting=view is None)
        screen.status.show(facts)
        screen.todos.show(state.todos)
        screen.prompt.show_session(view is not None, state.busy, state.queue, bool(state.running), self.later.queue)
        screen.dock.show_requests(state.requests)
        self._terminal.follow(state, facts, view, watched=app.app_focus, columns=app.size.width)

    def _facts(self) -> Facts:
        view = self.view
        if view is None:
            return Facts("default", STARTING, branch=self._branch, editing=self._screen.prompt.editing)
        usage, model = view.last_usage, view.model
        return Facts(
            mode=self._coming_mode or view.mode,
            model=None if model is None else model.ref,
            budget=view.budget,
            cache_share=None if usage is None else usage.cache_share,
            cost=view.totals.cost,
            branch=self._branch,
            sandbox=self.state.sandbox,
            jobs=sum(1 for job in view.jobs if job.status == "running"),
            editing=self._screen.prompt.editing,
            yolo=view.yolo,
        )

    def refresh_branch(self) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._look())

    async def _look(self) -> None:
        branch = await asyncio.to_thread(self._read_branch)
        if branch != self._branch:
            self._branch = branch
            self.show()

    def _apply(self, batch: Sequence[Event]) -> None:
        """Show the merged events of one frame."""
        view = self.view
        started = (event.body for event in batch if isinstance(event.body, ItemStarted) and event.agent == MAIN)
        if self.before_call is not None and any(body.kind == "tool" for body in started):
            announce, self.before_call = self.before_call, None
            announce()
        self._screen.transcript.apply(batch)
        if self._place is not None and self._place():
            self._place = None
        if len(batch) > REPLAYED and self._settling is not None:
            self._settling.reset()
        self._newest = max(self._newest, batch[-1].seq if batch else 0)
        since = max(self._replayed, view.started_seq if view is not None else 0)
        for event in batch:
            known = self.state.sandbox
            stopped = self.state.interrupting and isinstance(event.body, TurnEnded) and event.seq > since
            session_state.feed(self.state, event)
            if stopped and not self.state.busy:
                self._give_back()
            sandbox = self.state.sandbox
            if known is not None and sandbox is not None and sandbox.level != known.level:
                self._screen.activity.flash(f"Sandbox: {sandbox.label or sandbox.level}")
            if (
                isinstance(event.body, Rewound)
                and event.agent == MAIN
                and event.body.text
                and self.port
                and event.seq > since
            ):
                wanted, self._gives_back = not self._gives_back, False
                images = self.port.rewinds.images_of(event.body.item)
                self._screen.prompt.put_back(event.body.text, images, wanted=wanted)
        if view is not None:
            fresh = [event for event in batch if event.seq > since and event.agent == MAIN]
            self._follow_plan(fresh, view)
            ends = [event.body for event in fresh if isinstance(event.body, TurnEnded)]
            # Stopped at a budget: the user may change waiting input, an answer among it, before it costs anything.
            if any(end.outcome == "interrupted" and end.error_kind == "budget" for end in ends):
                self._take_back()
            if ends and ends[-1].error_kind == "auth" and not self.state.busy:
                self._screen.post_message(self.KeyRefused())
        if self._new and view is not None:
            self._new = False
            self._unconnected = view.model is None
            if self._unconnected:
                self._screen.post_message(self.Unconnected())
        elif self._unconnected and view is not None and view.model is not None:
            self._unconnected = False
            self._screen.post_message(self.Connected())
        if any(isinstance(event.body, TurnStarted) for event in batch):
            self.spoke = self.continuable = True
            self._begun.set()
        if not self.state.busy:
            self._rest.set()
        if any(isinstance(event.body, TurnEnded | FileChanged) for event in batch):
            self.refresh_branch()
        self.show()

    def _follow_plan(self, batch: Sequence[Event], view: SessionView) -> None:
        """Ask about a plan once its turn has ended, and show its steps until all are done."""
        from swecli.core.engine.plan import ACCEPTED

        for event in batch:
            if isinstance(event.body, TurnStarted | ModeChanged):
                self._screen.dock.dismiss_plan()
            if isinstance(event.body, ModeChanged) and event.body.reason == ACCEPTED and self.state.todos:
                self._screen.todos.open = True
            ended = isinstance(event.body, TurnEnded)
            if ended and self.state.todos and all(todo.status == "completed" for todo in self.state.todos):
                self._screen.todos.open = False
        done = any(isinstance(event.body, TurnEnded) and event.body.outcome == "done" for event in batch)
        if done and not self.state.busy and view.mode == "plan":
            self._screen.post_message(self.Planned())

    def _interval(self) -> float:
        return FRAME if self._screen.app.app_focus and not self._remote else AWAY_FRAME


async def _notices(events: AsyncIterator[Event], lines: list[str]) -> None:
    """Add the line of each notice of the main agent to ``lines``."""
    async for event in events:
        if event.agent == MAIN and isinstance(event.body, Notice):
            lines.append(event.body.line)
