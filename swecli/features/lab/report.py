"""Replays as a table, as lines for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swecli.core.protocol.blocks import TableBlock
from swecli.features.lab.recording import Recording
from swecli.features.lab.replay import Replayed
from swecli.features.lab.strategies import Tried

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
                f"{result.peak:,}",
                f"{result.cost / 1000:,.1f}k",
                f"{result.cost / first:.0%}",
                str(result.compactions),
                str(result.clearings),
                str(len(result.lost)),
                str(result.needed_again),
                str(result.blocked),
            )
            for name, result in zip(names, results, strict=True)
        ),
    )


def trials(tried: Sequence[Tried]) -> TableBlock:
    """One row a strategy that was tried on several sessions."""
    rows = tuple(
        (
            strategy.name,
            f"{strategy.cost / 1000:,.1f}k",
            str(strategy.lost),
            str(strategy.needed_again),
            str(strategy.blocked),
        )
        for strategy in tried
    )
    return TableBlock(("Strategy", "Cost", "Anchors lost", "Needed again", "Blocked"), rows)


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
                "peak": result.peak,
                "cost": round(result.cost, 1),
                "compactions": result.compactions,
                "clearings": result.clearings,
                "anchors_lost": sorted(result.lost),
                "needed_again": result.needed_again,
                "blocked": result.blocked,
                "curve": [point.used for point in result.points],
            }
            for name, result in zip(names, results, strict=True)
        ],
    }


def curves(names: Sequence[str], results: Sequence[Replayed], effective: int, width: int) -> list[str]:
    """For each strategy one line of blocks: the fill of the window over the requests, the highest of each cell."""
    wide = max(map(len, names))
    cells = max(8, width - wide - 2)
    return [f"{name:<{wide}}  {_blocks(result, effective, cells)}" for name, result in zip(names, results, strict=True)]


def _blocks(replayed: Replayed, effective: int, cells: int) -> str:
    used = [point.used for point in replayed.points]
    cells = min(cells, len(used))
    shares = [max(used[len(used) * cell // cells : max(1, len(used) * (cell + 1) // cells)]) for cell in range(cells)]
    return "".join(EIGHTHS[min(8, max(1, round(8 * share / effective)))] for share in shares)
