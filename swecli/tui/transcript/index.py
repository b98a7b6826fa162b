"""Heights of all blocks: which block is at a line, and where it begins."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place that survives changes of height: a block and a line within it."""

    block: int
    line: int


class HeightIndex:
    """A list of heights with their running sums. Appending and growing the last block cost nothing; other
    changes are summed up again when a place behind them is asked for."""

    __slots__ = ("_clean", "_ends", "_exact", "_heights")

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._ends: list[int] = []
        self._exact = bytearray()
        self._clean = 0
        """``_ends`` is right up to this block."""

    def __len__(self) -> int:
        return len(self._heights)

    def append(self, height: int, *, exact: bool = False) -> None:
        self._heights.append(height)
        self._exact.append(exact)

    def set(self, block: int, height: int, *, exact: bool = True) -> int:
        """Change a height. Returns the difference in lines."""
        difference = height - self._heights[block]
        self._exact[block] = exact
        if difference:
            self._heights[block] = height
            self._clean = min(self._clean, block)
        return difference

    def remove(self, block: int) -> int:
        """Take a block out; those behind it move up by one. Returns its height."""
        height = self._heights.pop(block)
        del self._exact[block]
        self._clean = min(self._clean, block)
        return height

    def reset(self, heights: list[int]) -> None:
        """All heights anew, as estimates."""
        self._heights = heights
        self._exact = bytearray(len(heights))
        self._clean = 0

    def height(self, block: int) -> int:
        return self._heights[block]

    def is_exact(self, block: int) -> bool:
        return bool(self._exact[block])

    def next_estimate(self, start: int) -> int | None:
        """The first block from ``start`` on whose height is an estimate."""
        found = self._exact.find(0, start)
        return found if found >= 0 else None

    @property
    def total(self) -> int:
        self._sum()
        return self._ends[-1] if self._ends else 0

    def top(self, block: int) -> int:
        """The line at which a block begins; for the block behind the last one, the end."""
        self._sum()
        return self._ends[block - 1] if block else 0

    def at(self, line: int) -> Anchor:
        """The place at a line; behind the end it is the end of the last block."""
        self._sum()
        if not self._ends:
            return Anchor(0, 0)
        block = bisect_right(self._ends, max(0, line))
        if block >= len(self._ends):
            last = len(self._ends) - 1
            return Anchor(last, self._heights[last])
        return Anchor(block, max(0, line) - self._ends[block] + self._heights[block])

    def line(self, anchor: Anchor) -> int:
        """The line of a place."""
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
