"""All themes by name, and the resolution of a name for this terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from msgspec.structs import replace
from textual.theme import Theme

from swecli.themes import names as theme_names
from swecli.themes.scheme import DARK, LIGHT, Depth, Scheme, tones_of


@dataclass
class SchemeTheme(Theme):
    """A theme that keeps its scheme, for the palettes."""

    scheme: Scheme | None = None


def theme_of(scheme: Scheme) -> SchemeTheme:
    tones = tones_of(scheme)
    return SchemeTheme(
        scheme.name,
        scheme=scheme,
        dark=scheme.dark,
        primary=tones.accent,
        secondary=tones.link,
        accent=tones.accent,
        warning=tones.warning,
        error=tones.error,
        success=tones.success,
        foreground=tones.text,
        background=tones.background,
        surface=tones.background,
        panel=tones.panel,
        variables={
            "foreground-muted": tones.muted,
            "track": tones.track,
            "track-end": tones.panel,
            "border-blurred": tones.rule,
            "border": tones.accent,
            "input-cursor-background": tones.text,
            "input-cursor-foreground": tones.background,
            "input-selection-background": tones.selection,
            "input-selection-foreground": tones.on_selection,
            "scrollbar": tones.rule,
            "scrollbar-hover": tones.muted,
            "scrollbar-active": tones.accent,
            "scrollbar-background": tones.background,
            "scrollbar-background-hover": tones.background,
            "scrollbar-background-active": tones.background,
            "screen-selection-background": tones.selection,
            "screen-selection-foreground": tones.on_selection,
        },
    )


TERMINAL = Theme(
    theme_names.TERMINAL,
    ansi=True,
    primary="ansi_cyan",
    secondary="ansi_cyan",
    accent="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "muted-style": "dim",
        "chosen-style": "bold reverse",
        "selection-style": "reverse",
        "foreground-muted": "ansi_default",
        "border": "ansi_cyan",
        "border-blurred": "ansi_default",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_default",
        "input-selection-foreground": "ansi_default",
        "scrollbar": "ansi_default",
        "scrollbar-hover": "ansi_default",
        "scrollbar-active": "ansi_cyan",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "scrollbar-corner-color": "ansi_default",
        "screen-selection-background": "ansi_default",
        "screen-selection-foreground": "ansi_default",
    },
)
"""The terminal's own 16 colours and its own background."""


class Library:
    """Themes by name: initially the default ones, more with ``add``."""

    def __init__(self, depth: Depth = "truecolor") -> None:
        self._depth: Depth = depth
        self._schemes: dict[str, Scheme] = {}
        self._themes: dict[str, Theme] = {TERMINAL.name: TERMINAL}
        self.add((DARK, LIGHT))

    def add(self, schemes: Iterable[Scheme]) -> None:
        """Add themes, replacing those with the same name."""
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
        """The theme that ``wanted`` means (``theme_names.resolve``). With at most 16 colours, the terminal's own."""
        name = theme_names.resolve(wanted, self.names, dark)
        if name is not None and self._depth in ("none", "16"):
            return TERMINAL.name
        return name

    @property
    def note(self) -> str:
        """Why themes are not shown; empty if they are."""
        return {"none": "not visible without colours", "16": "not visible with 16 colours"}.get(self._depth, "")

    def unknown(self, wanted: str, instead: str = "using the default") -> str:
        """A sentence about an unknown theme name; ``instead`` is the consequence."""
        near = get_close_matches(wanted, [theme_names.AUTO, *self.names], 1)
        hint = f" Did you mean {near[0]}?" if near else " /theme lists them."
        return f"Unknown theme {wanted}; {instead}.{hint}"


def background_is_dark(environ: Mapping[str, str]) -> bool | None:
    """Whether the background is dark by ``COLORFGBG``, which some terminals set; None if unset. A terminal's reply to
    the background query overrides it later."""
    value = environ.get("COLORFGBG", "")
    return value.rsplit(";", 1)[-1] not in ("7", "15") if value else None
