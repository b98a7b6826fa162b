"""The terminal's screen as it was drawn. A frame writes only the cells that differ: lines that moved are scrolled by
the terminal, blank ends of lines are erased, and neighbouring cells of one look share one sequence. Over ssh the bytes
of a frame are what a user feels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from swecli.lazy_pattern import lazy_pattern
from swecli.tui.cells import PLAIN, UNKNOWN, UNSURE, Cells, Row

if TYPE_CHECKING:
    from textual.strip import Strip

Placed = tuple[int, Iterable[tuple[int, "Strip"]]]
"""A line's number and what it shows: strips with the column in which each begins."""

_BEGIN = "\x1b[r\x1b[m"
"""What another program may have left is undone: a scroll region, a look."""
_GAP = 3
"""Unchanged cells of the same look that are shorter to write again than to skip."""
_ERASED = 4
"""Blank cells from which on it is shorter to erase them."""
_KEPT = 10
"""Strips for each line whose cells are kept."""
_SCROLLED = 2
"""Lines that must be right after a scroll, and were wrong before, for it to be worth its sequences."""
_RUNS = lazy_pattern(r"(.)\1*", re.DOTALL)
_WORDS = lazy_pattern(f"[^ {UNKNOWN}]+(?: [^ {UNKNOWN}]+)*| +")


