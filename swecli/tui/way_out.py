"""The ways out: what Esc and Ctrl+C close, clear, interrupt or end, one step at a time, and the end of the program."""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from textual import events

if TYPE_CHECKING:
    from swecli.tui.app import SwecliApp
    from swecli.tui.dock.picker import Picker

QUIT_WINDOW = 1.0
"""Seconds within which a second Ctrl+C on an empty prompt quits."""

ESCAPE_WINDOW = 1.0
"""Seconds within which a second Esc clears the prompt, or offers to rewind if it is empty."""

EscapeStep = Literal["overlay", "panel", "selection", "interrupt", "beside", "nothing"]
CancelStep = Literal["copy", "quit", "overlay", "panel", "interrupt", "beside", "clear", "arm"]


class KeyContext(Struct, frozen=True):
    """What is open, selected, typed and running, including ``beside`` the turn. ``armed`` is the seconds since Ctrl+C
    on an empty prompt, None if not pressed or if something happened since. ``unread``: the panel is an approval that
    appeared too recently to have been read."""

    overlay: bool = False
    panel: bool = False
    approval: bool = False
    selection: bool = False
    busy: bool = False
    beside: bool = False
    text: bool = False
    armed: float | None = None
    unread: bool = False


def escape_step(now: KeyContext) -> EscapeStep:
    """Step that Esc takes, one at a time: close, then clear, then interrupt the turn, then cancel a side question. With
    an unread approval it interrupts: it was meant for what was on the screen before."""
    if now.overlay:
        return "overlay"
    if now.unread and now.busy:
        return "interrupt"
    if now.panel:
        return "panel"
    if now.selection:
        return "selection"
    if now.busy:
        return "interrupt"
    return "beside" if now.beside else "nothing"


def cancel_step(now: KeyContext) -> CancelStep:
    """Step that Ctrl+C takes: it copies a selection; twice on an empty prompt it quits, even while a turn runs."""
    if now.selection:
        return "copy"
    if now.armed is not None and now.armed <= QUIT_WINDOW and not now.text:
        return "quit"
    if now.overlay:
        return "overlay"
    if now.panel and not now.approval:
        return "panel"
    if now.busy:
        return "interrupt"
    if now.beside:
        return "beside"
    return "clear" if now.text else "arm"


SIGNAL_TIME = 0.5
"""Seconds for an orderly end of the session after a signal."""


