"""Which files of a tree are left out: ``.gitignore``, ``.ignore`` and ``.swecliignore`` in every directory.

In one directory later names win over earlier ones; a deeper directory wins over those above it. ``.git`` is
always left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.core.workspace.regular_file import read_bytes

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".ignore", ".swecliignore")
_LIMIT = 262_144
_MAX_STARS = 3
"""Wildcards in one part of a pattern. Patterns become regular expressions, and a repository could choose one
that takes for ever; patterns beyond this are not applied."""


class IgnoreRules:
    """The rules of one tree. Ignore files are read when their directory is first asked for."""

    def __init__(self, root: Path, names: Iterable[str] = IGNORE_FILES) -> None:
        self.root = root
        self._names = tuple(names)
        self._specs: dict[str, GitIgnoreSpec | None] = {}

    def entry_ignored(self, path: str, is_dir: bool) -> bool:
        """Whether an entry is left out whose parent directories are not. ``path`` is relative, with slashes."""
        parts = path.split("/")
        if parts[-1] == ".git":
            return True
        shown = path + "/" if is_dir else path
        for depth in range(len(parts) - 1, -1, -1):
            spec = self._spec("/".join(parts[:depth]))
            if spec is None:
                continue
            verdict = spec.check_file(shown.split("/", depth)[depth]).include
            if verdict is not None:
                return verdict
        return False

    def ignored(self, path: str, is_dir: bool) -> bool:
        """Whether ``path`` is left out, by itself or because a directory above it is."""
        parts = path.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self.entry_ignored(folder, True) for folder in above) or self.entry_ignored(path, is_dir)

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = self._load(folder)
        return self._specs[folder]

    def _load(self, folder: str) -> GitIgnoreSpec | None:
        names = self._names
        if not folder and ".gitignore" in names:
            names = (".git/info/exclude", *names)
        lines: list[str] = []
        for name in names:
            try:
                data, _ = read_bytes(self.root / folder / name, _LIMIT)
            except OSError:
                continue
            lines += data.decode("utf-8-sig", "replace").splitlines()
        lines = [line for line in lines if line.strip() and not line.startswith("#") and _is_simple(line)]
        return _compiled(lines) if lines else None


def ignore_root(start: Path, roots: Iterable[Path]) -> Path:
    """Where the ignore files that count for ``start`` begin: its repository, else its workspace directory."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    return next((root for root in roots if start.is_relative_to(root)), start)


def _is_simple(line: str) -> bool:
    return all(part == "**" or part.count("*") <= _MAX_STARS for part in line.split("/")) and (
        line.count("**") <= _MAX_STARS
    )


def _compiled(lines: list[str]) -> GitIgnoreSpec:
    """The rules; a line that is no pattern is passed over, as git does."""
    from pathspec import GitIgnoreSpec  # not needed before the first file is looked at

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_valid(line)])


def _is_valid(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
