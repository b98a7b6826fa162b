"""A scheme as Textual's theme, with a value for every variable that style sheets of this package use."""

from __future__ import annotations

from dataclasses import dataclass

from textual.theme import Theme

from swecli.tui.themes.scheme import Scheme
from swecli.tui.themes.tones import tones_of

VARIABLES = {"muted-style": "none", "chosen-style": "bold", "selection-style": "none"}
"""Variables of ours, and what they are unless a theme says otherwise."""


@dataclass
class SchemeTheme(Theme):
    """A theme that knows its scheme, for the palettes."""

    scheme: Scheme | None = None


def theme_of(scheme: Scheme) -> SchemeTheme:
    """The theme of a scheme."""
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
    "terminal",
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
