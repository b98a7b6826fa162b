"""The application: widgets, messages, and its life from the first frame to the last."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer
from textual.worker import WorkerFailed

from swecli.safe_text import safe_line
from swecli.tui import compat, keymap
from swecli.tui.appearance import Appearance, textual_colours
from swecli.tui.background import load
from swecli.tui.dock.dock import Slot
from swecli.tui.dock.panel import Clock, DockPanel
from swecli.tui.keymap import Keymap
from swecli.tui.keys import KeyActions
from swecli.tui.options import Options, Preferences
from swecli.tui.prompt.box import Prompt
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.screens.messages import ScreenClosed, ScreenReady
from swecli.tui.session_link import CLOSE_TIME, OpenSession, SessionNotOpened
from swecli.tui.status_bar import ActivityLine, StatusBar
from swecli.tui.terminal import BackgroundReported, Driver, Outside
from swecli.tui.themes.library import background_is_dark
from swecli.tui.themes.scheme import VARIABLES, depth
from swecli.tui.todos import TodoPanel

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Submit
    from swecli.core.protocol.messages import ImagePart
    from swecli.tui.dock.picker import Picker
    from swecli.tui.transcript.view import Transcript


class Handlers(KeyActions, inherit_bindings=True):
    """Handlers of messages. What the user sends before everything is loaded waits for it."""

    @on(PromptEditor.Submitted)
    def _submitted(self, message: PromptEditor.Submitted) -> None:
        from swecli.core.workspace.mentions import mentioned_by_hand

        self.prompt.remember(message.text)
        mentions = mentioned_by_hand(message.text, message.typed)
        # A slash command may ask for consent and wait: never inside of a message handler.
        self.run_worker(self._submit(message.text, message.queue, message.images, mentions), group="talk")

    async def _submit(
        self, text: str, queue: bool, images: tuple[ImagePart, ...], mentions: tuple[str, ...] | None
    ) -> None:
        await self.can_talk.wait()
        self.transcript.follow()  # what is sent, and what comes of it, is in sight wherever the user was reading
        await self.talk.submit(text, queue=queue, images=images, mentions=mentions)

    @on(Prompt.Recall)
    def _recalled(self, message: Prompt.Recall) -> None:
        from swecli.core.protocol.commands import EditQueue

        self.stage.link.send(EditQueue(message.queued.id, None))
        self.prompt.editor.put(message.queued.text)

    @on(Prompt.Scroll)
    def _scrolled(self, message: Prompt.Scroll) -> None:
        if self.furnished:
            self.action_scroll(message.where)

    @on(Prompt.Edited)
    def _edited(self) -> None:
        if self.prompt.editor.text:
            self.armed = None

    @on(Prompt.Leave)
    def _left(self) -> None:
        self.leave()

    @on(Prompt.Palette)
    def _palette_wanted(self) -> None:
        if self.furnished:
            self.screens.palette()

    @on(Prompt.Walk)
    def _walked(self) -> None:
        if not self.furnished:
            return
        self.transcript.focus()
        self.transcript.action_cursor_previous()

    def on_transcript_left(self) -> None:
        self.slot.focus_panel()

    def on_transcript_copy_requested(self, message: Transcript.CopyRequested) -> None:
        self.copier.copy(message.text, message.what)

    def on_transcript_edit_requested(self, message: Transcript.EditRequested) -> None:
        self.run_worker(self.open_in_editor(message.text, message.path), group="editor")

    @on(DockPanel.Finished)
    def _finished(self, message: DockPanel.Finished) -> None:
        if message.command is None:
            self.slot.close()
        else:
            self.stage.answer(message.command)

    @on(ScreenReady)
    def _screen_ready(self) -> None:
        self.slot.focus_panel()

    @on(ScreenClosed)
    def _screen_closed(self) -> None:
        self.screens.closed()

    @on(BackgroundReported)
    def _background_known(self, message: BackgroundReported) -> None:
        self.appearance.background_known(message.dark)

    async def on_key(self, event: events.Key) -> None:
        """A character that nobody took is meant for the prompt."""
        if self.furnished and self.place.current is not None:
            if self.slot.panel is None:
                await self.place.current.take_key(event)
        elif event.is_printable and event.character and self.slot.panel is None:
            self.prompt.editor.focus()
            self.prompt.editor.add(event.character)


SIGNAL_TIME = 0.5
"""Seconds for a session to end in order after a signal."""


class Endings(Handlers, inherit_bindings=True):
    """Each ending closes the session first, in the time that there is."""

    failure: SessionNotOpened | None = None
    """Why there was no session, if there was none."""
    defect: BaseException | None = None
    """The exception that ended the program, if one did."""
    leaving: Picker | None = None
    """The question whether to quit, once it was asked."""
    event_loop: asyncio.AbstractEventLoop | None = None

    def leave(self) -> None:
        """Quit. Where that ends jobs, only once the user has said so, or has pressed the key again."""
        view = self.stage.link.view if self.furnished else None
        running = [job for job in view.jobs if job.status == "running"] if view is not None else []
        asked = self.leaving is not None and self.slot.panel is self.leaving
        if running and not asked:
            self._ask_to_leave([f"{job.id} {job.command}" for job in running])
        else:
            self._leave()

    def _leave(self) -> None:
        self.activity.flash("Closing the session…")
        self.run_worker(self._end(0, CLOSE_TIME), group="end")

    def _ask_to_leave(self, jobs: list[str]) -> None:
        from swecli.tui.dock.picker import Choice, Picker

        named = safe_line(", ".join(jobs[:3]) + (f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""))
        choices = [Choice("end", "End them and quit", named), Choice("stay", "Stay", "they keep running")]
        title = f"{'A job runs' if len(jobs) == 1 else f'{len(jobs)} jobs run'} in the background"

        def picked(value: str) -> None:
            if value == "end":
                self._leave()

        self.leaving = Picker(title, choices, picked, end=self._leave)
        self.slot.show(self.leaving)
        if self.slot.panel is not self.leaving:
            self.activity.flash("Background jobs are running; answer this first")

    async def _end(self, code: int, timeout: float) -> None:
        self.prompt.save()
        if self.furnished:
            await self.outside.close()
            await self.stage.close(timeout)
        self.exit(return_code=code)

    def end_soon(self, code: int) -> None:
        """End with this exit code in the time that a signal leaves. For signal handlers."""
        if self.event_loop is not None:
            end = self._end(code, SIGNAL_TIME)
            self.event_loop.call_soon_threadsafe(lambda: self.run_worker(end, group="end"))

    def cancel_soon(self) -> None:
        """What Ctrl+C does. For signal handlers."""
        if self.event_loop is not None and self.furnished:
            self.event_loop.call_soon_threadsafe(self.action_cancel)

    def _handle_exception(self, error: Exception) -> None:
        self.defect = self.defect or (error.error if isinstance(error, WorkerFailed) else error)
        compat.stop_after_defect(self, self.defect)


LATER = (
    "swecli.tui.actions",
    "swecli.tui.screens.opening",
    "swecli.tui.screens.opening",
    "swecli.tui.session_screen",
    "swecli.tui.transcript.view",
    "swecli.tui.session_screen",
)
"""Loaded after the first frame, while keys are answered."""

RESIZE_PAUSE = 0.05
"""Seconds after the last change of the window's size until everything is drawn once more."""


