"""The application: what is on the screen, and what keys and messages of its parts lead to."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from textual import on
from textual.app import App, ComposeResult

from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.commands import EditQueue, Submit
from swecli.core.protocol.events import Event
from swecli.tui import bindings, clipboard, compat, connect, ladder, theme
from swecli.tui.bars import ActivityLine, StatusBar
from swecli.tui.dock.panel import Clock, DockPanel
from swecli.tui.driver import BackgroundReported, Driver
from swecli.tui.link import CLOSE_TIME, SessionNotOpened
from swecli.tui.options import Options
from swecli.tui.prompt.box import Prompt
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.slot import Slot
from swecli.tui.stage import Stage
from swecli.tui.talk import MODES, Talk
from swecli.tui.todos import TodoPanel
from swecli.tui.transcript.view import Transcript

SIGNAL_TIME = 0.5
"""Seconds for a session to end in order after a signal."""


class SwecliApp(App[int], inherit_bindings=False):
    """``clock`` is monotonic seconds for windows of keys, ``wall`` Unix seconds for durations; ``opened`` is
    called when the first session is there."""

    CSS = """
    Screen { layout: vertical; background: $background; color: $foreground; }
    #transcript { height: 1fr; min-height: 1; }
    """
    BINDINGS = bindings.BINDINGS
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
        for known in (theme.DARK, theme.LIGHT):
            self.register_theme(known)
        self.theme = theme.preferred(os.environ)
        self._options = options
        self._clock = clock
        self._opened = opened
        self._armed: float | None = None
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self.failure: SessionNotOpened | None = None
        """Why there was no session, if there was none."""
        self.stage = Stage(self, options.branch)
        self.talk = Talk(self.stage.link, self, self.stage.is_busy)
        self.prompt = Prompt(options.state, options.files, self.flash)
        self._transcript = Transcript(id="transcript")
        self._todos = TodoPanel()
        self._activity = ActivityLine(clock=wall)
        self._slot = Slot(self.prompt, clock=clock)
        self._status = StatusBar()

    def compose(self) -> ComposeResult:
        yield self._transcript
        yield self._todos
        yield self._activity
        yield self._slot
        yield self._status

    def on_mount(self) -> None:
        self._event_loop = asyncio.get_running_loop()
        self.show_state()
        self.call_after_refresh(self.run_worker, self._live)

    async def _live(self) -> None:
        self.talk.commands = self.prompt.commands = await asyncio.to_thread(self._options.commands)
        self.prompt.adopt_draft()
        first = self._options.first_prompt
        try:
            await self.stage.play(self._options.open_session, Submit(first) if first else None)
        except SessionNotOpened as error:
            self.failure = error
            self.exit(return_code=error.code)

    # --- what the stage asks for ----------------------------------------------------------------------------

    @property
    def watched(self) -> bool:
        return self.app_focus

    def waiting_writes(self) -> int:
        return compat.writer_depth(self)

    def session_opened(self) -> None:
        view = self.stage.link.view
        if view is not None and view.model is None:
            self.show(connect.blocks(os.environ), "Welcome to swecli")
        self.show_state()
        self._opened()

    def show_events(self, events: Sequence[Event]) -> None:
        self._transcript.apply(events)

    def show_state(self) -> None:
        state, opened = self.stage.state, self.stage.opened
        self._activity.show(state, starting=not opened)
        self._status.show(self.stage.facts())
        self._todos.show(state.todos)
        self.prompt.show_session(opened, state.busy, state.queue)
        self._slot.show_requests(state.requests)

    # --- what talking asks for ------------------------------------------------------------------------------

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None:
        self._transcript.show(blocks, title)

    def flash(self, text: str) -> None:
        self._activity.flash(text)

    def pick_mode(self) -> None:
        from swecli.tui.dock.picker import Choice, Picker

        view = self.stage.link.view
        present = view.mode if view else None
        choices = [Choice(mode, mode, detail, mode == present) for mode, detail in MODES]
        self._slot.show(Picker("Mode", choices, self.talk.set_mode))

    def pick_model(self) -> None:
        self.run_worker(self._pick_model())

    async def _pick_model(self) -> None:
        from swecli.tui.dock.picker import Choice, Picker

        refs = list(await asyncio.to_thread(self._options.models))
        view = self.stage.link.view
        present = view.model.ref if view and view.model else None
        if present and present not in refs:
            refs.insert(0, present)
        choices = [Choice(ref, ref, current=ref == present) for ref in refs]
        title = "Model: provider/name (type one that is not listed)"
        self._slot.show(Picker(title, choices, self.talk.set_model, free=True))

    def start_over(self) -> None:
        if self._options.new_session is None:
            self.flash("Quit and start swecli again for a new session")
        else:
            self.run_worker(self._start_over())

    async def _start_over(self) -> None:
        assert self._options.new_session is not None
        await self.stage.close(CLOSE_TIME)
        before, self._transcript = self._transcript, Transcript(id="transcript")
        await before.remove()
        await self.mount(self._transcript, before=0)
        self.show_state()
        await self.stage.play(self._options.new_session)

    def leave(self) -> None:
        self.run_worker(self._end(0, CLOSE_TIME), group="end")

    async def _end(self, code: int, timeout: float) -> None:
        self.prompt.save()
        self.flash("Closing the session…")
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

    @property
    def spoke(self) -> bool:
        """Whether there was a conversation to continue."""
        return bool(self.stage.state.last_answer) or self.stage.state.turn_since > 0

    # --- messages of the parts ------------------------------------------------------------------------------

    @on(PromptEditor.Submitted)
    async def _submitted(self, message: PromptEditor.Submitted) -> None:
        text = self.prompt.editor.take()
        if text.strip():
            self.prompt.remember(text)
            await self.talk.submit(text, queue=message.queue)

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
            self._armed = None

    @on(Prompt.Leave)
    def _left(self) -> None:
        self.leave()

    @on(DockPanel.Finished)
    def _finished(self, message: DockPanel.Finished) -> None:
        if message.command is None:
            self._slot.close()
        else:
            self.stage.answer(message.command)

    @on(BackgroundReported)
    def _background(self, message: BackgroundReported) -> None:
        self.theme = (theme.DARK if message.dark else theme.LIGHT).name

    def on_app_focus(self) -> None:
        self._activity.focus_changed()

    def on_app_blur(self) -> None:
        self._activity.focus_changed()

    # --- keys -----------------------------------------------------------------------------------------------

    def _situation(self) -> ladder.Situation:
        panel, editor = self._slot.panel, self.prompt.editor
        return ladder.Situation(
            overlay=panel is None and self.prompt.overlay,
            panel=panel is not None,
            approval=self._slot.asks_consent,
            selection=bool(self.screen.selections) or not editor.selection.is_empty,
            busy=self.stage.state.busy,
            text=panel is None and bool(editor.text),
            armed=None if self._armed is None else self._clock() - self._armed,
        )

    def action_escape(self) -> None:
        match ladder.escape(self._situation()):
            case "overlay":
                self.prompt.close_overlay()
            case "panel":
                self._slot.escape()
            case "selection":
                self._unselect()
            case "interrupt":
                self.stage.interrupt()
            case "nothing":
                pass

    def action_cancel(self) -> None:
        step = ladder.cancel(self._situation())
        self._armed = None
        match step:
            case "copy":
                self.run_worker(self._copy())
            case "quit":
                self.leave()
            case "overlay":
                self.prompt.close_overlay()
            case "panel":
                self._slot.escape()
            case "clear":
                self.prompt.editor.kill_all()
            case "interrupt":
                self.stage.interrupt()
                self._arm()
            case "arm":
                self._arm()

    def _arm(self) -> None:
        self._armed = self._clock()
        if not self.stage.state.busy:
            self._activity.flash("Press Ctrl+C again to quit", ladder.QUIT_WINDOW)

    def _unselect(self) -> None:
        editor = self.prompt.editor
        self.screen.clear_selection()
        editor.move_cursor(editor.cursor_location)

    async def _copy(self) -> None:
        text = self.screen.get_selected_text() or self.prompt.editor.selected_text
        self._unselect()
        sequence = clipboard.terminal_sequence(text, os.environ)
        if await asyncio.to_thread(clipboard.copy_with_helper, text, os.environ):
            self.flash(f"Copied {len(text)} characters")
        elif sequence is not None and self._driver is not None:
            self._driver.write(sequence)
            self.flash(f"{len(text)} characters sent to the terminal's clipboard")
        else:
            self.flash("The selection is too long for the terminal's clipboard; hold Shift while you select")

    def action_next_mode(self) -> None:
        self.talk.next_mode()

    def action_redraw(self) -> None:
        self.screen.refresh(layout=True)
        for widget in self.screen.walk_children():
            widget.refresh()

    def action_todos(self) -> None:
        if self.stage.state.todos or self._todos.display:
            self._todos.display = not self._todos.display
        else:
            self.flash("There are no todos yet")

    def action_expand(self) -> None:
        if not self._slot.expand_panel():
            self._transcript.toggle_expanded()

    def action_find(self) -> None:
        pass

    def action_scroll(self, where: str) -> None:
        scroll = {
            "page_up": self._transcript.scroll_page_up,
            "page_down": self._transcript.scroll_page_down,
            "home": self._transcript.scroll_home,
            "end": self._transcript.scroll_end,
        }
        scroll[where](animate=False)
