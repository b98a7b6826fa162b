"""The one way of text to the screen.

Textual writes control characters of a string to the terminal unchanged, and a string from outside (a model, a file, a
program, the name of a file) may contain any of them. All displayed text, with a screen or without one, passes through
``sanitise`` once; the result is a ``SafeText``, the only kind of text that strips and widgets accept.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from swecli.lazy_pattern import lazy_pattern

MAX_MARKS: Final = 8
"""Most combining marks after one character; scripts in use need fewer."""

TAB_SIZE: Final = 4


class SafeText(str):
    """Text safe for a terminal: every character is printable, or a newline."""

    __slots__ = ()


INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Characters without a glyph of their own: fillers, joiners, selectors, marks of direction, tags."""

_UNSAFE = lazy_pattern(f"[\x80-\x9f\ud800-\udfff{INVISIBLE}]")
_UNSAFE_ASCII = re.compile("[\x00-\x09\x0b-\x1f\x7f]")
_PICTURES = (*((chr(code), chr(0x2400 + code)) for code in range(0x20)), ("\x7f", "␡"))
_NOT_WORDS = lazy_pattern(rf"[^\w\s\x00-\x7f]{{{MAX_MARKS + 1},}}")
"""Candidates for a run of marks: marks are neither letters, digits, space nor ASCII."""

_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_TONE = "\U0001f3fb-\U0001f3ff"
_CURSIVE = "\u0620-\u065f\u066e-\u06d3\u06fa-\u06ff\u0710-\u074f\u0750-\u077f\u07ca-\u07ea\u0870-\u0887\u08a0-\u08c9"
"""Letters of scripts that are written joined: Arabic, Syriac, N'Ko."""
_VIRAMA = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u103a\u17d2"
"""Marks of Indic scripts that take a letter's vowel."""
_MEANT = lazy_pattern(
    rf"(?<=[{_EMOJI}{_TONE}])\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_EMOJI}{_TONE}]\ufe0f)\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_EMOJI}0-9#*])\ufe0f"
    rf"|(?<=[{_CURSIVE}])[\u200c\u200d](?=[{_CURSIVE}])"
    rf"|(?<=[{_VIRAMA}])[\u200c\u200d]|(?<=[\u0900-\u0dff])\u200d(?=[{_VIRAMA}])"
)
"""Joiners and selectors that belong to what is written: between two pictures, after one, and where the spelling of
Persian, Hindi and other languages has them (Unicode annex 31, section 2.3)."""


_SEQUENCE: Final = lazy_pattern(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)


def without_sequences(text: str) -> str:
    """The text without escape sequences, for places without colours. Not yet safe: ``sanitise`` it."""
    return _SEQUENCE.sub("", text) if "\x1b" in text else text


def _meant(text: str) -> set[int]:
    """Places of invisible characters that belong to what is written."""
    return {match.start() for match in _MEANT.finditer(text)}


def sanitise(text: str, *, keep_newlines: bool = True, tabs: int = TAB_SIZE) -> SafeText:
    """The text in displayable form: characters that would control the terminal, or hide, become visible stand-ins.

    Control characters become their pictures (ESC is ``␛``), other invisible characters, marks of direction, line
    separators and lone surrogates their number (``⟨U+202E⟩``). CRLF becomes a newline; newlines become ``␊`` without
    ``keep_newlines``. Tabs are filled up to the next multiple of ``tabs`` characters, or become ``␉`` when ``tabs`` is
    0. A run of more than ``MAX_MARKS`` combining marks is cut and the rest counted. Letters with their joiners, wide
    characters and joined emoji stay. Time is linear in the length of the text.
    """
    if isinstance(text, SafeText) and (keep_newlines or "\n" not in text):
        return text
    if text.isascii():
        if keep_newlines and not _UNSAFE_ASCII.search(text):
            return SafeText(text)
    else:
        text = _NOT_WORDS.sub(_bound_marks, text)
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if tabs and "\t" in text:
        text = text.expandtabs(tabs)
    ascii_only = text.isascii()
    for character, picture in [pair for pair in _PICTURES if pair[0] in text]:
        if character != "\n" or not keep_newlines:
            text = text.replace(character, picture)
    if ascii_only or not _UNSAFE.search(text):
        return SafeText(text)
    meant = _meant(text)

    def stand_in(match: re.Match[str]) -> str:
        return match[0] if match.start() in meant else f"⟨U+{ord(match[0]):04X}⟩"

    return SafeText(_UNSAFE.sub(stand_in, text))


def safe_line(text: str) -> SafeText:
    """``sanitise`` for a single line."""
    return sanitise(text, keep_newlines=False, tabs=1)


def printable_line(text: str) -> str:
    """The text on one line, without control characters or anything else that a terminal or model could interpret: for
    what is kept or goes to the model. A screen shows a stand-in for each, with ``safe_line``."""
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(text.split())


def visible_part(text: str) -> str:
    """The text without deceptive characters: line ends other than LF, control and other hidden characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    meant = _meant(text)
    return "".join(
        char for index, char in enumerate(text) if char in "\n\t" or index in meant or sanitise(char) == char
    )


def printable_name(name: str) -> str:
    """A file's name for a model, on one line: as it is, or in double quotes with escapes as in source code."""
    if name.isprintable():
        return name
    return '"' + "".join(character if character.isprintable() else ascii(character)[1:-1] for character in name) + '"'


def _bound_marks(match: re.Match[str]) -> str:
    characters: list[str] = []
    run = dropped = 0
    for character in match[0]:
        if unicodedata.category(character) in ("Mn", "Me", "Mc"):
            run += 1
            if run > MAX_MARKS:
                dropped += 1
                continue
        else:
            if dropped:
                characters.append(f"⟨{dropped} more marks⟩")
            run = dropped = 0
        characters.append(character)
    if dropped:
        characters.append(f"⟨{dropped} more marks⟩")
    return "".join(characters)
