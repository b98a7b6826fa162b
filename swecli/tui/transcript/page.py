"""What the transcript holds, laid out at a width: blocks, their heights and rows. Knows nothing of the screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from swecli.tui.preferences import Density
from swecli.tui.transcript.block_list import BlockList
from swecli.tui.transcript.block_rows import answer_ending, gap_before, render_block
from swecli.tui.transcript.blocks import (
    AnswerBlock,
    Block,
    CompactionBlock,
    Operation,
    Put,
    ReasoningBlock,
    RewoundBlock,
    SubagentBlock,
    ToolBlock,
    UserBlock,
    is_live,
)
from swecli.tui.transcript.guesses import Guesses
from swecli.tui.transcript.index import HeightIndex
from swecli.tui.transcript.markdown_stream import MarkdownStream
from swecli.tui.transcript.palette import DARK, Palette
from swecli.tui.transcript.row_cache import Drawn, RowCache
from swecli.tui.transcript.rows import Row, blank

FOLDING: Final = (UserBlock, ReasoningBlock, ToolBlock, SubagentBlock, CompactionBlock, RewoundBlock)
"""Blocks that have a short and a long form."""


@dataclass(slots=True)
class _Stream:
    revision: int
    markdown: MarkdownStream


class Page:
    """Blocks in order, their rows at the present width, and the index of their heights."""

    def __init__(self, palette: Palette = DARK) -> None:
        self.blocks = BlockList()
        self.index = HeightIndex()
        self._guesses = Guesses()
        self._width = 80
        self._palette = palette
        self._density: Density = "usual"
        self._toggled: set[str] = set()
        """Blocks whose form is not the one that the density asks for."""
        self._drawn = RowCache()
        self._streams: dict[str, _Stream] = {}

    @property
    def width(self) -> int:
        return self._width

    @property
    def palette(self) -> Palette:
        return self._palette

    def place(self, block_id: str) -> int | None:
        """Where a block stands; None when there is none with this id."""
        return self.blocks.place(block_id)

    def block(self, block_id: str) -> Block | None:
        """The block with an id; None when there is none."""
        place = self.blocks.place(block_id)
        return None if place is None else self.blocks[place]

    def configure(
        self, *, width: int | None = None, palette: Palette | None = None, density: Density | None = None
    ) -> bool:
        """Change how everything is drawn. Returns whether anything was changed. Heights are
        estimates where the width or the density is another one."""
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
                for place in range(len(self.blocks)):
                    self._guess(place)
            self.index.reset(self._guesses.all(self._width))
        return True

    def forget(self) -> None:
        """Draw all rows anew when they are next asked for."""
        self._drawn.clear()

    def apply(self, operation: Operation) -> int | None:
        """Put or remove a block. Returns its place; None where nothing was to remove."""
        if isinstance(operation, Put):
            return self._put(operation.block)
        place = self.blocks.place(operation.id)
        if place is None:
            return None
        self.blocks.remove(place)
        self.index.remove(place)
        self._guesses.remove(place)
        self._drawn.drop(operation.id)
        self._streams.pop(operation.id, None)
        self._toggled.discard(operation.id)
        return place

    def clear(self) -> None:
        """No blocks."""
        self.blocks.clear()
        self.index.reset([])
        self._guesses.clear()
        self._toggled.clear()
        self._streams.clear()
        self.forget()

    def is_expanded(self, place: int) -> bool:
        return (self._density == "full") != (self.blocks.id_at(place) in self._toggled)

    def toggle(self, place: int) -> bool:
        """Change between the short and the long form. Returns whether the block has two forms."""
        if not issubclass(self.blocks.kind_at(place), FOLDING):
            return False
        self._toggled ^= {self.blocks.id_at(place)}
        self.measure(place)
        return True

    def measure(self, place: int) -> int:
        """Make the height of a block exact. Returns the difference in rows."""
        return self.index.set(place, len(self.rows(place)))

    def rows(self, place: int) -> list[Row]:
        """The rows of a block, the empty one before it included."""
        block_id, expanded, gap = self.blocks.id_at(place), self.is_expanded(place), self._gap(place)
        known = self._drawn.get(block_id, expanded=expanded, gap=gap)
        if known is not None:
            return known
        rows = self._render(self.blocks[place], expanded=expanded, short=self._density == "short" and not expanded)
        if rows and gap:
            rows = [blank(), *rows]
        self._drawn.keep(block_id, Drawn(expanded, gap, rows))
        return rows

    def _put(self, block: Block) -> int:
        known = self.blocks.place(block.id)
        place = self.blocks.put(block)
        self._guess(place)
        about = self._guesses.at(place, self._width)
        if known is None:
            self.index.append(about)
            return place
        self._drawn.drop(block.id)
        self.index.set(place, max(about, self.index.height(place)), exact=False)
        return place

    def _gap(self, place: int) -> bool:
        return gap_before(self.blocks.kind_at(place - 1) if place else None, self.blocks.kind_at(place))

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

    def _guess(self, place: int) -> None:
        """Note about how many rows a block has, from the length of its text."""
        shape, gap = self.blocks.shape(place), self._gap(place)
        if issubclass(shape.kind, UserBlock | AnswerBlock):
            rows = shape.lines + 1 + gap if shape.length else 0
        elif issubclass(shape.kind, ToolBlock):
            rows = 1 + gap + (0 if self._density == "short" else min(13, 8 * shape.displays))
        else:
            rows = 1 + gap + 8 * shape.displays
        self._guesses.put(place, rows, shape.length)