class DrawnScreen:
    """Holds what each cell shows, and where the cursor is. Anything else that changes the screen must be followed by
    ``forget``."""

    def __init__(self, colours: str | None, *, coloured_erase: bool) -> None:
        """``colours`` is the console's colour system; ``coloured_erase``: whether erased cells take the background
        colour that is selected."""
        self._colours = colours
        self._coloured_erase = coloured_erase
        self.forget()

    def forget(self) -> None:
        """Know nothing of the screen: the next frames write all of what they contain."""
        self._cells = Cells(self._colours)
        self._rows: list[Row] = []
        self._width = 0
        self._sources: dict[int, list[tuple[int, Strip]]] = {}
        """What each line was last given, in whole or in part; it shows that."""
        self._converted: dict[int, tuple[Strip, Row]] = {}
        """Cells of the strips of the last frames, by their ids."""
        self._cursor: tuple[int, int] | None = None
        """Column and line of the terminal's cursor; None if terminals may disagree about it."""
        self._look = PLAIN
        self._out = [_BEGIN]

    def draw(self, lines: Iterable[Placed], size: tuple[int, int], cursor: tuple[int, int]) -> str:
        """The sequences after which these lines are on the screen, whose ``size`` is columns and lines, and the cursor
        is at this column and line. Empty if all that is so already."""
        width, height = size
        if self._cells.full or width != self._width or height != len(self._rows):
            self.forget()
            self._width, self._rows = width, [(UNKNOWN * width, PLAIN * width)] * height
        wanted = self._wanted(lines)
        if len(wanted) > _SCROLLED:
            self._scroll(wanted)
        for y, row in sorted(wanted.items()):
            if row != self._rows[y]:
                self._draw_row(y, row)
                self._rows[y] = row
        self._select(PLAIN)
        self._move(*cursor)
        sequences = "".join(self._out)
        self._out.clear()
        return sequences

    def _wanted(self, lines: Iterable[Placed]) -> dict[int, Row]:
        """The lines that change, with all of their cells."""
        wanted: dict[int, Row] = {}
        if len(self._converted) > _KEPT * len(self._rows):
            self._converted.clear()
        for y, placed in lines:
            parts = list(placed)
            if y >= len(self._rows) or self._sources.get(y) == parts:
                continue
            self._sources[y] = parts
            row = self._rows[y]
            for x, strip in parts:
                row = _patched(row, x, self._convert(strip), self._width)
            if row != self._rows[y]:
                wanted[y] = row
        return wanted

    def _convert(self, strip: Strip) -> Row:
        known = self._converted.get(id(strip))
        if known is None:  # the strip is kept, so that no other gets its id
            known = self._converted[id(strip)] = (strip, self._cells.of(strip))
        return known[1]

    # --- lines that moved ---

    def _scroll(self, wanted: dict[int, Row]) -> None:
        """Move lines that are wanted elsewhere, if most of them moved by the same distance."""
        places: dict[Row, int] = {}
        for y in wanted:
            row = self._rows[y]
            if not row[0].isspace():
                places[row] = -1 if row in places else y
        moves = {y: places[row] - y for y, row in wanted.items() if places.get(row, -1) >= 0}
        if not moves:
            return
        by = Counter(moves.values()).most_common(1)[0][0]
        moved = [y for y, distance in moves.items() if distance == by]
        top, bottom = min(moved) + min(by, 0), max(moved) + max(by, 0)
        rows = self._rows[top : bottom + 1]
        blank = [(" " * self._width, PLAIN * self._width)] * abs(by)
        shifted = rows[by:] + blank if by > 0 else blank + rows[:by]
        goal = [wanted.get(y, self._rows[y]) for y in range(top, bottom + 1)]
        gain = sum(a == b for a, b in zip(goal, shifted, strict=True)) - sum(
            a == b for a, b in zip(goal, rows, strict=True)
        )
        if gain < _SCROLLED or any(UNKNOWN in text for text, _ in goal):
            return
        # No look is selected: in which colours the new lines are empty would depend on the terminal.
        self._out.append(f"\x1b[{top + 1};{bottom + 1}r\x1b[{top + 1}H\x1b[{abs(by)}{'M' if by > 0 else 'L'}\x1b[r")
        self._cursor = None
        self._rows[top : bottom + 1] = shifted
        for y, row in enumerate(goal, top):
            wanted[y] = row  # also a line that had been right

    # --- cells that differ ---

    def _draw_row(self, y: int, row: Row) -> None:
        text, looks = row
        before, looks_before = self._rows[y]
        cells = enumerate(zip(text, before, looks, looks_before, strict=True))
        changed = [x for x, (a, b, c, d) in cells if a != b or c != d]
        unsure = min((match.start() for match in map(UNSURE.search, (text, before)) if match), default=self._width)
        if unsure <= changed[-1]:
            self._draw_rest(y, min(unsure, changed[0]), row)
            return
        end = self._blank_end(row)
        if changed[-1] - max(end, changed[0]) < _ERASED:
            end = self._width
        start = stop = changed[0]
        for x in changed:
            if x >= end:
                break
            if x - stop > _GAP or looks[stop - 1 : x] != looks[stop - 1] * (x - stop + 1) or UNKNOWN in text[stop:x]:
                self._put(start, stop, y, row)
                start = x
            stop = x + 1
        self._put(start, stop, y, row)
        if end < self._width:
            self._erase(max(end, changed[0]), y, looks[-1])

    def _draw_rest(self, y: int, start: int, row: Row) -> None:
        """Draw a line from a cell on anew. Where terminals disagree about a width, the blanks behind it give each word
        its place again."""
        text, looks = row
        end = self._blank_end(row)
        self._erase(start, y, self._erased_look(looks[-1]))
        for match in _WORDS.finditer(text, start, end):
            self._put(match.start(), match.end(), y, row)
            if UNSURE.search(match[0]):
                self._cursor = None

    def _blank_end(self, row: Row) -> int:
        """The cell from which on all cells can be erased."""
        text, looks = row
        if text[-1] != " " or not self._cells.is_blank(looks[-1]) or self._erased_look(looks[-1]) != looks[-1]:
            return self._width
        return max(len(text.rstrip(" ")), len(looks.rstrip(looks[-1])))

    def _erased_look(self, look: str) -> str:
        """What cells look like that are erased while this look is selected, as far as it may be."""
        usable = self._cells.is_blank(look) and (self._coloured_erase or not self._cells.has_background(look))
        return look if usable else PLAIN

    def _erase(self, x: int, y: int, look: str) -> None:
        self._move(x, y)
        if not self._cells.same_blank(self._look, look):
            self._select(look)
        self._out.append("\x1b[K")

    def _put(self, start: int, end: int, y: int, row: Row) -> None:
        """Write the cells from ``start`` to ``end``."""
        if start == end:
            return
        text, looks = row
        self._move(start, y)
        for run in _RUNS.finditer(looks, start, end):
            part, look = text[run.start() : run.end()], run[1]
            if not (part.isspace() and self._cells.same_blank(self._look, look)):
                self._select(look)
            self._out.append(self._cells.written(part))
        self._cursor = (end, y) if end < self._width else None  # behind the last cell terminals differ

    def _select(self, look: str) -> None:
        if look != self._look:
            self._out.append(self._cells.change(self._look, look))
            self._look = look

    def _move(self, x: int, y: int) -> None:
        """Move the cursor in the shortest way."""
        if self._cursor == (x, y):
            return
        ways = [f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"]
        if self._cursor is not None:
            column, line = self._cursor
            if line == y:
                distance = abs(x - column)
                ways += [f"\x1b[{distance if distance > 1 else ''}{'C' if x > column else 'D'}", f"\x1b[{x + 1}G"]
            if x == 0 and line == y:
                ways.append("\r")
            elif x == 0 and line == y - 1:
                ways.append("\r\n")
        self._out.append(min(ways, key=len))
        self._cursor = (x, y)


def _patched(row: Row, x: int, cells: Row, width: int) -> Row:
    """The row with other cells from ``x`` on. A wide character of which one half remains becomes a blank."""
    text, looks = cells
    if x == 0 and len(text) == width:
        return cells
    text, looks = text[: width - x], looks[: width - x]
    end = x + len(text)
    before, after = row[0][:x], row[0][end:]
    if row[0][x : x + 1] == "\0":
        before = f"{before[:-1]} "
    if after[:1] == "\0":
        after = f" {after[1:]}"
    return before + text + after, row[1][:x] + looks + row[1][end:]
