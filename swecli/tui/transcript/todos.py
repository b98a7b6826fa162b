"""A list of todos."""

from __future__ import annotations

from swecli.core.protocol.blocks import TodoBlock
from swecli.safe_text import SafeText, safe_line
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import Gutter, Row, Styled, segment


def render_todos(block: TodoBlock, width: int, palette: Palette) -> list[Row]:
    """One entry per todo; its state is told by the sign, not by colour alone."""
    out: list[Row] = []
    for todo in block.todos:
        sign, sign_style, style = {
            "pending": ("☐ ", palette.dim, palette.text),
            "in_progress": ("▶ ", palette.accent, palette.strong),
            "completed": ("☑ ", palette.success, palette.dim),
        }[todo.status]
        gutter: Gutter = (segment(SafeText(sign), sign_style),)
        out += Styled(safe_line(todo.text), style).rows(max(1, width - 2), gutter, (segment(SafeText("  ")),))
    return out or Styled(SafeText("no todos"), palette.dim).rows(width)
