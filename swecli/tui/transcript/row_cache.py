"""The rows of the blocks that were drawn last."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from swecli.tui.transcript.rows import Row

MAX_CACHED: Final = 200
"""Blocks whose rows are kept. Few, because the collector of the interpreter walks over all of them."""
MAX_CACHED_ROWS: Final = 8_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rows of one block, and how it was drawn: in its long form or not, with an empty row before it or not."""

    expanded: bool
    gap: bool
    rows: list[Row]


class RowCache:
    """By the ids of blocks; what was not asked for the longest is let go first."""

    def __init__(self) -> None:
        self._drawn: OrderedDict[str, Drawn] = OrderedDict()
        self._rows = 0

    def get(self, block_id: str, *, expanded: bool, gap: bool) -> list[Row] | None:
        """The rows of a block, if it was drawn in this way last."""
        drawn = self._drawn.get(block_id)
        if drawn is None or drawn.expanded != expanded or drawn.gap != gap:
            return None
        self._drawn.move_to_end(block_id)
        return drawn.rows

    def keep(self, block_id: str, drawn: Drawn) -> None:
        """Keep what was drawn of a block, in place of what was kept of it before."""
        self.drop(block_id)
        self._drawn[block_id] = drawn
        self._rows += len(drawn.rows)
        while len(self._drawn) > 1 and (len(self._drawn) > MAX_CACHED or self._rows > MAX_CACHED_ROWS):
            _, old = self._drawn.popitem(last=False)
            self._rows -= len(old.rows)

    def drop(self, block_id: str) -> None:
        """Forget the rows of a block."""
        old = self._drawn.pop(block_id, None)
        if old is not None:
            self._rows -= len(old.rows)

    def clear(self) -> None:
        """Forget all rows."""
        self._drawn.clear()
        self._rows = 0
