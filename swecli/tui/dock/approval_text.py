"""What an approval panel says, as pure functions: the question, where and how much, why, and until when."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content

from swecli.core.protocol.events import GrantSpan, PermissionRequested
from swecli.core.protocol.grounds import grounds
from swecli.safe_text import safe_line, sanitise

_VERBS = {
    "run_command": "Run this command?",
    "edit_file": "Make this change?",
    "apply_patch": "Make these changes?",
    "write_file": "Write this file?",
    "read_file": "Read this file?",
    "list_files": "List these files?",
    "search": "Search here?",
}

SPANS: tuple[tuple[GrantSpan, str], ...] = (
    ("session", "for this session"),
    ("turn", "for this turn"),
    ("week", "here for 7 days"),
    ("project", "here until revoked"),
)

Hint = tuple[str, str, int]
"""A key, what it does, and how soon it is left out where there is no room: 0 is never."""


def title(request: PermissionRequested, place: tuple[int, int]) -> str:
    """The question; with several that wait, which of them it is."""
    question = _VERBS.get(request.tool, f"Allow {safe_line(request.tool)}?")
    target = f" {safe_line(request.title)}" if request.title and request.tool != "run_command" else ""
    return f"{question}{target}" + ("" if place[1] < 2 else f"  ({place[0]} of {place[1]})")


def facts(request: PermissionRequested) -> str:
    """Where it runs, what it makes, how large it is, on one line."""
    return " \u00b7 ".join(safe_line(fact) for fact in request.facts)


def warnings(request: PermissionRequested) -> str:
    """What has to be seen before any answer."""
    return "\n".join(safe_line(warning) for warning in request.warnings)


def about(request: PermissionRequested, width: int, room: int) -> str:
    """Why it asks and what that rests on, in at most ``room`` lines; a last line says how much was left out."""
    lines = [str(sanitise(line)) for line in grounds(request)]
    out: list[str] = []
    for number, line in enumerate(lines):
        last = number == len(lines) - 1
        if height("\n".join((*out, line)), width) > room - (not last):
            left = f"\u2026 {len(lines) - number} more of the reason (v shows it)"
            return "\n".join((*out, left) if height("\n".join((*out, left)), width) <= room else out)
        out.append(line)
    return "\n".join(out)


def rule(request: PermissionRequested, span: int) -> str:
    """What "always" would add, and how long it would hold; empty where it is not offered."""
    text = request.rule
    return "" if text is None else f"always = {safe_line(text)}, {SPANS[span][1]} (s: how long)"


def keys(hints: Sequence[Hint], width: int, *, narrow: bool, early: bool = False) -> Content:
    """The keys on one line, as many of them as have room; all of them pale while it is too early for them."""
    gap = "  " if narrow else "   "
    left = list(hints)
    while sum(cell_len(f"{key} {word}{gap}") for key, word, _ in left) - len(gap) > width:
        first = max(left, key=lambda hint: hint[2])
        if not first[2]:
            break
        left.remove(first)
    strong = "$foreground-muted" if early else "bold $accent"
    return Content.assemble(
        *(part for key, word, _ in left for part in ((key, strong), (f" {word}{gap}", "$foreground-muted")))
    )


def least_width(hints: Sequence[Hint]) -> int:
    """Cells that the keys take which are never left out."""
    return sum(cell_len(f"{key} {word}  ") for key, word, last in hints if not last) - 2


def height(text: str, width: int) -> int:
    """Lines that a text takes, a little generously."""
    return sum(1 + max(0, cell_len(line) - 1) // width for line in text.split("\n")) if text else 0
