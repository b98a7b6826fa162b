"""Trees of files for tests: what is in them, to the byte, the bit and the link."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Every entry below ``root``: kind, mode, content or target, and which names are one file."""
    found: dict[str, tuple[object, ...]] = {}
    names: dict[tuple[int, int], list[str]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder) / name
            status = path.lstat()
            key = str(path.relative_to(root))
            mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("folder", mode)
            elif stat.S_ISREG(status.st_mode):
                found[key] = ("file", mode, path.read_bytes())
                names.setdefault((status.st_dev, status.st_ino), []).append(key)
            else:
                found[key] = ("other", stat.S_IFMT(status.st_mode))
    for same in names.values():
        if len(same) > 1:
            for key in same:
                found[key] = (*found[key], tuple(sorted(same)))
    return found
