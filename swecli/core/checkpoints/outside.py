"""Paths outside of the workspace that a command names, so that they can be watched, too."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from swecli.core.permissions.paths import inside

MOST = 32
"""Paths of one command that are watched."""
_WORD = re.compile(r"""(?:[^\s'"<>|&;()=]|"[^"]*"|'[^']*')+""")
_SYSTEM = ("/dev", "/proc", "/sys", "/bin", "/sbin", "/usr", "/lib", "/lib64")


def named_outside(command: str, cwd: str, roots: Sequence[str], home: str) -> tuple[list[str], list[str]]:
    """Files, links and names that are free outside of ``roots``, and folders there: both as absolute paths. A cheap
    reading of the command's words: what a program finds by itself is not among them."""
    files: dict[str, None] = {}
    folders: dict[str, None] = {}
    for match in _WORD.finditer(command[:20_000]):
        word = match.group().replace('"', "").replace("'", "")
        if word.startswith("~/"):
            word = home + word[1:]
        if "\0" in word or not (word.startswith(("/", "../")) or "/../" in word or word == ".."):
            continue
        path = os.path.normpath(os.path.join(cwd, word))
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if inside(path, roots) or inside(path, _SYSTEM) or path == os.sep:
            continue
        try:
            is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
        except OSError:
            is_folder = False
            if not os.path.isdir(os.path.dirname(path)):
                continue
        (folders if is_folder else files)[path] = None
    return list(files)[:MOST], list(folders)[:MOST]
