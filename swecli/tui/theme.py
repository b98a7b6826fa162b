"""The two default themes, and which of them suits the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

DARK = Theme(
    name="swecli-dark",
    dark=True,
    primary="#7aa2f7",
    secondary="#7dcfff",
    accent="#7aa2f7",
    warning="#e0af68",
    error="#f7768e",
    success="#8fc66b",
    foreground="#d5d9e2",
    background="#14161c",
    surface="#14161c",
    panel="#20242e",
    variables={
        "foreground-muted": "#8b919e",
        "border-blurred": "#3a404c",
        "border": "#7aa2f7",
        "input-cursor-background": "#d5d9e2",
        "input-cursor-foreground": "#14161c",
        "input-selection-background": "#33467c",
        "scrollbar": "#3a404c",
        "scrollbar-hover": "#5a6272",
        "scrollbar-active": "#7aa2f7",
        "scrollbar-background": "#14161c",
        "scrollbar-background-hover": "#14161c",
        "scrollbar-background-active": "#14161c",
        "screen-selection-background": "#33467c",
    },
)

LIGHT = Theme(
    name="swecli-light",
    dark=False,
    primary="#2457c5",
    secondary="#0b6a8f",
    accent="#2457c5",
    warning="#8a5a00",
    error="#b3261e",
    success="#2f7d32",
    foreground="#22262e",
    background="#fbfaf7",
    surface="#fbfaf7",
    panel="#ecebe6",
    variables={
        "foreground-muted": "#5f6672",
        "border-blurred": "#c4c6ca",
        "border": "#2457c5",
        "input-cursor-background": "#22262e",
        "input-cursor-foreground": "#fbfaf7",
        "input-selection-background": "#bcd2ff",
        "scrollbar": "#c4c6ca",
        "scrollbar-hover": "#9aa0aa",
        "scrollbar-active": "#2457c5",
        "scrollbar-background": "#fbfaf7",
        "scrollbar-background-hover": "#fbfaf7",
        "scrollbar-background-active": "#fbfaf7",
        "screen-selection-background": "#bcd2ff",
    },
)


def preferred(environ: Mapping[str, str]) -> str:
    """Name of the theme to start with: ``COLORFGBG`` tells the background of some terminals, dark otherwise.
    A terminal that answers the question for its background decides later."""
    background = environ.get("COLORFGBG", "").rsplit(";", 1)[-1]
    return LIGHT.name if background in ("7", "15") else DARK.name
