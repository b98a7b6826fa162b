"""Large pastes: the editor shows a placeholder, the message carries the text."""

from __future__ import annotations

import re
import unicodedata

FOLD_LINES = 8
FOLD_CHARACTERS = 1000
"""A paste of more lines or characters than these is folded."""

_PLACEHOLDER = re.compile(r"\[Pasted text #(\d+): [^\]\n]*\]")


class Pastes:
    """The folded pastes of the present draft."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._count = 0

    def fold(self, text: str) -> str:
        """What to put into the editor for pasted ``text``: itself, or a placeholder when it is large or has
        characters that would disturb the screen."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) <= FOLD_CHARACTERS and text.count("\n") < FOLD_LINES and not _hidden(text):
            return text
        self._count += 1
        self._texts[self._count] = text
        lines = text.count("\n") + (not text.endswith("\n"))
        return f"[Pasted text #{self._count}: {lines} {'line' if lines == 1 else 'lines'}, {_size(len(text))}]"

    def expand(self, text: str) -> str:
        """The text with every placeholder of this draft replaced by what was pasted."""
        if not self._texts:
            return text
        return _PLACEHOLDER.sub(lambda match: self._texts.get(int(match.group(1)), match.group()), text)

    def placeholder_before(self, text: str) -> str | None:
        """The placeholder that ``text`` ends with, so that one backspace removes it whole."""
        for match in _PLACEHOLDER.finditer(text):
            if match.end() == len(text) and int(match.group(1)) in self._texts:
                return match.group()
        return None

    def clear(self) -> None:
        """The draft was sent; numbering starts again."""
        self._texts.clear()
        self._count = 0


def _hidden(text: str) -> bool:
    return any(unicodedata.category(char) in ("Cc", "Cf", "Cs") and char not in "\n\t\u200d" for char in text)


def _size(characters: int) -> str:
    if characters < 1000:
        return f"{characters} characters"
    return f"{characters / 1000:.0f}K" if characters < 1_000_000 else f"{characters / 1_000_000:.1f}M"
