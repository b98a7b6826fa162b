"""The application: its life cycle, global keys, and handlers for its widgets' messages."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context, copy_context
from importlib import import_module
from typing import TYPE_CHECKING

from textual import events, on
from textual.filter import LineFilter
from textual.timer import Timer
from textual.worker import WorkerFailed

from swecli.own_files import replaced
from swecli.safe_text import safe_line
from swecli.themes.scheme import VARIABLES, depth
from swecli.tui import compat, keymap
from swecli.tui.dock.panel import Clock, DockPanel
from swecli.tui.glyphs import PlainGlyphs, needs_plain
from swecli.tui.keymap import Keymap
from swecli.tui.main_screen import Dock, MainScreen
from swecli.tui.preferences import Preferences
from swecli.tui.program import Program
from swecli.tui.prompt.box import Prompt
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.terminal import BackgroundReported, Driver, EscapeAnnounced, TerminalStatus
from swecli.tui.themes.appearance import Appearance, textual_colours
from swecli.tui.themes.library import background_is_dark

if TYPE_CHECKING:
    from textual.driver import Driver as TextualDriver

    from swecli.assembly.succession import OpenSession
    from swecli.commands.base import Screen
    from swecli.core.engine.session_view import SessionView
    from swecli.core.protocol.commands import Submit
    from swecli.launch import StartError
    from swecli.tui.browsing import Browsing
    from swecli.tui.clipboard import Copier
    from swecli.tui.dock.mode import ModeChoice
    from swecli.tui.dock.palette import Palette
    from swecli.tui.dock.picker import Picker
    from swecli.tui.dock.plan import PlanQuestion
    from swecli.tui.input_controller import InputController
    from swecli.tui.model_choice import ModelChoice
    from swecli.tui.prompt.command_table import CommandTable
    from swecli.tui.session_controller import SessionController
    from swecli.tui.session_switch import SessionSwitch
    from swecli.tui.setting_changes import SettingChanges
    from swecli.tui.themes.picker import ThemeChoice
    from swecli.tui.transcript.view import Transcript

LATER = ("swecli.tui.input_controller", "swecli.tui.dock.palette", "swecli.tui.openers", "swecli.tui.transcript.view")
"""Modules loaded after the first frame, while keys already work."""

RESIZE_PAUSE = 0.05
"""Seconds after the last resize until a full redraw."""

SIGNAL_TIME = 0.5
"""Seconds for an orderly end of the session after a signal."""

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

    session: SessionController
    switch: SessionSwitch
    changes: SettingChanges
    models: ModelChoice
    mode_choice: ModeChoice
    theme_choice: ThemeChoice
    command_table: CommandTable
    palette: Palette
    plan: PlanQuestion
    input: InputController
    copier: Copier
    browsing: Browsing

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
        self._opened = opened
        self._begins_with_sessions = program.begins_with_sessions
        self._clock = clock
        self.wall = wall
        self._preferences = Preferences()
        self._plain_glyphs = PlainGlyphs(needs_plain(os.environ))
        self._redraw: Timer | None = None
        self._armed: float | None = None
        """Clock time of a Ctrl+C on an empty prompt."""
        self._newest = ""
        """Id of the newest earlier session of this folder."""
        self._early_cancels = 0
        """Ctrl+C received before it could act."""
        self._before_screen: list[events.Key | events.Paste] = []
        """Input for the screen that is being opened."""
        self._escaped: float | None = None
        """Clock time of an Esc that had no effect."""
        self._leaving: Picker | None = None
        """The open question whether to quit."""
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._own_context = Context()
        """What timers and tasks need to find the app."""
        self.keymap = Keymap()
        compat.replace_bindings(self, keymap.everywhere(self.keymap))
        self.main = MainScreen(program, self.keymap, clock, wall)
        self.terminal = TerminalStatus(self._write, self._show_status_line, self._complain)
        memory = program.state / "look" if program.state is not None else None
        self.appearance = Appearance(self, colours, dark=background_is_dark(os.environ), memory=memory)
        self.mouse = True
        """Whether the program, not the terminal, handles the mouse."""
        self._all_loaded = asyncio.Event()
        """Set once the parts loaded after the first frame are ready."""
        self._adopts_draft = True
        """Whether the next session adopts the draft of a killed run."""
        self.failure: StartError | None = None
        """Why the session could not be opened."""
        self.defect: BaseException | None = None
        """Exception that ended the program."""
        compat.keep_handling(self._spares)

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, self._plain_glyphs] if self._plain_glyphs.enabled else filters

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
        self._event_loop, self._own_context = asyncio.get_running_loop(), copy_context()
        self.main.prompt.suggestions.commands = self.program.commands  # for names typed before the rest is loaded
        self.call_after_refresh(lambda: self.run_worker(self._load(), group="session"))

    async def _load(self) -> None:
        """After the first frame: load and build the rest, and open the session."""
        await asyncio.to_thread(load, LATER)
        if not self.is_running:  # the user has quit meanwhile
            return
        from swecli.core.protocol.commands import Submit
        from swecli.tui.browsing import Browsing
        from swecli.tui.clipboard import Copier
        from swecli.tui.input_controller import InputController
        from swecli.tui.session_controller import SessionController
        from swecli.tui.transcript.view import Transcript

        main, program = self.main, self.program
        transcript = Transcript(clock=self.wall, id="transcript")
        compat.replace_bindings(transcript, keymap.transcript(self.keymap))
        main.add_transcript(transcript)
        self.session = SessionController(
            main, self.terminal, program.branch, self._greeting if program.greets else None, self._opened, self.wall
        )
        self._build_choices()
        self.copier = Copier(self, main.prompt.editor, self._write, main.activity.flash, program.state)
        self.input = InputController(main, self.session, self.command_table, self.models, self.open_screen, self.copier)
        self.browsing = Browsing(main, self.keymap, self._clock)
        self.session.left = self.input.cancel_all_beside
        main.prompt.editor.blind = self.session.no_images
        main.prompt.editor.weigh_with(lambda text, images: self.session.weigh(text, images).shown)
        main.prompt.mentions.weigh = self.session.mentions_shown
        main.prompt.mentions.weighed = main.activity.look_ahead
        self.watch(transcript, "unseen", main.activity.show_unseen, init=False)
        main.prompt.suggestions.look = lambda: main.run_worker(self.input.own_commands(), group="commands")
        main.prompt.suggestions.commands = self.command_table.all
        main.prompt.suggestions.words = self.command_table.words
        main.prompt.suggestions.mentionables = lambda: self.session.mentionable_words
        self._all_loaded.set()
        self._use_palette()
        self.theme_changed_signal.subscribe(self, lambda _: self._use_palette())
        self.app_suspend_signal.subscribe(self, lambda _: self._went(away=True))
        self.app_resume_signal.subscribe(self, lambda _: self._went(away=False))
        self.session.show()
        for _ in range(self._early_cancels):
            self.action_cancel()
        first = program.first_prompt
        if first and first.lstrip().startswith("/"):  # a command or a path; interpreted like typed input
            self.run_worker(self.input.submit(first), group="input")
            first = None
        await self._play(program.open.first, Submit(first) if first else None)

    def _build_choices(self) -> None:
        from swecli.tui.dock.mode import ModeChoice
        from swecli.tui.dock.palette import Palette
        from swecli.tui.dock.plan import PlanQuestion
        from swecli.tui.model_choice import ModelChoice
        from swecli.tui.prompt.command_table import CommandTable
        from swecli.tui.session_switch import SessionSwitch
        from swecli.tui.setting_changes import SettingChanges
        from swecli.tui.themes.picker import ThemeChoice

        main, session, program = self.main, self.session, self.program
        self.switch = SessionSwitch(main, session, program)
        self.changes = SettingChanges(main, session, program, self.switch)
        self.models = ModelChoice(main, session, program, self.wall)
        self.mode_choice = ModeChoice(main, session)
        self.theme_choice = ThemeChoice(main, self.appearance, program)
        self.command_table = CommandTable(program, session, self.appearance, self.models.known)
        self.palette = Palette(main, session, self.command_table, self.mode_choice, self.models, self.theme_choice)
        self.plan = PlanQuestion(main, session)

    def open_screen(self, name: Screen, words: str = "") -> None:
        """Open what a command or key asks for."""
        from swecli.features import feature_screens
        from swecli.tui.openers import OPENERS

        opener = OPENERS.get(name) or feature_screens()[name]
        opener(self, words)

    async def _greeting(self, view: SessionView) -> tuple[tuple[str, str], ...]:
        from swecli.tui.greeting import greeting

        stored = self.program.sessions
        earlier = await asyncio.to_thread(lambda: stored().earlier(view.session_id)) if stored is not None else ()
        self._newest = earlier[0].id if earlier else ""
        return greeting(view, earlier, self.keymap.shown, self.wall(), os.environ.get("HOME", ""))

    async def _play(self, open_session: OpenSession, first: Submit | None = None) -> None:
        """Open a session and show it until it ends. ``first`` is sent before anything typed meanwhile."""
        from swecli.launch import StartError

        told = await self._read_preferences()  # the questions about trust look as the user wants
        if await self._ask_trust():
            await self._read_preferences(told)
        if self._adopts_draft:  # only the first session adopts a killed run's draft
            self._adopts_draft = False
            self.main.prompt.adopt_draft()
        try:
            await self.session.play(open_session, first)
        except StartError as error:
            self.failure = error
            self.exit(return_code=int(error.exit_code))

    async def _ask_trust(self) -> bool:
        """Whether there was a question, whose answer may have changed the settings that count."""
        if self.program.trust is None:
            return False
        from swecli.core.protocol.blocks import TextBlock
        from swecli.tui.dock.trust import ask_trust

        notices = await ask_trust(self.program.trust, self.main.dock)
        if notices:
            self.main.transcript.show(tuple(TextBlock(notice, "warning") for notice in notices))
        return notices is not None

    async def _read_preferences(self, told: Sequence[str] = ()) -> Sequence[str]:
        """Follow the user's settings. Shows and returns what is wrong with them, without what was ``told``."""
        from swecli.core.protocol.blocks import TextBlock
        from swecli.themes.files import known, read_folders

        preferences = await asyncio.to_thread(self.program.preferences)
        transcript = self.main.transcript
        self.keymap.adopt(preferences.keys)
        compat.replace_bindings(self, keymap.everywhere(self.keymap))
        compat.replace_bindings(transcript, keymap.transcript(self.keymap))
        self.terminal.adopt(preferences)
        self.input.key_variables = preferences.key_variables
        self.main.activity.keep_still(preferences.reduced_motion)
        self.main.activity.foresee = self.session.foresee if preferences.forecast else None
        self.main.activity.suggest = self._suggested
        if preferences.density != self._preferences.density:
            transcript.density = preferences.density
        vim = preferences.editing == "vim"
        if preferences.editing != self._preferences.editing and vim != bool(self.main.prompt.editing):
            self.main.prompt.use_vim(vim)
        if preferences.mouse != self._preferences.mouse:
            self._use_mouse(preferences.mouse)
        self._preferences = preferences
        ascii_only = preferences.glyphs == "ascii" or (preferences.glyphs == "auto" and needs_plain(os.environ))
        if ascii_only != self._plain_glyphs.enabled:
            self._plain_glyphs.enabled = ascii_only
            self.refresh_css(animate=False)
            self.action_redraw()
        self._use_palette()
        custom, notices = read_folders(preferences.theme_folders)
        notices.append(self.appearance.adopt(preferences.theme, (*known(), *custom)))
        shown = tuple(TextBlock(notice, "warning") for notice in notices if notice and notice not in told)
        if shown:
            transcript.show(shown)
        self.session.show()  # a new status line runs, and a title is set, at changes
        return notices

    # --- quitting: closes the session first, within the time limit ---

    def leave(self) -> None:
        """Quit. If that ends jobs, ask first; a second press of the key confirms."""
        running = self.session.jobs if self.loaded else []
        asked = self._leaving is not None and self.main.dock.panel is self._leaving
        if running and not asked:
            self._ask_to_leave(running)
        else:
            self._leave()

    def _leave(self) -> None:
        from swecli.tui.session_controller import CLOSE_TIME

        self.main.activity.flash("Closing the session…")
        self.run_worker(self._shut_down(0, CLOSE_TIME), group="end")

    def _ask_to_leave(self, jobs: list[str]) -> None:
        from swecli.commands.base import jobs_words
        from swecli.tui.dock.picker import Choice, Picker

        title, named = jobs_words(jobs)
        choices = [Choice("end", "Stop and quit", named), Choice("stay", "Stay", "background jobs keep running")]

        def picked(value: str) -> None:
            if value == "end":
                self._leave()

        self._leaving = Picker(title, choices, picked, quit=self._leave)
        self.main.dock.show(self._leaving)
        if self.main.dock.panel is not self._leaving:
            self.main.activity.flash("Background jobs are running; answer this first")

    async def _shut_down(self, code: int, timeout: float) -> None:
        self.main.prompt.save()
        if self.loaded:
            await self.terminal.close()
            await self.session.close(timeout, "other" if code else "prompt_input_exit")
        self.exit(return_code=code)

    def end_soon(self, code: int) -> None:
        """End with this exit code within the time that a signal leaves. For signal handlers."""
        if self._event_loop is not None:
            end = self._shut_down(code, SIGNAL_TIME)
            self._event_loop.call_soon_threadsafe(lambda: self.run_worker(end, group="end"), context=self._own_context)

    def cancel_soon(self) -> None:
        """Act as Ctrl+C, once everything is loaded. For signal handlers."""
        if not self.loaded:
            self._early_cancels += 1
        elif self._event_loop is not None and not self._event_loop.is_closed():
            self._event_loop.call_soon_threadsafe(self.action_cancel, context=self._own_context)

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

    def _key_context(self) -> keymap.KeyContext:
        main, editor = self.main, self.main.prompt.editor
        panel, list_view, state = main.dock.panel, main.list_view, self.session.state
        return keymap.KeyContext(
            overlay=panel is None and (list_view is not None or main.prompt.overlay),
            panel=panel is not None,
            approval=main.dock.asks_consent,
            unread=main.dock.asks_consent and panel is not None and panel.unread,
            selection=bool(self.screen.selections) or not editor.selection.is_empty,
            busy=state.busy or bool(state.running),
            beside=self.input.waits_beside,
            text=panel is None and list_view is None and bool(editor.text),
            armed=None if self._armed is None else self._clock() - self._armed,
        )

    def action_escape(self) -> None:
        match keymap.escape(self._key_context()):
            case "overlay":
                self._close_overlay()
            case "panel":
                self.main.dock.escape()
            case "selection":
                self.copier.unselect()
            case "interrupt":
                self.session.interrupt()
            case "beside":
                self.input.cancel_beside()
            case "nothing":
                self._escaped_idly()

    def _clear_prompt(self) -> None:
        self.main.prompt.editor.kill_all()
        self.main.activity.flash(f"Cleared; {self.keymap.shown('yank')} restores the text")

    def _escaped_idly(self) -> None:
        """Handle an Esc without effect: the second clears the prompt, or lists messages to rewind to if it is empty."""
        before, self._escaped = self._escaped, self._clock()
        again = before is not None and self._escaped - before <= keymap.ESCAPE_WINDOW
        if again:
            self._escaped = None
        editor = self.main.prompt.editor
        if editor.text and again:
            self._clear_prompt()
        elif editor.text:
            self.main.activity.flash("Esc again clears", keymap.ESCAPE_WINDOW)
        elif again:
            self.open_screen("rewind")
        elif self.session.continuable:
            self.main.activity.flash("Esc again rewinds to an earlier message", keymap.ESCAPE_WINDOW)

    def action_cancel(self) -> None:
        if not self.screen_stack:  # a signal may come while the program ends
            return
        step = keymap.cancel(self._key_context())
        self._armed = None
        match step:
            case "copy":
                self.copier.copy_selection()
            case "quit":
                self.leave()
            case "overlay":
                self._close_overlay()
            case "panel":
                self.main.dock.escape()
            case "clear":
                self._clear_prompt()
            case "beside":
                self.input.cancel_beside()
            case "interrupt":
                self.session.interrupt()
                self._armed = self._clock()
            case "arm":
                self._armed = self._clock()
                self.main.activity.flash(f"Press {self.keymap.shown('cancel')} again to quit", keymap.QUIT_WINDOW)

    def _close_overlay(self) -> None:
        if self.main.list_view is not None:
            self.main.list_view.escape()
        else:
            self.main.prompt.close_overlay()

    def action_next_mode(self) -> None:
        self.mode_choice.next()

    def _went(self, *, away: bool) -> None:
        """Another program took the terminal, or gave it back."""
        self.input.away = away
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
        self._use_mouse(not self.mouse)
        owner = "swecli" if self.mouse else "The terminal"
        self.main.activity.flash(f"{owner} handles the mouse; {self.keymap.shown('mouse')} switches")

    def _use_mouse(self, on: bool) -> None:
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
        from swecli.core.protocol.commands import Background

        items = [item for item, running in self.session.state.running.items() if running.is_command]
        for item in items:
            self.session.send(Background(item))
        if not items:
            self.main.activity.flash("No command to move to the background; /jobs lists all")

    def action_expand(self) -> None:
        if not self.main.dock.expand_panel():
            self.main.transcript.action_next_density()
            self.main.activity.flash(_FORMS[self.main.transcript.density])

    async def action_external_editor(self) -> None:
        """Edit the message in the user's editor. On failure, keep the text. Messages that return to the prompt
        meanwhile stay before it."""
        from swecli.tui.external import ExternalError, edit

        if self.main.dock.panel is not None or self.main.list_view is not None:
            return
        editor = self.main.prompt.editor
        typed = editor.text
        try:
            text = await edit(self, editor.message)
        except ExternalError as error:
            self.main.activity.flash(f"{safe_line(str(error))}; your text was kept")
        else:
            returned = editor.text.removesuffix(typed).rstrip("\n") if editor.text != typed else ""
            editor.retype("\n".join(filter(None, (returned, editor.folded_back(text)))))

    def action_find(self) -> None:
        self.open_screen("find")

    def action_take_suggestion(self) -> None:
        self._answer_suggestion("take")

    def action_silence_suggestion(self) -> None:
        self._answer_suggestion("silence")

    def _suggested(self, width: int) -> str:
        suggestion, draft = self.session.suggestion, self.main.prompt.editor.text
        if suggestion is None and not draft.startswith("!"):
            return ""
        from swecli.tui.context_line import suggestion_words
        from swecli.tui.shell_lines import shell_words

        if suggestion is None:
            return shell_words(draft)
        keys = self.keymap.shown("take_suggestion"), self.keymap.shown("silence_suggestion")
        return suggestion_words(suggestion, *keys, width)

    def _answer_suggestion(self, verb: str) -> None:
        """Take or silence the suggestion. Only a visible one can be silenced; taking it re-evaluates and asks first."""
        if self.session.suggestion is None and not (verb == "take" and self.session.at_rest):
            self.main.activity.flash("No suggestion now; /sentinel looks again")
        else:
            self.run_worker(self.input.submit(f"/sentinel {verb}"), group="input")

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
        if key is not None and self.browsing.keeps(key):
            return
        if isinstance(event, events.Key) and not event.is_forwarded:  # forwarded ones bubble up here again
            main = self.main
            types = event.is_printable and main.dock.panel is None and main.list_view is None
            cancels = self.keymap.action("everywhere", event.key) == "cancel"
            again = self._armed is not None and cancels
            if cancels and not self.loaded:
                self._early_cancels += 1
            if not types or (self._armed is not None and not again):  # keep news that arrives while the user types
                main.activity.end_flash()
            if not again:  # here, because Ctrl+C overtakes keys that the editor has not worked on
                self._armed = None
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
            await self.models.tried.wait()
        if not self.main.transcript.following:  # show the message and its answer
            self.main.transcript.follow()
        opens = await self.input.submit_message(message, self._preferences.large_message)
        self.main.prompt.editor.let_go(message, opens=opens)

    @on(Prompt.Recall)
    def _recalled(self, message: Prompt.Recall) -> None:
        from swecli.core.protocol.commands import EditQueue

        session, queued = self.session, message.queued
        if not session.later.take(queued.id):
            if session.view is None or all(other.id != queued.id for other in session.view.queue):
                return  # begun meanwhile, or taken back by a key right before
            session.send(EditQueue(queued.id, None))
        session.take_back((queued,), wanted=True)

    @on(Prompt.Scroll)
    def _scrolled(self, message: Prompt.Scroll) -> None:
        if self.loaded:
            self.action_scroll(message.where)

    @on(Prompt.Edited)
    def _edited(self) -> None:
        self._escaped = None
        if not self.main.prompt.editor.text.startswith("/"):
            self.main.activity.look_ahead(drafted=bool(self.main.prompt.editor.text))

    @on(Prompt.Help)
    def _help_wanted(self) -> None:
        if self.loaded:
            self.open_screen("help")
        else:
            self.main.prompt.receive("?")

    @on(Prompt.EditingChanged)
    def _editing_changed(self) -> None:
        if self.loaded:
            self.session.show()

    @on(Prompt.Leave)
    def _left(self) -> None:
        self.leave()

    @on(Prompt.ContinueNewest)
    def _newest_wanted(self) -> None:
        if not self.loaded or not self._newest:
            self.main.activity.flash("There is no earlier session of this folder")
        elif self.session.continuable or self.session.state.busy:
            self.main.activity.flash("This session has begun; /resume lists the others")
        else:
            self.run_worker(self.input.submit(f"/resume {self._newest}"), group="input")

    @on(Prompt.Palette)
    def _palette_wanted(self) -> None:
        if self.loaded:
            self.palette.open()

    @on(Prompt.Walk)
    def _walked(self) -> None:
        if self.loaded and not self.main.prompt.editor.text:  # letters may have followed the key
            self.browsing.begin()

    # --- messages of other widgets and the session ---

    def on_transcript_left(self) -> None:
        self.main.dock.focus_panel()

    def on_page_view_earlier_wanted(self, message: Transcript.EarlierWanted) -> None:
        self.session.show_earlier(whole=message.all)

    def on_transcript_copy_requested(self, message: Transcript.CopyRequested) -> None:
        self.copier.copy(message.text, message.what)

    def on_transcript_at_compaction(self, message: Transcript.AtCompaction) -> None:
        from swecli.core.context_management.edit_effects import price_words

        key = self.keymap.shown("block_undo")
        what = "redoes this compaction" if message.undone else "undoes this compaction and all later ones"
        port, effect = self.session.port, None
        if port is not None:
            effect = port.prices.redo(message.item) if message.undone else port.prices.undo(message.item)
        self.main.flash(f"{key} {what}{f': {price_words(effect)}' if effect is not None else ''}")

    def on_transcript_undo_requested(self, message: Transcript.UndoRequested) -> None:
        from swecli.core.protocol.commands import RedoCompaction, UndoCompaction

        self.session.send(RedoCompaction(message.item) if message.undone else UndoCompaction(message.item))

    def on_transcript_context_requested(self, message: Transcript.ContextRequested) -> None:
        port = self.session.port
        turn = port.inspection.turn_of(message.item) if port is not None else 0
        if turn:
            self.open_screen("context", f"at {turn}")
        else:
            self.main.flash("The model did not see or write this")

    def on_transcript_edit_requested(self, message: Transcript.EditRequested) -> None:
        self.run_worker(self._open_in_editor(message.text, message.path), group="editor")

    async def _open_in_editor(self, text: str, path: str) -> None:
        """Open a workspace file, or else a copy of the text, in the user's editor."""
        from swecli.tui.external import ExternalError, edit, open_file

        view = self.session.view
        target = view.cwd / path if view is not None and path else None
        try:
            if target is not None and target.is_file():
                await open_file(self, target)
            else:
                await edit(self, text)
        except ExternalError as error:
            self.main.activity.flash(safe_line(str(error)))

    @on(DockPanel.Decided)
    def _decided(self, message: DockPanel.Decided) -> None:
        from swecli.core.protocol.commands import ReplyPermission

        self.session.answer(message.command)
        if isinstance(message.command, ReplyPermission):
            self.main.prompt.history.add(message.command.note)  # words for the model, like those of a message

    @on(Dock.Changed)
    def _dock_changed(self) -> None:
        self.main.activity.refresh()  # suggestions show only while nothing is open
        if self.loaded and self.plan.waits and self.session.mode == "plan":
            self.plan.ask()

    async def on_list_screen_ready(self) -> None:
        self.main.dock.focus_panel()
        waiting, self._before_screen = self._before_screen, []
        for event in waiting:
            await self.on_event(event)

    async def on_list_screen_closed(self) -> None:
        self._before_screen.clear()
        closed = self.main.list_view
        behind = closed.leaving.end(self.post_message) if closed is not None else ()
        self.changes.list_closed()
        for event in behind:
            await self.on_event(event)

    def on_main_screen_wanted(self, message: MainScreen.Wanted) -> None:
        self.run_worker(self.input.submit(message.text), group="input")

    def on_main_screen_preferences_changed(self) -> None:
        self.run_worker(self._read_preferences, group="preferences", exclusive=True)  # the newest counts

    def on_session_controller_wanted(self, message: SessionController.Wanted) -> None:
        self.run_worker(self._play(message.open_session), group="session")

    def on_session_controller_opened(self) -> None:
        from swecli.tui.openers import show_sessions

        if self._begins_with_sessions:
            show_sessions(self, everywhere=self.program.of_all_folders)
        self._begins_with_sessions = False

    def on_session_controller_planned(self) -> None:
        self.plan.ask()

    def on_session_controller_unconnected(self) -> None:
        if not self.main.prompt.editor.text:
            self.main.prompt.editor.put(self.program.first_prompt or "")
        if self.main.list_view is None:  # the list of sessions keeps the keyboard
            self.models.connect()

    def on_session_controller_key_refused(self) -> None:
        self.models.reconnect()

    def on_session_controller_connected(self) -> None:
        self.models.connected()

    @on(BackgroundReported)
    def _background_known(self, message: BackgroundReported) -> None:
        self.appearance.background_known(message.dark)

    @on(EscapeAnnounced)
    def _escape_announced(self, message: EscapeAnnounced) -> None:
        """Show at once that Esc will interrupt, although it may turn out to be the beginning of a report."""
        if self.loaded and (message.withdrawn or keymap.escape(self._key_context()) == "interrupt"):
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

    def _use_palette(self) -> None:
        from swecli.tui.transcript.palette import palette_for, with_preferences

        expand = self.keymap.shown("expand")
        palette = with_preferences(palette_for(self.current_theme), self._preferences.diff, expand)
        self.main.transcript.set_palette(palette)

    def _show_status_line(self, text: str | None) -> None:
        from swecli.tui.transcript.tool_rows import content_line

        self.main.status.show_line(None if text is None else content_line(text, self.main.transcript.page.palette))

    def _complain(self, text: str) -> None:
        from swecli.core.protocol.blocks import TextBlock

        self.main.transcript.show((TextBlock(text, "warning"),))

    def _write(self, sequence: str) -> None:
        if sequence and self._driver is not None:
            self._driver.write(sequence)
