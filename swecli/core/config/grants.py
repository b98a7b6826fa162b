"""What the user allowed for longer than a session: kept outside of the workspace, in the data directory of exactly
this workspace, readable by the user alone."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from swecli.core.config.private_json import DamagedFile, one_writer, read_private, write_private

FILE_NAME = "grants.json"
WEEK = 7 * 24 * 3600
_VERSION = 1

Span = Literal["week", "project"]
"""Seven days, or as long as it is not revoked; in this workspace only."""


@dataclass(frozen=True, slots=True)
class Grant:
    """An allow rule. ``since`` and ``expires`` are Unix seconds; ``expires`` is None where it holds until revoked."""

    id: str
    rule: str
    since: float
    expires: float | None

    def holds(self, now: float) -> bool:
        """Whether it counts at this time. One from the future does not: the clock was wrong then or is now."""
        return self.since <= now + 60 and (self.expires is None or now < self.expires)

    @property
    def origin(self) -> str:
        """When it was given and how long it holds, for people."""
        until = "until revoked" if self.expires is None else f"until {_day(self.expires)}"
        return f"granted {_day(self.since)}, {until}"


class GrantStore:
    """The grants of one workspace in the file ``path``. What another process changes is seen at the next call."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._read: tuple[Grant, ...] = ()

    def active(self) -> tuple[Grant, ...]:
        """What holds now; empty where the file can't be read."""
        now = self._clock()
        try:
            return tuple(grant for grant in self._grants() if grant.holds(now))
        except (OSError, DamagedFile):
            return ()

    def add(self, rule: str, span: Span) -> Grant:
        """Remember a rule, in place of an equal one.

        Raises:
            OSError: it can't be written; nothing was changed.
        """
        now = self._clock()
        grant = Grant(secrets.token_hex(3), rule, now, now + WEEK if span == "week" else None)
        self._change(lambda grants: [*(each for each in grants if each.rule != rule), grant])
        return grant

    def revoke(self, name: str) -> tuple[Grant, ...]:
        """Forget every grant with this id or rule. Returns what was forgotten.

        Raises:
            OSError: it can't be written; nothing was changed.
        """
        gone: list[Grant] = []

        def without(grants: tuple[Grant, ...]) -> list[Grant]:
            gone.extend(each for each in grants if name in (each.id, each.rule))
            return [each for each in grants if each not in gone]

        if self._path.exists():
            self._change(without)
        return tuple(gone)

    def _change(self, change: Callable[[tuple[Grant, ...]], list[Grant]]) -> None:
        with one_writer(self._path):
            try:
                grants = self._grants()
            except DamagedFile:  # put aside, so that what is granted now is not lost with it
                grants = ()
            now = self._clock()
            kept = [asdict(grant) for grant in change(grants) if grant.expires is None or now < grant.expires]
            write_private(self._path, {"version": _VERSION, "grants": kept})

    def _grants(self) -> tuple[Grant, ...]:
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return ()
        seen = (state.st_mtime_ns, state.st_size, state.st_ino)
        if seen != self._seen:
            entries: list[Any] = read_private(self._path, "grants", list)
            self._read = tuple(grant for grant in map(_grant, entries) if grant is not None)
            self._seen = seen
        return self._read


def _grant(entry: object) -> Grant | None:
    if not isinstance(entry, dict):
        return None
    data = cast("dict[str, Any]", entry)
    name, rule, since, expires = (data.get(key) for key in ("id", "rule", "since", "expires"))
    if not isinstance(name, str) or not isinstance(rule, str) or not isinstance(since, int | float):
        return None
    if expires is not None and not isinstance(expires, int | float):
        return None
    return Grant(name, rule, since, expires)


def _day(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp).strftime("%Y-%m-%d")
