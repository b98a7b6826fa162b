"""One renderer for each type of display block, found by the block's type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swecli.core.protocol.blocks import (
    DiffBlock,
    DisplayBlock,
    FileListBlock,
    ImageBlock,
    MarkdownBlock,
    TableBlock,
    TerminalBlock,
    TextBlock,
    TodoBlock,
)
from swecli.safe_text import SafeText, sanitise
from swecli.tui.transcript.diff import render_diff
from swecli.tui.transcript.files import render_files
from swecli.tui.transcript.images import render_image
from swecli.tui.transcript.markdown import render_markdown
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import ENTER_SHOWS_ALL, Gutter, Row, Styled, blank, plain_rows
from swecli.tui.transcript.table import render_table
from swecli.tui.transcript.terminal import render_terminal
from swecli.tui.transcript.todos import render_todos


def render_text(block: TextBlock, width: int, palette: Palette) -> list[Row]:
    """Text as it is, wrapped."""
    style = {"plain": palette.text, "dim": palette.dim, "warning": palette.warning, "error": palette.error}
    return plain_rows(sanitise(block.text.rstrip("\n")), width, style[block.style])


def render_display(block: DisplayBlock, width: int, palette: Palette) -> list[Row]:
    """All rows of a display block at a width in cells."""
    match block:
        case TextBlock():
            return render_text(block, width, palette)
        case MarkdownBlock():
            return render_markdown(block, width, palette)
        case DiffBlock():
            return render_diff(block, width, palette)
        case TerminalBlock():
            return render_terminal(block, width, palette)
        case FileListBlock():
            return render_files(block, width, palette)
        case TodoBlock():
            return render_todos(block, width, palette)
        case TableBlock():
            return render_table(block, width, palette)
        case ImageBlock():
            return render_image(block, width, palette)


def render_displays(
    blocks: Sequence[DisplayBlock],
    width: int,
    palette: Palette,
    render: Callable[[DisplayBlock, int, Palette], list[Row]] = render_display,
) -> list[Row]:
    """The rows of several blocks, with an empty row between two."""
    out: list[Row] = []
    for block in blocks:
        rows = render(block, width, palette)
        if out and rows:
            out.append(blank())
        out += rows
    return out


def fold(rows: list[Row], head: int, tail: int, width: int, palette: Palette, gutter: Gutter = ()) -> list[Row]:
    """The first and last rows, with a line that says how many are hidden between them. Rows stay whole where
    hiding would not save any."""
    hidden = len(rows) - head - tail
    if hidden <= 1:
        return rows
    text = SafeText(f"… {hidden:,} lines hidden, {ENTER_SHOWS_ALL}")
    return [*rows[:head], *Styled(text, palette.dim).rows(width, gutter), *rows[len(rows) - tail :]]
