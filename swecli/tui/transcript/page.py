"""Content of the transcript laid out at a width: blocks, heights and rows. Independent of the screen."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import Final

from msgspec import Struct

from swecli.tui.preferences import Density
from swecli.tui.transcript.block_rows import Drawn, RowCache, answer_ending, gap_before, is_centred, render_block
from swecli.tui.transcript.blocks import (
    AnswerBlock,
    Block,
    BlockList,
    CompactionBlock,
    Operation,
    Put,
    ReasoningBlock,
    RewoundBlock,
    SessionBlock,
    ToolBlock,
    UserBlock,
    is_live,
)
from swecli.tui.transcript.markdown import MarkdownStream
from swecli.tui.transcript.palette import DARK, Palette
from swecli.tui.transcript.rows import Row, blank


class Anchor(Struct, frozen=True):
    """A position that survives changes of height: a block and a line within it."""

    block: int
    line: int


class HeightIndex:
    """Heights with their running sums. Appending and growing the last block are free; other changes are summed again on
    the next lookup behind them."""

    __slots__ = ("_clean", "_ends", "_exact", "_heights")

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._ends: list[int] = []
        self._exact = bytearray()
        self._clean = 0
        """Number of blocks up to which ``_ends`` is valid."""

    def __len__(self) -> int:
        return len(self._heights)

    def append(self, height: int) -> None:
        """Add a block with an estimated height."""
        self._heights.append(height)
        self._exact.append(False)

    def set(self, block: int, height: int, *, exact: bool = True) -> int:
        """Change a height. Returns the difference in lines."""
        difference = height - self._heights[block]
        self._exact[block] = exact
        if difference:
            self._heights[block] = height
            self._clean = min(self._clean, block)
        return difference

    def remove(self, block: int) -> int:
        """Remove a block; later ones move up by one. Returns its height."""
        height = self._heights.pop(block)
        del self._exact[block]
        self._clean = min(self._clean, block)
        return height

    def reset(self, heights: list[int]) -> None:
        """Replace all heights by estimates."""
        self._heights = heights
        self._exact = bytearray(len(heights))
        self._clean = 0

    def height(self, block: int) -> int:
        return self._heights[block]

    def is_exact(self, block: int) -> bool:
        return bool(self._exact[block])

    @property
    def total(self) -> int:
        self._sum()
        return self._ends[-1] if self._ends else 0

    def top(self, block: int) -> int:
        """First line of a block; for the index behind the last block, the end."""
        self._sum()
        return self._ends[block - 1] if block else 0

    def at(self, line: int) -> Anchor:
        """Position at a line; beyond the end, the end of the last block."""
        self._sum()
        if not self._ends:
            return Anchor(0, 0)
        block = bisect_right(self._ends, max(0, line))
        if block >= len(self._ends):
            last = len(self._ends) - 1
            return Anchor(last, self._heights[last])
        return Anchor(block, max(0, line) - self._ends[block] + self._heights[block])

    def line(self, anchor: Anchor) -> int:
        return self.top(anchor.block) + anchor.line

    def _sum(self) -> None:
        count = len(self._heights)
        if self._clean == count and len(self._ends) == count:
            return
        clean = min(self._clean, len(self._ends))
        del self._ends[clean:]
        base = self._ends[-1] if clean else 0
        sums = accumulate(self._heights[clean:], initial=base)
        next(sums)
        self._ends.extend(sums)
        self._clean = count


class Guesses:
    """Height estimates: per block its rows at any width, and the characters that fill further ones."""

    __slots__ = ("_lengths", "_rows")

    def __init__(self) -> None:
        self._rows, self._lengths = array("q"), array("q")

    def put(self, place: int, rows: int, length: int) -> None:
        """Set the estimate of a block, or append one."""
        if place == len(self._rows):
            self._rows.append(rows)
            self._lengths.append(length)
        else:
            self._rows[place], self._lengths[place] = rows, length

    def remove(self, place: int) -> None:
        """Remove a block; later ones move up by one."""
        del self._rows[place], self._lengths[place]

    def clear(self) -> None:
        del self._rows[:], self._lengths[:]

    def at(self, place: int, width: int) -> int:
        """Estimated height of a block at a width."""
        return self._rows[place] + self._lengths[place] // width

    def all(self, width: int) -> list[int]:
        """Estimated heights of all blocks at a width."""
        return [rows + length // width for rows, length in zip(self._rows, self._lengths, strict=True)]


FOLDING: Final = (UserBlock, ReasoningBlock, ToolBlock, CompactionBlock, RewoundBlock)
"""Blocks with a short and a long form."""


class _Stream(Struct):
    revision: int
    markdown: MarkdownStream


class Page:
    """Blocks in order, their rows at the current width, and the index of their heights."""

    def __init__(self, palette: Palette = DARK) -> None:
        self.blocks = BlockList()
        self.index = HeightIndex()
        self._guesses = Guesses()
        self._width = 80
        self._window = 0
        self._palette = palette
        self._density: Density = "usual"
        self._toggled: set[str] = set()
        """Blocks whose form differs from the density's."""
        self._drawn = RowCache()
        self._streams: dict[str, _Stream] = {}

    @property
    def width(self) -> int:
        return self._width

    @property
    def palette(self) -> Palette:
        return self._palette

    def place(self, block_id: str) -> int | None:
        """Index of a block; None if there is none with this id."""
        return self.blocks.place(block_id)

    def block(self, block_id: str) -> Block | None:
        index = self.blocks.place(block_id)
        return None if index is None else self.blocks[index]

    def configure(
        self,
        *,
        width: int | None = None,
        window: int = 0,
        palette: Palette | None = None,
        density: Density | None = None,
    ) -> bool:
        """Change how everything is drawn. ``window`` is the window's height: a greeting alone stands in its middle.
        Returns whether anything else changed. Heights become estimates if width or density changed."""
        if window and window != self._window:
            self._window = window
            self._redraw_greeting()
        before, palette_before = (self._width, self._density), self._palette
        self._width = max(1, width) if width is not None else self._width
        self._palette = palette if palette is not None else self._palette
        if density is not None and density != self._density:
            self._density = density
            self._toggled.clear()
        same = before == (self._width, self._density)
        if same and palette_before == self._palette:
            return False
        self.forget()
        self._streams.clear()
        if not same:
            if before[1] != self._density:
                for index in range(len(self.blocks)):
                    self._guess(index)
            self.index.reset(self._guesses.all(self._width))
        return True

    def forget(self) -> None:
        """Discard all rows, to draw them on demand."""
        self._drawn.clear()

    def apply(self, operation: Operation) -> int | None:
        """Put or remove a block. Returns its index; None if there was nothing to remove."""
        if isinstance(operation, Put):
            return self._put(operation.block)
        index = self.blocks.place(operation.id)
        if index is None:
            return None
        self.blocks.remove(index)
        self.index.remove(index)
        self._guesses.remove(index)
        self._drawn.drop(operation.id)
        self._streams.pop(operation.id, None)
        self._toggled.discard(operation.id)
        if len(self.blocks) == 1:
            self._redraw_greeting()
        return index

    def clear(self) -> None:
        self.blocks.clear()
        self.index.reset([])
        self._guesses.clear()
        self._toggled.clear()
        self._streams.clear()
        self.forget()

    def is_expanded(self, place: int) -> bool:
        return (self._density == "full") != (self.blocks.id_at(place) in self._toggled)

    def toggle(self, place: int) -> bool:
        """Switch between the short and the long form. Returns whether the block has both."""
        if not issubclass(self.blocks.kind_at(place), FOLDING):
            return False
        self._toggled ^= {self.blocks.id_at(place)}
        self.measure(place)
        return True

    def measure(self, place: int) -> int:
        """Measure a block. Returns the change of its height in rows."""
        return self.index.set(place, len(self.rows(place)))

    def measure_end(self, height: int) -> None:
        """Measure the last ``height`` lines."""
        index = self.index
        for number in range(len(index) - 1, -1, -1):
            if height <= 0:
                break
            if not index.is_exact(number):
                self.measure(number)
            height -= index.height(number)

    def measure_from(self, line: int, height: int) -> tuple[int, int]:
        """Measure ``height`` lines from a line. Returns the new line of the same text (at most the last one that fills
        the view), and by how many lines visible text moved."""
        moved = 0
        while True:
            line, by = self._measure_below(min(line, self.last_line(height)), height)
            moved += by
            if line <= self.last_line(height):
                return line, moved

    def last_line(self, height: int) -> int:
        """First visible line when the end of the page is in view."""
        return max(0, self.index.total - height)

    def _measure_below(self, line: int, height: int) -> tuple[int, int]:
        index = self.index
        moved = 0
        number = index.at(line).block
        while number < len(index) and index.top(number) < line + height:
            if index.is_exact(number):
                number += 1
                continue
            above = index.top(number) < line
            difference = self.measure(number)
            if above and difference:
                line = max(0, line + difference)
                moved += difference
                number = min(number, index.at(line).block)
        return line, moved

    def rows(self, place: int) -> list[Row]:
        """Rows of a block, including the empty one before it."""
        block_id, expanded, gap = self.blocks.id_at(place), self.is_expanded(place), self._gap(place)
        known = self._drawn.get(block_id, expanded=expanded, gap=gap)
        if known is not None:
            return known
        rows = self._render(self.blocks[place], expanded=expanded, short=self._density == "short" and not expanded)
        if rows and gap:
            rows = [blank(), *rows]
        if len(self.blocks) == 1 and is_centred(self.blocks[place], self._width):
            rows = [blank()] * max(0, (self._window - len(rows)) // 2) + rows
        self._drawn.keep(block_id, Drawn(expanded, gap, rows))
        return rows

    def _put(self, block: Block) -> int:
        known = self.blocks.place(block.id)
        index = self.blocks.put(block)
        self._guess(index)
        about = self._guesses.at(index, self._width)
        if known is None:
            self.index.append(about)
            if index == 1:
                self._redraw_greeting()
            return index
        self._drawn.drop(block.id)
        self.index.set(index, max(about, self.index.height(index)), exact=False)
        return index

    def _redraw_greeting(self) -> None:
        """What is first may stand in the middle of the window no longer, or again."""
        if self.blocks and self.blocks.kind_at(0) is SessionBlock:
            self._drawn.drop(self.blocks.id_at(0))
            self.measure(0)

    def _gap(self, index: int) -> bool:
        return gap_before(self.blocks.kind_at(index - 1) if index else None, self.blocks.kind_at(index))

    def _render(self, block: Block, *, expanded: bool, short: bool) -> list[Row]:
        if not isinstance(block, AnswerBlock):
            return render_block(block, self._width, self._palette, expanded=expanded, short=short)
        stream = self._streams.get(block.id)
        if stream is not None and stream.revision != block.revision:
            stream = None
        if not is_live(block) and stream is None:
            return render_block(block, self._width, self._palette, expanded=expanded)
        if stream is None:
            stream = self._streams[block.id] = _Stream(block.revision, MarkdownStream(self._width, self._palette))
        if stream.markdown.length < len(block.text):
            stream.markdown.feed(block.text[stream.markdown.length :])
        if is_live(block):
            return list(stream.markdown.rows)
        stream.markdown.finish()
        del self._streams[block.id]
        return stream.markdown.rows + answer_ending(block, self._width, self._palette)

    def _guess(self, index: int) -> None:
        """Estimate a block's rows from the length of its text."""
        shape, gap = self.blocks.shape(index), self._gap(index)
        if issubclass(shape.kind, UserBlock | AnswerBlock):
            rows = shape.lines + 1 + gap if shape.length else 0
        elif issubclass(shape.kind, ToolBlock):
            rows = 1 + gap + (0 if self._density == "short" else min(13, 8 * shape.displays))
        else:
            rows = 1 + gap + 8 * shape.displays
        self._guesses.put(index, rows, shape.length)
