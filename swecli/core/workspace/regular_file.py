"""Opening files that may be anything: only regular files are read, and never through a link put there late."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NON_BLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
READ_FLAGS = os.O_RDONLY | _NO_FOLLOW | _NON_BLOCK | _BINARY | getattr(os, "O_CLOEXEC", 0)

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISLNK, "a symbolic link"),
)


class NotRegularError(OSError):
    """The path exists but is no regular file. ``kind`` says what it is ("a directory")."""

    def __init__(self, path: Path | str, kind: str) -> None:
        super().__init__(errno.EINVAL, f"is {kind}, not a regular file", str(path))
        self.kind = kind


class TooLargeError(OSError):
    """The file is larger than the caller reads. ``size`` is bytes."""

    def __init__(self, path: Path | str, size: int, limit: int) -> None:
        super().__init__(errno.EFBIG, f"is {size:,} bytes, more than {limit:,}", str(path))
        self.size = size


@dataclass(frozen=True, slots=True)
class FileState:
    """One file as it was at one moment. ``sha256`` is the hex digest of its bytes."""

    sha256: str
    dev: int
    ino: int
    size: int

    def __str__(self) -> str:
        return f"{self.sha256}:{self.dev}:{self.ino}"


def kind_of(mode: int) -> str | None:
    """What a ``st_mode`` that is no regular file is; None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    return next((name for test, name in _KINDS if test(mode)), "a special file")


def require_regular(path: Path | str, status: os.stat_result) -> None:
    """Raise ``NotRegularError`` unless ``status`` is that of a regular file."""
    kind = kind_of(status.st_mode)
    if kind is not None:
        raise NotRegularError(path, kind)


@contextmanager
def open_regular(path: Path) -> Generator[tuple[int, os.stat_result]]:
    """A file descriptor for reading, and the status of what it is open on. ``path`` must be resolved.

    Opening neither blocks on a pipe nor follows a link at the end of the path.

    Raises:
        NotRegularError: no regular file.
        OSError: it can't be opened.
    """
    require_regular(path, os.lstat(path))
    descriptor = os.open(path, READ_FLAGS)
    try:
        status = os.fstat(descriptor)
        require_regular(path, status)
        yield descriptor, status
    finally:
        os.close(descriptor)


def read_all(descriptor: int, size: int) -> bytes:
    """The rest of an open file; ``size`` is a hint."""
    with os.fdopen(os.dup(descriptor), "rb", buffering=0) as stream:
        pieces: list[bytes] = []
        while piece := stream.read(max(65_536, min(size, 1 << 24))):
            pieces.append(piece)
        return b"".join(pieces)


def read_bytes(path: Path, limit: int) -> tuple[bytes, FileState]:
    """The whole file and its state.

    Raises:
        NotRegularError: no regular file.
        TooLargeError: more than ``limit`` bytes.
        OSError: it can't be read.
    """
    with open_regular(path) as (descriptor, status):
        if status.st_size > limit:
            raise TooLargeError(path, status.st_size, limit)
        data = read_all(descriptor, status.st_size)
    if len(data) > limit:
        raise TooLargeError(path, len(data), limit)
    return data, FileState(sha256(data).hexdigest(), status.st_dev, status.st_ino, len(data))
