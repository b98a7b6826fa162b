"""The table of provider errors (``errors.toml``): what statuses, numbers and words of servers mean, and remedies."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from swecli.core.llm.types import ErrorKind

REQUEST: tuple[ErrorKind, ...] = ("auth", "not_found", "bad_request", "server")


class Cause(Struct, frozen=True):
    """A cause that servers name in words; the fields are described in the file."""

    patterns: tuple[str, ...]
    kind: ErrorKind | None = None
    instead: ErrorKind | None = None
    retry: bool = True
    moderated: bool = False
    remedy: str = ""
    of: tuple[ErrorKind, ...] = REQUEST


class Table(Struct, frozen=True):
    error: tuple[Cause, ...]
    remedies: dict[str, str]
    status: dict[int, ErrorKind]
    codes: dict[int, ErrorKind]


class ErrorTable:
    """The table with its patterns compiled; read at the first error."""

    def __init__(self, table: Table) -> None:
        self.by_status = table.status
        self.by_code = table.codes
        self.remedies = table.remedies
        """Remedy of a kind without a named cause, and of moderated requests."""
        overflow = [cause for cause in table.error if cause.kind == "context_overflow"]
        self.overflows = [re.compile(text, re.I | re.S) for cause in overflow for text in cause.patterns]
        """Patterns of requests that exceed the window, with the groups ``prompt`` and ``window`` (tokens)."""
        self._causes = [
            (cause, re.compile("|".join(cause.patterns), re.I)) for cause in table.error if cause not in overflow
        ]

    def kind(self, text: str) -> ErrorKind | None:
        """What the words of an error mean, if the status says no more."""
        return next((cause.kind for cause, pattern in self._causes if cause.kind and pattern.search(text)), None)

    def instead(self, text: str) -> ErrorKind | None:
        """The kind in place of a failure of the server."""
        return next((cause.instead for cause, pattern in self._causes if cause.instead and pattern.search(text)), None)

    def may_pass(self, text: str) -> bool:
        return all(cause.retry or not pattern.search(text) for cause, pattern in self._causes)

    def is_moderated(self, text: str) -> bool:
        return any(cause.moderated and pattern.search(text) for cause, pattern in self._causes)

    def is_overload(self, text: str) -> bool:
        return any(cause.kind == "overloaded" and pattern.search(text) for cause, pattern in self._causes)

    def remedy(self, kind: ErrorKind, message: str) -> str:
        """The remedy for the cause that a message names, else that of the kind; with placeholders."""
        named = (
            cause.remedy
            for cause, pattern in self._causes
            if cause.remedy and kind in cause.of and pattern.search(message)
        )
        return next(named, self.remedies.get(kind, ""))


@cache
def error_table() -> ErrorTable:
    return ErrorTable(msgspec.toml.decode(Path(__file__).with_name("errors.toml").read_bytes(), type=Table))
