"""What a reader takes for one character: letters with their marks, syllables of jamo, joined pictures, flags."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import accumulate

JOINER = "\u200d"
"""Between pictures that make one; input methods send it as a key of its own."""
_MARKS = frozenset(("Mn", "Me", "Mc"))
_LETTERS, _OTHERS = range(0x30000, 0x31000), range(0xF0000, 0xF1000)
"""Stand-ins: rare ideographs for what belongs to a word, private characters for all else."""


def graphemes(text: str) -> Sequence[str]:
    """The text's characters; joined they are the text."""
    if text.isascii():
        return text
    out: list[str] = []
    for char in text:
        if out and _joins(out[-1], char):
            out[-1] += char
        else:
            out.append(char)
    return out


def _joins(before: str, char: str) -> bool:
    if char.isascii() or before[0] < " ":
        return False
    if unicodedata.category(char) in _MARKS or char == JOINER or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    if before[-1] == JOINER:
        return len(before) > 1
    if "\u1160" <= char <= "\u11ff":
        return "\u1100" <= before[-1] <= "\u11ff" or "\uac00" <= before[-1] <= "\ud7a3"
    return "\U0001f1e6" <= char <= "\U0001f1ff" and len(before) == 1 and "\U0001f1e6" <= before <= "\U0001f1ff"


def spans(text: str) -> list[tuple[int, int]]:
    """Spans of the characters that have several code points."""
    if text.isascii():
        return []
    ends = accumulate(map(len, graphemes(text)))
    starts = accumulate(map(len, graphemes(text)), initial=0)
    return [(start, end) for start, end in zip(starts, ends, strict=False) if end - start > 1]


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
