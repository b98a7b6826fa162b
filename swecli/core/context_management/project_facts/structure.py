"""The layout of a project in a few lines."""

from __future__ import annotations

from collections import Counter

from swecli.core.context_management.project_facts.scan import Scan

MAX_LINES = 15


def structure(scan: Scan) -> tuple[str, ...]:
    """At most ``MAX_LINES`` lines: the directories that hold the most files, opened where they are big."""
    inside: Counter[str] = Counter()
    for path in scan.files:
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            inside["/".join(parts[:depth])] += 1
    shown = {path for path in inside if "/" not in path}
    if len(shown) > MAX_LINES - 1:
        shown = {path for path, _ in _biggest(inside, shown)[: MAX_LINES - 1]}
    # Open the biggest directories, each only if all of its children still fit.
    for path, count in _biggest(inside, set(inside)):
        children = {child for child in inside if child.rpartition("/")[0] == path}
        if path in shown and count >= 4 and children and len(shown) + len(children) <= MAX_LINES - 1:
            shown |= children
    lines = [f"`{path}/`: {_kinds(scan, path, inside[path])}" for path in sorted(shown)]
    at_root = scan.at_root()
    if at_root and lines:
        lines.append(f"`./`: {_count(len(at_root))}")
    elif at_root:
        lines = [
            ", ".join(f"`{path}`" for path in at_root[:12])
            + (f" and {len(at_root) - 12} more" if len(at_root) > 12 else "")
        ]
    return tuple(lines)


def _biggest(inside: Counter[str], paths: set[str]) -> list[tuple[str, int]]:
    return sorted(((path, inside[path]) for path in paths), key=lambda pair: (-pair[1], pair[0]))


def _kinds(scan: Scan, folder: str, count: int) -> str:
    ends = Counter(
        path.rpartition(".")[2]
        for path in scan.files
        if path.startswith(f"{folder}/") and "." in path.rpartition("/")[2]
    )
    usual = ", ".join(f".{end}" for end, _ in sorted(ends.items(), key=lambda pair: (-pair[1], pair[0]))[:2])
    return f"{_count(count)}{f' ({usual})' if usual else ''}"


def _count(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
