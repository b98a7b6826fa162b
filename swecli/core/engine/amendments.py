"""What a reply changes of a call, and how the model is told. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff

from swecli.core.engine.prepared_call import PreparedCall
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock
from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.hunks import EditedText, Hunk, hunk_texts
from swecli.core.tools.base import Choice, Preview, ToolError
from swecli.core.tools.bounding import bound_result

_MOST_TOLD = 4_000
"""Bytes of what the model is told of a change."""
_MOST_LINES = 120


def amended(call: PreparedCall, preview: Preview, reply: ReplyPermission) -> PreparedCall:
    """The call as the reply changes it; itself where it changes nothing.

    Raises:
        ToolError: the reply does not fit the request; the message says why.
    """
    ways = (reply.arguments is not None, reply.hunks is not None, bool(reply.texts))
    if sum(ways) > 1:
        raise ToolError("A reply has either arguments, hunks or texts.")
    if reply.arguments is not None:
        return call.with_arguments(reply.arguments)
    if reply.hunks is not None:
        return _with_hunks(call, preview, reply.hunks, reply.note)
    if reply.texts:
        return _with_texts(call, preview, reply.texts, reply.note)
    return call


def _with_hunks(call: PreparedCall, preview: Preview, numbers: Sequence[int], note: str) -> PreparedCall:
    accepted = tuple(sorted(set(numbers)))
    total = len(preview.hunks)
    if any(not 1 <= number <= total for number in accepted):
        raise ToolError(f"There are the hunks 1 to {total} to choose from." if total else "There are no hunks here.")
    if len(accepted) == total:
        return call
    rejected = [hunk for number, hunk in enumerate(preview.hunks, 1) if number not in accepted]
    lines = [f"The user accepted {len(accepted)} of {total} changes. Rejected, so not in the file:"]
    for hunk in rejected:
        lines += _hunk_lines(preview.blocks, hunk)
    return call.with_choice(Choice(preview.state, accepted), _bounded(lines) + _word(note))


def _with_texts(call: PreparedCall, preview: Preview, texts: Sequence[EditedText], note: str) -> PreparedCall:
    lines = ["The user edited the proposed text. From what you proposed to what is written instead:"]
    for one in texts:
        block = preview.blocks[one.block] if 0 <= one.block < len(preview.blocks) else None
        if not isinstance(block, DiffBlock) or block.new is None:
            raise ToolError(f"Block {one.block} has no text to edit.")
        before, after = block.new.splitlines(), one.text.splitlines()
        lines += [line.rstrip("\n") for line in unified_diff(before, after, block.path, block.path, n=1, lineterm="")]
    if all(one.text == _text(preview.blocks[one.block]) for one in texts):
        return call
    return call.with_choice(Choice(preview.state, None, tuple(texts)), _bounded(lines) + _word(note))


def _text(block: DisplayBlock) -> str | None:
    return block.new if isinstance(block, DiffBlock) else None


def _hunk_lines(blocks: Sequence[DisplayBlock], hunk: Hunk) -> list[str]:
    block = blocks[hunk.block]
    if not isinstance(block, DiffBlock):
        return []
    removed, added = hunk_texts(block, hunk)
    return [
        f"{block.path}, line {hunk.old_start}:",
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
    ]


def _bounded(lines: Sequence[str]) -> str:
    return bound_result("\n".join(lines), _MOST_TOLD, _MOST_LINES)


def _word(note: str) -> str:
    return f"\nThe user says: {note}" if note else ""
