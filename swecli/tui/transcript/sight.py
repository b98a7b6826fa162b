"""Making the heights of what is in sight exact. Pure arithmetic on a page."""

from __future__ import annotations

from swecli.tui.transcript.page import Page


def measure_end(page: Page, height: int) -> None:
    """Make the last ``height`` lines exact."""
    index = page.index
    for number in range(len(index) - 1, -1, -1):
        if height <= 0:
            break
        if not index.is_exact(number):
            page.measure(number)
        height -= index.height(number)


def measure_from(page: Page, line: int, height: int) -> tuple[int, int]:
    """Make ``height`` lines from a line on exact. Returns the line where that text is now, or the last one from
    which a view of this height is full, and by how many lines text in sight was moved."""
    moved = 0
    while True:
        line, by = _measure_below(page, min(line, last_line(page, height)), height)
        moved += by
        if line <= last_line(page, height):
            return line, moved


def last_line(page: Page, height: int) -> int:
    """The line from which on the end of the page is in sight."""
    return max(0, page.index.total - height)


def _measure_below(page: Page, line: int, height: int) -> tuple[int, int]:
    index = page.index
    moved = 0
    number = index.at(line).block
    while number < len(index) and index.top(number) < line + height:
        if index.is_exact(number):
            number += 1
            continue
        above = index.top(number) < line
        difference = page.measure(number)
        if above and difference:
            line = max(0, line + difference)
            moved += difference
            number = min(number, index.at(line).block)
    return line, moved
