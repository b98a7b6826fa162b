"""How memory that was needed for a moment goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Final

LARGE: Final = 131_072
"""Bytes from which on a block of memory is one of its own, which goes back to the system as soon as it is freed."""
_THRESHOLD: Final = -3
"""glibc's M_MMAP_THRESHOLD, see mallopt(3)."""


def give_back_large_blocks() -> bool:
    """Let large blocks always be of their own. By itself glibc takes ever larger ones from the common heap once some
    were freed; requests and views of a long session are such blocks, and they leave it full of holes: a third of what
    an hour of work adds. Returns False where there is no glibc."""
    mallopt = _of_glibc("mallopt")
    return mallopt is not None and mallopt(_THRESHOLD, LARGE) == 1


def give_back_free_blocks() -> bool:
    """Give back what is free in the common heap: after a long session was read back half of it is. Takes about ten
    milliseconds. Returns False where there is no glibc."""
    trim = _of_glibc("malloc_trim")
    return trim is not None and trim(0) in (0, 1)


def _of_glibc(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
