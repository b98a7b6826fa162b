"""What a command is not covered for, in words for the user."""

from __future__ import annotations

import os
from collections.abc import Sequence

from swecli.core.checkpoints.outside import named_outside
from swecli.core.checkpoints.plan import Listed

_NAMED = 4
_USUAL = frozenset(
    ("a folder of generated files", "an ignored folder", "git's own data is never touched", "swecli's own data")
)
"""Reasons that go without saying."""


class Gaps:
    """What lies outside of the record, for commands that run in ``cwd``. All paths are absolute."""

    def __init__(self, cwd: str, roots: Sequence[str], home: str) -> None:
        self._cwd = cwd
        self._roots = tuple(roots)
        self._home = home
        self._told = False

    def watched(self, command: str) -> list[str]:
        """Paths outside of the workspace that a command names, and that can be watched. Waits for the disk."""
        return named_outside(command, self._cwd, self._roots, self._home)[0]

    def news(self, listed: Sequence[Listed]) -> str:
        """A sentence on what is not covered, unless it is only the usual or was told before; empty then."""
        unusual = [one for one in listed if one.why not in _USUAL]
        if self._told or not unusual:
            return ""
        self._told = True
        named = ", ".join(self._named(one) for one in unusual[:_NAMED])
        more = f" and {len(unusual) - _NAMED} more; /undo list names them" if len(unusual) > _NAMED else ""
        return f"If a command changes these, /undo can't take it back: {named}{more}."

    def named(self, command: str, listed: Sequence[Listed]) -> str:
        """What a command names that is not covered, as a sentence; empty where there is nothing."""
        words = {word.strip("'\"").rstrip("/").removeprefix("./") for word in command.split()}
        found = [self._named(one) for one in listed if self._shown(one.path) in words]
        _, folders = named_outside(command, self._cwd, self._roots, self._home)
        found += [f"{folder} (a folder outside of the workspace)" for folder in folders]
        return f"/undo would not cover: {', '.join(found[:_NAMED])}" if found else ""

    def _named(self, one: Listed) -> str:
        return f"{self._shown(one.path)} ({one.why})"

    def _shown(self, path: str) -> str:
        return os.path.relpath(path, self._cwd) if path.startswith(self._cwd + os.sep) else path
