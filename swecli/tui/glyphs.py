"""Glyphs of the interface, and their ASCII substitutes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_PLAIN: Final = {
    ">": "›▶▸»→",
    "<": "⟲↺«←",
    "^": "↑",
    "v": "↓⇣",
    "*": "✻•●✦",
    "~": "✎≈",
    "/": "⌕",
    "x": "✗☑×",
    "+": "✓┌┐└┘├┤┬┴┼╭╮╰╯",
    "o": "◇☐○",
    "=": "▤━═",
    "!": "■⊘",
    "#": "▣█▉▊▋▌▄▅▆▇",
    "-": "▎▍─–—⊟",
    "|": "│┃║⠋⠴",
    "[": "▕",
    "]": "▏",
    " ": "▁▂▃",
    ".": "…·⋯",
    "'": "‘’",
    '"': "“”",
}
_TABLE: Final = str.maketrans({sign: plain for plain, signs in _PLAIN.items() for sign in signs}) | str.maketrans(
    "⠙⠹⠸⠼⠦⠧⠇⠏", "/-\\|/-\\|"
)
"""Maps each one-cell glyph to one character, so that the layout does not change."""


def plain(text: str) -> str:
    """The text with every glyph of the interface replaced by an ASCII character."""
    return text if text.isascii() else text.translate(_TABLE)


class PlainGlyphs(LineFilter):
    """Draws the whole screen in ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(plain(text), style, control) for text, style, control in segments]


def needs_plain(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to lack the glyphs: a text console, a hardware terminal, or a non-Unicode
    locale."""
    term = environ.get("TERM", "").lower()
    if term in ("linux", "dumb", "ansi", "cons25") or term.startswith("vt"):
        return True
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environ.get(name))), "")
    charset = locale.partition(".")[2].partition("@")[0]
    return bool(charset) and charset.lower().replace("-", "") != "utf8"
