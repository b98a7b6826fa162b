"""The process that walks and searches: patterns from a model or a repository run where they can be killed.

Reads one JSON request from stdin, writes the result to stdout. Exit status 2 and a message on stderr: the
request can't be fulfilled.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from swecli.core.workspace.glob import Glob
from swecli.core.workspace.grep import PatternError, compile_pattern, grep
from swecli.core.workspace.walk import walk

_MAX_ENTRIES = 200_000


def main() -> int:
    """Serve one request; returns the exit status."""
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    deadline = time.monotonic() + float(request["seconds"])
    job = {"list": _list, "search": _search}[request["job"]]
    try:
        job(request, lambda: time.monotonic() > deadline)
    except PatternError as error:
        sys.stderr.write(str(error))
        return 2
    sys.stdout.flush()
    return 0


def _list(request: dict[str, Any], stop: Callable[[], bool]) -> None:
    glob = Glob(request["glob"]) if request["glob"] else None
    found: list[tuple[str, bool, int]] = []
    complete = True
    for count, entry in enumerate(walk(*_place(request), max_depth=request["depth"], stop=stop)):
        if count >= _MAX_ENTRIES:
            complete = False
            break
        if glob is None or glob.matches(entry.path):
            found.append((entry.path, entry.is_dir, entry.depth))
    limit = int(request["limit"])
    shown = _shallow(found, limit)
    result = {"total": len(found), "complete": complete and not stop(), "entries": sorted(shown)}
    sys.stdout.write(json.dumps(result))


def _shallow(found: list[tuple[str, bool, int]], limit: int) -> list[tuple[str, bool, int]]:
    """Whole levels of the tree as far as they fit, then the first of the next level."""
    if len(found) <= limit:
        return found
    return sorted(found, key=lambda entry: (entry[2], entry[0]))[:limit]


def _search(request: dict[str, Any], stop: Callable[[], bool]) -> None:
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # type: ignore[union-attr]

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    grep(
        *_place(request),
        compile_pattern(request["pattern"], request["ignore_case"]),
        glob=request["glob"],
        context=int(request["context"]),
        write=write,
        stop=stop,
    )


def _place(request: dict[str, Any]) -> tuple[Path, tuple[Path, ...]]:
    return Path(request["start"]), tuple(Path(root) for root in request["roots"])
