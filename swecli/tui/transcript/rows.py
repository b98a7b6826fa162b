"""Rows, the renderers' output. A row knows its text at once and paints its segments when visible."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct
from rich.cells import cell_len, get_character_cell_size, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import SafeText

_SINGLE: Final = lazy_pattern(
    "[ -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0377\u037a-\u037f\u0388-\u038a\u0390-\u0482\u2010-\u2015\u2018-\u2022"
    "\u2026\u2190-\u2193\u2400-\u2421\u2500-\u25aa\u25e6\u2713-\u2714\u2717-\u2718\u2800-\u28ff\u27e8\u27e9]*"
)
"""Frequent characters that are one cell wide and a grapheme of their own."""
_SPACES = lazy_pattern(" *")
ELLIPSIS: Final = "…"


class Piece(Struct, frozen=True):
    """``text[start:end]`` is one row. ``join`` is the text between the previous row and this one (spaces dropped at the
    break, or nothing); None for the first row of a line."""

    start: int
    end: int
    join: str | None


def is_single(text: str) -> bool:
    """Whether every character is known to be one cell wide, so that cells equal characters."""
    return _SINGLE.fullmatch(text) is not None


def cells(text: str) -> int:
    """Width of the text in terminal cells."""
    return len(text) if is_single(text) else cell_len(text)


def wrap(text: SafeText, width: int, *, words: bool = True) -> list[Piece]:
    """Break a line into rows of at most ``width`` cells (at least one grapheme each).

    With ``words`` it breaks at spaces if possible, and beside wide characters; leading spaces are kept.
    """
    width = max(1, width)
    if is_single(text):
        if len(text) <= width:
            return [Piece(0, len(text), None)]
        return _wrap_single(text, width) if words else _chop_single(text, width)
    return _wrap_wide(text, width, words=words)


def cut(text: SafeText, width: int, keep: Literal["start", "end"] = "start") -> SafeText:
    """The text if it fits, else its start or end with an ellipsis at the cut. Never wider than ``width``."""
    if width <= 0:
        return SafeText("")
    if cells(text) <= width:
        return text
    if is_single(text):
        return SafeText(text[: width - 1] + ELLIPSIS if keep == "start" else ELLIPSIS + text[len(text) - width + 1 :])
    spans = split_graphemes(text)[0]
    room = width - 1
    if keep == "start":
        end = 0
        for _, stop, size in spans:
            if size > room:
                break
            room -= size
            end = stop
        return SafeText(text[:end] + ELLIPSIS)
    begin = len(text)
    for start, _, size in reversed(spans):
        if size > room:
            break
        room -= size
        begin = start
    return SafeText(ELLIPSIS + text[begin:])


def _chop_single(text: str, width: int) -> list[Piece]:
    return [Piece(start, min(start + width, len(text)), "" if start else None) for start in range(0, len(text), width)]


def _wrap_single(text: str, width: int) -> list[Piece]:
    pieces: list[Piece] = []
    start, length = 0, len(text)
    join: str | None = None
    while length - start > width:
        end = text.rfind(" ", start, start + width + 1)
        if end <= start or text[start:end].isspace():
            pieces.append(Piece(start, start + width, join))
            start, join = start + width, ""
            continue
        match = _SPACES.match(text, end)
        after = match.end() if match else end
        while end > start and text[end - 1] == " ":
            end -= 1
        pieces.append(Piece(start, end, join))
        start, join = after, text[end:after]
    if start < length or not pieces:
        pieces.append(Piece(start, length, join))
    return pieces


def _wrap_wide(text: str, width: int, *, words: bool) -> list[Piece]:
    spans = split_graphemes(text)[0]
    space = [text[start:end] == " " for start, end, _ in spans]
    pieces: list[Piece] = []
    join: str | None = None
    first = index = used = 0
    """First grapheme of the row, current grapheme, cells used by the row."""
    chance = -1
    """Last grapheme found before which the row may break."""
    while index < len(spans):
        size = spans[index][2]
        if size > 1 or (index and spans[index - 1][2] > 1) or (index and space[index - 1]):
            chance = index
        if used + size > width and index > first:
            stop = chance if words and chance > first else index
            if words and space[index]:
                stop = index
            row_end = resume = stop
            if words:
                while row_end > first + 1 and space[row_end - 1]:
                    row_end -= 1
                while resume < len(spans) and space[resume]:
                    resume += 1
            last = spans[row_end - 1][1]
            pieces.append(Piece(spans[first][0], last, join))
            begin = spans[resume][0] if resume < len(spans) else len(text)
            join = text[last:begin]
            first = index = resume
            used, chance = 0, -1
            continue
        used += size
        index += 1
    if first < len(spans) or not pieces:
        pieces.append(Piece(spans[first][0] if first < len(spans) else 0, len(text), join))
    return pieces


NO_STYLE = Style()
EMPTY = SafeText("")
SHOWS_ALL: Final = "shows all"
"""End of every line that stands for hidden ones."""


def segment(text: SafeText, style: Style = NO_STYLE) -> Segment:
    """A segment of text that is safe to show."""
    return Segment(text, style)


class ListMark(SafeText):
    """A list's mark, or the spaces below it: a part of the gutter that belongs to the text if several lines are copied.
    A bullet is copied as a dash."""

    __slots__ = ()


BULLETS: Final = ("• ", "◦ ", "▪ ")

Gutter = tuple[Segment, ...]
"""Segments before a row's text that are not part of it: indents, marks, line numbers."""


