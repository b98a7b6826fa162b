"""Markdown that is still being written: what can no longer change is drawn once, only the rest is drawn anew."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from rich.style import Style

from swecli.safe_text import SafeText, sanitise
from swecli.tui.transcript.markdown import Drawer, Unit, prepare, units
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import Row, blank

LARGE: Final = 8_000
"""Characters of unfinished text beyond which it is drawn anew only after it has grown by ``1 / SLOW``."""
SLOW: Final = 50
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)\n")


@dataclass(slots=True)
class _Fence:
    """A code block that is open at the top level."""

    indent: int
    marker: str
    language: str
    first_row: int
    lines: list[SafeText] = field(default_factory=lambda: [])

    def closes(self, line: str) -> bool:
        bare = line.rstrip(" \t")
        inner = bare.lstrip(" ")
        return len(bare) - len(inner) <= 3 and len(inner) >= len(self.marker) and set(inner) == {self.marker[0]}

    def content(self, line: str) -> SafeText:
        column = place = 0
        while column < self.indent and line[place : place + 1] in (" ", "\t"):
            column += 1 if line[place] == " " else 4 - column % 4
            place += 1
        return sanitise(" " * (column - self.indent) + line[place:])


class MarkdownStream:
    """Rows of a markdown text that arrives in pieces. After ``finish`` they are those of the whole text."""

    def __init__(self, width: int, palette: Palette, base: Style | None = None) -> None:
        self.rows: list[Row] = []
        self.length = 0
        """Characters taken in so far."""
        self._drawer = Drawer(width, palette, base or palette.text)
        self._tail = ""
        self._held = ""
        self._frozen = 0
        """Rows that no longer change."""
        self._list: tuple[str, int] | None = None
        """Kind of the list that the tail goes on with, and the number of its next item."""
        self._fence: _Fence | None = None
        self._drawn = 0
        """Length of the tail when it was drawn last."""
        self._changed = 0

    def feed(self, text: str) -> int:
        """Take in a piece. Returns the number of the first row that may have changed."""
        self.length += len(text)
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        text = prepare(text[: len(text) - len(self._held)])
        self._tail += text
        frozen, self._changed = self._frozen, len(self.rows)
        if "\n" in text:
            self._freeze()
        grown = len(self._tail) - self._drawn
        if self._frozen == frozen and len(self._tail) > LARGE and 0 <= grown < len(self._tail) // SLOW:
            return self._changed
        self._draw_tail()
        return self._changed

    def finish(self) -> None:
        """The text is complete."""
        self._tail += prepare(self._held)
        self._held = ""
        self._freeze()
        fence = self._fence
        if fence is None:
            self._draw_tail()
            return
        if self._tail.strip(" \t") and not fence.closes(self._tail):
            fence.lines.append(fence.content(self._tail))
        self._tail = ""
        self._close_fence(fence)

    def _freeze(self) -> None:
        while True:
            if self._fence is not None and not self._take_code(self._fence):
                return
            complete = self._tail[: self._tail.rfind("\n") + 1]
            if not complete or complete.isspace() or not self._freeze_blocks(complete):
                return

    def _freeze_blocks(self, source: str) -> bool:
        """Draw for good what is followed by another block. True where a code block has been opened."""
        found = units(source)
        if not found:
            return False
        for unit in found[:-1]:
            self._freeze_unit(unit, source)
        last = found[-1]
        lines = source.split("\n")
        opening = _FENCE.match(lines[last.start] + "\n") if last.kind == "fence" else None
        if opening is not None:
            self._tail = _from_line(self._tail, last.start + 1)
            self._truncate(self._frozen)
            if self._frozen:
                self.rows.append(blank())
            self._list = None
            info = opening[2].split()
            indent = len(opening[0]) - len(opening[0].lstrip(" "))
            self._fence = _Fence(indent, opening[1], info[0] if info else "", len(self.rows))
            self._frozen = len(self.rows)
            return True
        cut = last.start
        if last.is_list:
            cut = self._freeze_items(last, source, lines)
        self._tail = _from_line(self._tail, cut)
        return False

    def _freeze_unit(self, unit: Unit, source: str) -> None:
        self._truncate(self._frozen)
        self.rows += self._gap_and_rows(unit, source)
        self._frozen = len(self.rows)
        self._list = None

    def _freeze_items(self, unit: Unit, source: str, lines: list[str]) -> int:
        """Draw for good all items of an unfinished list but the last. Returns the line where the rest begins."""
        starts = [t.map[0] for t in unit.tokens if t.type == "list_item_open" and t.level == 1 and t.map]
        rest = starts[-1]
        if len(starts) < 2 or len(lines[rest]) - len(lines[rest].lstrip(" ")) > 3 or "\t" in lines[rest][:4]:
            return unit.start
        kept = "\n".join(lines[unit.start : rest]) + "\n"
        items = units(kept)[0]
        number = self._first_number(unit)
        self._truncate(self._frozen)
        self.rows += self._gap_and_rows(items, kept)
        self._frozen = len(self.rows)
        self._list = (unit.list_key, number + len(starts) - 1)
        return rest

    def _first_number(self, unit: Unit) -> int:
        if self._list is not None and self._list[0] == unit.list_key:
            return self._list[1]
        return int(unit.tokens[0].attrs.get("start", 1))

    def _gap_and_rows(self, unit: Unit, source: str) -> list[Row]:
        goes_on = self._list is not None and unit.is_list and self._list[0] == unit.list_key
        number = self._first_number(unit) if goes_on else None
        rows = self._drawer.unit(unit, source, number)
        return [blank(), *rows] if rows and self.rows and not goes_on else rows

    def _take_code(self, fence: _Fence) -> bool:
        """Take complete lines into the open code block. True where it was closed."""
        *lines, self._tail = self._tail.split("\n")
        for number, line in enumerate(lines):
            if fence.closes(line):
                self._tail = "\n".join([*lines[number + 1 :], self._tail])
                self._close_fence(fence)
                return True
            self._truncate(self._frozen)
            content = fence.content(line)
            fence.lines.append(content)
            self.rows += self._drawer.code([content], fence.language, alone=True)
            self._frozen = len(self.rows)
        return False

    def _close_fence(self, fence: _Fence) -> None:
        """Draw the code block anew, now that its colours can be told from its whole text."""
        self._truncate(fence.first_row)
        self.rows += self._drawer.code(fence.lines, fence.language)
        self._frozen = len(self.rows)
        self._fence = None
        self._drawn = 0

    def _draw_tail(self) -> None:
        self._truncate(self._frozen)
        self._drawn = len(self._tail)
        if self._fence is not None:
            if self._tail:
                self.rows += self._drawer.code([self._fence.content(self._tail)], self._fence.language, alone=True)
            return
        going_on = self._list
        for unit in units(self._tail):
            self.rows += self._gap_and_rows(unit, self._tail)
            self._list = None
        self._list = going_on

    def _truncate(self, count: int) -> None:
        del self.rows[count:]
        self._changed = min(self._changed, count)


def _from_line(text: str, line: int) -> str:
    """The text from the given line on."""
    place = 0
    for _ in range(line):
        place = text.index("\n", place) + 1
    return text[place:]
