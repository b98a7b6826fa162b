"""What a screen lists, and which of it typing leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "dim", "ok", "warning", "heading"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. ``name`` is what it stands for; one without a name is a heading and can't be chosen. ``words`` is what
    else is searched."""

    name: str
    cells: tuple[str, ...]
    tone: Tone = "plain"
    words: str = ""
    mark: str = " "
    tail: bool = False
    """Whether the end of the first cell tells entries apart: then its middle is left out where it is too long."""

    @property
    def heading(self) -> bool:
        """Whether it only stands above others."""
        return not self.name


def heading(text: str) -> Entry:
    """A line above others."""
    return Entry("", (text,), "heading")


def narrowed(entries: Sequence[Entry], query: str) -> list[Entry]:
    """The entries that hold every word of the query, in any case, with the headings that have some of them left. The
    words of a heading count for what is below it."""
    words = query.casefold().split()
    out: list[Entry] = []
    above: Entry | None = None
    for entry in entries:
        if entry.heading:
            above = entry
            continue
        under = above.cells[0] if above is not None else ""
        hay = " ".join((under, entry.name, *entry.cells, entry.words)).casefold()
        if all(word in hay for word in words):
            if above is not None and (not out or above not in out):
                out.append(above)
            out.append(entry)
    return out
