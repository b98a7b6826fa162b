"""Names of sessions: the default title, which is the first message, short and readable, without help of a model; and
the sessions that a user's text means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from swecli.core.protocol.events import ItemCompleted
from swecli.core.protocol.messages import TextPart
from swecli.lazy_pattern import lazy_pattern

TITLE_LENGTH = 64
"""Characters of the longest title."""
FIRST_LENGTH = 200
"""Characters of a first message kept beside the title."""
_MIN_SENTENCE = 12
"""Characters that a first sentence needs to stand alone."""
_MIN_REMAINING = 4
"""Characters that must remain without a courtesy."""
_MAX_READ = 4_000
"""Characters of a message that are examined."""
_COURTESIES = lazy_pattern(
    r"(?:(?:hi|hello|hey)(?:\s+there|(?!\s+there\b))|ok(?:ay)?|so|please|(?:can|could|would|will)\s+you|kindly|"
    r"i(?:\s+would|'d|’d)\s+like\s+(?:you\s+)?to|i\s+(?:want|need)\s+(?:you\s+)?to|let(?:'|’)?s|help\s+me(?:\s+to)?)"
    r"(?:\s*[,!.:]+\s*|\s+)",
    re.IGNORECASE,
)
_FENCE = lazy_pattern(r"^\s*(?:```|~~~).*?(?:^\s*(?:```|~~~)\s*$|\Z)", re.MULTILINE | re.DOTALL)
_MARKS = lazy_pattern(r"^\s*(?:#{1,6}\s+|[-*+]\s+|>\s*|\d{1,3}[.)]\s+)+")
_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+(?=[^\Wa-z_]|[\"'(])|(?<=[。！？])")
_EMPHASIS = lazy_pattern(r"(\*\*|`)(?=\S)(.+?)(?<=\S)\1")
"""Without underscores, which names contain."""


def title_of(message: ItemCompleted) -> str:
    """The session title from a user's first message, on one line."""
    return title_from(text_of(message))


def text_of(message: ItemCompleted) -> str:
    return " ".join(part.text for part in message.parts if isinstance(part, TextPart))


def title_from(text: str) -> str:
    """The first sentence, without courtesies and Markdown, cut between words; the whole text if nothing else
    remains."""
    text = text[:_MAX_READ]
    paragraphs = (_first_words(part) for part in re.split(r"\n\s*\n", _FENCE.sub("\n\n", text)))
    prose = _EMPHASIS.sub(r"\2", next(filter(None, paragraphs), ""))
    bare = prose
    while (courtesy := _COURTESIES.match(bare)) is not None and len(bare) - courtesy.end() >= _MIN_REMAINING:
        bare = bare[courtesy.end() :]
    asked = bare != prose
    for end in _SENTENCE.finditer(bare):
        if end.start() >= _MIN_SENTENCE:
            bare = bare[: end.start()]
            break
    bare = bare.rstrip(" .,;:!。！" + ("?？" if asked else ""))
    if not any(character.isalnum() for character in bare):
        return line_of(text)
    first = bare.split(maxsplit=1)[0]
    if first.isalpha() and first.islower():
        bare = bare[0].upper() + bare[1:]
    return line_of(bare)


def _first_words(paragraph: str) -> str:
    """A paragraph on one line; for a heading or a list the first entry."""
    lines = [line for line in paragraph.splitlines() if line.strip()]
    if any(_MARKS.match(line) for line in lines):
        lines = [bare for line in lines if (bare := _MARKS.sub("", line).strip())][:1]
    return " ".join(" ".join(lines).split())


def line_of(text: str, length: int = TITLE_LENGTH) -> str:
    """A text on one line, cut between words if longer than ``length`` characters."""
    line = " ".join(text[: length * 20].split())
    if len(line) > length:
        cut = line[: length - 1]
        blank = cut.rfind(" ")
        line = f"{cut[:blank] if blank > length * 2 // 3 else cut}…"
    return storable(line)


def storable(text: str) -> str:
    """``text`` in a form valid for UTF-8: file names may have lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def meant_by(text: str, sessions: Sequence[tuple[str, str]]) -> list[str]:
    """The ids that a user can mean, of sessions with an id and a name: those with that id or name, or else those whose
    id or name begins so. Case of names is ignored; an empty text means none."""
    text = storable(text).strip()
    if not text:
        return []
    wanted = text.casefold()
    named = [(identifier, called.casefold()) for identifier, called in sessions]
    return (
        [identifier for identifier, _ in named if identifier == text]
        or [identifier for identifier, called in named if called == wanted]
        or [identifier for identifier, _ in named if identifier.startswith(text)]
        or [identifier for identifier, called in named if called.startswith(wanted)]
    )
