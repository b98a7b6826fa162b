"""Listing a directory tree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swecli.core.workspace.walk import Entry
from swecli.core.workspace.work_process import run_worker

_SECONDS = 10.0
_BYTES = 8_000_000


class ListingError(Exception):
    """The tree can't be listed."""


@dataclass(frozen=True, slots=True)
class Listing:
    """``entries`` sorted by path, relative to the start; ``total`` may be more than are listed. ``complete`` is
    False when the walk was cut short, so that there may be more than ``total``."""

    entries: tuple[Entry, ...]
    total: int
    complete: bool = True


async def list_tree(
    start: Path,
    roots: tuple[Path, ...],
    *,
    environment: Mapping[str, str],
    glob: str | None = None,
    depth: int | None = None,
    limit: int = 300,
) -> Listing:
    """Entries below ``start`` that are not ignored, ``depth`` levels deep, at most ``limit``: whole levels first.

    Raises:
        ListingError: it took too long.
    """
    request: dict[str, object] = {
        "job": "list",
        "start": str(start),
        "roots": [str(root) for root in roots],
        "glob": glob,
        "depth": depth,
        "limit": limit,
    }
    done = await run_worker(request, environment=environment, seconds=_SECONDS, limit=_BYTES)
    if done.status != 0:
        reason = "it took too long" if done.timed_out else done.errors.decode("utf-8", "replace")[-400:].strip()
        raise ListingError(f"{start} could not be listed: {reason}")
    result = json.loads(done.output)
    entries = tuple(Entry(path, is_dir, level) for path, is_dir, level in result["entries"])
    return Listing(entries, int(result["total"]), bool(result["complete"]))
