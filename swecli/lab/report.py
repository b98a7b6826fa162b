"""Replays as a table, as lines for a terminal, as JSON and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from swecli.core.protocol.blocks import TableBlock
from swecli.lab.replay import Recording, Replayed

COLUMNS = ("strategy", "peak", "cost", "", "compactions", "clearings", "anchors lost", "needed again", "blocked")
EIGHTHS = " ▁▂▃▄▅▆▇█"
WIDTH, HEIGHT = 960, 420
LEFT, TOP, RIGHT, BOTTOM = 70, 40, 20, 60
COLOURS = ("#6b7280", "#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#dc2626", "#0891b2", "#65a30d")
"""Distinct on white; grey is for the recorded session."""
GRID_LINES = 4


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


def svg(recording: Recording, names: Sequence[str], results: Sequence[Replayed]) -> str:
    """A picture of the curves over the requests, compactions as dots; text only, loads nothing."""
    top = max([recording.first.effective, *(one.peak for one in results)])
    requests = max(1, len(results[0].points) - 1)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(at: int) -> float:
        return round(LEFT + wide * at / requests, 1)

    def y(tokens: int) -> float:
        return round(TOP + high * (1 - tokens / top), 1)

    title = escape(f"{recording.session}, {recording.info.ref}: tokens of each request")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        f'<title>{title}</title><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="{TOP - 16}" font-size="15">{title}</text>',
    ]
    for line in range(GRID_LINES + 1):
        tokens = top * line // GRID_LINES
        parts.append(
            f'<path d="M{LEFT} {y(tokens)}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>'
            f'<text x="{LEFT - 8}" y="{y(tokens) + 4}" text-anchor="end" fill="#374151">{tokens:,}</text>'
        )
    window = y(recording.first.effective)
    parts.append(f'<path d="M{LEFT} {window}H{WIDTH - RIGHT}" stroke="#9ca3af" stroke-dasharray="4 4"/>')
    for number, (name, one) in enumerate(zip(names, results, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(at)},{y(point.used)}" for at, point in enumerate(one.points))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [
            f'<circle cx="{x(at)}" cy="{y(point.used)}" r="3" fill="{colour}"><title>{point.changed}</title></circle>'
            for at, point in enumerate(one.points)
            if point.changed
        ]
        place = LEFT + number % 5 * 170, HEIGHT - BOTTOM + 24 + number // 5 * 18
        parts.append(
            f'<rect x="{place[0]}" y="{place[1] - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="{place[0] + 16}" y="{place[1]}" fill="#374151">{escape(name[:22])}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
