"""Finding text in the transcript: blocks by their whole text, then rows by what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from swecli.core.protocol.blocks import DiffBlock
from swecli.tui.transcript.blocks import Block, ShownBlock, SubagentBlock, ToolBlock
from swecli.tui.transcript.plain import block_text
from swecli.tui.transcript.rows import Row


def matching_blocks(blocks: Sequence[Block], query: str) -> list[int]:
    """Numbers of the blocks whose text holds the query, in any case."""
    wanted = query.lower()
    return [number for number, block in enumerate(blocks) if _holds(block, wanted)] if wanted else []


def _holds(block: Block, wanted: str) -> bool:
    """Diffs are compared only where one of their texts holds the query at all."""
    if isinstance(block, ToolBlock | ShownBlock | SubagentBlock):
        kept = tuple(part for part in block.blocks if not isinstance(part, DiffBlock) or _may_hold(part, wanted))
        if len(kept) < len(block.blocks):
            block = replace(block, blocks=kept)
    return wanted in block_text(block).lower()


def _may_hold(diff: DiffBlock, wanted: str) -> bool:
    return any(wanted in (text or "").lower() for text in (diff.path, diff.old, diff.new))


def row_spans(row: Row, query: str) -> Iterator[tuple[int, int]]:
    """Where the query stands in the body of a row (start and end in characters)."""
    wanted, text = query.lower(), row.body.lower()
    if not wanted or len(text) != len(row.body):
        return
    start = text.find(wanted)
    while start >= 0:
        yield start, start + len(wanted)
        start = text.find(wanted, start + len(wanted))


def matching_rows(rows: Sequence[Row], query: str) -> list[int]:
    """Numbers of the rows where a match begins; a match may go on in wrapped rows."""
    wanted = query.lower()
    out: list[int] = []
    first = 0
    while first < len(rows):
        last = first + 1
        text = rows[first].body.lower()
        starts = [0]
        while last < len(rows) and rows[last].join is not None:
            starts.append(len(text) + len(rows[last].join or ""))
            text += (rows[last].join or "") + rows[last].body.lower()
            last += 1
        place = text.find(wanted) if wanted else -1
        while place >= 0:
            row = first + max(number for number, start in enumerate(starts) if start <= place)
            if not out or out[-1] != row:
                out.append(row)
            place = text.find(wanted, place + len(wanted))
        first = last
    return out
