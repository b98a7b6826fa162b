"""Tables: as wide as they need to be, or with broken cells, or without their last columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from swecli.core.protocol.blocks import TableBlock
from swecli.safe_text import SafeText, safe_line
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import Row, Styled, plain_rows
from swecli.tui.transcript.wrap import cells, cut, wrap

Align = Literal["left", "center", "right"]
NARROWEST: Final = 6
"""Cells below which no column is squeezed."""
TALLEST: Final = 6
"""Rows of one cell; the rest is cut."""
SEPARATOR: Final = SafeText(" │ ")


def render_table(block: TableBlock, width: int, palette: Palette) -> list[Row]:
    """The rows of a table block."""
    rows = plain_rows(safe_line(block.title), width, palette.strong) if block.title else []
    head = [Styled(safe_line(cell), palette.table_head) for cell in block.headers]
    body = [[Styled(safe_line(cell)) for cell in row] for row in block.rows]
    return rows + table_rows(head, body, (), width, palette)


def table_rows(
    head: Sequence[Styled], body: Sequence[Sequence[Styled]], aligns: Sequence[Align], width: int, palette: Palette
) -> list[Row]:
    """Rows of a table from its cells, each one line of styled text."""
    columns = max([len(head), *(len(row) for row in body)], default=0)
    if columns == 0:
        return []
    natural = [1] * columns
    for row in (head, *body):
        for number, cell in enumerate(row):
            natural[number] = max(natural[number], cells(cell.text))
    widths = column_widths(natural, width)
    shown = len(widths)
    out: list[Row] = []
    if any(cell.text for cell in head):
        out += _line(head, widths, aligns, width, palette)
        rule = SafeText("─┼─".join("─" * size for size in widths))
        out += Styled(cut(rule, width), palette.rule).rows(width)
    for row in body:
        out += _line(row, widths, aligns, width, palette)
    if shown < columns:
        more = SafeText(f"… {columns - shown} more columns do not fit")
        out += Styled(more, palette.dim).rows(width)
    return out


def column_widths(natural: Sequence[int], width: int) -> list[int]:
    """Widths of the columns that are shown: the widest are squeezed first, to ``NARROWEST`` at most; what does
    not fit even then is left out from the right."""
    gap = len(SEPARATOR)
    count = 0
    used = -gap
    for size in natural:
        used += min(size, NARROWEST) + gap
        if used > width and count:
            break
        count += 1
    widths = list(natural[:count])
    over = sum(widths) + gap * (count - 1) - width
    while over > 0:
        widest = max(widths)
        if widest <= min(NARROWEST, width) and count > 1:
            break
        places = [number for number, size in enumerate(widths) if size == widest]
        second = max((size for size in widths if size < widest), default=0)
        target = max(second, NARROWEST if count > 1 else 1, widest - -(-over // len(places)))
        target = min(target, widest - 1)
        for number in places:
            step = min(widest - target, over)
            widths[number] -= step
            over -= step
    return widths


def _line(
    cells_of_row: Sequence[Styled], widths: Sequence[int], aligns: Sequence[Align], width: int, palette: Palette
) -> list[Row]:
    pieces = [
        wrap(cell.text, size)[:TALLEST] if cell.text else [] for cell, size in zip(cells_of_row, widths, strict=False)
    ]
    out: list[Row] = []
    for number in range(max([1, *(len(parts) for parts in pieces)])):
        line = Styled()
        for column, size in enumerate(widths):
            if column:
                line.add(SEPARATOR, palette.rule)
            parts = pieces[column] if column < len(pieces) else []
            used = 0
            align = aligns[column] if column < len(aligns) else "left"
            if number < len(parts):
                cell, piece = cells_of_row[column], parts[number]
                text = SafeText(cell.text[piece.start : piece.end])
                last = number == TALLEST - 1 and piece.end < len(cell.text)
                used = min(size, cells(text) + last)
                left = {"left": 0, "right": size - used, "center": (size - used) // 2}[align]
                line.add(SafeText(" " * left))
                used += left
                if last or cells(text) > size:
                    line.add(cut(SafeText(text + "…"), size), palette.dim)
                else:
                    for part in cell.segments(piece.start, piece.end):
                        line.add(SafeText(part.text), part.style or palette.text)
            if column < len(widths) - 1:
                line.add(SafeText(" " * (size - used)))
        out += line.rows(max(width, cells(line.text)), words=False)
    return out
