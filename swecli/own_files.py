"""Whether swecli's own files are still those that this process began with.

Most modules, prompts and tables are read when they are first needed. An update or a removal by a package manager
meanwhile makes that fail: no defect of swecli, and a restart helps.
"""

from __future__ import annotations

import os

REPLACED = "its installation was updated or removed while it ran"
"""The cause of a failure, behind "swecli" and a colon."""

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__init__.py")
"""Every package manager writes this file anew, whatever else it reuses."""


def _identity() -> tuple[int, int, int] | None:
    try:
        state = os.stat(_FILE)
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


_BEGAN = _identity()


def replaced() -> bool:
    """Whether the files of the package were replaced or removed since the process began."""
    return _identity() != _BEGAN
