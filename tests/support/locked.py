"""Whether a module holds the lock of a folder while it replaces a file there."""

from __future__ import annotations

import fcntl
import importlib
import os
from pathlib import Path

import pytest


def locked_while_writing(monkeypatch: pytest.MonkeyPatch, module: str) -> list[bool]:
    """One entry for each file that ``module`` writes from now on with ``write_whole``."""
    found: list[bool] = []
    write = importlib.import_module(module).write_whole

    def look(path: Path, text: str, *rest: int) -> None:
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append(False)
        except BlockingIOError:
            found.append(True)
        finally:
            os.close(handle)
        write(path, text, *rest)

    monkeypatch.setattr(f"{module}.write_whole", look)
    return found
