"""Diffs with the old text at the left and the new one at the right, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from rich.segment import Segment
from rich.style import Style

from swecli.safe_text import SafeText
from swecli.tui.transcript.diff_lines import DiffLine
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import NO_STYLE, Row, Runs, cut_runs
from swecli.tui.transcript.wrap import Piece, cells, wrap

_RULE: Final = "│"


class Lines(Protocol):
    """The lines of a diff as they are painted; ``number`` counts them from 0."""

    def text(self, number: int) -> SafeText: ...

    def runs(self, number: int, line: DiffLine) -> Runs: ...

    def style(self, line: DiffLine) -> Style: ...


@dataclass(frozen=True, slots=True)
class Side:
    """Half of a row: the line with its place among the lines of the diff, and the number that it has in its text."""

    place: int
    line: DiffLine
    shown: int


Pair = tuple[Side | None, Side | None]


def pairs(lines: Sequence[DiffLine]) -> Iterator[Pair | DiffLine]:
    """What stands beside what; lines left out come as they are. Removed lines are beside the added ones in order."""
    gone: list[Side] = []
    come: list[Side] = []
    shift = 0
    """By how much the old number of a line is larger than its new one."""

    def flush() -> Iterator[Pair]:
        for number in range(max(len(gone), len(come))):
            yield (
                gone[number] if number < len(gone) else None,
                come[number] if number < len(come) else None,
            )
        gone.clear()
        come.clear()

    for place, line in enumerate(lines):
        if line.sign == "-":
            if come:
                yield from flush()
            gone.append(Side(place, line, line.number))
            shift += 1
        elif line.sign == "+":
            come.append(Side(place, line, line.number))
            shift -= 1
        else:
            yield from flush()
            if line.sign == "~":
                yield line
            else:
                yield Side(place, line, line.number + shift), Side(place, line, line.number)
    yield from flush()


def columns(width: int, digits: int) -> int:
    """Cells for the text of one side: half of the width, less numbers, sign and rule."""
    return (width - 1) // 2 - digits - 4


def pair_rows(pair: Pair, lines: Lines, room: int, digits: int, palette: Palette) -> list[Row]:
    """The rows of two lines beside each other, each wrapped in its own column of ``room`` cells."""
    left, right = pair
    parts = [wrap(lines.text(side.place), room, words=False) if side else [] for side in pair]
    # Blanks at the end are no text of the row: the colour of the right side goes on without them.
    fill = lines.style(right.line) if right and right.line.sign != " " else None
    out: list[Row] = []
    for number in range(max(1, *map(len, parts))):
        halves = tuple(
            _Half(lines, side, pieces[number] if number < len(pieces) else None, number == 0, room, digits, palette)
            for side, pieces in zip((left, right), parts, strict=True)
        )
        source = _Beside(halves, palette)
        out.append(Row(source, 0, len(source.text), fill=fill))
    return out


class _Half:
    """One side of one row."""

    __slots__ = ("_first", "_lines", "_palette", "_piece", "_side", "head", "pad", "sign", "text")

    def __init__(
        self,
        lines: Lines,
        side: Side | None,
        piece: Piece | None,
        first: bool,
        room: int,
        digits: int,
        palette: Palette,
    ) -> None:
        self._lines, self._side, self._piece, self._first, self._palette = lines, side, piece, first, palette
        begins = first and side is not None
        self.head = f"{side.shown:>{digits}} " if begins and side else " " * (digits + 1)
        self.sign = f"{side.line.sign} " if begins and side else "  "
        self.text = lines.text(side.place)[piece.start : piece.end] if side and piece else ""
        self.pad = " " * max(0, room - cells(self.text) + 1)

    @property
    def whole(self) -> str:
        return f"{self.head}{self.sign}{self.text}{self.pad}"

    def segments(self) -> list[Segment]:
        side, piece = self._side, self._piece
        out = [Segment(self.head, self._palette.line_number)]
        changed = side is not None and side.line.sign != " "
        style = self._lines.style(side.line) if side and changed else NO_STYLE
        out.append(Segment(self.sign, style))
        if side and piece:
            runs = self._lines.runs(side.place, side.line)
            out += cut_runs(self._lines.text(side.place), runs, piece.start, piece.end)
        # The last cell is the distance to the rule and has no colour.
        out.append(Segment(self.pad[:-1], style))
        out.append(Segment(self.pad[-1:]))
        return [part for part in out if part.text]


class _Beside:
    """Two halves as the source of one row."""

    __slots__ = ("_halves", "_palette", "text")

    def __init__(self, halves: tuple[_Half, ...], palette: Palette) -> None:
        self._halves = halves
        self._palette = palette
        self.text = SafeText(_RULE.join(half.whole for half in halves).rstrip())

    def segments(self, start: int, end: int) -> list[Segment]:
        left, right = self._halves
        parts = [*left.segments(), Segment(_RULE, self._palette.rule), *right.segments()]
        runs = Runs()
        reached = 0
        for part in parts:
            reached += len(part.text)
            runs.add(reached, part.style or NO_STYLE)
        return cut_runs(self.text, runs, start, min(end, len(self.text)))
