"""What was typed before: history per workspace, its search, and unsent drafts."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from textual import events
from textual.content import Content
from textual.widgets import Static

from swecli.core.atomic_text import make_private
from swecli.safe_text import safe_line
from swecli.tui.keymap import Keymap

if TYPE_CHECKING:
    from swecli.core.llm.secrets import Masker


class Draft(NamedTuple):
    """A message that was not sent: what was typed, with placeholders, and the pastes that they stand for."""

    text: str = ""
    pastes: Mapping[int, str] = MappingProxyType({})


class Drafts:
    """Drafts of one workspace in ``folder``; None keeps nothing. Each paste is a file of its own, written once."""

    def __init__(self, folder: Path | None, pid: int | None = None) -> None:
        self._folder = folder
        self._pid = os.getpid() if pid is None else pid
        self._saved = ""
        self._pastes: dict[int, str] = {}
        """Those that are on disk."""

    def save(self, text: str, pastes: Mapping[int, str] | None = None) -> None:
        """Replace this process's draft; empty text removes it. A disk that refuses is no reason to stop
        typing, so errors are ignored here."""
        wanted = dict(pastes or {}) if text.strip() else {}
        same = wanted.keys() == self._pastes.keys() and all(wanted[key] is self._pastes[key] for key in wanted)
        if self._folder is None or (same and text == self._saved):
            return
        with contextlib.suppress(OSError):
            if text.strip():
                make_private(self._folder)
                for number, paste in wanted.items():
                    if self._pastes.get(number) is not paste:
                        self._write(f"draft-{self._pid}-{number}.paste", paste)
                self._write(f"draft-{self._pid}.txt", text)
            else:
                (self._folder / f"draft-{self._pid}.txt").unlink(missing_ok=True)
            for number in self._pastes.keys() - wanted.keys():
                (self._folder / f"draft-{self._pid}-{number}.paste").unlink(missing_ok=True)
            self._saved, self._pastes = text, wanted

    def _write(self, name: str, text: str) -> None:
        assert self._folder is not None
        temporary = self._folder / f"{name}.new"
        temporary.write_bytes(text.encode("utf-8", "replace"))
        temporary.chmod(0o600)
        temporary.replace(self._folder / name)

    def adopt(self) -> Draft:
        """The newest draft of a process that no longer runs, which is then removed; empty if there is none."""
        if self._folder is None:
            return Draft()
        from swecli.core.workspace.process_tree import is_running

        found: list[tuple[float, Path]] = []
        with contextlib.suppress(OSError):
            for path in self._folder.glob("draft-*.txt"):
                pid = path.stem.removeprefix("draft-")
                if pid.isdecimal() and int(pid) != self._pid and not is_running(int(pid)):
                    found.append((path.stat().st_mtime, path))
        text, pastes = "", dict[int, str]()
        for _, path in sorted(found)[-1:]:
            with contextlib.suppress(OSError):
                text = path.read_bytes().decode("utf-8", "replace")
                path.unlink()
            for paste in self._folder.glob(f"{path.stem}-*.paste"):
                number = paste.stem.removeprefix(f"{path.stem}-")
                with contextlib.suppress(OSError):
                    if number.isdecimal():
                        pastes[int(number)] = paste.read_bytes().decode("utf-8", "replace")
                    paste.unlink()
        return Draft(text, pastes)


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
        self._unsaved: list[str] = []
        self._place: int | None = None
        self._draft = ""

    @property
    def walking(self) -> bool:
        """Whether the place is an entry, and not the draft."""
        return self._place is not None

    @property
    def entries(self) -> list[str]:
        """All entries, oldest first; the file is read when they are first needed."""
        if self._entries is None:
            self._entries = _read(self._path)
        return self._entries

    @cached_property
    def _masker(self) -> Masker:
        """Makes stars of keys and of secrets of the environment, here as in stored sessions."""
        from swecli.core.llm.secrets import masker_of
        from swecli.core.workspace.process import secret_values

        return masker_of(secret_values(os.environ))

    def add(self, text: str) -> None:
        """Remember a message that was sent, until ``save`` in memory only, and go back to the newest place."""
        self.leave()
        if len(text) > MAX_ENTRY or not text.strip() or self.entries[-1:] == [text]:
            return
        self.entries.append(text)
        self._unsaved.append(text)

    def save(self) -> None:
        """Write what was added since."""
        added, self._unsaved = self._unsaved, []
        if self._path is None or not added:
            return
        try:
            _append(self._path, [self._masker.cover(text) for text in added])
        except OSError as error:
            self._complain(f"Cannot save the prompt history: {error.strerror or error}")
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


def _append(path: Path, texts: Sequence[str]) -> None:
    data = "".join(json.dumps(text) + "\n" for text in texts).encode()
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        make_private(path.parent)
        fd = os.open(path, flags, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


class HistorySearch(Static):
    """A line that shows the query. ``found`` is called with each message that is found."""

    DEFAULT_CSS = "HistorySearch { height: 1; color: $secondary; display: none; }"

    def __init__(self, history: History, found: Callable[[str], None], keymap: Keymap) -> None:
        super().__init__("", id="history-search", markup=False)
        self._messages = history
        self._found = found
        self._keymap = keymap
        self._query: str | None = None
        self._skip = 0
        self._before = ""

    @property
    def is_open(self) -> bool:
        return self._query is not None

    def start(self, before: str) -> None:
        """Begin; ``before`` is the text that Esc brings back."""
        self._before, self._query, self._skip = before, "", 0
        self._show("")

    def cancel(self) -> str:
        """Leave; the text from before."""
        self._query = None
        self._show("")
        return self._before

    def take_key(self, event: events.Key) -> bool:
        """Narrow, go on, or keep what is found; whether the key was for the search."""
        query = self._query or ""
        if self._keymap.action("prompt", event.key) == "search_history":
            self._skip += 1
            self._find()
            return True
        match self._keymap.action("list", event.key) or event.key:
            case "previous":
                self._skip += 1
            case "next":
                self._skip = max(0, self._skip - 1)
            case "backspace" | "ctrl+h":
                self._query, self._skip = query[:-1], 0
            case "enter" | "tab" | "right" | "left":
                self._query = None
                self._show("")
                return event.key != "left"
            case _ if event.is_printable and event.character:
                self._query, self._skip = query + event.character, 0
            case _:
                return False
        self._find()
        return True

    def _find(self) -> None:
        query = self._query or ""
        found = self._messages.search(query, self._skip) if query else None
        if found is None and self._skip:
            self._skip -= 1
            found = self._messages.search(query, self._skip) if query else None
        if found is not None:
            self._found(found)
        self._show("" if found is not None or not query else "no match")

    def _show(self, note: str) -> None:
        self.display = self._query is not None
        if self._query is not None:
            hint = note or f"{self._keymap.shown('search_history')} older · enter uses it · esc cancels"
            line = Content(f"search history: {safe_line(self._query)}▏  {hint}")
            self.update(line.truncate(max(1, self.app.size.width), ellipsis=True))
