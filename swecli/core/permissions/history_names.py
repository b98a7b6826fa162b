"""Names that files ever had in a repository: git is asked for all of them once, and later only for what is new.

Where none of them is secret and no rule covers one, no command can show what left the tree, whatever revisions it
names; the decision then needs no git of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence

from msgspec import Struct

from swecli.core.git import refs_state, repository_of

WHOLE_HISTORY = (
    *(
        "log",
        "--all",
        "--reflog",
        "--full-history",
        "--format=",
        "--no-show-signature",
        "--no-renames",
        "--no-relative",
    ),
    *("-c", "--no-ext-diff", "--no-textconv", "--name-only", "-z"),
)
"""All that branches, tags, stashes and reflogs lead to, with what only a merge has added."""
_MOST_NAMES = 100_000
_MOST_TIPS = 100
"""Hashes that git is given to leave out what is known."""

Ask = Callable[[Sequence[str]], "bytes | None"]
"""Output of git for these words; None if it fails or takes too long."""


class _Known(Struct, frozen=True):
    """``state`` is that of the references; ``names`` is None if git could not list them. ``tips`` are the commits up to
    which they are known."""

    state: tuple[object, ...]
    names: frozenset[str] | None
    tips: tuple[str, ...] = ()


class HistoryNames:
    """Used by several threads: one asks git, the others wait for it or do without."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._judged: dict[Hashable, tuple[frozenset[str], tuple[str, ...]]] = {}
        self._asking = threading.Lock()

    def known(self, cwd: str) -> frozenset[str] | None:
        """The names relative to the work tree around a folder; None unless they are known for its present state."""
        entry = self._known.get(repository_of(cwd) or cwd)
        return entry.names if entry is not None and entry.state == refs_state(cwd) else None

    def learn(self, cwd: str, ask: Ask, *, patience: float, again: bool = False) -> frozenset[str] | None:
        """The names, after asking git for those that are not known; ``again`` also where it did not say in time.
        ``patience``: seconds to wait for a thread that is asking already."""
        if not self._asking.acquire(timeout=patience):
            return None
        try:
            top, state = repository_of(cwd) or cwd, refs_state(cwd)
            before = self._known.get(top)
            if before is None or before.state != state or (again and before.names is None):
                self._known[top] = self._asked(state, before, ask)
            return self._known[top].names
        finally:
            self._asking.release()

    @staticmethod
    def _asked(state: tuple[object, ...], before: _Known | None, ask: Ask) -> _Known:
        listing = ask(("rev-parse", "--all"))
        if listing is None:
            return _Known(state, None)
        tips = tuple(dict.fromkeys(listing.decode("ascii", "replace").split()))
        tips = tips if len(tips) <= _MOST_TIPS else ()
        names = before.names if before is not None and before.tips else None
        if before is not None and names is not None:
            more = ask((*WHOLE_HISTORY, "--not", *before.tips))
            if more is not None:
                return _Known(state, _bounded(names | _listed(more)), tips)
        output = ask(WHOLE_HISTORY)
        return _Known(state, None if output is None else _bounded(_listed(output)), tips)

    def kept_back(self, cwd: str, about: Hashable, is_kept_back: Callable[[str], bool]) -> tuple[str, ...] | None:
        """The absolute paths for which ``is_kept_back`` holds, whose answers depend on ``about``; None if the names are
        not known."""
        names = self.known(cwd)
        if names is None:
            return None
        top = repository_of(cwd) or cwd
        judged = self._judged.get((top, about))
        if judged is None or judged[0] is not names:
            paths = (os.path.join(top, name) for name in names)
            judged = self._judged[(top, about)] = (names, tuple(path for path in paths if is_kept_back(path)))
        return judged[1]


def _listed(output: bytes) -> frozenset[str]:
    return frozenset(os.fsdecode(name).lstrip("\n") for name in set(output.split(b"\0")) if name.strip(b"\n"))


def _bounded(names: frozenset[str]) -> frozenset[str] | None:
    return names if len(names) <= _MOST_NAMES else None
