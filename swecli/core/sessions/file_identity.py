"""What tells the file of an open database from later ones at its path."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from enum import Enum
from pathlib import Path

from msgspec import Struct

SIDE_FILES = ("", "-wal", "-shm")
"""Suffixes of a database's files: itself, its write-ahead log, and the index of that."""


class Change(Enum):
    """What happened to an opened file; the value completes "it was … while swecli used it"."""

    REMOVED = "removed"
    REPLACED = "replaced"
    OVERWRITTEN = "overwritten"
    """It has its place, but another content or none of its side files."""


_Place = tuple[int, int] | None
"""Device and inode of a file; None without one."""


class Identity(Struct, frozen=True):
    """What tells an opened file and its side files from later ones of their names."""

    main: _Place = None
    log: _Place = None
    index: _Place = None
    stamp: tuple[int, int] = (0, 0)
    """Time of the last change in nanoseconds, and size: other processes change them when they shorten the log."""
    torn: bool = False
    """Whether the log ends before the last page that its index has: somebody else has cut it."""

    def change(self, now: Identity) -> Change | None:
        """What happened since; None if these are the same files, whatever they contain."""
        if now.main is None:
            return Change.REMOVED
        if now.main != self.main:
            return Change.REPLACED
        if now.torn:
            return Change.OVERWRITTEN
        sides = ((self.log, now.log), (self.index, now.index))
        return Change.OVERWRITTEN if any(before not in (None, after) for before, after in sides) else None


def identity_of(path: Path, *, looks_into: bool = True) -> Identity:
    """``looks_into``: whether to find out if the log is torn, which takes a look into the index.

    Raises:
        OSError: it can't be looked at now.
    """
    states = [_state(f"{path}{suffix}") for suffix in SIDE_FILES]
    main, log, index = ((state.st_dev, state.st_ino) if state is not None else None for state in states)
    stamp = (states[0].st_mtime_ns, states[0].st_size) if states[0] is not None else (0, 0)
    torn = looks_into and log is not None and index is not None and _is_torn(f"{path}{SIDE_FILES[1]}", index)
    return Identity(main, log, index, stamp, torn)


def _is_torn(log: str, index: tuple[int, int]) -> bool:
    """Whether the log is shorter than its index says. Another process may write or shorten the log just now: then the
    index is another one after the look at the log than before."""
    before = _header(index)
    state = _state(log)
    return state is not None and state.st_size < _logged(before) and _header(index) == before


def _header(index: tuple[int, int]) -> bytes:
    """The header of the index; empty if this process does not have the index open, or can't list what it has open.

    It is read through SQLite's own descriptor. Opening it once more would release the locks on it: POSIX drops all of
    a process when it closes any descriptor of the file (https://sqlite.org/howtocorrupt.html, 2.2). The next process to
    open the database would take itself for the first one and cut the index, and this one end by SIGBUS.
    """
    try:
        descriptors = os.listdir("/dev/fd")
    except OSError:  # a container without /proc
        return b""
    for name in descriptors:
        with suppress(OSError):  # closed meanwhile, by another thread or the listing itself
            status = os.fstat(int(name))
            if (status.st_dev, status.st_ino) == index:
                return os.pread(int(name), 48, 0)
    return b""


def _logged(header: bytes) -> int:
    """Bytes that the write-ahead log has at least, by its index (https://sqlite.org/walformat.html, 2.1 and 2.2): a
    header of 32 bytes, and a header of 24 bytes with each page."""
    if len(header) < 20 or not header[12]:
        return 0  # not in use yet
    (size,), (pages,) = struct.unpack_from("=H", header, 14), struct.unpack_from("=I", header, 16)
    return 32 + pages * (24 + (size if size > 1 else 65_536)) if pages else 0


def _state(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
