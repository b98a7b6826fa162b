"""Classes of paths: inside the workspace, secret, swecli's own. Text only, no disk."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from swecli.core.secret_names import SecretNames
from swecli.lazy_pattern import lazy_pattern

_OWN_PROJECT = lazy_pattern(
    r"(?:^|/)\.swecli/(?:config(?:\.[^/]*)?\.toml[^/]*|hooks(?:/.*)?|grants[^/]*|[^/]+\.db[^/]*)$"
)


def inside(path: str, directories: Sequence[str]) -> str | None:
    """The first of ``directories`` that is ``path`` or contains it; all are resolved absolute paths."""
    for directory in directories:
        if path == directory or path.startswith(directory.rstrip("/") + "/"):
            return directory
    return None


def folders_above(path: str, roots: Sequence[str], home: str) -> Iterator[str]:
    """A resolved path and the folders around it, where settings for it may lie: also above the workspace, which may be
    a part of what a stranger made, but not the home directory, unless it is in the workspace."""
    folder = path
    while folder != home or inside(home, roots) is not None:
        yield folder
        if folder == posixpath.dirname(folder):
            return
        folder = posixpath.dirname(folder)


_PROCESS = lazy_pattern(r"/+proc/[^/]+/(?:environ|mem|maps|cmdline|fd(?:/|$)|root(?:/|$)|cwd(?:/|$))")


def is_secret(path: str, names: SecretNames) -> bool:
    """Whether the name indicates keys, passwords or a private history."""
    return names.matches(path) or _PROCESS.match(path) is not None


def is_secret_in(path: str, roots: Sequence[str], names: SecretNames) -> bool:
    """``is_secret`` for the part below the workspace, whatever the workspace itself is called."""
    root = inside(path, roots)
    return is_secret(path if root is None else path[len(root.rstrip("/")) :], names)


def is_own(path: str, own_dirs: Sequence[str]) -> bool:
    """Whether the path is swecli's own configuration, hook, grant or data, in the user's directories or a project's
    ``.swecli``. Memory, notes and playbook are ordinary project files."""
    return inside(path, own_dirs) is not None or _OWN_PROJECT.search(path.casefold()) is not None


def within_text(path: str, cwd: str, home: str = "") -> str:
    """The absolute normal form of ``path`` from its text alone: ``~`` and ``..`` are resolved, links are not."""
    if home and (path == "~" or path.startswith("~/")):
        path = home + path[1:]
    return posixpath.normpath(path if path.startswith("/") else posixpath.join(cwd, path))
