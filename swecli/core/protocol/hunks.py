"""Single changes of a diff, and what a user made of them."""

from __future__ import annotations

from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.value import value


@value
class Hunk:
    """One change that can be accepted or rejected by itself. ``block`` is the place of its diff among the blocks of
    the request, from 0. Lines count from 1 in the whole file; where there are none of a side, ``start`` is the line
    that they would be at."""

    block: int
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


@value
class EditedText:
    """What the new text of a diff is to be instead: of ``block``, as much as that block shows of the file."""

    block: int
    text: str


def hunk_texts(block: DiffBlock, hunk: Hunk) -> tuple[list[str], list[str]]:
    """The removed and the added lines of a hunk, from the texts of its block."""
    old, new = (text.split("\n") if text else [] for text in (block.old, block.new))
    i, j = hunk.old_start - block.first_line, hunk.new_start - block.first_line
    return old[i : i + hunk.old_lines], new[j : j + hunk.new_lines]
