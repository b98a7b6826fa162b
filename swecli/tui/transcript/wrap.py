"""Breaking one line of safe text into pieces that fit a width in cells, and cutting it to fit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from rich.cells import cell_len, split_graphemes

from swecli.safe_text import SafeText

_SINGLE: Final = re.compile(
    "[ -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0377\u037a-\u037f\u0388-\u038a\u0390-\u0482\u2010-\u2015\u2018-\u2022"
    "\u2026\u2190-\u2193\u2400-\u2421\u2500-\u25aa\u25e6\u2713-\u2714\u2717-\u2718\u2800-\u28ff\u27e8\u27e9]*"
)
"""Characters that are one cell wide, each a grapheme of its own. Not all there are, but the frequent ones."""
_SPACES = re.compile(" *")
ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class Piece:
    """``text[start:end]`` is one row. ``join`` is what stood between the row before and this one in the text
    (spaces that the break has swallowed, or nothing); None for the first row of a line."""

    start: int
    end: int
    join: str | None


def is_single(text: str) -> bool:
    """Whether each character is known to be one cell wide, so that cells and characters count alike."""
    return _SINGLE.fullmatch(text) is not None


def cells(text: str) -> int:
    """Width of the text in terminal cells."""
    return len(text) if is_single(text) else cell_len(text)


def wrap(text: SafeText, width: int, *, words: bool = True) -> list[Piece]:
    """Break a line into rows of at most ``width`` cells (at least one grapheme each).

    With ``words`` it breaks at spaces where there is one, and beside wide characters; leading spaces stay.
    """
    width = max(1, width)
    if is_single(text):
        if len(text) <= width:
            return [Piece(0, len(text), None)]
        return _wrap_single(text, width) if words else _chop_single(text, width)
    return _wrap_wide(text, width, words=words)


def cut(text: SafeText, width: int, keep: Literal["start", "end"] = "start") -> SafeText:
    """The text if it fits, else its start or end with an ellipsis where it was cut. Never wider than ``width``."""
    if width <= 0:
        return SafeText("")
    if cells(text) <= width:
        return text
    if is_single(text):
        return SafeText(text[: width - 1] + ELLIPSIS if keep == "start" else ELLIPSIS + text[len(text) - width + 1 :])
    spans = split_graphemes(text)[0]
    room = width - 1
    if keep == "start":
        end = 0
        for _, stop, size in spans:
            if size > room:
                break
            room -= size
            end = stop
        return SafeText(text[:end] + ELLIPSIS)
    begin = len(text)
    for start, _, size in reversed(spans):
        if size > room:
            break
        room -= size
        begin = start
    return SafeText(ELLIPSIS + text[begin:])


def _chop_single(text: str, width: int) -> list[Piece]:
    return [Piece(start, min(start + width, len(text)), "" if start else None) for start in range(0, len(text), width)]


def _wrap_single(text: str, width: int) -> list[Piece]:
    pieces: list[Piece] = []
    start, length = 0, len(text)
    join: str | None = None
    while length - start > width:
        end = text.rfind(" ", start, start + width + 1)
        if end <= start or text[start:end].isspace():
            pieces.append(Piece(start, start + width, join))
            start, join = start + width, ""
            continue
        match = _SPACES.match(text, end)
        after = match.end() if match else end
        while end > start and text[end - 1] == " ":
            end -= 1
        pieces.append(Piece(start, end, join))
        start, join = after, text[end:after]
    if start < length or not pieces:
        pieces.append(Piece(start, length, join))
    return pieces


def _wrap_wide(text: str, width: int, *, words: bool) -> list[Piece]:
    spans = split_graphemes(text)[0]
    space = [text[start:end] == " " for start, end, _ in spans]
    pieces: list[Piece] = []
    join: str | None = None
    first = index = used = 0
    """First grapheme of the row, grapheme in hand, cells used by the row."""
    chance = -1
    """Grapheme before which the row may break, found last."""
    while index < len(spans):
        size = spans[index][2]
        if size > 1 or (index and spans[index - 1][2] > 1) or (index and space[index - 1]):
            chance = index
        if used + size > width and index > first:
            stop = chance if words and chance > first else index
            if words and space[index]:
                stop = index
            row_end = resume = stop
            if words:
                while row_end > first + 1 and space[row_end - 1]:
                    row_end -= 1
                while resume < len(spans) and space[resume]:
                    resume += 1
            last = spans[row_end - 1][1]
            pieces.append(Piece(spans[first][0], last, join))
            begin = spans[resume][0] if resume < len(spans) else len(text)
            join = text[last:begin]
            first = index = resume
            used, chance = 0, -1
            continue
        used += size
        index += 1
    if first < len(spans) or not pieces:
        pieces.append(Piece(spans[first][0] if first < len(spans) else 0, len(text), join))
    return pieces
