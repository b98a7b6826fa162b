"""Choosing the theme, with a live preview."""

from __future__ import annotations

from swecli.themes.names import AUTO
from swecli.tui.dock.picker import Choice, Picker
from swecli.tui.main_screen import MainScreen
from swecli.tui.program import Program
from swecli.tui.setting_changes import keep_setting
from swecli.tui.themes.appearance import Appearance


class ThemeChoice:
    """Shows a theme and writes it to the user's settings."""

    def __init__(self, screen: MainScreen, appearance: Appearance, program: Program) -> None:
        self._screen = screen
        self._appearance = appearance
        self._program = program

    @property
    def names(self) -> tuple[str, ...]:
        return (AUTO, *self._appearance.library.names)

    def choices(self) -> list[Choice]:
        """All but the present one, for the palette."""
        return [Choice(f"theme {name}", f"theme: {name}") for name in self.names if name != self._appearance.wanted]

    def pick(self, name: str = "") -> None:
        """Set the theme by name, or pick it from a list with live preview."""
        library, appearance = self._appearance.library, self._appearance
        if name:
            if library.resolve(name, appearance.dark) is None:
                self._screen.activity.flash(library.unknown(name, "nothing was changed"))
            else:
                self._set(name)
            return
        choices = [Choice(AUTO, AUTO, "follows the terminal", appearance.wanted == AUTO)]
        for theme in library.names:
            scheme = library.scheme(theme)
            detail = "the terminal's 16 colours" if scheme is None else "dark" if scheme.dark else "light"
            choices.append(Choice(theme, theme, detail, theme == appearance.wanted))
        picker = Picker("Theme", choices, self._set, preview=appearance.preview, cancelled=appearance.apply)
        self._screen.dock.show(picker)

    def _set(self, name: str) -> None:
        self._appearance.want(name)
        self._screen.run_worker(self._keep(name))

    async def _keep(self, name: str) -> None:
        """Write the theme to the user's settings and report where."""
        note = self._appearance.library.note
        shown = f"Theme: {name}{f', {note}' if note and self._appearance.library.scheme(name) is not None else ''}"
        await keep_setting(self._screen, self._program, "ui.theme", name, shown)
