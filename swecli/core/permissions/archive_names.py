"""The names of the files in an archive, read within bounds: the archive may be hostile."""

from __future__ import annotations

import os
import stat
import struct
import time
from collections.abc import Callable
from typing import IO, Final, cast

MOST_NAMES: Final = 5_000
"""Members above which an archive is not listed."""
SECONDS: Final = 0.5
"""Longest time for reading it."""
_MOST_BYTES: Final = 100_000_000
"""Bytes of an archive that is listed."""
_MOST_AT_ONCE: Final = 2_000_000
"""Bytes read at once, such as a ZIP file's directory."""


class _Bounded:
    """A stream that fails once the time is over, however much a few bytes unpack to, and when too much is read at
    once."""

    def __init__(self, stream: IO[bytes], clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._end = clock() + SECONDS
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int = -1) -> bytes:
        if self._clock() > self._end:
            raise OSError("it takes too long to list")
        data = self._stream.read(_MOST_AT_ONCE + 1 if size < 0 else min(size, _MOST_AT_ONCE + 1))
        if len(data) > _MOST_AT_ONCE:
            raise OSError("it is too large to list")
        return data


def archive_names(path: str, clock: Callable[[], float] = time.monotonic) -> tuple[str, ...] | None:
    """Names of what is no folder in a ZIP file, or a tar file, plain or compressed by gzip or bzip2: a link replaces a
    file, too. None for anything else, a damaged one included, and for one that is too large to list."""
    import tarfile
    import zipfile

    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return None
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # it may be a pipe by now
        with os.fdopen(descriptor, "rb") as file:
            names = _of_zip(file, clock) if file.read(2) == b"PK" else _of_tar(file, clock)
    except (OSError, EOFError, ValueError, struct.error, tarfile.TarError, zipfile.BadZipFile, NotImplementedError):
        return None
    return tuple(names) if len(names) <= MOST_NAMES else None


def _of_zip(file: IO[bytes], clock: Callable[[], float]) -> list[str]:
    import zipfile

    archive = zipfile.ZipFile(cast("IO[bytes]", _Bounded(file, clock)))
    return [info.filename for info in archive.infolist() if not info.is_dir()]


def _of_tar(file: IO[bytes], clock: Callable[[], float]) -> list[str]:
    """At most one name more than ``MOST_NAMES``."""
    import bz2
    import gzip
    import tarfile

    file.seek(0)
    start = file.read(3)
    file.seek(0)
    stream = file
    if start[:2] == b"\x1f\x8b":
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    elif start == b"BZh":
        stream = cast("IO[bytes]", bz2.BZ2File(file))
    names: list[str] = []
    bounded = cast("IO[bytes]", _Bounded(stream, clock))
    with tarfile.open(fileobj=bounded, mode="r|") as archive:
        while len(names) <= MOST_NAMES and (member := archive.next()) is not None:
            if not member.isdir():
                names.append(member.name)
    return names
