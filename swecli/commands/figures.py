"""Figures and aligned lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal


def number(value: int) -> str:
    """With separators of thousands."""
    return f"{value:,}"


def percent(share: float) -> str:
    """``0.456`` -> ``45.6 %``."""
    return f"{share * 100:.1f} %"


def dollars(cost: Decimal | None) -> str:
    """Two digits, four below a dollar; ``?`` for a cost that is not known."""
    if cost is None:
        return "?"
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


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
    """``label  value`` with the values below each other; rows without a value are left out."""
    kept = [(label, value) for label, value in rows if value]
    width = max((len(label) for label, _ in kept), default=0)
    return "\n".join(f"{label.ljust(width)}  {value}" for label, value in kept)
