"""What the tolerant reader finds."""

from __future__ import annotations

from dataclasses import dataclass


class ScanError(ValueError):
    """The text ends inside of a quote or a bracket."""


@dataclass(frozen=True, slots=True)
class ScanWord:
    """``text`` holds what is known of it; ``known`` is False where parts are computed."""

    text: str
    known: bool = True
    glob: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A simple command. ``stdin`` is the text of a here-document or here-string, ``piped`` whether another command
    feeds it."""

    words: tuple[ScanWord, ...]
    writes: tuple[ScanWord, ...] = ()
    reads: tuple[ScanWord, ...] = ()
    truncates: bool = False
    stdin: str | None = None
    piped: bool = False
