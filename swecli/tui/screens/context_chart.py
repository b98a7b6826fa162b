"""Context graphics: the bar of components with their budgets, and the chart of turns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from rich.style import Style

from swecli.core.context_management.forecast import Mark, TurnPoint
from swecli.core.protocol.budget import (
    ASSISTANT,
    ATTACHED,
    CALLS,
    MEMORY,
    NOTES,
    PLAYBOOK,
    PROJECT_INSTRUCTIONS,
    REASONING,
    RESULTS,
    RETRIEVED,
    SKILLS,
    SUMMARIES,
    SYSTEM,
    TOOLS,
    USER,
    USER_INSTRUCTIONS,
    Budget,
)
from swecli.figures import percent
from swecli.figures import tokens as short
from swecli.themes.scheme import BLACK, WHITE, mix, of_256
from swecli.tui.screens.board import Line, text_line
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import cells

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
FILLS: Final = ("█", "▓")
_NEW: Final = "▒"


def fill_of(number: int, palette: Palette) -> str:
    """Fill character of a component; without colours, neighbours differ."""
    return FILLS[number % 2] if palette.name == "terminal" else FILLS[0]


@lru_cache(maxsize=16)
def colours(palette: Palette, names: tuple[str, ...]) -> Mapping[str, Style]:
    """Style of each component of a budget: a colour of its own while the palette has one left.

    The program's own components always look the same; tools of servers get the colours that are left, in the order of
    ``names``.
    """
    tokens = palette.tokens
    usual = {
        SYSTEM: tokens.comment,
        TOOLS: tokens.name,
        USER: palette.accent,
        ATTACHED: palette.success,
        SUMMARIES: palette.warning,
        ASSISTANT: tokens.string,
        REASONING: palette.link,
        CALLS: tokens.function,
        RESULTS: tokens.number,
        PROJECT_INSTRUCTIONS: tokens.keyword,
        USER_INSTRUCTIONS: palette.inline_code,
    }
    hues = [style + _PLAIN if style.color else style for style in usual.values()]
    left = iter(_shades(hues, dark=palette.dark))
    styles: dict[str, Style] = {}
    for name, style in zip(usual, hues, strict=True):
        styles[name] = next(left, style) if style in styles.values() else style
    for name in dict.fromkeys((MEMORY, PLAYBOOK, SKILLS, RETRIEVED, NOTES, *names)):
        if name not in styles:
            styles[name] = next(left, hues[len(styles) % len(hues)])
    return styles


_PLAIN: Final = Style(italic=False, bold=False, underline=False, dim=False)
_SHARES: Final = (0.45, 0.3, 0.6)


def _shades(hues: Sequence[Style], *, dark: bool) -> list[Style]:
    """Mixtures with white and black of all ``hues`` but the first, which is grey. They differ from each other and from
    ``hues`` with 256 colours too. The terminal's own colours can't be mixed."""
    exact = [hue.color.triplet.hex for hue in hues if hue.color is not None and hue.color.triplet is not None]
    ends = (WHITE, BLACK) if dark else (BLACK, WHITE)
    seen = {of_256(colour) for colour in exact}
    shades: list[Style] = []
    for colour in [mix(colour, end, share) for share in _SHARES for end in ends for colour in exact[1:]]:
        if of_256(colour) not in seen:
            seen.add(of_256(colour))
            shades.append(Style.parse(colour) + _PLAIN)
    return shades


def names_of(budget: Budget) -> tuple[str, ...]:
    """The components' names in the order of the bar."""
    return tuple(part.name for part in budget.components)


def bar_cells(budget: Budget, width: int) -> list[tuple[str, int, int]]:
    """Each component with its first cell and its number of cells. Every non-empty component gets a cell while there is
    room for all."""
    parts = [part for part in budget.components if part.tokens > 0]
    total = max(budget.effective, budget.used, 1)
    shares = [max(1, round(part.tokens * width / total)) for part in parts]
    while sum(shares) > width and max(shares) > 1:
        shares[shares.index(max(shares))] -= 1
    places: list[tuple[str, int, int]] = []
    at = 0
    for part, size in zip(parts, shares, strict=True):
        if at + size <= width:
            places.append((part.name, at, size))
        at += size
    return places


def bar_lines(budget: Budget, width: int, palette: Palette) -> list[Line]:
    """The bar, and below it the ticks: the budget of each component within it, and the thresholds."""
    places = bar_cells(budget, width)
    styles = colours(palette, names_of(budget))
    bar: Line = []
    end = 0
    for number, (name, at, size) in enumerate(places):
        bar += text_line((fill_of(number, palette) * size, styles[name]))
        end = at + size
    bar += text_line(("·" * (width - end), palette.rule))
    return [bar, _ticks(budget, places, styles, width, palette)]


def _ticks(
    budget: Budget,
    places: Sequence[tuple[str, int, int]],
    styles: Mapping[str, Style],
    width: int,
    palette: Palette,
) -> Line:
    total = max(budget.effective, budget.used, 1)
    marks: dict[int, tuple[str, Style]] = {}
    limits = {part.name: part for part in budget.components if part.limit is not None}
    for name, at, _ in places:
        part = limits.get(name)
        if part is None or part.limit is None:
            continue
        cell = at + round(part.limit * width / total)
        if cell < width:
            marks[cell] = ("▴", palette.error if part.tokens > part.limit else styles[name])
    thresholds = ((budget.warn_at, "high"), (budget.compact_at, "compact"), (budget.block_at, "full"))
    words: list[tuple[int, str]] = []
    for tokens, _ in thresholds:
        if 0 < tokens <= total:
            cell = min(width - 1, round(tokens * width / total))
            marks[cell] = ("╵", palette.warning)
            words.append((cell, percent(tokens / max(1, budget.effective))))
    for cell, word in words[:1]:
        if cell - cells(word) - 1 > max((at for at in marks if at < cell), default=-1):
            for offset, sign in enumerate(word):
                marks[cell - cells(word) + offset] = (sign, palette.dim)
    line: Line = []
    for cell in range(width):
        sign, style = marks.get(cell, (" ", palette.dim))
        line += text_line((sign, style))
    return line


