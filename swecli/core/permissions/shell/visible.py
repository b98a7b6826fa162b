"""Characters that a person can't see or tell apart."""

from __future__ import annotations

import unicodedata

from swecli.core.permissions.shell.syntax import UnprovenError

_HIDING_CATEGORIES = frozenset(("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs", "Mn", "Me"))
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


_SHELL_LOOKALIKES = frozenset(";&|<>$`\\")


def hidden_character(text: str) -> str | None:
    """The first character that a person can't see or tell apart, as U+XXXX; newline and tab are fine."""
    if text.isascii() and text.isprintable():
        return None
    for char in text:
        if char in "\n\t" or " " <= char <= "~":
            continue
        if unicodedata.category(char) in _HIDING_CATEGORIES or char in _BLANK_LETTERS:
            return f"U+{ord(char):04X}"
        if unicodedata.normalize("NFKC", char) in _SHELL_LOOKALIKES:
            return f"U+{ord(char):04X}"
    return None


def check_visible(text: str) -> None:
    """Refuse characters that a person can't see or tell apart.

    Raises:
        UnprovenError: there is one.
    """
    hidden = hidden_character(text)
    if hidden is not None:
        raise UnprovenError(f"it contains the hidden or look-alike character {hidden}")
