"""Replays as a table, as lines for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swecli.core.protocol.blocks import TableBlock
from swecli.features.lab.replay import Recording, Replayed

COLUMNS = ("strategy", "peak", "cost", "", "compactions", "clearings", "anchors lost", "needed again", "blocked")
EIGHTHS = " ▁▂▃▄▅▆▇█"


def table(names: Sequence[str], results: Sequence[Replayed]) -> TableBlock:
    """One row a strategy. Costs are thousands of uncached input tokens, and relative to the first row."""
    first = results[0].cost or 1.0
    return TableBlock(
        COLUMNS,
        tuple(
            (
                name,
                f"{one.peak:,}",
                f"{one.cost / 1000:,.1f}k",
                f"{one.cost / first:.0%}",
                str(one.compactions),
                str(one.clearings),
                str(len(one.lost)),
                str(one.needed_again),
                str(one.blocked),
            )
            for name, one in zip(names, results, strict=True)
        ),
    )


def document(recording: Recording, names: Sequence[str], results: Sequence[Replayed]) -> dict[str, Any]:
    """The table for programs, with the curve of each strategy."""
    return {
        "session": recording.session,
        "model": recording.info.ref,
        "effective_window": recording.first.effective,
        "unreadable_events": recording.skipped,
        "strategies": [
            {
                "name": name,
                "peak": one.peak,
                "cost": round(one.cost, 1),
                "compactions": one.compactions,
                "clearings": one.clearings,
                "anchors_lost": sorted(one.lost),
                "needed_again": one.needed_again,
                "blocked": one.blocked,
                "curve": [point.used for point in one.points],
            }
            for name, one in zip(names, results, strict=True)
        ],
    }


def curves(names: Sequence[str], results: Sequence[Replayed], effective: int, width: int) -> list[str]:
    """For each strategy one line of blocks: the fill of the window over the requests, the highest of each cell."""
    wide = max(map(len, names))
    cells = max(8, width - wide - 2)
    return [f"{name:<{wide}}  {_blocks(one, effective, cells)}" for name, one in zip(names, results, strict=True)]


def _blocks(replayed: Replayed, effective: int, cells: int) -> str:
    used = [point.used for point in replayed.points]
    cells = min(cells, len(used))
    shares = [max(used[len(used) * cell // cells : max(1, len(used) * (cell + 1) // cells)]) for cell in range(cells)]
    return "".join(EIGHTHS[min(8, max(1, round(8 * share / effective)))] for share in shares)