class Source(Protocol):
    """A line of text that is split into rows."""

    @property
    def text(self) -> SafeText: ...

    def segments(self, start: int, end: int) -> list[Segment]:
        """Characters ``start`` to ``end`` with their styles."""
        ...


class Row(Struct, eq=False):
    """One line of the screen: characters ``start`` to ``end`` of a line of text.

    ``join`` is None at the start of a line, else the text between the previous row and this one. ``fill`` colours the
    rest of the row. Rows are many and long-lived, so they hold as few objects as possible.
    """

    source: Source
    start: int
    end: int
    gutter: Gutter = ()
    join: str | None = None
    fill: Style | None = None
    painted: Strip | None = None
    """The widget's finished strip, cached until width, palette or filters change."""

    @property
    def body(self) -> SafeText:
        """Text for copying and search."""
        return SafeText(self.source.text[self.start : self.end])

    def segments(self) -> list[Segment]:
        """Gutter and text with their styles, without fill."""
        return [*self.gutter, *self.source.segments(self.start, self.end)]

    @property
    def text(self) -> str:
        """The row as displayed, including the gutter."""
        return self.gutter_text + self.body

    @property
    def gutter_text(self) -> str:
        return "".join(part.text for part in self.gutter)

    @property
    def list_mark(self) -> str:
        """The gutter's part that belongs to a copy of several lines."""
        marks = (part.text for part in self.gutter if isinstance(part.text, ListMark))
        return "".join("- " if mark in BULLETS else mark for mark in marks)


def copied(parts: Sequence[tuple[Row, str, bool]]) -> str:
    """Text of rows for copying: of each row its selected text, and whether its start is selected. Wrapped rows are
    joined again. Several lines keep the marks and the indentation of lists, as far as it differs."""
    several = any(row.join is None for row, _, _ in parts[1:])
    marks = [row.list_mark if several and whole and row.join is None else "" for row, _, whole in parts]
    full = [mark for mark, (row, text, whole) in zip(marks, parts, strict=True) if whole and row.join is None and text]
    common = min((len(mark) - len(mark.lstrip(" ")) for mark in full), default=0)
    out: list[str] = []
    for mark, (row, text, _) in zip(marks, parts, strict=True):
        if out:
            out.append("\n" if row.join is None else row.join)
        out.append(mark[common:] + text if text else mark[common:].rstrip())
    return "".join(out)


class Runs:
    """Styles of a line's parts, in order. Two flat lists keep garbage collection cheap."""

    __slots__ = ("ends", "styles")

    def __init__(self) -> None:
        self.ends: list[int] = []
        """End of each part, in characters."""
        self.styles: list[Style] = []

    def add(self, end: int, style: Style) -> None:
        """Set the style of the part up to ``end``."""
        self.ends.append(end)
        self.styles.append(style)


