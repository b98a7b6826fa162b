"""The search of the transcript: which blocks and rows match, and the walk from match to match."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.protocol.blocks import DiffBlock
from swecli.tui.transcript.blocks import Block, Operation, Put, ShownBlock, ToolBlock
from swecli.tui.transcript.page import Page
from swecli.tui.transcript.plain import block_text
from swecli.tui.transcript.rows import Row


class SearchState(Struct, frozen=True):
    """State of a search: ``current`` counts from 1 among the ``total`` matching blocks; 0 before the first."""

    query: str = ""
    current: int = 0
    total: int = 0


def matching_blocks(blocks: Iterable[Block], query: str) -> list[int]:
    """Numbers of the blocks whose text contains the query, ignoring case."""
    wanted = query.lower()
    return [number for number, block in enumerate(blocks) if _holds(block, wanted)] if wanted else []


def _holds(block: Block, wanted: str) -> bool:
    """Whether the block's text contains ``wanted``. A diff is only computed if one of its texts does."""
    if isinstance(block, ToolBlock | ShownBlock):
        parts = tuple(
            part
            for part in block.blocks
            if not isinstance(part, DiffBlock)
            or any(wanted in (text or "").lower() for text in (part.path, part.old, part.new))
        )
        if len(parts) < len(block.blocks):
            block = replace(block, blocks=parts)
    return wanted in block_text(block).lower()


def row_spans(row: Row, query: str) -> Iterator[tuple[int, int]]:
    """Spans of the query in a row's body (start and end in characters)."""
    wanted, text = query.lower(), row.body.lower()
    if not wanted or len(text) != len(row.body):
        return
    start = text.find(wanted)
    while start >= 0:
        yield start, start + len(wanted)
        start = text.find(wanted, start + len(wanted))


def match_rows(rows: Sequence[Row], query: str) -> list[int]:
    """The number of the row where each match begins; a match may continue in wrapped rows. Except in a
    diff, which may show a line twice, their order and count do not depend on the width."""
    wanted = query.lower()
    out: list[int] = []
    first = 0
    while first < len(rows):
        last = first + 1
        text = rows[first].body.lower()
        starts = [0]
        while last < len(rows) and rows[last].join is not None:
            starts.append(len(text) + len(rows[last].join or ""))
            text += (rows[last].join or "") + rows[last].body.lower()
            last += 1
        offset = text.find(wanted) if wanted else -1
        while offset >= 0:
            out.append(first + bisect_right(starts, offset) - 1)
            offset = text.find(wanted, offset + len(wanted))
        first = last
    return out


class Search:
    """A search in progress: the matching blocks and the current row."""

    def __init__(self, page: Page, query: str) -> None:
        self.query = query
        self.blocks = [page.blocks.id_at(number) for number in matching_blocks(page.blocks, query)]
        """Ids of the matching blocks, in order."""
        self._page = page
        self._block = -1
        """Index of the current match's block in ``blocks``; -1 before the first."""
        self._match = 0
        """Index of the current match in its block, which a new width leaves as it is."""
        self._known: tuple[Sequence[Row], list[int]] = ((), [])
        """The rows looked at last, and where their matches begin."""

    @property
    def current(self) -> int:
        """Number of the current block, from 1; 0 before the first."""
        return self._block + 1

    def take_in(self, operations: Iterable[Operation]) -> bool:
        """Add changed blocks that match for the first time. Returns whether there are any."""
        wanted, before = self.query.lower(), len(self.blocks)
        for operation in operations:
            if not isinstance(operation, Put) or operation.block.id in self.blocks:
                continue
            number = self._page.place(operation.block.id)
            if number is None or not _holds(operation.block, wanted):
                continue
            index = bisect_right(self.blocks, number, key=lambda known: self._page.place(known) or 0)
            self.blocks.insert(index, operation.block.id)
            self._block += index <= self._block
        return len(self.blocks) > before

    def is_at(self, number: int, row: Row) -> bool:
        """Whether the current match begins in this row."""
        if self._block < 0 or self._page.place(self.blocks[self._block]) != number:
            return False
        rows = self._page.rows(number)
        matches = self._matches(rows)
        return self._match < len(matches) and rows[matches[self._match]] is row

    def go(self, step: Literal[-1, 1]) -> tuple[int, int] | None:
        """Go to the next or previous match, wrapping around; initially to the first or last. A block that hides its
        match is expanded. Returns the numbers of block and row; None without a match."""
        if self._block >= 0:
            number = self._page.place(self.blocks[self._block])
            rows = self._rows(number) if number is not None else []
            current = rows[min(self._match, len(rows) - 1)] if rows else 0
            further = [match for match, row in enumerate(rows) if (row > current if step > 0 else row < current)]
            if number is not None and further:
                return number, self._at(rows, further[0] if step > 0 else further[-1])
        for count in range(1, len(self.blocks) + 1):
            start = self._block if self._block >= 0 or step > 0 else 0
            index = (start + step * count) % len(self.blocks)
            number = self._page.place(self.blocks[index])
            if number is not None:
                rows = self._rows(number) or [0]
                self._block = index
                return number, self._at(rows, 0 if step > 0 else len(rows) - 1)
        return None

    def _at(self, rows: Sequence[int], match: int) -> int:
        """Make the first match in the row of this one the current one. Returns the row."""
        self._match = rows.index(rows[match])
        return rows[match]

    def _rows(self, number: int) -> list[int]:
        rows = self._matches(self._page.rows(number))
        if not rows and not self._page.is_expanded(number) and self._page.toggle(number):
            rows = self._matches(self._page.rows(number))
            if not rows:
                self._page.toggle(number)
        return rows

    def _matches(self, rows: Sequence[Row]) -> list[int]:
        if self._known[0] is not rows:
            self._known = (rows, match_rows(rows, self.query))
        return self._known[1]
