"""Masking of keys in stored and displayed text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from swecli.lazy_pattern import lazy_pattern

MASK = "***"
SHORTEST = 6
"""Characters. Shorter values are too likely to be ordinary words."""
BEGINNING = 10
"""Characters of a secret's beginning that must not be shown either."""

_OPEN_BLOCK = lazy_pattern(r"-----BEGIN(?:(?!-----END [A-Z0-9 ]{1,40}-----)[\s\S]){0,20000}\Z")

_HARMLESS = frozenset(
    (
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "content-type",
        "content-length",
        "user-agent",
    )
)
"""Request headers written unmasked. Any other may contain a key."""


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Request headers with every value masked unless known to be harmless."""
    return {name: value if name.lower() in _HARMLESS else MASK for name, value in headers.items()}


def key_values(headers: Mapping[str, str]) -> frozenset[str]:
    """The values in request headers that may be keys, without the word ``Bearer``."""
    values = (value for name, value in headers.items() if name.lower() not in _HARMLESS)
    return frozenset(value.partition(" ")[2] or value for value in values)


class Masker:
    """Masks known secrets, and text that looks like a key."""

    def __init__(self, secrets: Iterable[str] = (), *, shapes: bool = True) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True)
        self._secrets = known
        self._known = re.compile("|".join(map(re.escape, known))) if known else None
        self._shapes = shapes
        self.longest = max(map(len, known), default=0)
        """Characters of the longest known secret."""

    def mask(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return _without_shapes(text, lambda secret: MASK) if self._shapes else text

    def mask_cut(self, text: str) -> str:
        """``mask`` for a text that was cut somewhere, perhaps within a secret: also masks beginnings of known ones."""
        text = self.mask(text)
        for secret in self._secrets:
            while len(secret) > BEGINNING and (at := text.find(secret[:BEGINNING])) >= 0:
                end = at + BEGINNING
                while end < len(text) and secret.startswith(text[at : end + 1]):
                    end += 1
                text = f"{text[:at]}{MASK}{text[end:]}"
        return text

    def cover(self, text: str) -> str:
        """The text with each character of a secret replaced by a star; the same object if it contains none."""
        covered = self._known.sub(lambda match: "*" * len(match[0]), text) if self._known is not None else text
        covered = _without_shapes(covered, lambda secret: "*" * len(secret)) if self._shapes else covered
        return covered if covered != text else text


def _without_shapes(text: str, instead: Callable[[str], str]) -> str:
    from swecli.core.llm.key_shapes import secret_spans

    pieces: list[str] = []
    at = 0
    for begin, end in secret_spans(text):
        pieces += (text[at:begin], instead(text[begin:end]))
        at = end
    return "".join((*pieces, text[at:])) if pieces else text


def is_unmistakable(secret: str) -> bool:
    """Whether a value is too long and odd to occur by chance, so that it may be masked in ordinary text: at least 8
    characters with digits among letters, 12 with two kinds of characters, or 24 of any kind."""
    digits, letters = any(map(str.isdigit, secret)), any(map(str.isalpha, secret))
    kinds = sum((digits, any(map(str.islower, secret)), any(map(str.isupper, secret)), not secret.isalnum()))
    return len(secret) >= 24 or (len(secret) >= 12 and kinds >= 2) or (len(secret) >= 8 and digits and letters)


def masker_of(secrets: Iterable[str]) -> Masker:
    """A masker for ordinary text, limited to unmistakable secrets."""
    return Masker(filter(is_unmistakable, secrets))


class StreamMasker:
    """A masker for text that arrives in pieces: a possible beginning of a secret waits for the next piece."""

    LONGEST_LINE = 4_000
    """Most characters of a line held back, beyond those of the longest known secret: a name in it may say that what
    follows is one."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""

    def feed(self, text: str) -> str:
        """The certain text: up to the last end of a line that is far enough from the end, or the last blank of a long
        line. Secrets contain no blanks."""
        self._held += text
        keep = max(self._masker.longest, 1)
        if len(self._held) <= keep:
            return ""
        cut = self._held.rfind("\n", 0, len(self._held) - keep) + 1
        if not cut and len(self._held) > keep + self.LONGEST_LINE:
            cut = self._held.rfind(" ", 0, len(self._held) - keep) + 1
        if cut and (block := _OPEN_BLOCK.search(self._held)) is not None:
            cut = min(cut, block.start())
            if not cut:
                return ""
        if cut:
            ready, self._held = self._masker.mask(self._held[:cut]), self._held[cut:]
        elif len(self._held) > keep + self.LONGEST_LINE:
            masked = self._masker.mask(self._held)
            ready, self._held = masked[:-keep], masked[-keep:]
        else:
            ready = ""
        return ready

    def end(self) -> str:
        pending, self._held = self._held, ""
        return self._masker.mask(pending)