def legend(budget: Budget, width: int, palette: Palette, most: int) -> list[Line]:
    """Names, sizes and glyphs of the components in at most ``most`` lines; the largest ones are named."""
    places = bar_cells(budget, width)
    fills = {name: fill_of(number, palette) for number, (name, _, _) in enumerate(places)}
    styles = colours(palette, names_of(budget))
    sizes = {part.name: part for part in budget.components}
    lines: list[Line] = [[]]
    room = width
    for name, _, _ in sorted(places, key=lambda item: -sizes[item[0]].tokens):
        part = sizes[name]
        limit = f"/{short(part.limit)}" if part.limit is not None else ""
        over = part.limit is not None and part.tokens > part.limit
        words = f" {name} "
        figure = f"{short(part.tokens)}{limit}"
        size = cells(words + figure) + 4
        if size > room + 3:
            if len(lines) == most:
                break
            lines.append([])
            room = width
        room -= size
        lines[-1] += text_line(
            (fills[name], styles[name]),
            (words, palette.text),
            (figure, palette.error if over else palette.dim),
            ("   ", palette.dim),
        )
    return lines


LABEL: Final = 6
"""Cells left of the chart."""
WIDEST: Final = 6
"""Cells of a column with its gap."""


def chart(points: Sequence[TurnPoint], marks: Sequence[Mark], width: int, height: int, palette: Palette) -> list[Line]:
    """A column per turn, with its cached part in another colour; below, the marks of context rewrites, if any, and the
    newest causes."""
    told = 24 if width >= 72 else 0
    column = max(1, min(WIDEST, (width - LABEL - told) // max(1, len(points))))
    shown = points[-max(1, (width - LABEL - told) // column) :]
    largest = max((point.tokens for point in shown), default=0)
    lines: list[Line] = []
    for row in range(height, 0, -1):
        label = short(largest) if row == height else "0" if row == 1 and height > 1 else ""
        line = text_line((label.rjust(LABEL - 1) + " ", palette.dim))
        for point in shown:
            line += text_line(*_column(point, largest, row, height, column, palette))
        if told and row in (height, height - 1):
            line += text_line((" " * (width - told - LABEL - column * len(shown)), palette.dim))
            line += _colour_key(shown, row == height, palette)
        lines.append(line)
    if any(mark.turn >= shown[0].turn for mark in marks):
        lines += [_marks_line(shown, marks, column, palette), _causes(marks, width, palette)]
    return lines


def _colour_key(shown: Sequence[TurnPoint], first: bool, palette: Palette) -> Line:
    """Legend of the colours, and the cached share of the newest request."""
    if first:
        new = _NEW if palette.name == "terminal" else "▇"
        return text_line(
            ("  ▇ cached ", palette.accent),
            (f"{new} new", palette.warning),
            (f"  turn {shown[-1].turn}", palette.dim),
        )
    cached = shown[-1].cached
    words = "cache not reported" if cached is None else f"{percent(cached / max(1, shown[-1].tokens))} cached"
    return text_line((f"  {words}", palette.dim))


def _column(
    point: TurnPoint, largest: int, row: int, height: int, column: int, palette: Palette
) -> list[tuple[str, Style]]:
    eighths = round(point.tokens * height * 8 / max(1, largest))
    filled = max(0, min(8, eighths - (row - 1) * 8))
    if point.tokens and row == 1:
        filled = max(1, filled)
    cached = (point.cached or 0) / max(1, point.tokens)
    is_cached = (row - 1) * 8 + min(4, filled) <= cached * eighths
    style = palette.dim if point.cached is None else palette.accent if is_cached else palette.warning
    gap = 1 if column > 1 else 0
    is_new = palette.name == "terminal" and point.cached is not None and not is_cached and filled >= 4
    glyph = _NEW if is_new else _EIGHTHS[filled]  # without colours, the new part differs from the cached one
    return [(glyph * (column - gap), style), (" " * gap, palette.dim)]


SIGNS: Final = {"compaction": "▼", "miss": "×", "edit": "✎"}


def _marks_line(shown: Sequence[TurnPoint], marks: Sequence[Mark], column: int, palette: Palette) -> Line:
    kinds: dict[int, str] = {}
    for mark in marks:
        if mark.kind == "compaction" or mark.turn not in kinds:
            kinds[mark.turn] = mark.kind
    line = text_line((" " * 6, palette.dim))
    for point in shown:
        kind = kinds.get(point.turn, "")
        sign = SIGNS.get(kind, " ")
        style = palette.success if kind == "compaction" else palette.error if kind == "miss" else palette.accent
        left = (column - 1) // 2
        line += text_line((" " * left + sign + " " * (column - 1 - left), style))
    return line


def _causes(marks: Sequence[Mark], width: int, palette: Palette) -> Line:
    """The newest marks in words, as many as fit."""
    line: Line = []
    room = width
    for mark in reversed(marks):
        words = f" turn {mark.turn} {mark.text}   "
        if cells(words) + 1 > room:
            break
        room -= cells(words) + 1
        style = {"compaction": palette.success, "miss": palette.error}.get(mark.kind, palette.accent)
        line += text_line((SIGNS[mark.kind], style), (words, palette.dim))
    return line
