"""A terminal's screen, cell by cell, for the sequences that the program draws with. Any other is an error."""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.cells import split_graphemes

Style = tuple[frozenset[str], str, str, str]
"""Attributes, colours of text and background, and link."""
NONE: frozenset[str] = frozenset()
Cell = tuple[str, Style]
DEFAULT: Style = (NONE, "", "", "")
SECOND = ""
"""Text of the second cell of a wide character."""

_SEQUENCE = re.compile(
    r"\x1b\[(?P<private>[?>=<]?)(?P<numbers>[\d;]*)(?P<final>[@-~])"
    r"|\x1b\](?P<command>[^\x07\x1b]*)(?:\x07|\x1b\\)|(?P<control>[\x00-\x1f\x7f])|(?P<text>[^\x00-\x1f\x7f]+)"
)
_OFF = {"22": "12", "23": "3", "24": "4", "25": "56", "27": "7", "28": "8", "29": "9"}
_ATTRIBUTES = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "21", "51", "52", "53")
_SEEN_ON_BLANKS = frozenset(("4", "7", "9", "21", "51", "52", "53"))


def clusters(text: str) -> list[tuple[str, int]]:
    """The text as a terminal that agrees with the program about widths divides it."""
    return [(text[start:end], width) for start, end, width in split_graphemes(text)[0]]


def narrow(text: str) -> list[tuple[str, int]]:
    """The text on a terminal whose characters are one cell wide, and know no clusters."""
    return [(character, int(character != "\u200d")) for character in text]


class Grid:
    """The cells of a screen, written with ``feed``. Lines do not wrap."""

    def __init__(
        self,
        columns: int,
        rows: int,
        *,
        coloured_erase: bool = True,
        divide: Callable[[str], list[tuple[str, int]]] = clusters,
        filled: str = " ",
    ) -> None:
        self.columns, self.rows = columns, rows
        self._coloured_erase = coloured_erase
        self._divide = divide
        self.cells: list[list[Cell]] = [[(filled, DEFAULT)] * columns for _ in range(rows)]
        self.column, self.row = 0, 0
        self._top, self._bottom = 0, rows - 1
        self._style: Style = DEFAULT
        self.at_rest = True
        """Whether nothing is selected: no colours, no scroll region."""

    def feed(self, text: str) -> None:
        position = 0
        for match in _SEQUENCE.finditer(text):
            assert match.start() == position, repr(text[position : position + 20])
            position = match.end()
            if match["text"]:
                self._write(match["text"])
            elif match["control"]:
                self._control(match["control"])
            elif match["command"] is not None:
                self._command(match["command"])
            else:
                self._sequence(match["private"], match["numbers"], match["final"])
        assert position == len(text), repr(text[position:])
        self.at_rest = self._style == DEFAULT and (self._top, self._bottom) == (0, self.rows - 1)

    def lines(self) -> list[str]:
        return ["".join(text for text, _ in row).rstrip() for row in self.cells]

    def _write(self, text: str) -> None:
        for cluster, width in self._divide(text):
            if width == 0:  # nothing to join, as it comes first
                continue
            column = min(self.column, self.columns - width)
            row = self.cells[self.row]
            if row[column][0] == SECOND and column:
                row[column - 1] = (" ", row[column - 1][1])
            if column + width < self.columns and row[column + width][0] == SECOND:
                row[column + width] = (" ", row[column + width][1])
            row[column : column + width] = [(cluster, self._style), *[(SECOND, self._style)] * (width - 1)]
            self.column = min(column + width, self.columns)

    def _control(self, control: str) -> None:
        if control == "\r":
            self.column = 0
        elif control == "\n":  # the line discipline returns the cursor, too
            assert self.row != self._bottom, "an unintended scroll"
            self.column, self.row = 0, self.row + 1
        else:
            raise AssertionError(repr(control))

    def _command(self, command: str) -> None:
        number, parameters, link = command.split(";", 2)
        assert number == "8", command
        attributes, fore, back, _ = self._style
        self._style = (attributes, fore, back, f"{parameters};{link}" if link else "")

    def _sequence(self, private: str, numbers: str, final: str) -> None:
        if private:
            assert (private, numbers) == ("?", "2026"), numbers
            return
        first, second = (*(int(number or 0) for number in numbers.split(";")), 0, 0)[:2]
        if final == "m":
            self._select(numbers.split(";"))
        elif final == "H":
            self.row, self.column = max(1, first) - 1, max(1, second) - 1
            assert self.row < self.rows, numbers
            assert self.column < self.columns, numbers
        elif final in "CD":
            assert self.column < self.columns, "a move from where terminals differ"
            self.column += max(1, first) if final == "C" else -max(1, first)
            assert 0 <= self.column < self.columns, numbers
        elif final == "G":
            self.column = max(1, first) - 1
        elif final == "K":
            assert first == 0, numbers
            assert self.column < self.columns, "erased where terminals differ"
            self.cells[self.row][self.column :] = [self._erased()] * (self.columns - self.column)
        elif final == "r":
            self._top, self._bottom = (first - 1, second - 1) if numbers else (0, self.rows - 1)
            assert 0 <= self._top < self._bottom < self.rows, numbers
            self.row = self.column = 0
        elif final in "LM":
            assert self._top <= self.row <= self._bottom
            assert not self._style[2], "terminals differ in the colour of new lines"
            for _ in range(max(1, first)):
                blank = [self._erased()] * self.columns
                gone, come = (self.row, self._bottom) if final == "M" else (self._bottom, self.row)
                del self.cells[gone]
                self.cells.insert(come, blank)
        else:
            raise AssertionError(f"{numbers}{final}")

    def _select(self, codes: list[str]) -> None:
        attributes, fore, back, link = self._style
        rest = iter(codes)
        for code in rest:
            if code in ("", "0"):
                attributes, fore, back = NONE, "", ""
            elif code in ("38", "48"):
                kind = next(rest)
                colour = ";".join((code, kind, *(next(rest) for _ in range(1 if kind == "5" else 3))))
                fore, back = (colour, back) if code == "38" else (fore, colour)
            elif code in ("39", "49"):
                fore, back = ("", back) if code == "39" else (fore, "")
            elif code in _OFF:
                attributes -= frozenset(_OFF[code])
            elif code[:-1] in ("3", "9"):
                fore = code
            elif code[:-1] in ("4", "10"):
                back = code
            else:
                assert code in _ATTRIBUTES, code
                attributes |= {code}
        self._style = (attributes, fore, back, link)

    def _erased(self) -> Cell:
        return " ", (NONE, "", self._style[2] if self._coloured_erase else "", "")


def differences(shown: Grid, wanted: Grid) -> list[tuple[int, int, Cell, Cell]]:
    """Line and column of each cell that does not look as it should, what it shows, and what is wanted."""
    return [
        (y, x, cell, goal)
        for y, (row, goals) in enumerate(zip(shown.cells, wanted.cells, strict=True))
        if row != goals
        for x, (cell, goal) in enumerate(zip(row, goals, strict=True))
        if cell != goal and _seen(cell) != _seen(goal)
    ]


def _seen(cell: Cell) -> Cell:
    text, (attributes, fore, back, link) = cell
    if text == " " and not link and attributes.isdisjoint(_SEEN_ON_BLANKS):
        return text, (NONE, "", back, "")
    return text, (attributes, fore, back, link)
