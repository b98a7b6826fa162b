"""The stage's view of the screen: events go into the transcript, state into everything around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.timer import Timer

from swecli.core.protocol.events import Event
from swecli.tui import compat
from swecli.tui.first_run import FirstRun
from swecli.tui.keys import KeyActions
from swecli.tui.options import Options

SETTLED = 2.0
"""Seconds after a session was opened, or after the last of what was said in it before, until the start is over."""
REPLAYED = 500
"""Events at once that only come from a stored session."""


class View:
    """Implements ``stage.Screen`` on the application. The first prompt waits in the prompt while no model is
    connected; ``opened`` is called once a session is there and what was said in it before is shown."""

    def __init__(self, app: KeyActions, options: Options, opened: Callable[[], None]) -> None:
        self._app = app
        self._first_prompt = options.first_prompt or ""
        self._first_run = FirstRun(app, options)
        self._first_screen = options.screens.first
        self._opened = opened
        self._settling: Timer | None = None
        self._new = False

    @property
    def watched(self) -> bool:
        return self._app.app_focus

    def waiting_writes(self) -> int:
        return compat.writer_depth(self._app)

    def session_opened(self) -> None:
        self._new = True
        self.show_state()
        self._settling = self._app.set_timer(SETTLED, self._opened)
        if self._first_screen == "sessions":
            self._app.screens.sessions()
        self._first_screen = None

    def show_events(self, batch: Sequence[Event]) -> None:
        self._app.transcript.apply(batch)
        if len(batch) > REPLAYED and self._settling is not None:
            self._settling.reset()
        view = self._app.stage.link.view
        if self._new and view is not None:
            self._new = False
            if view.model is None:
                self._welcome()

    def show_state(self) -> None:
        app = self._app
        if not app.screen_stack:  # the session outlives the screen for a moment
            return
        stage = app.stage
        app.activity.show(stage.state, starting=not stage.opened)
        facts = stage.facts()
        app.status.show(facts)
        app.outside.follow(stage.state, facts, stage.link.view, watched=app.app_focus, columns=app.size.width)
        app.todos.show(stage.state.todos)
        app.prompt.show_session(stage.opened, stage.state.busy, stage.state.queue)
        app.slot.show_requests(stage.state.requests)

    def _welcome(self) -> None:
        if not self._app.prompt.editor.text:
            self._app.prompt.editor.put(self._first_prompt)
        if self._app.place.current is None:  # the list of sessions is not to lose the keyboard to a list of models
            self._first_run.begin()
