"""Arithmetic on colours: contrast as WCAG 2.1 defines it, mixing, and making text legible. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

AA = 4.5
"""Contrast of text that WCAG 2.1 asks for at level AA."""

BLACK, WHITE = "#000000", "#ffffff"

_HEX = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")


def normal(colour: str) -> str:
    """The colour as ``#rrggbb`` in small letters.

    Raises:
        ValueError: it is not ``#rgb`` or ``#rrggbb``.
    """
    if not _HEX.fullmatch(colour):
        raise ValueError(f"{colour[:40]!r} is no colour; write it as #rrggbb")
    digits = colour[1:].lower()
    return "#" + ("".join(digit * 2 for digit in digits) if len(digits) == 3 else digits)


@lru_cache(maxsize=1024)
def luminance(colour: str) -> float:
    """Relative luminance, 0 (black) to 1 (white)."""

    def linear(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(value) for value in _rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def is_dark(colour: str) -> bool:
    """Whether white text is easier to read on it than black text."""
    return contrast(colour, WHITE) >= contrast(colour, BLACK)


def mix(colour: str, other: str, share: float) -> str:
    """``share`` (0..1) of ``other`` in ``colour``."""
    parts = (round(a + (b - a) * share) for a, b in zip(_rgb(colour), _rgb(other), strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


Seen = Callable[[str], str]
"""What a terminal makes of a colour."""


def exact(colour: str) -> str:
    """A terminal that shows every colour as it is."""
    return colour


@lru_cache(maxsize=4096)
def of_256(colour: str) -> str:
    """A terminal with 256 colours."""
    from rich.color import Color, ColorSystem

    return Color.parse(colour).downgrade(ColorSystem.EIGHT_BIT).get_truecolor().hex


def legible(text: str, grounds: Sequence[str], seen: Seen = exact, ratio: float = AA) -> str:
    """``text``, moved towards white or black by as little as it takes to be read on all ``grounds``. Where no
    colour can be read on all of them, the pole that comes nearest."""
    behind = [seen(ground) for ground in grounds]
    pole = max((WHITE, BLACK), key=lambda end: min(contrast(end, ground) for ground in behind))
    for step in range(33):
        moved = mix(text, pole, step / 32)
        if all(contrast(seen(moved), ground) >= ratio for ground in behind):
            return moved
    return pole


def ground(wanted: str, base: str, seen: Seen = exact, ratio: float = AA) -> str:
    """``wanted`` as a background beside ``base``: moved towards ``base`` until one of white and black can be
    read on both, with room for colours."""
    pole = WHITE if is_dark(seen(base)) else BLACK
    reach = min(ratio * 1.25, contrast(pole, seen(base)))
    for step in range(17):
        moved = mix(wanted, base, step / 16)
        if contrast(pole, seen(moved)) >= reach:
            return moved
    return base


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
