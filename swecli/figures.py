"""Figures for people: durations, token counts, shares, the bar of every share, and rows of them as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from swecli.lazy_pattern import lazy_pattern

_EIGHTHS: Final = ("", "▎", "▎", "▍", "▌", "▋", "▊", "▉")
"""Pieces of a partly filled cell; one eighth looks like the end of the bar, so it counts as two."""


BAR: Final = lazy_pattern("▕[█▉▊▋▌▍▎ ]+▏")
"""A bar within a text, for front-ends that can draw its background."""
_COLUMN_OF_BARS: Final = lazy_pattern(" +[█▉▊▋▌▍▎]+$")


def bar(share: float, cells: int, *, ends: bool = True) -> str:
    """A share (0..1) as a bar of ``cells``, to an eighth of a cell, between its two ``ends`` unless it is in a column
    of others. Any positive share is visible, and only a complete one looks full."""
    cells = max(1, cells)
    eighths = round(min(1.0, max(0.0, share)) * cells * 8)
    if share > 0:
        eighths = max(2, eighths)
    if share < 1:
        eighths = min(cells * 8 - 1, eighths)
    full, part = divmod(eighths, 8)
    drawn = ("█" * full + _EIGHTHS[part]).ljust(cells)
    return f"▕{drawn}▏" if ends else drawn


def narrowed_bars(line: str, width: int) -> str:
    """The line with its bar in fewer cells if it has more than ``width`` characters; a column of bars is left out."""
    over = len(line) - width
    if over <= 0:
        return line
    if not (match := BAR.search(line)):
        return _COLUMN_OF_BARS.sub("", line)
    inner = match[0][1:-1]
    eighths = 8 * inner.count("█") + sum(_EIGHTHS.index(piece) for piece in inner.strip(" █"))
    return line[: match.start()] + bar(eighths / 8 / len(inner), len(inner) - over) + line[match.end() :]


def percent(share: float) -> str:
    """A whole percentage; 100 % only when it is reached."""
    value = share * 100
    return f"{min(99, round(value)) if value < 100 else round(value)}%"


def portion(share: float) -> str:
    """A part of something as a whole percentage: never 0 for a positive share."""
    return "<1%" if 0 < share < 0.01 else percent(share)


def dollars(cost: Decimal | None) -> str:
    """Two digits, four if it is less than a cent; ``?`` for an unknown cost."""
    if cost is None:
        return "?"
    return f"${cost:.2f}" if cost >= Decimal("0.01") or cost == 0 else f"${cost:.4f}"


def tokens(count: int) -> str:
    """A token count in few characters: 950, 5.4K, 54K, 1.2M."""
    if count < 1000:
        return str(count)
    if count < 9950:
        return f"{count / 1000:.1f}K"
    if count < 999_500:
        return f"{round(count / 1000)}K"
    return f"{count / 1_000_000:.1f}M"


def plural(count: int, noun: str) -> str:
    """ "1 line", "1,200 lines", "2 matches", "3 entries"."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and not noun.endswith(("ay", "ey", "oy")):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith(('ch', 's')) else 's'}"


def duration(seconds: float) -> str:
    """Duration with useful precision: 0.4 s, 24 s, 2m05s, 1h02m."""
    if 0.05 <= seconds < 0.95:
        return f"{seconds:.1f} s"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def number(value: int) -> str:
    return f"{value:,}"


def aligned(rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Rows as lines, the first column to the left, all others to the right."""
    table = [list(row) for row in rows]
    if not table:
        return ""
    widths = [
        max(len(row[column]) if column < len(row) else 0 for row in table) for column in range(max(map(len, table)))
    ]
    lines: list[str] = []
    for row in table:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(widths[column + 1]) for column, cell in enumerate(row[1:])]
        lines.append((indent + "  ".join([first, *rest])).rstrip())
    return "\n".join(lines)


def labelled(rows: Iterable[tuple[str, str]]) -> str:
    """``label  value`` with aligned values; omits rows without a value."""
    kept = [(label, value) for label, value in rows if value]
    width = max((len(label) for label, _ in kept), default=0)
    return "\n".join(f"{label.ljust(width)}  {value}" for label, value in kept)


def span(seconds: float) -> str:
    """A duration in its largest unit: "12 seconds", "1 minute", "3 hours", "2 days"."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count = int(seconds // length)
        if count or unit == "second":
            return plural(count, unit)
    return ""


def cut(text: str, most: int) -> str:
    """The text in at most ``most`` characters; the last one is … if it is longer."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def cut_line(text: str, most: int) -> str:
    """``cut`` with all words on one line."""
    return cut(" ".join(text.split()), most)
