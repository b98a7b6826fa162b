"""Whether a process runs, by its id alone."""

from __future__ import annotations

import os


def is_running(pid: int) -> bool:
    """Whether some process has this id; in doubt it has. Ids are reused, so it may be another one by now."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
