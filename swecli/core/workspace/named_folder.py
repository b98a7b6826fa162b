"""Folders that a person names."""

from __future__ import annotations

import os
from pathlib import Path


def is_folder(name: str, base: Path) -> bool:
    """Whether this names a folder that is there; what can be no name at all does not."""
    try:
        return _located(name, base).is_dir()
    except (OSError, ValueError):  # too long for a name, or with a null byte
        return False


def usable_folder(name: str, base: Path) -> Path:
    """The folder, with links followed.

    Raises:
        ValueError: it can't be used; the message says why.
    """
    path = _located(name, base)
    if not is_folder(name, base):
        try:
            there = path.exists()
        except (OSError, ValueError):
            there = False
        raise ValueError("not a directory" if there else "no such directory")
    if not os.access(path, os.R_OK | os.X_OK):
        raise ValueError("not readable")
    return path.resolve()


def _located(name: str, base: Path) -> Path:
    try:
        return base / Path(name).expanduser()
    except RuntimeError as error:  # ~name of an account that there is not
        raise ValueError(f"can't be used ({error})") from None
