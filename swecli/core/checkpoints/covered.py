"""What of a tree is looked at and stored, and what is not: decided by name and ignore rules."""

from __future__ import annotations

import os
from pathlib import Path

from swecli.core.permissions.paths import is_secret_in
from swecli.core.workspace.ignore import IgnoreRules

GENERATED = frozenset(
    (
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    )
)
"""Folders that tools fill and can fill again."""


class Covered:
    """The rules for one root. Verdicts on folders are kept, so that a scan costs no matching of patterns."""

    def __init__(self, root: str, own: tuple[str, ...] = ()) -> None:
        self.root = root
        self._own = frozenset(own)
        self._rules = IgnoreRules(Path(root))
        self._verdicts: dict[str, str] = {}

    def renew(self) -> None:
        """Read the ignore files again."""
        self._rules = IgnoreRules(Path(self.root))
        self._verdicts.clear()

    def why_not(self, folder: str, name: str, is_folder: bool) -> str:
        """Why the entry is not covered; empty where it is. ``folder`` is an absolute path below the root.

        Ignored files are covered, ignored folders are not: those hold what is built or downloaded.
        """
        if name == ".git":
            return "git's own data is never touched"
        if not is_folder:
            return ""
        if name in GENERATED:
            return "a folder of generated files"
        path = f"{folder}/{name}"
        if path in self._own:
            return "swecli's own data"
        verdict = self._verdicts.get(path)
        if verdict is None:
            relative = os.path.relpath(path, self.root)
            ignored = self._rules.entry_ignored(relative.replace(os.sep, "/"), True)
            verdict = self._verdicts[path] = "an ignored folder" if ignored else ""
        return verdict

    def is_secret(self, path: str) -> bool:
        """Whether the file may hold secrets, by its name: of such a file no copy is made without being asked."""
        return is_secret_in(path, (self.root,))
