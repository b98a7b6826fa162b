"""What keys do that mean the same everywhere: the ladders of Esc and Ctrl+C, scrolling, panels, search."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App

from swecli.safe_text import safe_line
from swecli.tui import keymap
from swecli.tui.terminal import Driver

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Submit
    from swecli.tui.actions import Copier, Desk
    from swecli.tui.appearance import Appearance
    from swecli.tui.dock.dock import Slot
    from swecli.tui.dock.panel import Clock
    from swecli.tui.input import Talk
    from swecli.tui.keymap import Keymap
    from swecli.tui.options import Preferences
    from swecli.tui.prompt.box import Prompt
    from swecli.tui.screens.opening import ScreenHost, Screens
    from swecli.tui.session_link import OpenSession
    from swecli.tui.session_screen import Stage
    from swecli.tui.status_bar import ActivityLine, StatusBar
    from swecli.tui.terminal import Outside
    from swecli.tui.todos import TodoPanel
    from swecli.tui.transcript.view import Transcript


_FORMS = {
    "short": "Short view: one line per step",
    "usual": "Normal view: each step with the first lines of output",
    "full": "Details on",
}


class KeyActions(App[int], inherit_bindings=False):
    """The actions behind ``bindings``. The parts of the screen are attributes; the app builds them."""

    transcript: Transcript
    todos: TodoPanel
    activity: ActivityLine
    status: StatusBar
    prompt: Prompt
    slot: Slot
    place: ScreenHost
    screens: Screens
    stage: Stage
    talk: Talk
    desk: Desk
    copier: Copier
    clock: Clock
    wall: Callable[[], float]
    """Unix seconds."""
    keymap: Keymap
    appearance: Appearance
    outside: Outside
    furnished = False
    """Whether the parts are there that are loaded after the first frame."""
    can_talk: asyncio.Event
    """Set once what the user sends can be understood; until then it waits."""
    mouse = True
    """Whether the mouse is the program's, not the terminal's."""
    armed: float | None = None
    """When Ctrl+C was pressed on an empty prompt, by ``clock``."""

    def leave(self) -> None:
        """End the program in order."""
        raise NotImplementedError

    def play(self, open_session: OpenSession, first: Submit | None = None) -> None:
        """Open a session and show it. ``first`` is sent before what the user typed meanwhile."""
        raise NotImplementedError

    def adopt(self, preferences: Preferences) -> None:
        """Take over what the user has set."""
        raise NotImplementedError

    def situation(self) -> keymap.Situation:
        """What is open, selected, typed and running."""
        panel, editor = self.slot.panel, self.prompt.editor
        return keymap.Situation(
            overlay=panel is None and (self.place.current is not None or self.prompt.overlay),
            panel=panel is not None,
            approval=self.slot.asks_consent,
            selection=bool(self.screen.selections) or not editor.selection.is_empty,
            busy=self.stage.state.busy or bool(self.stage.state.running),
            text=panel is None and self.place.current is None and bool(editor.text),
            armed=None if self.armed is None else self.clock() - self.armed,
        )

    def action_escape(self) -> None:
        match keymap.escape(self.situation()):
            case "overlay":
                self._close_overlay()
            case "panel":
                self.slot.escape()
            case "selection":
                self.copier.unselect()
            case "interrupt":
                self.stage.interrupt()
            case "nothing":
                pass

    def action_cancel(self) -> None:
        step = keymap.cancel(self.situation())
        self.armed = None
        match step:
            case "copy":
                self.copier.copy_selection()
            case "quit":
                self.leave()
            case "overlay":
                self._close_overlay()
            case "panel":
                self.slot.escape()
            case "clear":
                self.prompt.editor.kill_all()
            case "interrupt":
                self.stage.interrupt()
                self.armed = self.clock()
            case "arm":
                self.armed = self.clock()
                self.activity.flash(f"Press {self.keymap.shown('cancel')} again to quit", keymap.QUIT_WINDOW)

    def _close_overlay(self) -> None:
        if self.place.current is not None:
            self.place.escape()
        else:
            self.prompt.close_overlay()

    def action_next_mode(self) -> None:
        self.talk.next_mode()

    def action_redraw(self) -> None:
        if not self.screen_stack:  # a timer may fire while the program ends
            return
        self.screen.refresh(layout=True)
        for widget in self.screen.walk_children():
            widget.refresh()

    def action_mouse(self) -> None:
        self.use_mouse(not self.mouse)
        self.activity.flash(
            f"The mouse is {'the program' if self.mouse else 'the terminal'}'s; {self.keymap.shown('mouse')} changes it"
        )

    def use_mouse(self, on: bool) -> None:
        """Take the mouse, or leave it to the terminal."""
        self.mouse = on
        driver = getattr(self, "_driver", None)
        if isinstance(driver, Driver):
            driver.use_mouse(on)

    def action_todos(self) -> None:
        if self.stage.state.todos or self.todos.display:
            self.todos.display = not self.todos.display
        else:
            self.activity.flash("No todos yet")

    def action_background(self) -> None:
        from swecli.core.protocol.commands import Background

        items = [item for item, running in self.stage.state.running.items() if running.is_command]
        for item in items:
            self.stage.link.send(Background(item))
        if not items:
            self.activity.flash("No running command to move to the background; /jobs lists background jobs")

    def action_expand(self) -> None:
        if not self.slot.expand_panel():
            self.transcript.action_next_density()
            self.activity.flash(_FORMS[self.transcript.density])

    async def action_external_editor(self) -> None:
        """Write the message in the user's editor. Where it fails, the text stays."""
        from swecli.tui.external import ExternalError, edit

        if self.slot.panel is not None or self.place.current is not None:
            return
        editor = self.prompt.editor
        try:
            text = await edit(self, editor.message)
        except ExternalError as error:
            self.activity.flash(f"{safe_line(str(error))}; your text was kept")
        else:
            editor.put(text)

    async def open_in_editor(self, text: str, path: str) -> None:
        """Open a file of the workspace, or else a copy of the text, in the user's editor."""
        from swecli.tui.external import ExternalError, edit, open_file

        view = self.stage.link.view
        target = view.cwd / path if view is not None and path else None
        try:
            if target is not None and target.is_file():
                await open_file(self, target)
            else:
                await edit(self, text)
        except ExternalError as error:
            self.activity.flash(safe_line(str(error)))

    def action_find(self) -> None:
        self.find()

    def find(self, words: str = "") -> None:
        """Open the search of the transcript; where it is open, the match before."""
        from swecli.tui.dock.find import FindPanel

        if self.place.current is not None:
            self.slot.focus_panel()
        elif isinstance(self.slot.panel, FindPanel):
            self.transcript.action_find_previous()
        else:
            self.slot.show(FindPanel(self.transcript, words))

    def action_scroll(self, where: str) -> None:
        actions = {
            "page_up": self.transcript.action_page_up,
            "page_down": self.transcript.action_page_down,
            "home": self.transcript.action_scroll_home,
            "end": self.transcript.action_scroll_end,
        }
        actions[where]()
