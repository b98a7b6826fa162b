"""The dock at the bottom of the screen: the prompt, or one panel in its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from swecli.tui.dock.panel import Clock, DockPanel, PanelContext
from swecli.tui.prompt.box import Prompt

if TYPE_CHECKING:
    from swecli.core.protocol.events import Mode, PermissionRequested
    from swecli.tui.session_state import Request


FULL_SCREEN = "-full-screen"
"""Class of the screen while a panel has all of it."""


class Dock(Vertical):
    """Requests of the model take the dock before pickers do, oldest first."""

    DEFAULT_CSS = "Dock { height: auto; }"

    class Changed(Message):
        """Something else has the keyboard now: the prompt, a panel, a screen."""

    def __init__(self, prompt: Prompt, *, clock: Clock = time.monotonic) -> None:
        super().__init__(id="dock")
        self._prompt = prompt
        self._panel_context = PanelContext(
            clock,
            lambda: prompt.typed_at,
            self._set_full_screen,
            prompt.receive,
            prompt.receive_paste,
            lambda: prompt.editor.text,
        )
        self._request: str | None = None
        self._answered = 0
        self._consent = False
        self._waiting: Sequence[PermissionRequested] = ()
        self._focus_list: Callable[[], None] | None = None
        self.panel: DockPanel | None = None

    def compose(self) -> ComposeResult:
        yield self._prompt

    def show_requests(self, requests: Sequence[Request]) -> None:
        """Show the oldest of the waiting requests, or what was there when none is left."""
        if not requests:
            self._answered, self._waiting = 0, ()
            if self._request is not None:
                self.close()
            return
        from swecli.core.protocol.events import PermissionRequested

        self._waiting = waiting = [request for request in requests if isinstance(request, PermissionRequested)]
        first, place = requests[0], (self._answered + 1, self._answered + len(requests))
        if first.request != self._request:
            self._answered += self._request is not None
            place = (self._answered + 1, self._answered + len(requests))
            self._request = first.request
            self._open(self._panel_for(first, place, waiting))
        elif self.panel is not None:
            self.panel.show_place(place, waiting)

    def meaning_for_waiting(self, mode: Mode) -> str:
        """What a mode that the user has come to means for the requests that wait; empty where it means nothing."""
        if not self._waiting:
            return ""
        from swecli.core.tools.base import plural  # not needed by the first frame

        edits = sum(request.acceptable for request in self._waiting)
        match mode:
            case "accept-edits" if edits:
                return f"accepts {plural(edits, 'waiting edit')} unless you go on"
            case "plan":
                return f"refuses {plural(len(self._waiting), 'waiting request')} unless you go on"
            case "auto":
                return "settles what it may run unless you go on"
            case _:
                return ""

    def show(self, panel: DockPanel) -> None:
        """Show a panel of the user's own, unless the model waits for an answer."""
        if self._request is None:
            self._open(panel)

    def dismiss_plan(self) -> None:
        """What was asked about a plan is settled otherwise."""
        if self.panel is None:
            return
        from swecli.tui.dock.choices import PlanPanel

        if isinstance(self.panel, PlanPanel):
            self.close()

    @property
    def asks_consent(self) -> bool:
        """Whether the panel is an approval: Ctrl+C interrupts there instead of closing it."""
        return self._consent

    def escape(self) -> None:
        if self.panel is not None:
            self.panel.take_back()
            self.panel.escape()

    def fit(self) -> None:
        """The screen has another size. A panel that is only about to be there fits itself."""
        if self.panel is not None and self.panel.is_mounted:
            self.panel.fit()

    def focus_panel(self) -> None:
        """Give the keyboard back to what is in the dock, or to the screen that is open above it."""
        if self.panel is not None:
            self.panel.focus()
        elif self._focus_list is not None:
            self._focus_list()
        else:
            self._prompt.editor.focus()

    def open_screen(self, focus: Callable[[], None]) -> None:
        """A screen is open: there is no prompt, and ``focus`` gives the keyboard to the screen."""
        self._focus_list = focus
        self._prompt.display = False
        self.focus_panel()
        self.post_message(self.Changed())

    def close_screen(self) -> None:
        self._focus_list = None
        self._prompt.display = self.panel is None
        self.focus_panel()
        self.post_message(self.Changed())

    @on(DockPanel.Finished)
    def _finished(self, message: DockPanel.Finished) -> None:
        message.stop()
        if message.panel is self.panel:  # and not one that has taken its place since
            self.close()

    def expand_panel(self) -> bool:
        """Give the panel more of the screen, or less again; whether it wanted that."""
        return self.panel is not None and self.panel.toggle_expanded()

    def close(self) -> None:
        """Back to the prompt, or to the screen that is open."""
        self._request, self._consent = None, False
        panel, self.panel = self.panel, None
        self.screen.remove_class(FULL_SCREEN)
        self._prompt.display = self._focus_list is None
        self.focus_panel()
        if panel is not None:
            panel.remove()
        self.post_message(self.Changed())

    def _open(self, panel: DockPanel) -> None:
        before, self.panel = self.panel, panel
        panel.prompt_context = self._panel_context
        self.screen.remove_class(FULL_SCREEN)
        self._prompt.display = False
        self.mount(panel)
        panel.focus()
        if before is not None:
            before.remove()
        self.post_message(self.Changed())

    def _set_full_screen(self, panel: DockPanel, on: bool) -> None:
        if panel is self.panel:
            self.screen.set_class(on, FULL_SCREEN)

    def _panel_for(self, request: Request, place: tuple[int, int], waiting: Sequence[PermissionRequested]) -> DockPanel:
        from swecli.core.protocol.events import PermissionRequested

        self._consent = isinstance(request, PermissionRequested)
        if isinstance(request, PermissionRequested):
            from swecli.tui.dock.approval import ApprovalPanel

            return ApprovalPanel(request, place=place, waiting=waiting)
        from swecli.tui.dock.question import QuestionPanel

        return QuestionPanel(request)
