"""The heap of this process: collected less while a session is read, and given back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final


@contextmanager
def uncollected() -> Generator[None]:
    """Pause garbage collection: reading a long session makes hundreds of thousands of objects, none of them garbage,
    and the search would take a third of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


LARGE: Final = 131_072
"""Bytes from which on a memory block is mapped separately and returned to the system when freed."""
_THRESHOLD: Final = -3
"""glibc's M_MMAP_THRESHOLD, see mallopt(3)."""


def give_back_large_blocks() -> bool:
    """Map large blocks separately. By default glibc takes ever larger ones from the common heap after some were freed;
    requests and views of a long session are such blocks, and fragment the heap: a third of its growth in an hour of
    work. Returns False without glibc."""
    mallopt = _of_glibc("mallopt")
    return mallopt is not None and mallopt(_THRESHOLD, LARGE) == 1


def give_back_free_blocks() -> bool:
    """Return free memory of the common heap to the system: half of the heap after reading a long session. Takes about
    ten milliseconds. Returns False without glibc."""
    trim = _of_glibc("malloc_trim")
    return trim is not None and trim(0) in (0, 1)


def _of_glibc(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
