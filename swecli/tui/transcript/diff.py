"""Diffs: numbered lines with sign, program colours and marked words, each painted when it is first seen."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final

from rich.segment import Segment
from rich.style import Style

from swecli.core.protocol.blocks import DiffBlock
from swecli.safe_text import SafeText, safe_line, sanitise
from swecli.tui.transcript.code import CodeLines
from swecli.tui.transcript.diff_lines import DiffLine, TextDiff, changed_words, one_sided, text_diff
from swecli.tui.transcript.diff_split import Pair, columns, pair_rows, pairs
from swecli.tui.transcript.languages import language_of
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import ENTER_SHOWS_ALL, Gutter, Row, Runs, Styled, cut_runs, rows_of, segment
from swecli.tui.transcript.wrap import cut

MAX_LINE: Final = 4_000
"""Characters of one line that are drawn."""
NARROWEST: Final = 20
"""Cells of text on one side below which old and new are never side by side."""
MAX_LINES: Final = 20_000
"""Lines of one diff that are drawn."""


def render_diff(
    block: DiffBlock, width: int, palette: Palette, *, header: bool = True, limit: int | None = None
) -> list[Row]:
    """The rows of a change; the ``header`` names file and count of lines. With ``limit`` only so many rows of
    lines are made, and one that says how many are hidden."""
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
    """The rows of some lines of a change."""
    return _Lines(block, diff, width, palette, None).rows()


@lru_cache(maxsize=16)
def compare(block: DiffBlock) -> TextDiff:
    """The lines of a change."""
    if block.old is None:
        return one_sided(block.new or "", "+")
    if block.new is None:
        return one_sided(block.old, "-")
    return text_diff(block.old, block.new)


def remarks(block: DiffBlock, diff: TextDiff) -> str:
    """What is to be said of a change besides its lines."""
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
        self._index = {place: index for index, place in enumerate(needed)}
        shown = [lines[place] for place in self._index]
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
        how = ENTER_SHOWS_ALL if self._limit < MAX_LINES else "the file is too long"
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
        """What all lines with this sign have in common: the sign, what stands before its further rows, and what
        fills them."""
        style = self.style(line)
        rest: Gutter = (segment(SafeText(" " * (self._digits + 1))), segment(SafeText("  "), style))
        found = segment(SafeText(f"{line.sign} "), style), rest, style if line.sign != " " else None
        self._gutters[line.sign] = found
        return found

    def text(self, number: int) -> SafeText:
        return self._code.lines[self._index[number]]

    def style(self, line: DiffLine) -> Style:
        return {"+": self._palette.added, "-": self._palette.removed}.get(line.sign, self._palette.text)

    def runs(self, number: int, line: DiffLine) -> Runs:
        """Background of the sign, colours of the program, words that changed."""
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
    """A line of a diff as the source of rows; its styles are found when it is first painted."""

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
