"""Diffs: numbered lines with sign, syntax highlighting and marked words, each painted when first visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, Literal

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style

from swecli.core.protocol.blocks import DiffBlock
from swecli.core.workspace.line_diff import changed_spans
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import SafeText, safe_line, sanitise
from swecli.tui.transcript.code import CodeLines, language_of
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import (
    NO_STYLE,
    SHOWS_ALL,
    Gutter,
    Piece,
    Row,
    Runs,
    Styled,
    cells,
    cut,
    cut_runs,
    rows_of,
    segment,
    wrap,
)

CONTEXT: Final = 3
MAX_WORDS: Final = 600
"""Longer lines (in characters) are not compared word by word."""
_WORD: Final = lazy_pattern(r"\w+|\s+|[^\w\s]")

Sign = Literal[" ", "+", "-", "~"]


class DiffLine(Struct, frozen=True):
    """One line of a diff. ``number`` counts from 1 in the new text, for removed lines in the old one. The sign ``~``
    marks lines omitted between two hunks; ``pair`` is the other half of a changed line."""

    sign: Sign
    number: int
    text: str
    pair: str | None = None


class TextDiff(Struct, frozen=True):
    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    note: str = ""


def text_diff(old: str, new: str) -> TextDiff:
    """The differing lines, with ``CONTEXT`` lines around each change."""
    before, after = _lines(old), _lines(new)
    note = ""
    if old.endswith("\n") != new.endswith("\n") and old and new:
        note = "newline added at the end" if new.endswith("\n") else "newline at the end removed"
    if _all_crlf(before) and _all_crlf(after):
        before, after = [line.removesuffix("\r") for line in before], [line.removesuffix("\r") for line in after]
    lines: list[DiffLine] = []
    added = removed = 0
    shown_to = 0
    """Lines of the new text shown or omitted so far."""
    changes = changed_spans(before, after)
    for index, (i1, i2, j1, j2) in enumerate(changes):
        begin = max(shown_to, j1 - CONTEXT)
        if begin > shown_to:
            lines.append(DiffLine("~", begin - shown_to, ""))
        lines += [DiffLine(" ", number + 1, after[number]) for number in range(begin, j1)]
        lines += change_lines(before[i1:i2], after[j1:j2], i1, j1)
        removed += i2 - i1
        added += j2 - j1
        limit = changes[index + 1][2] if index + 1 < len(changes) else len(after)
        shown_to = min(limit, j2 + CONTEXT)
        lines += [DiffLine(" ", number + 1, after[number]) for number in range(j2, shown_to)]
    if shown_to < len(after) and lines:
        lines.append(DiffLine("~", len(after) - shown_to, ""))
    return TextDiff(tuple(lines), added, removed, note)


def one_sided(text: str, sign: Literal[" ", "-"]) -> TextDiff:
    """Diff of a new or a deleted file."""
    lines = tuple(DiffLine(sign, number, line.removesuffix("\r")) for number, line in enumerate(_lines(text), 1))
    return TextDiff(lines, len(lines) if sign == " " else 0, len(lines) if sign == "-" else 0)


def changed_words(text: str, other: str) -> list[tuple[int, int]]:
    """Spans of ``text`` (start and end) that ``other`` lacks; none if the lines have little in common."""
    if max(len(text), len(other)) > MAX_WORDS:
        return []
    words, others = _WORD.findall(text), _WORD.findall(other)
    matcher = SequenceMatcher(None, others, words, autojunk=False)
    if matcher.ratio() < 0.4:
        return []
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return [(starts[j1], starts[j2]) for tag, _, _, j1, j2 in matcher.get_opcodes() if tag != "equal" and j2 > j1]


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _all_crlf(lines: list[str]) -> bool:
    return all(line.endswith("\r") for line in lines[:-1])


def change_lines(old: list[str], new: list[str], i: int, j: int) -> list[DiffLine]:
    """One change as lines. ``i`` and ``j`` are the numbers of lines before it in the old and the new text."""
    paired = len(old) == len(new)
    removed = [DiffLine("-", i + n + 1, line, new[n] if paired else None) for n, line in enumerate(old)]
    come = [DiffLine("+", j + n + 1, line, old[n] if paired else None) for n, line in enumerate(new)]
    return removed + come


_RULE: Final = "│"


class Side(Struct, frozen=True):
    """Half of a row: the line with its index in the diff, and its line number in its text."""

    place: int
    line: DiffLine
    shown: int


Pair = tuple[Side | None, Side | None]


def pairs(lines: Sequence[DiffLine]) -> Iterator[Pair | DiffLine]:
    """Line pairs for a side-by-side view; omitted lines are unpaired. Removed lines face the added ones in order."""
    removed: list[Side] = []
    come: list[Side] = []
    shift = 0
    """Old line number minus new line number."""

    def flush() -> Iterator[Pair]:
        for number in range(max(len(removed), len(come))):
            yield (
                removed[number] if number < len(removed) else None,
                come[number] if number < len(come) else None,
            )
        removed.clear()
        come.clear()

    for index, line in enumerate(lines):
        if line.sign == "-":
            if come:
                yield from flush()
            removed.append(Side(index, line, line.number))
            shift += 1
        elif line.sign == "+":
            come.append(Side(index, line, line.number))
            shift -= 1
        else:
            yield from flush()
            if line.sign == "~":
                yield line
            else:
                yield Side(index, line, line.number + shift), Side(index, line, line.number)
    yield from flush()


def columns(width: int, digits: int) -> int:
    """Text cells of one side: half of the width, minus numbers, sign and rule."""
    return (width - 1) // 2 - digits - 4


def pair_rows(pair: Pair, lines: _Lines, room: int, digits: int, palette: Palette) -> list[Row]:
    """Rows of two lines side by side, each wrapped in its own column of ``room`` cells."""
    left, right = pair
    parts = [wrap(lines.text(side.place), room, words=False) if side else [] for side in pair]
    # Trailing blanks are not part of the row's text; the fill colours the right side.
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
    __slots__ = ("_first", "_lines", "_palette", "_piece", "_side", "head", "pad", "sign", "text")

    def __init__(
        self,
        lines: _Lines,
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
        # The last cell separates text and rule and has no colour.
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


MAX_LINE: Final = 4_000
"""Characters of one line to draw."""
NARROWEST: Final = 20
"""Text cells per side below which the side-by-side view is off."""
MAX_LINES: Final = 20_000
"""Lines of one diff to draw."""


def render_diff(
    block: DiffBlock, width: int, palette: Palette, *, header: bool = True, limit: int | None = None
) -> list[Row]:
    """Rows of a change; the ``header`` has the file name and line counts. With ``limit``, only that many rows of lines,
    and one with the number of hidden ones."""
    diff = compare(block)
    out: list[Row] = []
    if header:
        line = Styled(cut(safe_line(block.path), max(8, width - 24), "end"), palette.strong)
        line.add(SafeText("  ")).add(SafeText(f"+{diff.added}"), palette.success)
        line.add(SafeText(" ")).add(SafeText(f"-{diff.removed}"), palette.error)
        out += line.rows(width)
    remark = remarks(block, diff)
    if remark:
        out += Styled(safe_line(remark), palette.warning if block.note else palette.dim).rows(width)
    return out + _Lines(block, diff, width, palette, limit).rows()


def render_lines(block: DiffBlock, diff: TextDiff, width: int, palette: Palette) -> list[Row]:
    return _Lines(block, diff, width, palette, None).rows()


@lru_cache(maxsize=16)
def compare(block: DiffBlock) -> TextDiff:
    """Lines of a change. A new file is shown as its text, because a sign on every line adds nothing."""
    if block.old is None:
        return one_sided(block.new or "", " ")
    if block.new is None:
        return one_sided(block.old, "-")
    return text_diff(block.old, block.new)


def remarks(block: DiffBlock, diff: TextDiff) -> str:
    """Remarks on a change besides its lines."""
    parts: list[str] = []
    if block.old is None and block.new is not None:
        parts.append("new file")
    if block.new is None and block.old is not None:
        parts.append("deleted file")
    if block.note:
        parts.append(block.note)
    if diff.note:
        parts.append(diff.note)
    if not diff.lines and not parts:
        parts.append("no difference in text")
    return " · ".join(parts)


class _Lines:
    def __init__(self, block: DiffBlock, diff: TextDiff, width: int, palette: Palette, limit: int | None) -> None:
        self._limit = MAX_LINES if limit is None else limit
        self._palette = palette
        self._whole = width
        self._diff = diff
        self._beside: list[Pair | DiffLine] = []
        self._gutters: dict[str, tuple[Segment, Gutter, Style | None]] = {}
        lines = diff.lines[:MAX_LINES]
        needed: Iterable[int] = range(min(len(lines), self._limit + 1))
        self._room = columns(width, len(str(max((line.number for line in lines), default=1))))
        both = block.old is not None and block.new is not None
        if both and width >= palette.split_from and self._room >= NARROWEST:
            self._beside = list(islice(pairs(lines), self._limit + 1))
            needed = {side.place for pair in self._beside if isinstance(pair, tuple) for side in pair if side}
        self._index = {line_index: index for index, line_index in enumerate(needed)}
        shown = [lines[line_index] for line_index in self._index]
        self._digits = max((len(str(line.number)) for line in shown if line.sign != "~"), default=1)
        self._width = max(1, width - self._digits - 4)
        texts = [sanitise(line.text[:MAX_LINE], keep_newlines=False) for line in shown]
        self._code = CodeLines(texts, language_of(block.path), palette.tokens, alone=True)

    def rows(self) -> list[Row]:
        if self._beside:
            return self._in_columns()
        out: list[Row] = []
        for number, line in enumerate(self._diff.lines):
            if number >= MAX_LINES or (len(out) >= self._limit and number < len(self._diff.lines) - 1):
                return out + self._hidden(len(self._diff.lines) - number)
            out += self._left_out(line) if line.sign == "~" else self._line(number, line)
        return out

    def _in_columns(self) -> list[Row]:
        out: list[Row] = []
        rest = len(self._diff.lines)
        for pair in self._beside:
            if len(out) >= self._limit:
                break
            if isinstance(pair, DiffLine):
                out += self._left_out(pair)
                rest -= 1
            else:
                out += pair_rows(pair, self, self._room, self._digits, self._palette)
                rest -= len({side.place for side in pair if side})
        return out + self._hidden(rest) if rest else out

    def _hidden(self, count: int) -> list[Row]:
        how = f"{self._palette.expand} {SHOWS_ALL}" if self._limit < MAX_LINES else "the file is too long"
        text = SafeText(f"… {count:,} lines hidden, {how}")
        return Styled(text, self._palette.dim).rows(self._whole)

    def _left_out(self, line: DiffLine) -> list[Row]:
        text = SafeText(f"{'⋯':>{self._digits}}  {line.number:,} unchanged line{'s' * (line.number != 1)}")
        return Styled(text, self._palette.line_number).rows(self._whole)

    def _line(self, number: int, line: DiffLine) -> list[Row]:
        sign, rest, fill = self._gutters.get(line.sign) or self._gutter(line)
        first = (segment(SafeText(f"{line.number:>{self._digits}} "), self._palette.line_number), sign)
        return rows_of(_Line(self, number, line), self._width, first, rest, words=False, fill=fill)

    def _gutter(self, line: DiffLine) -> tuple[Segment, Gutter, Style | None]:
        """Common parts of all lines with this sign: the sign, the gutter of continuation rows, and the fill style."""
        style = self.style(line)
        rest: Gutter = (segment(SafeText(" " * (self._digits + 1))), segment(SafeText("  "), style))
        parts = segment(SafeText(f"{line.sign} "), style), rest, style if line.sign != " " else None
        self._gutters[line.sign] = parts
        return parts

    def text(self, number: int) -> SafeText:
        return self._code.lines[self._index[number]]

    def style(self, line: DiffLine) -> Style:
        return {"+": self._palette.added, "-": self._palette.removed}.get(line.sign, self._palette.text)

    def runs(self, number: int, line: DiffLine) -> Runs:
        """Background of the sign, syntax colours, changed words."""
        code = self._code.runs(self._index[number])
        if line.sign == " ":
            return code
        text, style = self.text(number), self.style(line)
        words: list[tuple[int, int]] = []
        if line.pair is not None:
            words = changed_words(text, sanitise(line.pair[:MAX_LINE], keep_newlines=False))
        strong = self._palette.added_word if line.sign == "+" else self._palette.removed_word
        edges = sorted({0, len(text), *code.ends, *(edge for pair in words for edge in pair)})
        out = Runs()
        position = 0
        for start, end in pairwise(edges):
            while position < len(code.ends) and code.ends[position] <= start:
                position += 1
            colour = code.styles[position] if position < len(code.ends) else Style()
            marked = any(begin <= start and end <= stop for begin, stop in words)
            out.add(end, style + strong if marked else style + colour)
        return out


class _Line:
    """A line of a diff as a source of rows; its styles are computed when first painted."""

    __slots__ = ("_lines", "_number", "_of", "_runs")

    def __init__(self, lines: _Lines, number: int, of: DiffLine) -> None:
        self._lines = lines
        self._number = number
        self._of = of
        self._runs: Runs | None = None

    @property
    def text(self) -> SafeText:
        return self._lines.text(self._number)

    def segments(self, start: int, end: int) -> list[Segment]:
        if self._runs is None:
            self._runs = self._lines.runs(self._number, self._of)
        return cut_runs(self.text, self._runs, start, end)
