"""The application: its life cycle, global keys, and handlers for its widgets' messages."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from textual import events, on
from textual.filter import LineFilter
from textual.timer import Timer
from textual.worker import WorkerFailed

from swecli.own_files import replaced
from swecli.themes.scheme import VARIABLES, depth
from swecli.tui import compat
from swecli.tui.applied_preferences import AppliedPreferences
from swecli.tui.dock.panel import Clock, DockPanel
from swecli.tui.keymap import Keymap
from swecli.tui.main_screen import Dock, MainScreen
from swecli.tui.program import Program
from swecli.tui.prompt.box import Prompt
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.session_start import SessionStart
from swecli.tui.terminal import BackgroundReported, Driver, EscapeAnnounced, TerminalStatus
from swecli.tui.themes.appearance import Appearance, textual_colours
from swecli.tui.themes.library import background_is_dark
from swecli.tui.way_out import WayOut

if TYPE_CHECKING:
    from textual.driver import Driver as TextualDriver

    from swecli.tui.interface import Interface
    from swecli.tui.session_controller import SessionController
    from swecli.tui.transcript.view import Transcript

LATER = ("swecli.tui.interface", "swecli.tui.openers")
"""Modules loaded after the first frame, while keys already work."""

RESIZE_PAUSE = 0.05
"""Seconds after the last resize until a full redraw."""

_FORMS = {
    "short": "Short view: one line per step",
    "usual": "Normal view: each step with the first lines of output",
    "full": "Details on",
}


FILES_REPLACED = "swecli was updated or removed: restart it. The conversation is kept."
FILES_REPLACED_SHOWN = 10.0
"""Seconds."""


def load(names: Iterable[str]) -> None:
    """Import modules. Call it in a thread: later import statements then find them loaded."""
    for name in names:
        import_module(name)


class SwecliApp(compat.DrawingApp[int], inherit_bindings=False):
    """Shows prompt and bars in the first frame and loads the rest right after it.

    ``clock`` is monotonic seconds for key windows, ``wall`` Unix seconds for durations; ``opened`` is called once the
    first session is open. ``driver`` connects it with the terminal, or with a web page.
    """

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "#editor"
    TITLE = "swecli"

    interface: Interface
    session: SessionController

    def __init__(
        self,
        program: Program,
        *,
        clock: Clock = time.monotonic,
        wall: Callable[[], float] = time.time,
        opened: Callable[[], None] = lambda: None,
        driver: type[TextualDriver] = Driver,
    ) -> None:
        colours = depth(os.environ)
        with textual_colours(colours):
            super().__init__(driver_class=driver, ansi_color=True if colours in ("none", "16") else None)
        self.program = program
        self.opened = opened
        self.clock = clock
        self.wall = wall
        self._redraw: Timer | None = None
        self._before_screen: list[events.Key | events.Paste] = []
        """Input for the screen that is being opened."""
        self.keymap = Keymap()
        self.preferences = AppliedPreferences(self)
        self.way_out = WayOut(self)
        self.session_start = SessionStart(self)
        self.main = MainScreen(program, self.keymap, clock, wall)
        self.terminal = TerminalStatus(self.write, self.main.show_status_line, lambda text: self.main.warn((text,)))
        memory = program.state / "look" if program.state is not None else None
        self.appearance = Appearance(self, colours, dark=background_is_dark(os.environ), memory=memory)
        self.mouse = True
        """Whether the program, not the terminal, handles the mouse."""
        self._all_loaded = asyncio.Event()
        """Set once the parts loaded after the first frame are ready."""
        self.failure: Exception | None = None
        """Why the session could not be opened."""
        self.defect: BaseException | None = None
        """Exception that ended the program."""
        compat.keep_handling(self._spares)

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        plain = self.preferences.plain_glyphs
        return [*filters, plain] if plain.enabled else filters

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return VARIABLES

    def get_default_screen(self) -> MainScreen:
        return self.main

    # --- the start ---

    @property
    def loaded(self) -> bool:
        """Whether the parts loaded after the first frame are ready."""
        return self._all_loaded.is_set()

    def on_mount(self) -> None:
        self.way_out.begin()
        self.main.prompt.suggestions.commands = self.program.commands  # for names typed before the rest is loaded
        self.call_after_refresh(lambda: self.run_worker(self._load(), group="session"))

    async def _load(self) -> None:
        """After the first frame: load and build the rest, and open the session."""
        await asyncio.to_thread(load, LATER)
        if not self.is_running:  # the user has quit meanwhile
            return
        from swecli.tui.interface import Interface

        self.interface = Interface(self)
        self.session = self.interface.session
        self._all_loaded.set()
        self.preferences.use_palette()
        self.theme_changed_signal.subscribe(self, lambda _: self.preferences.use_palette())
        self.app_suspend_signal.subscribe(self, lambda _: self._went(away=True))
        self.app_resume_signal.subscribe(self, lambda _: self._went(away=False))
        self.session.show()
        self.way_out.loaded()
        await self.session_start.play_first()

    # --- defects ---

    def _spares(self) -> bool:
        """Whether to continue after an exception, because its cause is a replaced installation: what was to be loaded
        fails, the rest and the conversation do not."""
        if not replaced():
            return False
        self.main.activity.flash(FILES_REPLACED, FILES_REPLACED_SHOWN)
        return True

    def _handle_exception(self, error: Exception) -> None:
        if self._spares():
            return
        self.defect = self.defect or (error.error if isinstance(error, WorkerFailed) else error)
        compat.stop_after_defect(self, self.defect)

    # --- global keys ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.loaded

    def action_escape(self) -> None:
        self.way_out.escape()

    def action_cancel(self) -> None:
        self.way_out.cancel()

    def action_next_mode(self) -> None:
        self.interface.modes.next()

    def _went(self, *, away: bool) -> None:
        """Another program took the terminal, or gave it back."""
        self.interface.input.away = away
        if not away:
            self.action_redraw()

    def action_redraw(self) -> None:
        if not self.screen_stack:  # a timer may fire while the program ends
            return
        self.forget_screen()
        self.screen.refresh(layout=True)
        for widget in self.screen.walk_children():
            widget.refresh()

    def action_mouse(self) -> None:
        self.use_mouse(not self.mouse)
        owner = "swecli" if self.mouse else "The terminal"
        self.main.activity.flash(f"{owner} handles the mouse; {self.keymap.shown('mouse')} switches")

    def use_mouse(self, on: bool) -> None:
        """Handle the mouse, or leave it to the terminal."""
        self.mouse = on
        if isinstance(self._driver, Driver):
            self._driver.use_mouse(on)

    def action_todos(self) -> None:
        todos = self.main.todos
        if self.session.state.todos or todos.open:
            todos.open = not todos.open
        else:
            self.main.activity.flash("No todos yet")

    def action_background(self) -> None:
        if not self.session.move_to_background():
            self.main.activity.flash("No command to move to the background; /jobs lists all")

    def action_expand(self) -> None:
        if not self.main.dock.expand_panel():
            self.main.transcript.action_next_density()
            self.main.activity.flash(_FORMS[self.main.transcript.density])

    async def action_external_editor(self) -> None:
        from swecli.tui.file_editing import edit_message

        if self.main.dock.panel is None and self.main.list_view is None:
            await edit_message(self.main)

    def action_find(self) -> None:
        self.interface.open("find")

    def action_take_suggestion(self) -> None:
        self.interface.suggestion.answer("take")

    def action_silence_suggestion(self) -> None:
        self.interface.suggestion.answer("silence")

    def action_scroll(self, where: str) -> None:
        transcript = self.main.transcript
        actions = {
            "page_up": transcript.action_page_up,
            "page_down": transcript.action_page_down,
            "home": transcript.action_scroll_home,
            "end": transcript.action_scroll_end,
            "turn_previous": transcript.action_turn_previous,
            "turn_next": transcript.action_turn_next,
        }
        actions[where]()

    def _waits(self, event: events.Event) -> bool:
        """Keep a key or a paste behind those for which it is not yet clear which widget gets them, or until the screen
        that gets them is laid out."""
        main = self.main
        queue = main.prompt.editor.kept
        screen = main.list_view if main.dock.panel is None else None
        if queue is None and screen is not None and (self._before_screen or not screen.ready):
            queue = self._before_screen
        if queue is None or not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            return False
        if isinstance(event, events.Key) and self.keymap.before_others(event.key):
            return False
        queue.append(event)
        return True

    async def on_event(self, event: events.Event) -> None:
        if self._waits(event):
            return
        key = event if isinstance(event, events.Key) and not event.is_forwarded and self.loaded else None
        if key is not None and self.interface.browsing.keeps(key):
            return
        if isinstance(event, events.Key) and not event.is_forwarded:  # forwarded ones bubble up here again
            main = self.main
            types = event.is_printable and main.dock.panel is None and main.list_view is None
            self.way_out.pressed(event, types=types)
        elif isinstance(event, events.Paste) and not event.is_forwarded:
            self.app_focus = (
                True  # as for a key: a drop also reaches a window in the background, where nothing has focus
            )
        await super().on_event(event)

    async def on_key(self, event: events.Key) -> None:
        """Pass unhandled characters to the prompt, including keys typed before the editor had the focus; ignore keys
        that the editor already declined."""
        main = self.main
        if main.list_view is not None:
            if main.dock.panel is None:
                await main.list_view.take_key(event)
        elif main.dock.panel is not None:
            if self.focused is None or main.dock.panel.has_focus_within or main.dock.panel.has_focus:
                await main.dock.panel.take_key(event)
        elif self.focused in (None, main.prompt.editor):
            await main.prompt.editor.take_key(event)
        elif self.loaded and self.focused is main.transcript and self.keymap.action("transcript", event.key):
            return  # the transcript has handled the key
        elif event.is_printable and event.character:
            main.prompt.editor.focus()
            main.prompt.editor.add(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Give a paste that the focused widget doesn't take to the panel or prompt, like a typed character."""
        main = self.main
        if main.dock.panel is not None:
            main.dock.panel.on_paste(event)
        elif main.list_view is None:
            main.prompt.editor.focus()
            main.prompt.editor.take_paste(event.text)

    # --- messages of the prompt; input sent before everything is loaded waits ---

    @on(PromptEditor.Submitted)
    def _submitted(self, message: PromptEditor.Submitted) -> None:
        self.main.activity.end_flash()
        self.main.prompt.history.add(message.text)  # saved together with the new draft
        # A slash command may wait for consent, so not inside a message handler.
        self.run_worker(self._submit(message), group="input")

    async def _submit(self, message: PromptEditor.Submitted) -> None:
        await self._all_loaded.wait()
        if not message.text.startswith("/"):
            await self.interface.models.tried.wait()
        if not self.main.transcript.following:  # show the message and its answer
            self.main.transcript.follow()
        opens = await self.interface.input.submit_message(message, self.preferences.now.large_message)
        self.main.prompt.editor.let_go(message, opens=opens)

    @on(Prompt.Recall)
    def _recalled(self, message: Prompt.Recall) -> None:
        self.session.recall(message.queued)

    @on(Prompt.Scroll)
    def _scrolled(self, message: Prompt.Scroll) -> None:
        if self.loaded:
            self.action_scroll(message.where)

    @on(Prompt.Edited)
    def _edited(self) -> None:
        self.way_out.edited()
        if not self.main.prompt.editor.text.startswith("/"):
            self.main.activity.look_ahead(drafted=bool(self.main.prompt.editor.text))

    @on(Prompt.Help)
    def _help_wanted(self) -> None:
        if self.loaded:
            self.interface.open("help")
        else:
            self.main.prompt.receive("?")

    @on(Prompt.EditingChanged)
    def _editing_changed(self) -> None:
        if self.loaded:
            self.session.show()

    @on(Prompt.Leave)
    def _left(self) -> None:
        self.way_out.leave()

    @on(Prompt.ContinueNewest)
    def _newest_wanted(self) -> None:
        self.session_start.continue_newest()

    @on(Prompt.Palette)
    def _palette_wanted(self) -> None:
        if self.loaded:
            self.interface.palette.open()

    @on(Prompt.Walk)
    def _walked(self) -> None:
        if self.loaded and not self.main.prompt.editor.text:  # letters may have followed the key
            self.interface.browsing.begin()

    # --- messages of other widgets and the session ---

    def on_transcript_left(self) -> None:
        self.main.dock.focus_panel()

    def on_page_view_earlier_wanted(self, message: Transcript.EarlierWanted) -> None:
        self.session.show_earlier(whole=message.all)

    def on_transcript_copy_requested(self, message: Transcript.CopyRequested) -> None:
        self.interface.copier.copy(message.text, message.what)

    def on_transcript_at_compaction(self, message: Transcript.AtCompaction) -> None:
        from swecli.tui.block_keys import say_undo

        say_undo(self.interface, message)

    def on_transcript_undo_requested(self, message: Transcript.UndoRequested) -> None:
        from swecli.tui.block_keys import undo

        undo(self.interface, message)

    def on_transcript_context_requested(self, message: Transcript.ContextRequested) -> None:
        from swecli.tui.block_keys import show_context

        show_context(self.interface, message)

    def on_transcript_edit_requested(self, message: Transcript.EditRequested) -> None:
        from swecli.tui.block_keys import edit_block

        self.run_worker(edit_block(self.interface, message), group="editor")

    @on(DockPanel.Decided)
    def _decided(self, message: DockPanel.Decided) -> None:
        self.session.answer(message.command)

    @on(Dock.Changed)
    def _dock_changed(self) -> None:
        self.main.activity.refresh()  # suggestions show only while nothing is open
        if self.loaded and self.interface.plan.waits and self.session.mode == "plan":
            self.interface.plan.ask()

    async def on_list_screen_ready(self) -> None:
        self.main.dock.focus_panel()
        waiting, self._before_screen = self._before_screen, []
        for event in waiting:
            await self.on_event(event)

    async def on_list_screen_closed(self) -> None:
        self._before_screen.clear()
        closed = self.main.list_view
        behind = closed.leaving.end(self.post_message) if closed is not None else ()
        self.interface.changes.list_closed()
        for event in behind:
            await self.on_event(event)

    def on_main_screen_wanted(self, message: MainScreen.Wanted) -> None:
        self.run_worker(self.interface.input.submit(message.text), group="input")

    def on_main_screen_preferences_changed(self) -> None:
        self.run_worker(self.preferences.follow, group="preferences", exclusive=True)  # the newest counts

    def on_session_controller_wanted(self, message: SessionController.Wanted) -> None:
        self.run_worker(self.session_start.play(message.open_session), group="session")

    def on_session_controller_opened(self) -> None:
        self.session_start.opened()

    def on_session_controller_planned(self) -> None:
        self.interface.plan.ask()

    def on_session_controller_unconnected(self) -> None:
        if not self.main.prompt.editor.text:
            self.main.prompt.editor.put(self.program.first_prompt or "")
        if self.main.list_view is None:  # the list of sessions keeps the keyboard
            self.interface.models.connect()

    def on_session_controller_key_refused(self) -> None:
        self.interface.models.reconnect()

    def on_session_controller_connected(self) -> None:
        self.interface.models.connected()

    @on(BackgroundReported)
    def _background_known(self, message: BackgroundReported) -> None:
        self.appearance.background_known(message.dark)

    @on(EscapeAnnounced)
    def _escape_announced(self, message: EscapeAnnounced) -> None:
        """Show at once that Esc will interrupt, although it may turn out to be the beginning of a report."""
        if self.loaded and (message.withdrawn or self.way_out.interrupts):
            self.session.announce_interrupt(withdrawn=message.withdrawn)

    def on_resize(self) -> None:
        """Redraw. Several changes may arrive as one with the old size, although the terminal lost its content."""
        if self._redraw is not None:
            self._redraw.stop()
        self._redraw = self.set_timer(RESIZE_PAUSE, self._fit)

    def _fit(self) -> None:
        if self.screen_stack:
            self.main.prompt.fit()
            self.main.dock.fit()
            self.action_redraw()

    def on_app_focus(self) -> None:
        self.forget_screen()  # where a terminal shows something else now, nobody has looked
        self.screen.refresh()
        self.main.activity.focus_changed()

    def on_app_blur(self) -> None:
        self.main.activity.focus_changed()

    # --- the terminal ---

    def write(self, sequence: str) -> None:
        if sequence and self._driver is not None:
            self._driver.write(sequence)
