"""The application: what is on the screen, and its life from the first frame to the last."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer
from textual.worker import WorkerFailed

from swecli.tui import compat, theme
from swecli.tui.bars import ActivityLine, StatusBar
from swecli.tui.dock.panel import Clock
from swecli.tui.driver import Driver
from swecli.tui.handlers import Handlers
from swecli.tui.link import CLOSE_TIME, OpenSession, SessionNotOpened
from swecli.tui.options import Options
from swecli.tui.prompt.box import Prompt
from swecli.tui.slot import Slot
from swecli.tui.todos import TodoPanel

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Submit
    from swecli.core.protocol.events import Event

RESIZE_PAUSE = 0.08
"""Seconds after the last change of the window's size until everything is drawn once more."""

SIGNAL_TIME = 0.5
"""Seconds for a session to end in order after a signal."""


class SwecliApp(Handlers, inherit_bindings=True):
    """The first frame is the prompt and the bars; what takes longer to load follows right behind it.

    ``clock`` is monotonic seconds for windows of keys, ``wall`` Unix seconds for durations; ``opened`` is called
    when the first session is there.
    """

    CSS = """
    Screen { layout: vertical; background: $background; color: $foreground; }
    #place { height: 1fr; min-height: 1; }
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#editor"
    TITLE = "swecli"

    def __init__(
        self,
        options: Options,
        *,
        clock: Clock = time.monotonic,
        wall: Callable[[], float] = time.time,
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        colourless = os.environ.get("NO_COLOR")
        super().__init__(driver_class=Driver)
        if colourless is not None:  # Textual takes it out, but child processes need it
            os.environ["NO_COLOR"] = colourless
        self._options = options
        self._opened = opened
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._redraw: Timer | None = None
        self._welcome = False
        self.clock = clock
        self.failure: SessionNotOpened | None = None
        """Why there was no session, if there was none."""
        self.defect: BaseException | None = None
        """The exception that ended the program, if one did."""
        self.todos = TodoPanel()
        self.activity = ActivityLine(clock=wall)
        self.prompt = Prompt(options.state, options.files, self.activity.flash)
        self.slot = Slot(self.prompt, clock=clock)
        self.status = StatusBar()
        for known in (theme.DARK, theme.LIGHT):
            self.register_theme(known)
        self.theme = theme.preferred(os.environ)

    def compose(self) -> ComposeResult:
        yield Vertical(id="place")
        yield self.todos
        yield self.activity
        yield self.slot
        yield self.status

    # --- life -----------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self._event_loop = asyncio.get_running_loop()
        self.call_after_refresh(self._furnish)

    def _furnish(self) -> None:
        """The first frame is on the screen: load and build the rest, and open the session."""
        from swecli.core.protocol.commands import Submit
        from swecli.tui.copying import Copier
        from swecli.tui.desk import Desk
        from swecli.tui.stage import Stage
        from swecli.tui.talk import Talk
        from swecli.tui.transcript.view import Transcript

        self.transcript = Transcript(id="transcript")
        self.query_one("#place").mount(self.transcript)
        self.stage = Stage(self, self._options.branch)
        self.talk = Talk(self.stage.link, Desk(self, self._options), self.stage.is_busy)
        self.copier = Copier(self, self.prompt.editor, self._write, self.activity.flash)
        self.watch(self.transcript, "unseen", self.activity.show_unseen, init=False)
        self.furnished = True
        self._use_palette()
        self.theme_changed_signal.subscribe(self, lambda _: self._use_palette())
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.show_state()
        first = self._options.first_prompt
        self.play(self._options.open_session, Submit(first) if first else None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.furnished

    def play(self, open_session: OpenSession, first: Submit | None = None) -> None:
        self.run_worker(self._play(open_session, first), group="session")

    async def _play(self, open_session: OpenSession, first: Submit | None) -> None:
        commands = await asyncio.to_thread(self._options.commands)
        self.talk.commands = self.prompt.suggestions.commands = commands
        self.prompt.adopt_draft()
        try:
            await self.stage.play(open_session, first)
        except SessionNotOpened as error:
            self.failure = error
            self.exit(return_code=error.code)

    def leave(self) -> None:
        self.activity.flash("Closing the session…")
        self.run_worker(self._end(0, CLOSE_TIME), group="end")

    async def _end(self, code: int, timeout: float) -> None:
        self.prompt.save()
        if self.furnished:
            await self.stage.close(timeout)
        self.exit(return_code=code)

    def end_soon(self, code: int) -> None:
        """End with this exit code in the time that a signal leaves. For signal handlers."""
        if self._event_loop is not None:
            end = self._end(code, SIGNAL_TIME)
            self._event_loop.call_soon_threadsafe(lambda: self.run_worker(end, group="end"))

    def cancel_soon(self) -> None:
        """What Ctrl+C does. For signal handlers."""
        if self._event_loop is not None and self.furnished:
            self._event_loop.call_soon_threadsafe(self.action_cancel)

    # --- what the stage asks for ----------------------------------------------------------------------------

    @property
    def watched(self) -> bool:
        return self.app_focus

    def waiting_writes(self) -> int:
        return compat.writer_depth(self)

    def session_opened(self) -> None:
        self._welcome = True
        self.show_state()
        self._opened()

    def show_events(self, batch: Sequence[Event]) -> None:
        self.transcript.apply(batch)
        view = self.stage.link.view
        if self._welcome and view is not None:
            self._welcome = False
            if view.model is None:
                from swecli.tui import connect

                if not self.prompt.editor.text:
                    self.prompt.editor.put(self._options.first_prompt or "")
                self.transcript.show(connect.blocks(os.environ), "Welcome to swecli")

    def show_state(self) -> None:
        if not self.screen_stack:  # the session outlives the screen for a moment
            return
        state, opened = self.stage.state, self.stage.opened
        self.activity.show(state, starting=not opened)
        self.status.show(self.stage.facts())
        self.todos.show(state.todos)
        self.prompt.show_session(opened, state.busy, state.queue)
        self.slot.show_requests(state.requests)

    def on_resize(self) -> None:
        """Several changes may have come as one, to the size that was there before: the terminal has lost its
        content all the same."""
        if self._redraw is not None:
            self._redraw.stop()
        self._redraw = self.set_timer(RESIZE_PAUSE, self._fit)

    def _fit(self) -> None:
        if self.screen_stack:
            self.prompt.fit()
            self.slot.fit()
            self.action_redraw()

    def on_app_focus(self) -> None:
        self.activity.focus_changed()

    def on_app_blur(self) -> None:
        self.activity.focus_changed()

    def _use_palette(self) -> None:
        from swecli.tui.transcript import palette

        self.transcript.set_palette(palette.DARK if self.current_theme.dark else palette.LIGHT)

    def _handle_exception(self, error: Exception) -> None:
        self.defect = self.defect or (error.error if isinstance(error, WorkerFailed) else error)
        compat.stop_after_defect(self, self.defect)

    def _write(self, sequence: str) -> None:
        if self._driver is not None:
            self._driver.write(sequence)
