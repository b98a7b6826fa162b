"""Display blocks as lines for a panel: a change in full, a command exactly as it would run."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TerminalBlock
from swecli.safe_text import SafeText, sanitise
from swecli.tui.transcript.diff import TextDiff, compare, render_diff, render_lines
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import NO_STYLE, Row, plain_rows, segment
from swecli.tui.transcript.tool_rows import output_rows, render_display


def render(blocks: Sequence[DisplayBlock], width: int, palette: Palette) -> list[Strip]:
    """All blocks, one below the other, in lines of at most ``width`` cells."""
    several = sum(isinstance(block, DiffBlock) for block in blocks) > 1
    rows = [row for block in blocks for row in _rows(block, width, palette, named=several)]
    return [Strip(row.segments()).adjust_cell_length(width, row.fill or NO_STYLE) for row in rows]


def first_change(blocks: Sequence[DisplayBlock], width: int, palette: Palette) -> tuple[int, int]:
    """The lines before the first changed one of a diff, and how many changed ones follow it; zeros without a diff."""
    several = sum(isinstance(block, DiffBlock) for block in blocks) > 1
    before = 0
    for block in blocks:
        lines = compare(block).lines if isinstance(block, DiffBlock) else ()
        start = next((place for place, line in enumerate(lines) if line.sign in "+-"), None)
        if isinstance(block, DiffBlock) and start is not None:
            end = next((place for place in range(start, len(lines)) if lines[place].sign not in "+-"), len(lines))
            above = render_lines(block, TextDiff(lines[:start], 0, 0), width, palette)
            head = len(_rows(block, width, palette, named=several)) - len(
                render_lines(block, compare(block), width, palette)
            )
            return before + head + len(above), end - start
        before += len(_rows(block, width, palette, named=several))
    return 0, 0


def _rows(block: DisplayBlock, width: int, palette: Palette, *, named: bool) -> list[Row]:
    match block:
        case DiffBlock():
            return render_diff(block, width, palette, header=named)
        case TerminalBlock():
            command = _command(block, width, palette) if block.command else []
            return [*command, *output_rows(block.output, width, palette)]
        case _:
            return render_display(block, width, palette)


def _command(block: TerminalBlock, width: int, palette: Palette) -> list[Row]:
    """The command with everything in it visible: carriage returns and tabs too, which act on the shell."""
    shown = sanitise(block.command.replace("\r", "\u240d"), tabs=0)
    mark, rest = (segment(SafeText("$ "), palette.user_mark),), (segment(SafeText("  ")),)
    rows = plain_rows(shown, max(1, width - 2), palette.strong, mark, rest)
    if block.cwd:
        rows += plain_rows(sanitise(f"in {block.cwd}"), max(1, width - 2), palette.dim, rest, rest)
    return rows