class SwecliApp(Endings, inherit_bindings=True):
    """The first frame is the prompt and the bars; what takes longer to load follows right behind it.

    ``clock`` is monotonic seconds for windows of keys, ``wall`` Unix seconds for durations; ``opened`` is called
    when the first session is there.
    """

    CSS = """
    Screen { layout: vertical; overflow: hidden; background: $background; color: $foreground; }
    #place { height: 1fr; min-height: 1; }
    Screen.-whole {
        #place, TodoPanel, ActivityLine, StatusBar { display: none; }
    }
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
        found = depth(os.environ)
        with textual_colours(found):
            super().__init__(driver_class=Driver, ansi_color=True if found in ("none", "16") else None)
        self._options = options
        self._opened = opened
        self._preferences = Preferences()
        self._redraw: Timer | None = None
        self.can_talk = asyncio.Event()
        self.clock = clock
        self.wall = wall
        self.keymap = Keymap()
        compat.replace_bindings(self, keymap.everywhere(self.keymap))
        self.todos = TodoPanel()
        self.activity = ActivityLine(clock=wall)
        self.prompt = Prompt(options.state, options.files, self.activity.flash, self.keymap, clock=clock)
        self.slot = Slot(self.prompt, clock=clock)
        self.status = StatusBar()
        self.outside = Outside(self._write, self._show_status_line, self._complain)
        dark = background_is_dark(os.environ)
        memory = options.state / "look" if options.state is not None else None
        self.appearance = Appearance(self, found, dark=dark, memory=memory)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return VARIABLES

    def compose(self) -> ComposeResult:
        yield Vertical(id="place")
        yield self.todos
        yield self.activity
        yield self.slot
        yield self.status

    # --- life -----------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.event_loop = asyncio.get_running_loop()
        self.call_after_refresh(lambda: self.run_worker(self._furnish(), group="session"))

    async def _furnish(self) -> None:
        """The first frame is on the screen: load and build the rest, and open the session."""
        await asyncio.to_thread(load, LATER)
        if not self.is_running:  # the user has left meanwhile
            return
        from swecli.core.protocol.commands import Submit
        from swecli.tui.actions import Copier, Desk
        from swecli.tui.input import Talk
        from swecli.tui.screens.opening import ScreenHost, Screens
        from swecli.tui.session_screen import Stage, View
        from swecli.tui.transcript.view import Transcript

        self.transcript = Transcript(id="transcript")
        compat.replace_bindings(self.transcript, keymap.transcript(self.keymap))
        self.query_one("#place").mount(self.transcript)
        self.place = ScreenHost(self)
        self.screens = Screens(self, self._options)
        self.stage = Stage(View(self, self._options, self._opened), self._options.branch)
        self.desk = Desk(self, self._options)
        self.talk = Talk(self.stage.link, self.desk, self.stage.is_busy)
        self.prompt.editor.blind = self.talk.blind
        self.copier = Copier(self, self.prompt.editor, self._write, self.activity.flash, self._options.state)
        self.watch(self.transcript, "unseen", self.activity.show_unseen, init=False)
        self.furnished = True
        self._use_palette()
        self.theme_changed_signal.subscribe(self, lambda _: self._use_palette())
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.stage.show()
        first = self._options.first_prompt
        self.play(self._options.open_session, Submit(first) if first else None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.furnished

    def play(self, open_session: OpenSession, first: Submit | None = None) -> None:
        self.run_worker(self._play(open_session, first), group="session")

    async def _play(self, open_session: OpenSession, first: Submit | None) -> None:
        commands = await asyncio.to_thread(self._options.commands)
        self.talk.commands = self.prompt.suggestions.commands = commands
        self.can_talk.set()
        await self._ask_trust()
        self.adopt(await asyncio.to_thread(self._options.preferences))
        self.prompt.adopt_draft()
        try:
            await self.stage.play(open_session, first)
        except SessionNotOpened as error:
            self.failure = error
            self.exit(return_code=error.code)

    def adopt(self, preferences: Preferences) -> None:
        from swecli.core.protocol.blocks import TextBlock
        from swecli.tui.themes.files import known, read_folders

        self.keymap.adopt(preferences.keys)
        compat.replace_bindings(self, keymap.everywhere(self.keymap))
        compat.replace_bindings(self.transcript, keymap.transcript(self.keymap))
        self.outside.adopt(preferences)
        self.activity.keep_still(preferences.reduced_motion)
        if preferences.density != self._preferences.density:
            self.transcript.density = preferences.density
        if preferences.mouse != self._preferences.mouse:
            self.use_mouse(preferences.mouse)
        self._preferences = preferences
        self._use_palette()
        custom, notices = read_folders(preferences.theme_folders)
        notices.append(self.appearance.adopt(preferences.theme, (*known(), *custom)))
        told = tuple(TextBlock(notice, "warning") for notice in notices if notice)
        if told:
            self.transcript.show(told)

    async def _ask_trust(self) -> None:
        if self._options.trust is None:
            return
        from swecli.core.protocol.blocks import TextBlock
        from swecli.tui.trust import ask_trust

        notices = await ask_trust(self._options.trust, self.slot)
        if notices:
            self.transcript.show(tuple(TextBlock(notice, "warning") for notice in notices))

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
        from swecli.tui.transcript.palette import palette_for, with_diffs

        self.transcript.set_palette(with_diffs(palette_for(self.current_theme), self._preferences.diff))

    def _show_status_line(self, text: str | None) -> None:
        from swecli.tui.transcript.tool_rows import content_line

        self.status.show_line(None if text is None else content_line(text, self.transcript.page.palette))

    def _complain(self, text: str) -> None:
        from swecli.core.protocol.blocks import TextBlock

        self.transcript.show((TextBlock(text, "warning"),))

    def _write(self, sequence: str) -> None:
        if sequence and self._driver is not None:
            self._driver.write(sequence)
