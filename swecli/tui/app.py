"""The application: what is on the screen, and its life from the first frame to the last."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.timer import Timer
from textual.worker import WorkerFailed

from swecli.core.protocol.commands import EditQueue, Submit
from swecli.core.protocol.events import Event
from swecli.tui import compat, connect, theme
from swecli.tui.bars import ActivityLine, StatusBar
from swecli.tui.copying import Copier
from swecli.tui.desk import Desk
from swecli.tui.dock.panel import Clock, DockPanel
from swecli.tui.driver import BackgroundReported, Driver
from swecli.tui.keys import KeyActions
from swecli.tui.link import CLOSE_TIME, OpenSession, SessionNotOpened
from swecli.tui.options import Options
from swecli.tui.prompt.box import Prompt
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.slot import Slot
from swecli.tui.stage import Stage
from swecli.tui.talk import Talk
from swecli.tui.todos import TodoPanel
from swecli.tui.transcript import palette
from swecli.tui.transcript.view import Transcript

RESIZE_PAUSE = 0.08
"""Seconds after the last change of the window's size until everything is drawn once more."""

SIGNAL_TIME = 0.5
"""Seconds for a session to end in order after a signal."""


class SwecliApp(KeyActions, inherit_bindings=True):
    """``clock`` is monotonic seconds for windows of keys, ``wall`` Unix seconds for durations; ``opened`` is
    called when the first session is there."""

    CSS = """
    Screen { layout: vertical; background: $background; color: $foreground; }
    #transcript { height: 1fr; min-height: 1; }
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
        self.transcript = Transcript(id="transcript")
        self.todos = TodoPanel()
        self.activity = ActivityLine(clock=wall)
        self.prompt = Prompt(options.state, options.files, self.activity.flash)
        self.slot = Slot(self.prompt, clock=clock)
        self.status = StatusBar()
        self.stage = Stage(self, options.branch)
        self.talk = Talk(self.stage.link, Desk(self, options), self.stage.is_busy)
        self.copier = Copier(self, self.prompt.editor, self._write, self.activity.flash)
        for known in (theme.DARK, theme.LIGHT):
            self.register_theme(known)
        self.theme = theme.preferred(os.environ)

    def compose(self) -> ComposeResult:
        yield self.transcript
        yield self.todos
        yield self.activity
        yield self.slot
        yield self.status

    # --- life -----------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self._event_loop = asyncio.get_running_loop()
        self._use_palette()
        self.theme_changed_signal.subscribe(self, lambda _: self._use_palette())
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.show_state()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        first = self._options.first_prompt
        self.play(self._options.open_session, Submit(first) if first else None)

    def play(self, open_session: OpenSession, first: Submit | None = None) -> None:
        """Open a session and show it."""
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
        await self.stage.close(timeout)
        self.exit(return_code=code)

    def end_soon(self, code: int) -> None:
        """End with this exit code in the time that a signal leaves. For signal handlers."""
        self._from_signal(lambda: self.run_worker(self._end(code, SIGNAL_TIME), group="end"))

    def cancel_soon(self) -> None:
        """What Ctrl+C does. For signal handlers."""
        self._from_signal(self.action_cancel)

    def _from_signal(self, call: Callable[[], object]) -> None:
        if self._event_loop is not None:
            self._event_loop.call_soon_threadsafe(call)

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

    # --- messages of the parts ------------------------------------------------------------------------------

    @on(PromptEditor.Submitted)
    async def _submitted(self, message: PromptEditor.Submitted) -> None:
        if self.prompt.editor.text.strip():
            await self.talk.submit(self.prompt.take(), queue=message.queue)

    @on(Prompt.Recall)
    def _recalled(self, message: Prompt.Recall) -> None:
        self.stage.link.send(EditQueue(message.queued.id, None))
        self.prompt.editor.put(message.queued.text)

    @on(Prompt.Scroll)
    def _scrolled(self, message: Prompt.Scroll) -> None:
        self.action_scroll(message.where)

    @on(Prompt.Edited)
    def _edited(self) -> None:
        if self.prompt.editor.text:
            self.armed = None

    @on(Prompt.Leave)
    def _left(self) -> None:
        self.leave()

    @on(Prompt.Walk)
    def _walked(self) -> None:
        self.transcript.focus()
        self.transcript.action_cursor_previous()

    @on(Transcript.Left)
    def _returned(self) -> None:
        self.slot.focus_panel()

    @on(Transcript.CopyRequested)
    def _copy_requested(self, message: Transcript.CopyRequested) -> None:
        self.copier.copy(message.text, message.what)

    @on(DockPanel.Finished)
    def _finished(self, message: DockPanel.Finished) -> None:
        if message.command is None:
            self.slot.close()
        else:
            self.stage.answer(message.command)

    @on(BackgroundReported)
    def _background_known(self, message: BackgroundReported) -> None:
        self.theme = (theme.DARK if message.dark else theme.LIGHT).name

    def on_resize(self) -> None:
        """Several changes may have come as one, to the size that was there before: the terminal has lost its
        content all the same."""
        if self._redraw is not None:
            self._redraw.stop()
        self._redraw = self.set_timer(RESIZE_PAUSE, self.action_redraw)

    def on_app_focus(self) -> None:
        self.activity.focus_changed()

    def on_app_blur(self) -> None:
        self.activity.focus_changed()

    def on_key(self, event: events.Key) -> None:
        """A character that nobody took is meant for the prompt."""
        if event.is_printable and event.character and self.slot.panel is None:
            self.prompt.editor.focus()
            self.prompt.editor.add(event.character)

    def _use_palette(self) -> None:
        self.transcript.set_palette(palette.DARK if self.current_theme.dark else palette.LIGHT)

    def _handle_exception(self, error: Exception) -> None:
        self.defect = self.defect or (error.error if isinstance(error, WorkerFailed) else error)
        compat.stop_after_defect(self, self.defect)

    def _write(self, sequence: str) -> None:
        if self._driver is not None:
            self._driver.write(sequence)
