"""What a removal would take: which paths, how many files, how many bytes."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from fnmatch import fnmatchcase

from swecli.core.permissions.facts import Extent, FileFacts

MAX_SHOWN = 20
ENOUGH = 5_000
"""Files and folders after which no further place is counted."""


def matching(path: str, facts: FileFacts) -> list[str]:
    """What a path with wildcards in its last name stands for; itself where nothing matches, as in the shell."""
    folder, _, name = path.rpartition("/")
    names = facts.names(folder or "/")
    if names is None or not name:
        return [path]
    hidden = name.startswith(".")
    found = [each for each in names if fnmatchcase(each, name) and (hidden or not each.startswith("."))]
    return [posixpath.join(folder or "/", each) for each in sorted(found)] or [path]


def extent_lines(paths: Iterable[str], facts: FileFacts, *, filtered: bool = False) -> tuple[str, ...]:
    """One line with count and bytes, then the paths, for a person to read. ``filtered``: only a part of it."""
    unique = list(dict.fromkeys(paths))
    there = [path for path in unique if facts.kind(path) != "missing"]
    total = Extent()
    for path in there:
        if total.files + total.folders >= ENOUGH:
            # More would only take time: a person knows by now that it is much.
            total += Extent(whole=False)
            break
        total += facts.extent(path)
    shown = unique[:MAX_SHOWN]
    more = [f"… and {len(unique) - len(shown):,} more"] if len(unique) > len(shown) else []
    summary = _summary(total, bool(there))
    return (f"a part of {summary}" if filtered and there else summary, *shown, *more)


def _summary(total: Extent, anything: bool) -> str:
    if not anything:
        return "Nothing of it is there now."
    least = "" if total.whole else "at least "
    files = f"{total.files:,} file{'' if total.files == 1 else 's'}"
    folders = f" in {total.folders:,} folder{'' if total.folders == 1 else 's'}" if total.folders else ""
    return f"{least}{files}{folders}, {total.size:,} bytes"
