"""Names of themes, and which theme a setting means."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from swecli.themes.scheme import DARK, LIGHT

AUTO = "auto"
"""Setting that follows the terminal."""

TERMINAL = "terminal"
"""The theme of the terminal's own 16 colours and its own background."""

_OWN = DARK.name.removesuffix("-dark")


def resolve(wanted: str, names: Collection[str], dark: bool) -> str | None:
    """The one of ``names`` that ``wanted`` means on a ``dark`` or light terminal: "auto", a name, or the common part
    before "-dark" and "-light". None if there is no such theme."""
    suffix = "-dark" if dark else "-light"
    candidates = [_OWN + suffix] if wanted == AUTO else [wanted, wanted + suffix]
    return next((name for name in candidates if name in names), None)


def unknown_theme(name: str, folders: Sequence[Path]) -> str:
    """The problem with a theme's name, as a continuation of the setting's name; empty if the theme exists. ``folders``
    have the themes besides swecli's own."""
    from difflib import get_close_matches

    from swecli.themes.files import known, read_folders

    themes = (DARK, LIGHT, *known(), *read_folders(folders)[0])
    names = [*dict.fromkeys(theme.name for theme in themes), TERMINAL]
    if any(resolve(name, names, dark) is not None for dark in (True, False)):
        return ""
    near = get_close_matches(name, [AUTO, *names], 1, 0.6)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"must be a theme's name; unknown theme {name!r}.{meant} Themes: {', '.join([AUTO, *names])}"
