"""What a reader takes for one character: letters with their marks, syllables of jamo, joined pictures, flags."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Final

from swecli.lazy_pattern import lazy_pattern

JOINERS: Final = frozenset(("\u200c", "\u200d"))
"""Shape the letters beside them or join pictures; input methods send them as keys of their own."""
_LETTERS, _OTHERS = range(0x30000, 0x31000), range(0xF0000, 0xF1000)
"""Stand-ins: rare ideographs for what belongs to a word, private characters for all else."""

_LONGEST: Final = 64
"""Code points at the end of a text among which its last character is."""
_SHAPES: Final = lazy_pattern("[\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks that belong to the shape of a letter: voiced kana, and variants."""


@cache
def _clusters() -> Callable[[str], list[str]]:
    import regex  # 17 ms and 2 MB, which a text in ASCII need not pay

    return regex.compile(r"\X").findall


def graphemes(text: str) -> Sequence[str]:
    """The text's characters (extended grapheme clusters, Unicode annex 29); joined they are the text."""
    return text if text.isascii() else _clusters()(text)


def ends_in_mark(text: str) -> bool:
    """Whether the last code point is a mark, vowel or jamo that Backspace erases alone. Thai, Hindi, Arabic and Hangul
    have keys of their own for them, and who mistypes one keeps the letter that carries it."""
    last = "" if text[-1:].isascii() else graphemes(text[-_LONGEST:])[-1]
    if len(last) < 2 or unicodedata.category(last[0]) != "Lo":
        return False
    return unicodedata.category(last[-1]) in ("Mn", "Mc", "Lo") and not _SHAPES.match(last[-1])


def spans(text: str) -> list[tuple[int, int]]:
    """Spans of the characters that have several code points."""
    if text.isascii():
        return []
    characters = graphemes(text)
    ends = accumulate(map(len, characters))
    return [(end - len(character), end) for character, end in zip(characters, ends, strict=True) if len(character) > 1]


class StandIns:
    """One code point for each character that has several, so that commands that count code points treat it as one. The
    same character always has the same stand-in."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._stands: dict[str, str] = {}

    def encode(self, text: str) -> str:
        return text if text.isascii() else "".join(map(self._encoded, graphemes(text)))

    def decode(self, text: str) -> str:
        return text if text.isascii() else "".join(self._shown.get(char, char) for char in text)

    def _encoded(self, character: str) -> str:
        if len(character) == 1 and ord(character) not in _LETTERS and ord(character) not in _OTHERS:
            return character
        if character not in self._stands:
            free = _LETTERS if character[0].isalnum() else _OTHERS
            stand = chr(free[len(self._stands) % len(free)])
            self._stands.pop(self._shown.get(stand, ""), None)
            self._stands[character], self._shown[stand] = stand, character
        return self._stands[character]
