"""A spill store for long values of a session that are out of sight: compressed, on disk if they are many."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import IO, Final, Generic, TypeVar, cast

from msgspec import Struct

IN_MEMORY: Final = 4_000_000
"""Compressed bytes to keep in memory before the disk is used."""

T = TypeVar("T")


class Span(Struct, frozen=True):
    """Range of bytes in the file: beginning and length."""

    start: int
    size: int


SpillHandle = bytes | Span
"""Reference to a stored value: its compressed bytes, or their place in the file."""


def weight_of(value: object) -> int:
    """Characters in a value: in texts, in collections of values, in objects with slots."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple | list):
        return sum(map(weight_of, cast("Sequence[object]", value)))
    if isinstance(value, Mapping):
        return sum(map(weight_of, cast("Mapping[object, object]", value).values()))
    return sum(weight_of(getattr(value, name)) for name in getattr(type(value), "__slots__", ()))


class SpillStore(Generic[T]):
    """Values out of sight: up to ``in_memory`` compressed bytes in memory, the rest on disk. The file has no name, is
    private and ends with the process; if it can't be written, values stay in memory, compressed.

    Each value is restored exactly, unlike from the session's database, which masks keys, and in any thread.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._limit = in_memory
        self._file: IO[bytes] | None = None
        self._end = 0
        self._lock = threading.Lock()
        self.in_memory = 0
        """Compressed bytes in memory."""

    def put(self, thing: T) -> SpillHandle:
        """Store a value that can be pickled."""
        import pickle  # on first use, not before the first frame
        import zlib

        packed = zlib.compress(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), 1)
        if self.in_memory + len(packed) > self._limit:
            try:
                return self._write(packed)
            except OSError:
                pass  # no space on disk: values stay in memory, and the session's store reports the problem
        self.in_memory += len(packed)
        return packed

    def get(self, handle: SpillHandle) -> T:
        """The stored value, equal to the original.

        Raises:
            OSError: the file can't be read.
        """
        import pickle
        import zlib

        packed = handle if isinstance(handle, bytes) else self._read(handle)
        return cast("T", pickle.loads(zlib.decompress(packed)))  # only what ``put`` has written

    def forget(self, handle: SpillHandle) -> None:
        if isinstance(handle, bytes):
            self.in_memory -= len(handle)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, packed: bytes) -> Span:
        with self._lock:
            if self._file is None:
                import tempfile

                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # lives as long as the store
            self._file.seek(self._end)
            written = self._file.write(packed)
            if written != len(packed):
                raise OSError("the disk accepted only part of it")
            span = Span(self._end, written)
            self._end += written
            return span

    def _read(self, span: Span) -> bytes:
        with self._lock:
            if self._file is None:
                raise OSError("the file no longer exists")
            self._file.seek(span.start)
            packed = self._file.read(span.size)
        if len(packed) != span.size:
            raise OSError("the file is shorter than it was")
        return packed