class WayOut:
    """Ends one thing at a time, and the program when nothing else is left."""

    def __init__(self, app: SwecliApp) -> None:
        self._app = app
        self._armed: float | None = None
        """Clock time of a Ctrl+C on an empty prompt."""
        self._escaped: float | None = None
        """Clock time of an Esc that had no effect."""
        self._early_cancels = 0
        """Ctrl+C received before it could act."""
        self._question: Picker | None = None
        """The open question whether to quit."""
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._own_context = Context()
        """What timers and tasks need to find the app."""

    def begin(self) -> None:
        """Let signals reach the app, which runs."""
        self._event_loop, self._own_context = asyncio.get_running_loop(), copy_context()

    def loaded(self) -> None:
        """Do what Ctrl+C asked for before everything was loaded."""
        for _ in range(self._early_cancels):
            self.cancel()

    def pressed(self, key: events.Key, *, types: bool) -> None:
        """Note a key before a widget gets it, because Ctrl+C overtakes keys that the editor has not worked on.
        ``types``: it types in the prompt."""
        app = self._app
        cancels = app.keymap.action("everywhere", key.key) == "cancel"
        again = self._armed is not None and cancels
        if cancels and not app.loaded:
            self._early_cancels += 1
        if not types or (self._armed is not None and not again):  # keep news that arrives while the user types
            app.main.activity.end_flash()
        if not again:
            self._armed = None

    def edited(self) -> None:
        """Take an Esc after an edit for the first one."""
        self._escaped = None

    def _now(self) -> KeyContext:
        app, main, editor = self._app, self._app.main, self._app.main.prompt.editor
        panel, list_view, state = main.dock.panel, main.list_view, app.session.state
        return KeyContext(
            overlay=panel is None and (list_view is not None or main.prompt.overlay),
            panel=panel is not None,
            approval=main.dock.asks_consent,
            unread=main.dock.asks_consent and panel is not None and panel.unread,
            selection=bool(app.screen.selections) or not editor.selection.is_empty,
            busy=state.busy or bool(state.running),
            beside=app.interface.input.waits_beside,
            text=panel is None and list_view is None and bool(editor.text),
            armed=None if self._armed is None else self._app.clock() - self._armed,
        )

    @property
    def interrupts(self) -> bool:
        """Whether Esc would interrupt."""
        return escape_step(self._now()) == "interrupt"

    def escape(self) -> None:
        app = self._app
        match escape_step(self._now()):
            case "overlay":
                self._close_overlay()
            case "panel":
                app.main.dock.escape()
            case "selection":
                app.interface.copier.unselect()
            case "interrupt":
                app.session.interrupt()
            case "beside":
                app.interface.input.cancel_beside()
            case "nothing":
                self._escaped_idly()

    def _escaped_idly(self) -> None:
        """Handle an Esc without effect: the second clears the prompt, or lists messages to rewind to if it is empty."""
        app, activity = self._app, self._app.main.activity
        before, self._escaped = self._escaped, self._app.clock()
        again = before is not None and self._escaped - before <= ESCAPE_WINDOW
        if again:
            self._escaped = None
        editor = app.main.prompt.editor
        if editor.text and again:
            self._clear_prompt()
        elif editor.text:
            activity.flash("Esc again clears", ESCAPE_WINDOW)
        elif again:
            app.interface.open("rewind")
        elif app.session.continuable:
            activity.flash("Esc again rewinds to an earlier message", ESCAPE_WINDOW)

    def cancel(self) -> None:
        """Act as Ctrl+C."""
        app = self._app
        if not app.screen_stack:  # a signal may come while the program ends
            return
        step = cancel_step(self._now())
        self._armed = None
        match step:
            case "copy":
                app.interface.copier.copy_selection()
            case "quit":
                self.leave()
            case "overlay":
                self._close_overlay()
            case "panel":
                app.main.dock.escape()
            case "clear":
                self._clear_prompt()
            case "beside":
                app.interface.input.cancel_beside()
            case "interrupt":
                app.session.interrupt()
                self._armed = self._app.clock()
            case "arm":
                self._armed = self._app.clock()
                app.main.activity.flash(f"Press {app.keymap.shown('cancel')} again to quit", QUIT_WINDOW)

    def _clear_prompt(self) -> None:
        self._app.main.prompt.editor.kill_all()
        self._app.main.activity.flash(f"Cleared; {self._app.keymap.shown('yank')} restores the text")

    def _close_overlay(self) -> None:
        main = self._app.main
        if main.list_view is not None:
            main.list_view.escape()
        else:
            main.prompt.close_overlay()

    # --- the end, which closes the session first, within the time limit ---

    def leave(self) -> None:
        """Quit. If that ends jobs, ask first; a second press of the key confirms."""
        running = self._app.session.jobs if self._app.loaded else []
        asked = self._question is not None and self._app.main.dock.panel is self._question
        if running and not asked:
            self._ask_to_leave(running)
        else:
            self._leave()

    def _leave(self) -> None:
        from swecli.tui.session_controller import CLOSE_TIME

        self._app.main.activity.flash("Closing the session…")
        self._app.run_worker(self._shut_down(0, CLOSE_TIME), group="end")

    def _ask_to_leave(self, jobs: list[str]) -> None:
        from swecli.commands.base import jobs_words
        from swecli.tui.dock.picker import Choice, Picker

        title, named = jobs_words(jobs)
        choices = [Choice("end", "Stop and quit", named), Choice("stay", "Stay", "background jobs keep running")]

        def picked(value: str) -> None:
            if value == "end":
                self._leave()

        self._question, main = Picker(title, choices, picked, quit=self._leave), self._app.main
        main.dock.show(self._question)
        if main.dock.panel is not self._question:
            main.activity.flash("Background jobs are running; answer this first")

    async def _shut_down(self, code: int, timeout: float) -> None:
        app = self._app
        app.main.prompt.save()
        if app.loaded:
            await app.terminal.close()
            await app.session.close(timeout, "other" if code else "prompt_input_exit")
        app.exit(return_code=code)

    def end_soon(self, code: int) -> None:
        """End with this exit code within the time that a signal leaves. For signal handlers."""
        if self._event_loop is not None:
            end = self._shut_down(code, SIGNAL_TIME)
            self._event_loop.call_soon_threadsafe(
                lambda: self._app.run_worker(end, group="end"), context=self._own_context
            )

    def cancel_soon(self) -> None:
        """Act as Ctrl+C, once everything is loaded. For signal handlers."""
        if not self._app.loaded:
            self._early_cancels += 1
        elif self._event_loop is not None and not self._event_loop.is_closed():
            self._event_loop.call_soon_threadsafe(self.cancel, context=self._own_context)
