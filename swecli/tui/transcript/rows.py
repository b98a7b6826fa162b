"""Rows: what a renderer returns. A row knows its text at once and paints its segments when it is first seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from swecli.tui.safe_text import SafeText
from swecli.tui.transcript.wrap import Piece, cells, is_single, wrap

NO_STYLE = Style()
EMPTY = SafeText("")


def segment(text: SafeText, style: Style = NO_STYLE) -> Segment:
    """A segment of text that is safe to show."""
    return Segment(text, style)


Gutter = tuple[Segment, ...]
"""What stands before the text of a row and is not part of it: indents, marks, line numbers."""


@dataclass(slots=True, eq=False)
class Row:
    """One line of the screen.

    ``body`` is the text for copy and search. ``paint`` gives its segments. ``join`` is None where a new line
    begins, else what stood between the row before and this one. ``fill`` colours the rest of the row.
    """

    body: SafeText
    paint: Callable[[], Sequence[Segment]]
    gutter: Gutter = ()
    join: str | None = None
    fill: Style | None = None
    painted: Strip | None = field(default=None, repr=False)
    """The widget's finished strip, kept until width, palette or filters change."""

    def segments(self) -> list[Segment]:
        return [*self.gutter, *self.paint()]

    def strip(self) -> Strip:
        return Strip(self.segments())

    @property
    def text(self) -> str:
        """The row as it looks, gutter included."""
        return "".join(part.text for part in self.gutter) + self.body

    @property
    def gutter_text(self) -> str:
        return "".join(part.text for part in self.gutter)


class Styled:
    """One logical line: safe text and the styles of its parts. Append-only."""

    __slots__ = ("_parts", "_text", "runs")

    def __init__(self, text: SafeText = EMPTY, style: Style = NO_STYLE) -> None:
        self._parts: list[SafeText] = []
        self._text: SafeText | None = EMPTY
        self.runs: list[tuple[int, Style]] = []
        """End of each part (in characters) and its style."""
        self.add(text, style)

    def add(self, text: SafeText, style: Style = NO_STYLE) -> Styled:
        if text:
            self._parts.append(text)
            self._text = None
            self.runs.append((len(text) + (self.runs[-1][0] if self.runs else 0), style))
        return self

    def __len__(self) -> int:
        return self.runs[-1][0] if self.runs else 0

    @property
    def text(self) -> SafeText:
        if self._text is None:
            self._text = SafeText("".join(self._parts))
            self._parts = [self._text]
        return self._text

    def segments(self, start: int = 0, end: int | None = None) -> list[Segment]:
        return cut_runs(self.text, self.runs, start, len(self) if end is None else end)

    def rows(self, width: int, gutter: Gutter = (), rest: Gutter | None = None, *, words: bool = True) -> list[Row]:
        """The line as rows of at most ``width`` cells, gutters not counted; ``rest`` is the gutter of all rows
        but the first."""
        text = self.text
        following = gutter if rest is None else rest
        return [
            Row(SafeText(text[p.start : p.end]), self._painter(p), gutter if p.join is None else following, p.join)
            for p in wrap(text, width, words=words)
        ]

    def _painter(self, piece: Piece) -> Callable[[], Sequence[Segment]]:
        return lambda: cut_runs(self.text, self.runs, piece.start, piece.end)


def cut_runs(text: SafeText, runs: Iterable[tuple[int, Style]], start: int, end: int) -> list[Segment]:
    """Segments of ``text[start:end]``; a style never ends in the middle of a grapheme."""
    out: list[Segment] = []
    position = start
    single = is_single(text)
    for run_end, style in runs:
        if run_end <= position:
            continue
        stop = min(run_end, end)
        if not single:
            while stop < end and (text[stop - 1] == "\u200d" or not get_character_cell_size(text[stop])):
                stop += 1
        out.append(Segment(text[position:stop], style))
        position = stop
        if position >= end:
            break
    if position < end:
        out.append(Segment(text[position:end], NO_STYLE))
    return out


def blank() -> Row:
    """An empty row."""
    return Row(EMPTY, tuple)


def plain_rows(
    text: SafeText, width: int, style: Style = NO_STYLE, gutter: Gutter = (), rest: Gutter | None = None
) -> list[Row]:
    """All lines of a text in one style, wrapped."""
    out: list[Row] = []
    for number, line in enumerate(text.split("\n")):
        first = gutter if number == 0 or rest is None else rest
        out += Styled(SafeText(line), style).rows(width, first, rest)
    return out


def indent(rows: Iterable[Row], gutter: Gutter) -> list[Row]:
    """The rows with a gutter put before their own."""
    out = list(rows)
    for row in out:
        row.gutter = gutter + row.gutter
    return out


def gutter_width(gutter: Gutter) -> int:
    return sum(cells(part.text) for part in gutter)
