"""Reading what servers answer about names: places, and outlines of files. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from swecli.core.language_servers.protocol import column_of, kind_name, path_of, sequence, start_of, table
from swecli.core.ports import CodePlace

MOST_PLACES: Final = 2_000


def place(value: Any) -> CodePlace | None:
    """A Location, or a LocationLink, which names what is meant by other words."""
    found = table(value)
    path = path_of(found.get("uri", found.get("targetUri")))
    start = start_of(found.get("range", found.get("targetSelectionRange", found.get("targetRange"))))
    if path is None:
        return None
    return CodePlace(path, start[0] + 1 if start is not None else 1)


def places(answer: Any) -> tuple[CodePlace, ...]:
    each = sequence(answer) if isinstance(answer, list) else [answer]
    found = (place(one) for one in each[:MOST_PLACES])
    return tuple(dict.fromkeys(one for one in found if one is not None))


def symbols(answer: Any, path: Path, lines: Sequence[str], depth: int) -> list[CodePlace]:
    """The outline as servers give it: nested, or as a list with the name of what each is in."""
    found: list[CodePlace] = []
    for one in sequence(answer)[:MOST_PLACES]:
        entry = table(one)
        start = start_of(entry.get("selectionRange", entry.get("range", table(entry.get("location")).get("range"))))
        if start is None or depth > 20:
            continue
        name = str(entry.get("name", ""))[:200]
        column = column_of(lines[start[0]], start[1]) if start[0] < len(lines) else 0
        within = "" if "selectionRange" in entry else str(entry.get("containerName") or "")
        found.append(CodePlace(path, start[0] + 1, name, kind_name(entry.get("kind")), depth, within, column))
        found += symbols(entry.get("children"), path, lines, depth + 1)
    return found[:MOST_PLACES]


def named(answer: Any) -> list[CodePlace]:
    """Symbols of a project with their places."""
    found: list[CodePlace] = []
    for one in sequence(answer)[:MOST_PLACES]:
        entry = table(one)
        where = place(entry.get("location"))
        if where is not None:
            name, within = str(entry.get("name", ""))[:200], str(entry.get("containerName") or "")
            found.append(CodePlace(where.path, where.line, name, kind_name(entry.get("kind")), 0, within))
    return found
