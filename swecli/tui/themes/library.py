"""All themes by name, and which of them a name means on this terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from textual.theme import Theme

from swecli.tui.themes.depth import Depth
from swecli.tui.themes.look import TERMINAL, theme_of
from swecli.tui.themes.scheme import DARK, LIGHT, Scheme

AUTO = "auto"
"""The name of the setting that follows the terminal."""

OWN = DARK.name.removesuffix("-dark")


class Library:
    """Themes by name: at first the default ones only, more with ``add``."""

    def __init__(self, depth: Depth = "truecolor") -> None:
        self._depth: Depth = depth
        self._schemes: dict[str, Scheme] = {}
        self._themes: dict[str, Theme] = {TERMINAL.name: TERMINAL}
        self.add((DARK, LIGHT))

    def add(self, schemes: Iterable[Scheme]) -> None:
        """Take more themes in; one of the same name is replaced."""
        for scheme in schemes:
            self._schemes[scheme.name] = replace(scheme, coarse=True) if self._depth == "256" else scheme
            self._themes.pop(scheme.name, None)

    @property
    def names(self) -> list[str]:
        """All names, the default ones first."""
        return [*self._schemes, TERMINAL.name]

    def scheme(self, name: str) -> Scheme | None:
        """The scheme of this name; None for the terminal's own colours."""
        return self._schemes.get(name)

    def theme(self, name: str) -> Theme:
        """The theme of this name.

        Raises:
            KeyError: there is none.
        """
        if name not in self._themes:
            self._themes[name] = theme_of(self._schemes[name])
        return self._themes[name]

    def resolve(self, wanted: str, dark: bool) -> str | None:
        """The name of the theme that ``wanted`` means on a terminal whose background is ``dark`` or not: "auto",
        a name, or what stands before "-dark" and "-light". None when there is no such theme. Where there are
        only 16 colours or none, it is always the terminal's own."""
        suffix = "-dark" if dark else "-light"
        name = next((name for name in self._candidates(wanted, suffix) if name in self.names), None)
        if name is not None and self._depth in ("none", "16"):
            return TERMINAL.name
        return name

    def unknown(self, wanted: str) -> str:
        """A sentence about a name that no theme has."""
        near = get_close_matches(wanted, [AUTO, *self.names], 1, 0.4)
        hint = f" Did you mean {near[0]}?" if near else " /theme lists them."
        return f"There is no theme {wanted}; the default is used.{hint}"

    @staticmethod
    def _candidates(wanted: str, suffix: str) -> list[str]:
        return [OWN + suffix] if wanted == AUTO else [wanted, wanted + suffix]


def background_is_dark(environ: Mapping[str, str]) -> bool:
    """What ``COLORFGBG`` tells of the background of some terminals; dark otherwise. A terminal that answers the
    question for its background decides later."""
    return environ.get("COLORFGBG", "").rsplit(";", 1)[-1] not in ("7", "15")
