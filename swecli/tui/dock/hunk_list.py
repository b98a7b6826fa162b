"""The hunks of a change, each with a box that is ticked or not."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock
from swecli.core.protocol.hunks import EditedText, Hunk, hunk_texts
from swecli.safe_text import SafeText, safe_line
from swecli.tui.dock.block_view import BlockView
from swecli.tui.transcript.diff import render_lines
from swecli.tui.transcript.diff_lines import TextDiff, change_lines
from swecli.tui.transcript.palette import palette_for
from swecli.tui.transcript.rows import NO_STYLE, Row, Styled


class HunkList(BlockView):
    """All hunks are accepted at first."""

    def __init__(self, blocks: Sequence[DisplayBlock], hunks: Sequence[Hunk]) -> None:
        super().__init__(blocks)
        self._hunks = tuple(hunks)
        self._on = set(range(1, len(hunks) + 1))
        self._cursor = 1
        self._starts: list[int] = []
        """The line at which each hunk begins."""

    @property
    def accepted(self) -> tuple[int, ...]:
        """Numbers of the hunks that are ticked, from 1."""
        return tuple(sorted(self._on))

    @property
    def count(self) -> int:
        return len(self._hunks)

    def move(self, by: int) -> None:
        """Point at another hunk and bring it into sight."""
        self._cursor = max(1, min(self.count, self._cursor + by))
        self._changed()
        self.scroll_to(y=self._starts[self._cursor - 1], animate=False)

    def toggle(self) -> None:
        """Tick the hunk that is pointed at, or not."""
        self._on ^= {self._cursor}
        self._changed()

    def tick(self, every: bool) -> None:
        """Tick all of them, or none."""
        self._on = set(range(1, self.count + 1)) if every else set()
        self._changed()

    def text_at_cursor(self) -> tuple[int, str] | None:
        """The block that is pointed at and its text with what is ticked; None where a file is deleted."""
        block = self._hunks[self._cursor - 1].block
        text = self._composed(block)
        return None if text is None else (block, text)

    def texts_with(self, edited: EditedText) -> tuple[EditedText, ...]:
        """The edited text, and of other files the texts of which not all is ticked."""
        partly = {hunk.block for number, hunk in enumerate(self._hunks, 1) if number not in self._on}
        others = [(block, self._composed(block)) for block in sorted(partly - {edited.block})]
        return (edited, *(EditedText(block, text) for block, text in others if text is not None))

    def _composed(self, number: int) -> str | None:
        block = self._blocks[number]
        if not isinstance(block, DiffBlock) or block.new is None:
            return None
        if block.old is None:
            return block.new
        lines = block.new.split("\n")
        for place, hunk in reversed(list(enumerate(self._hunks, 1))):
            if hunk.block == number and place not in self._on:
                at = hunk.new_start - block.first_line
                lines[at : at + hunk.new_lines] = hunk_texts(block, hunk)[0]
        return "\n".join(lines)

    def _changed(self) -> None:
        self._key = None
        self.refresh()

    def on_resize(self) -> None:
        super().on_resize()
        self.virtual_size = Size(self.virtual_size.width, len(self.lines(self.scrollable_content_region.width)))

    def lines(self, width: int) -> list[Strip]:
        """The hunks at this width."""
        palette = palette_for(self.app.current_theme)
        if (width, palette) == self._key:
            return self._lines
        rows: list[Row] = []
        self._starts = []
        for number, hunk in enumerate(self._hunks, 1):
            self._starts.append(len(rows))
            block = self._blocks[hunk.block]
            assert isinstance(block, DiffBlock)
            removed, added = _without_returns(*hunk_texts(block, hunk))
            mark = "\u203a" if number == self._cursor else " "
            head = f"{mark} [{'x' if number in self._on else ' '}] {number} of {self.count}  "
            head += f"{safe_line(block.path)}:{hunk.new_start}  +{len(added)} -{len(removed)}"
            rows += Styled(SafeText(head), palette.strong).rows(width)
            changed = change_lines(removed, added, hunk.old_start - 1, hunk.new_start - 1)
            rows += render_lines(block, TextDiff(tuple(changed), len(added), len(removed)), width, palette)
        self._lines = [Strip(row.segments()).adjust_cell_length(width, row.fill or NO_STYLE) for row in rows]
        self._key = (width, palette)
        return self._lines


def _without_returns(removed: list[str], added: list[str]) -> tuple[list[str], list[str]]:
    """Lines of a file whose lines end with CR and LF, without the CR."""
    if not all(line.endswith("\r") for line in (*removed, *added)):
        return removed, added
    return [line[:-1] for line in removed], [line[:-1] for line in added]