class Styled:
    """One logical line: safe text and its styles. Append-only."""

    __slots__ = ("_parts", "_text", "runs")

    def __init__(self, text: SafeText = EMPTY, style: Style = NO_STYLE) -> None:
        self._parts: list[SafeText] | None = None
        self._text = EMPTY
        self.runs = Runs()
        self.add(text, style)

    def add(self, text: SafeText, style: Style = NO_STYLE) -> Styled:
        if text:
            if not self.runs.ends:
                self._text = text
            elif self._parts is None:
                self._parts = [self._text, text]
            else:
                self._parts.append(text)
            self.runs.add(len(text) + len(self), style)
        return self

    def __len__(self) -> int:
        return self.runs.ends[-1] if self.runs.ends else 0

    @property
    def text(self) -> SafeText:
        if self._parts is not None:
            self._text = SafeText("".join(self._parts))
            self._parts = None
        return self._text

    def segments(self, start: int = 0, end: int | None = None) -> list[Segment]:
        """The text, or a part of it, with its styles."""
        return cut_runs(self.text, self.runs, start, len(self) if end is None else end)

    def rows(self, width: int, gutter: Gutter = (), rest: Gutter | None = None, *, words: bool = True) -> list[Row]:
        """The line as rows of at most ``width`` cells without gutters; ``rest`` is the gutter of all rows but the
        first."""
        return rows_of(self, width, gutter, rest, words=words)


def rows_of(
    source: Source,
    width: int,
    gutter: Gutter = (),
    rest: Gutter | None = None,
    *,
    words: bool = True,
    fill: Style | None = None,
) -> list[Row]:
    """A line as rows of at most ``width`` cells, broken between ``words`` or anywhere."""
    text = source.text
    if len(text) <= width and is_single(text):  # fast path for nearly all lines
        return [Row(source, 0, len(text), gutter, None, fill)]
    following = gutter if rest is None else rest
    return [
        Row(source, piece.start, piece.end, gutter if piece.join is None else following, piece.join, fill)
        for piece in wrap(text, width, words=words)
    ]


def cut_runs(text: SafeText, runs: Runs, start: int, end: int) -> list[Segment]:
    """Segments of ``text[start:end]``; a style never ends within a grapheme."""
    out: list[Segment] = []
    position = start
    single = is_single(text[start:end])
    for number in range(bisect_right(runs.ends, start), len(runs.ends)):
        if position >= end:
            break
        stop = min(runs.ends[number], end)
        if not single:
            while stop < end and (text[stop - 1] == "\u200d" or not get_character_cell_size(text[stop])):
                stop += 1
        if stop > position:
            out.append(Segment(text[position:stop], runs.styles[number]))
            position = stop
    if position < end:
        out.append(Segment(text[position:end], NO_STYLE))
    return out


_BLANK: Final = Styled()


def blank() -> Row:
    return Row(_BLANK, 0, 0)


def plain_rows(
    text: SafeText, width: int, style: Style = NO_STYLE, gutter: Gutter = (), rest: Gutter | None = None
) -> list[Row]:
    """All lines of a text in one style, wrapped."""
    out: list[Row] = []
    for number, line in enumerate(text.split("\n")):
        first = gutter if number == 0 or rest is None else rest
        out += Styled(SafeText(line), style).rows(width, first, rest)
    return out


_LABEL = lazy_pattern(r"\s*\S(?:.*?\S)??\s{2,}(?=\S)")


def label_width(line: str, width: int) -> int:
    """Width of the label of a line such as ``Model    openai/x``, up to its value; 0 without a label, or if too little
    room would remain."""
    match = _LABEL.match(line) if is_single(line) else None
    return match.end() if match is not None and match.end() <= width // 2 else 0


def closed_up(line: SafeText, width: int) -> SafeText:
    """A line such as ``Model    openai/x`` with two spaces between label and value if that makes it fit."""
    match = _LABEL.match(line) if cells(line) > width and is_single(line) else None
    if match is None:
        return line
    closed = SafeText(f"{match[0].rstrip()}  {line[match.end() :]}")
    return closed if cells(closed) <= width else line


def hanging(line: Styled, width: int, column: int) -> list[Row]:
    """A line as rows of at most ``width`` cells, all but the first indented by ``column``."""
    text = line.text
    pieces = wrap(text, width)
    if len(pieces) == 1 or not 0 < column < width:
        return line.rows(width)
    begin = pieces[1].start
    gutter: Gutter = (segment(SafeText(" " * column)),)
    rows = [Row(line, pieces[0].start, pieces[0].end, (), None, None)]
    for number, piece in enumerate(wrap(SafeText(text[begin:]), width - column)):
        join = piece.join if number else pieces[1].join
        rows.append(Row(line, begin + piece.start, begin + piece.end, gutter, join, None))
    return rows


def indent(rows: Iterable[Row], gutter: Gutter) -> list[Row]:
    """The rows with this gutter before their own."""
    out = list(rows)
    for row in out:
        row.gutter = gutter + row.gutter
    return out


def gutter_width(gutter: Gutter) -> int:
    return sum(cells(part.text) for part in gutter)
