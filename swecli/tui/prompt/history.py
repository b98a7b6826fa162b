"""What was sent before: kept per workspace as JSON lines, walked with Up and Down, searched with Ctrl+R."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

KEEP = 1000
"""Entries that are read back."""

MAX_ENTRY = 200_000
"""Characters; longer messages are not remembered."""


class History:
    """Entries, oldest first, and the place in them.

    ``complain`` is called once with a sentence when the file can't be written; the entries of this session
    stay usable then.
    """

    def __init__(self, path: Path | None, complain: Callable[[str], None] = lambda text: None) -> None:
        self._path = path
        self._complain = complain
        self._entries: list[str] | None = None
        self._place: int | None = None
        self._draft = ""

    @property
    def entries(self) -> list[str]:
        """All entries, oldest first; the file is read when they are first needed."""
        if self._entries is None:
            self._entries = _read(self._path)
        return self._entries

    def add(self, text: str) -> None:
        """Remember a message that was sent, and go back to the newest place."""
        self.leave()
        if not text.strip() or len(text) > MAX_ENTRY or self.entries[-1:] == [text]:
            return
        self.entries.append(text)
        if self._path is not None:
            try:
                _append(self._path, text)
            except OSError as error:
                self._complain(f"The prompt history can't be saved: {error.strerror or error}")
                self._path = None

    def older(self, current: str) -> str | None:
        """The entry before the present place, or None at the oldest. ``current`` comes back with ``newer``."""
        if self._place is None:
            self._draft, self._place = current, len(self.entries)
        place = self._place - 1
        while place >= 0 and self.entries[place] == current:
            place -= 1
        if place < 0:
            if self._place == len(self.entries):
                self._place = None
            return None
        self._place = place
        return self.entries[place]

    def newer(self) -> str | None:
        """The entry after the present place, the draft after the newest, None where there is nothing newer."""
        if self._place is None:
            return None
        if self._place + 1 < len(self.entries):
            self._place += 1
            return self.entries[self._place]
        self._place = None
        return self._draft

    def leave(self) -> None:
        """Forget the place: the text was edited or sent."""
        self._place = None

    def search(self, query: str, skip: int = 0) -> str | None:
        """The newest entry that contains ``query`` regardless of case; ``skip`` passes over as many matches."""
        needle = query.casefold()
        seen: set[str] = set()
        for entry in reversed(self.entries):
            if entry in seen or needle not in entry.casefold():
                continue
            seen.add(entry)
            if len(seen) > skip:
                return entry
        return None


def _read(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    entries: list[str] = []
    for line in lines[-KEEP:]:
        try:
            text = json.loads(line)
        except ValueError:
            continue
        if isinstance(text, str) and entries[-1:] != [text]:
            entries.append(text)
    return entries


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = (json.dumps(_without_keys(text)) + "\n").encode()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def _without_keys(text: str) -> str:
    """The text as it is kept: keys and secrets of the environment are stars, here as in stored sessions."""
    from swecli.core.llm.secrets import Masker, is_unmistakable
    from swecli.core.workspace.environment import secret_values

    return Masker(filter(is_unmistakable, secret_values(os.environ))).cover(text)
