"""The user's interface settings in effect: keys, glyphs, colours, mouse, density."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from swecli.tui import compat, keymap
from swecli.tui.glyphs import PlainGlyphs, needs_plain
from swecli.tui.preferences import Preferences

if TYPE_CHECKING:
    from swecli.tui.app import SwecliApp


class AppliedPreferences:
    """Makes the screen follow the settings, whenever they are read."""

    def __init__(self, app: SwecliApp) -> None:
        self._app = app
        self.now = Preferences()
        self.plain_glyphs = PlainGlyphs(needs_plain(os.environ))
        compat.replace_bindings(app, keymap.everywhere(app.keymap))

    async def follow(self, told: Sequence[str] = ()) -> Sequence[str]:
        """Follow the user's settings. Shows and returns what is wrong with them, without what was ``told``."""
        from swecli.themes.files import known, read_folders

        app, main, interface = self._app, self._app.main, self._app.interface
        preferences = await asyncio.to_thread(app.program.preferences)
        before, self.now = self.now, preferences
        app.keymap.adopt(preferences.keys)
        compat.replace_bindings(app, keymap.everywhere(app.keymap))
        compat.replace_bindings(main.transcript, keymap.transcript(app.keymap))
        app.terminal.adopt(preferences)
        interface.input.key_variables = preferences.key_variables
        main.activity.keep_still(preferences.reduced_motion)
        main.activity.foresee = interface.session.foresee if preferences.forecast else None
        if preferences.density != before.density:
            main.transcript.density = preferences.density
        vim = preferences.editing == "vim"
        if preferences.editing != before.editing and vim != bool(main.prompt.editing):
            main.prompt.use_vim(vim)
        if preferences.mouse != before.mouse:
            app.use_mouse(preferences.mouse)
        ascii_only = preferences.glyphs == "ascii" or (preferences.glyphs == "auto" and needs_plain(os.environ))
        if ascii_only != self.plain_glyphs.enabled:
            self.plain_glyphs.enabled = ascii_only
            app.refresh_css(animate=False)
            app.action_redraw()
        self.use_palette()
        custom, notices = read_folders(preferences.theme_folders)
        notices.append(app.appearance.adopt(preferences.theme, (*known(), *custom)))
        main.warn([notice for notice in notices if notice and notice not in told])
        interface.session.show()  # a new status line runs, and a title is set, at changes
        return notices

    def use_palette(self) -> None:
        """Draw the transcript in the colours of the theme."""
        from swecli.tui.transcript.palette import palette_for, with_preferences

        app = self._app
        expand = app.keymap.shown("expand")
        app.main.transcript.set_palette(with_preferences(palette_for(app.current_theme), self.now.diff, expand))
