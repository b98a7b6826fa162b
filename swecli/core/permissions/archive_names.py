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
_MOST_DIRECTORY: Final = 2_000_000
"""Bytes of a ZIP file's directory."""
_END: Final = b"PK\x05\x06"
"""Begins the last record of a ZIP file."""


class _Bounded:
    """A stream that fails once the time is over, however much a few bytes unpack to."""

    def __init__(self, stream: IO[bytes], clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._end = clock() + SECONDS

    def read(self, size: int) -> bytes:
        if self._clock() > self._end:
            raise OSError("it takes too long to list")
        return self._stream.read(size)


def archive_names(path: str, clock: Callable[[], float] = time.monotonic) -> tuple[str, ...] | None:
    """Names of the regular files in a ZIP file, or a tar file, plain or compressed by gzip or bzip2. None for anything
    else, a damaged one included, and for one that is too large to list."""
    import tarfile
    import zipfile

    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return None
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # it may be a pipe by now
        with os.fdopen(descriptor, "rb") as file:
            return _of_zip(file, status.st_size) if file.read(2) == b"PK" else _of_tar(file, clock)
    except (OSError, EOFError, ValueError, struct.error, tarfile.TarError, zipfile.BadZipFile, NotImplementedError):
        return None


def _of_zip(file: IO[bytes], size: int) -> tuple[str, ...] | None:
    import zipfile

    file.seek(max(0, size - 66_000))
    ending = file.read()
    at = ending.rfind(_END)
    if at < 0:
        return None
    entries, directory = struct.unpack("<HI", ending[at + 10 : at + 16])
    if entries > MOST_NAMES or directory > _MOST_DIRECTORY:  # also says so of a ZIP64 file
        return None
    return tuple(one.filename for one in zipfile.ZipFile(file).infolist() if not one.is_dir())


def _of_tar(file: IO[bytes], clock: Callable[[], float]) -> tuple[str, ...] | None:
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
        while (member := archive.next()) is not None:
            if len(names) == MOST_NAMES:
                return None
            if member.isfile():
                names.append(member.name)
    return tuple(names)
