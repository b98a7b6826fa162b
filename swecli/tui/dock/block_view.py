"""Display blocks in a scrolling box: a change in full, a command exactly as it would run."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TerminalBlock
from swecli.safe_text import SafeText, sanitise
from swecli.tui.transcript.diff import TextDiff, compare, render_diff, render_lines
from swecli.tui.transcript.palette import Palette, palette_for
from swecli.tui.transcript.rows import NO_STYLE, Row, plain_rows, segment
from swecli.tui.transcript.tool_rows import output_rows, render_display


def render(blocks: Sequence[DisplayBlock], width: int, palette: Palette) -> list[Strip]:
    """Lines of all blocks, each at most ``width`` cells wide."""
    several = sum(isinstance(block, DiffBlock) for block in blocks) > 1
    rows = [row for block in blocks for row in _rows(block, width, palette, named=several)]
    return [Strip(row.segments()).adjust_cell_length(width, row.fill or NO_STYLE) for row in rows]


def first_change(blocks: Sequence[DisplayBlock], width: int, palette: Palette) -> tuple[int, int]:
    """Number of lines before a diff's first changed line, and of changed lines that follow it; zeros without a diff."""
    several = sum(isinstance(block, DiffBlock) for block in blocks) > 1
    before = 0
    for block in blocks:
        lines = compare(block).lines if isinstance(block, DiffBlock) else ()
        start = next((index for index, line in enumerate(lines) if line.sign in "+-"), None)
        if isinstance(block, DiffBlock) and start is not None:
            end = next((index for index in range(start, len(lines)) if lines[index].sign not in "+-"), len(lines))
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
    """The command with every character visible, including carriage returns and tabs, which affect the shell."""
    shown = sanitise(block.command.replace("\r", "\u240d"), tabs=0)
    mark, rest = (segment(SafeText("$ "), palette.user_mark),), (segment(SafeText("  ")),)
    rows = plain_rows(shown, max(1, width - 2), palette.strong, mark, rest)
    if block.cwd:
        rows += plain_rows(sanitise(f"in {block.cwd}"), max(1, width - 2), palette.dim, rest, rest)
    return rows


class BlockView(ScrollView, can_focus=False):
    """Scrolling box; its lines are rendered once per width and theme."""

    DEFAULT_CSS = """
    BlockView { height: auto; max-height: 10; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(self, blocks: Sequence[DisplayBlock]) -> None:
        super().__init__()
        self._blocks = tuple(blocks)
        self._key: tuple[int, Palette] | None = None
        self._lines: list[Strip] = []
        self._tail = self._follows = False
        self._own_offset = 0
        """Automatic scroll position; any other position is the user's."""

    def show(self, blocks: Sequence[DisplayBlock], *, tail: bool = False) -> None:
        """Show other blocks from the start. With ``tail``, show their end, also after growth, unless the user has
        scrolled away."""
        self._follows = tail and (not self._tail or self.is_vertical_scroll_end)
        self._tail = tail
        self._blocks = tuple(blocks)
        self._key = None
        if not tail:
            self.scroll_to(0, 0, animate=False, immediate=True)
            self._own_offset = 0
        if self.size:
            self.on_resize()
        self.refresh()

    @property
    def overflows(self) -> bool:
        """Whether some lines are out of view."""
        return len(self._lines) > self.size.height

    def lines(self, width: int) -> list[Strip]:
        key = (width, palette_for(self.app.current_theme))
        if key != self._key:
            self._lines = render(self._blocks, max(1, width), key[1])
            self._key = key
        return self._lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines(max(1, width)))

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        self.virtual_size = Size(width, len(self.lines(width)))
        if self._follows:
            self.scroll_end(animate=False, immediate=True, force=True)
        elif not self._tail and self._own_offset == int(self.scroll_offset.y):
            self._bring_first_change(width)

    def _bring_first_change(self, width: int) -> None:
        """Scroll to the first changed line if the view is too low for it."""
        start, count = first_change(self._blocks, max(1, width), palette_for(self.app.current_theme))
        wanted = start if start + count > self.size.height else 0
        self.scroll_to(0, wanted, animate=False, immediate=True, force=True)
        self._own_offset = int(self.scroll_offset.y)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        lines = self.lines(width)
        index = y + int(self.scroll_offset.y)
        if index >= len(lines):
            return Strip.blank(width, self.rich_style)
        return lines[index].adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)
