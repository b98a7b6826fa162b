"""What keys do that mean the same everywhere: the ladders of Esc and Ctrl+C, scrolling, panels, search."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import BindingType

from swecli.tui import bindings, ladder

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Submit
    from swecli.tui.appearance import Appearance
    from swecli.tui.bars import ActivityLine, StatusBar
    from swecli.tui.copying import Copier
    from swecli.tui.dock.panel import Clock
    from swecli.tui.link import OpenSession
    from swecli.tui.prompt.box import Prompt
    from swecli.tui.slot import Slot
    from swecli.tui.stage import Stage
    from swecli.tui.talk import Talk
    from swecli.tui.todos import TodoPanel
    from swecli.tui.transcript.view import Transcript


class KeyActions(App[int], inherit_bindings=False):
    """The actions behind ``bindings``. The parts of the screen are attributes; the app builds them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings.BINDINGS
    transcript: Transcript
    todos: TodoPanel
    activity: ActivityLine
    status: StatusBar
    prompt: Prompt
    slot: Slot
    stage: Stage
    talk: Talk
    copier: Copier
    clock: Clock
    appearance: Appearance
    furnished = False
    """Whether the parts are there that are loaded after the first frame."""
    armed: float | None = None
    """When Ctrl+C was pressed on an empty prompt, by ``clock``."""

    def leave(self) -> None:
        """End the program in order."""
        raise NotImplementedError

    def play(self, open_session: OpenSession, first: Submit | None = None) -> None:
        """Open a session and show it. ``first`` is sent before what the user typed meanwhile."""
        raise NotImplementedError

    def situation(self) -> ladder.Situation:
        """What is open, selected, typed and running."""
        panel, editor = self.slot.panel, self.prompt.editor
        return ladder.Situation(
            overlay=panel is None and self.prompt.overlay,
            panel=panel is not None,
            approval=self.slot.asks_consent,
            selection=bool(self.screen.selections) or not editor.selection.is_empty,
            busy=self.stage.state.busy or bool(self.stage.state.running),
            text=panel is None and bool(editor.text),
            armed=None if self.armed is None else self.clock() - self.armed,
        )

    def action_escape(self) -> None:
        match ladder.escape(self.situation()):
            case "overlay":
                self.prompt.close_overlay()
            case "panel":
                self.slot.escape()
            case "selection":
                self.copier.unselect()
            case "interrupt":
                self.stage.interrupt()
            case "nothing":
                pass

    def action_cancel(self) -> None:
        step = ladder.cancel(self.situation())
        self.armed = None
        match step:
            case "copy":
                self.copier.copy_selection()
            case "quit":
                self.leave()
            case "overlay":
                self.prompt.close_overlay()
            case "panel":
                self.slot.escape()
            case "clear":
                self.prompt.editor.kill_all()
            case "interrupt":
                self.stage.interrupt()
                self.armed = self.clock()
            case "arm":
                self.armed = self.clock()
                self.activity.flash("Press Ctrl+C again to quit", ladder.QUIT_WINDOW)

    def action_next_mode(self) -> None:
        self.talk.next_mode()

    def action_redraw(self) -> None:
        if not self.screen_stack:  # a timer may fire while the program ends
            return
        self.screen.refresh(layout=True)
        for widget in self.screen.walk_children():
            widget.refresh()

    def action_todos(self) -> None:
        if self.stage.state.todos or self.todos.display:
            self.todos.display = not self.todos.display
        else:
            self.activity.flash("There are no todos yet")

    def action_expand(self) -> None:
        if not self.slot.expand_panel():
            self.transcript.action_toggle_verbose()

    def action_find(self) -> None:
        from swecli.tui.dock.find import FindPanel

        self.slot.show(FindPanel(self.transcript))

    def action_scroll(self, where: str) -> None:
        actions = {
            "page_up": self.transcript.action_page_up,
            "page_down": self.transcript.action_page_down,
            "home": self.transcript.action_scroll_home,
            "end": self.transcript.action_scroll_end,
        }
        actions[where]()
