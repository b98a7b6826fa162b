"""A scheme: the few colours that a theme names. Everything on the screen is derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from swecli.tui.themes.colours import is_dark, mix, normal


@dataclass(frozen=True, slots=True)
class Scheme:
    """Colours as ``#rrggbb``. ``accent`` marks what is chosen or active, ``muted`` is text of less weight,
    ``panel`` the background of bars; the others are named by what they look like."""

    name: str
    background: str
    foreground: str
    panel: str
    muted: str
    accent: str
    red: str
    orange: str
    yellow: str
    green: str
    cyan: str
    blue: str
    purple: str
    selection: str
    coarse: bool = field(default=False, kw_only=True)
    """Whether it is shown in 256 colours, and has to be legible in these."""

    @property
    def dark(self) -> bool:
        return is_dark(self.background)


COLOURS: tuple[str, ...] = tuple(entry.name for entry in fields(Scheme) if entry.type == "str" and entry.name != "name")
"""Names of the colours in a theme file."""

REQUIRED = ("background", "foreground")
"""Colours that a theme file has to name; the rest follows from them and from the default themes."""


class SchemeError(ValueError):
    """A theme file can't be used; ``key`` is what is wrong in it."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def scheme_of(name: str, colours: Mapping[str, object]) -> Scheme:
    """A scheme from the content of a theme file.

    Raises:
        SchemeError: a colour is missing, unknown or no colour.
    """
    found: dict[str, str] = {}
    for key, value in colours.items():
        if key not in COLOURS:
            raise SchemeError(key, f"{key} is no colour of a theme; these are: {', '.join(COLOURS)}")
        if not isinstance(value, str):
            raise SchemeError(key, f'{key} must be a text such as "#7aa2f7"')
        try:
            found[key] = normal(value)
        except ValueError as error:
            raise SchemeError(key, f"{key}: {error}") from None
    for key in REQUIRED:
        if key not in found:
            raise SchemeError(key, f"{key} is missing")
    base = DARK if is_dark(found["background"]) else LIGHT
    back, front = found["background"], found["foreground"]
    derived = {
        "panel": mix(back, front, 0.08),
        "muted": mix(front, back, 0.4),
        "accent": found.get("blue", base.accent),
        "selection": mix(back, found.get("blue", base.blue), 0.35),
    }
    return Scheme(name, *[found.get(key) or derived.get(key) or str(getattr(base, key)) for key in COLOURS])


DARK = Scheme(
    "swecli-dark",
    background="#14161c",
    foreground="#d5d9e2",
    panel="#20242e",
    muted="#8b919e",
    accent="#7aa2f7",
    red="#f7768e",
    orange="#ff9e64",
    yellow="#e0af68",
    green="#8fc66b",
    cyan="#7dcfff",
    blue="#7aa2f7",
    purple="#bb9af7",
    selection="#33467c",
)

LIGHT = Scheme(
    "swecli-light",
    background="#fbfaf7",
    foreground="#22262e",
    panel="#ecebe6",
    muted="#5f6672",
    accent="#2457c5",
    red="#b3261e",
    orange="#a8480b",
    yellow="#8a5a00",
    green="#2f7d32",
    cyan="#0b6a8f",
    blue="#2457c5",
    purple="#6f3fb0",
    selection="#bcd2ff",
)
