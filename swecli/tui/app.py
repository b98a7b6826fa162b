"""The application: what is on the screen, and its life from the first frame to the last."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer

from swecli.tui import bindings, compat
from swecli.tui.appearance import Appearance, textual_colours
from swecli.tui.bars import ActivityLine, StatusBar
from swecli.tui.dock.grace import Clock
from swecli.tui.driver import Driver
from swecli.tui.endings import Endings
from swecli.tui.keymap import Keymap
from swecli.tui.link import OpenSession, SessionNotOpened
from swecli.tui.loading import load
from swecli.tui.options import Options
from swecli.tui.outside import Outside
from swecli.tui.preferences import Preferences
from swecli.tui.prompt.box import Prompt
from swecli.tui.slot import Slot
from swecli.tui.themes.depth import depth
from swecli.tui.themes.library import background_is_dark
from swecli.tui.themes.look import VARIABLES
from swecli.tui.todos import TodoPanel

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Submit

LATER = (
    "swecli.tui.desk",
    "swecli.tui.screens.opening",
    "swecli.tui.screens.place",
    "swecli.tui.stage",
    "swecli.tui.transcript.view",
    "swecli.tui.view",
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
        compat.replace_bindings(self, bindings.everywhere(self.keymap))
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
        from swecli.tui.copying import Copier
        from swecli.tui.desk import Desk
        from swecli.tui.screens.opening import Screens
        from swecli.tui.screens.place import Place
        from swecli.tui.stage import Stage
        from swecli.tui.talk import Talk
        from swecli.tui.transcript.view import Transcript
        from swecli.tui.view import View

        self.transcript = Transcript(id="transcript")
        compat.replace_bindings(self.transcript, bindings.transcript(self.keymap))
        self.query_one("#place").mount(self.transcript)
        self.place = Place(self)
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
        compat.replace_bindings(self, bindings.everywhere(self.keymap))
        compat.replace_bindings(self.transcript, bindings.transcript(self.keymap))
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
        from swecli.tui.trusting import ask_trust

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
        from swecli.tui.transcript.terminal import content_line

        self.status.show_line(None if text is None else content_line(text, self.transcript.page.palette))

    def _complain(self, text: str) -> None:
        from swecli.core.protocol.blocks import TextBlock

        self.transcript.show((TextBlock(text, "warning"),))

    def _write(self, sequence: str) -> None:
        if sequence and self._driver is not None:
            self._driver.write(sequence)
