"""What a user made of a proposed change: some of its hunks, or another text. Byte for byte.

A choice is bound to the state of the files that it was made from. Bytes that it does not concern are never decoded and
encoded again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO

from swecli.core.protocol.hunks import Hunk
from swecli.core.tools.base import Choice, Preview, ToolContext, ToolError
from swecli.core.tools.file_change import FileChange
from swecli.core.workspace.line_diff import Span, changed_spans
from swecli.core.workspace.text_file import TextFile, decode

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ONE_BYTE_UNITS = frozenset(("utf-8", "latin-1", "cp1252"))


class OutdatedChoice(ToolError):
    """The files are no longer what the choice was made from. Nothing was written."""


def preview_of(changes: Sequence[FileChange], ctx: ToolContext) -> Preview:
    """What is shown of changes, one block for each, with the hunks to choose from."""
    blocks = tuple(change.block(ctx) for change in changes)
    facts = tuple(change.fact for change in changes)
    return Preview(blocks, _state(changes), _hunks(changes), facts if len(facts) < 4 else (_summary(changes),))


def chosen(changes: Sequence[FileChange], ctx: ToolContext) -> list[FileChange]:
    """The changes after all choices that the user made, without those of which nothing is left.

    Raises:
        OutdatedChoice: a choice was made from something else.
        ToolError: nothing is left, or the file can't hold a text.
    """
    left = list(changes)
    for choice in ctx.choices:
        if choice.state != _state(left):
            raise OutdatedChoice("The file changed after the user chose what to change. Nothing was written.")
        left = _after(left, choice, ctx)
        if not left:
            raise ToolError("The user left nothing of the change. Nothing was written.")
    return left


def _state(changes: Sequence[FileChange]) -> str:
    return "\n".join(f"{change.path}={change.state or 'absent'}" for change in changes)


def _summary(changes: Sequence[FileChange]) -> str:
    made = sum(change.before is None for change in changes)
    gone = sum(change.after is None for change in changes)
    size = sum(len(change.after or b"") for change in changes)
    return f"{len(changes)} files: {made} created, {gone} deleted, {size:,} bytes in all"


def _hunks(changes: Sequence[FileChange]) -> tuple[Hunk, ...]:
    out: list[Hunk] = []
    for block, change in enumerate(changes):
        if not change.tied:
            out += [Hunk(block, i1 + 1, i2 - i1, j1 + 1, j2 - j1) for i1, i2, j1, j2 in _Sides(change).spans]
    return tuple(out)


def _after(changes: Sequence[FileChange], choice: Choice, ctx: ToolContext) -> list[FileChange]:
    edited = {one.block: one.text for one in choice.texts}
    first = 1
    out: list[FileChange] = []
    kept = True
    for block, change in enumerate(changes):
        if change.tied:
            out += [change] if kept else []
            continue
        sides = _Sides(change)
        numbers = range(first, first + len(sides.spans))
        first += len(sides.spans)
        after = change.after
        if choice.hunks is not None:
            after = sides.narrowed([number in choice.hunks for number in numbers])
        elif block in edited:
            after = _retold(change, edited[block], ctx)
        kept = after != change.before
        if kept:
            out.append(replace(change, after=after))
    return out


class _Sides:
    """The two sides of a change, line by line, as text to compare and as bytes to put together."""

    def __init__(self, change: FileChange) -> None:
        self._change = change
        self.spans: list[Span] = []
        self._old: list[bytes] = []
        self._new: list[bytes] = []
        if change.before == change.after:
            return
        old, new = decode(change.before or b""), decode(change.after or b"")
        if change.before is None or change.after is None or change.whole or not _mixable(old, new):
            self.spans = [(0, len(_lines(old.text)), 0, len(_lines(new.text)))]
            return
        before, after = _lines(old.text), _lines(new.text)
        self._old, self._new = [old.encode(line) for line in before], [new.encode(line) for line in after]
        self._head, self._tail = old.bom, old.tail
        self.spans = changed_spans(before, after)

    def narrowed(self, accepted: Sequence[bool]) -> bytes | None:
        """The bytes with only some of the changes."""
        if all(accepted):
            return self._change.after
        if not any(accepted):
            return self._change.before
        out: list[bytes] = [self._head]
        at = 0
        for (i1, i2, j1, j2), wanted in zip(self.spans, accepted, strict=True):
            out += self._old[at:i1]
            out += self._new[j1:j2] if wanted else self._old[i1:i2]
            at = i2
        return b"".join((*out, *self._old[at:], self._tail))


def _mixable(old: TextFile, new: TextFile) -> bool:
    """Whether lines of both make one text again."""
    if (old.bom, old.tail) != (new.bom, new.tail):
        return False
    if old.codec == new.codec:
        return True
    units = old.codec in _ONE_BYTE_UNITS and new.codec in _ONE_BYTE_UNITS
    return units and (old.text.isascii() or new.text.isascii())


def _retold(change: FileChange, text: str, ctx: ToolContext) -> bytes:
    """The bytes of a text that the user made of the proposed one. Lines that they left alone keep their bytes, also
    those that the shown text could not hold."""
    if change.after is None:
        raise ToolError("A file that is deleted has no text to edit.")
    proposed = decode(change.after)
    block = change.block(ctx)
    shown = block.new or ""
    start, count = block.first_line - 1, shown.count("\n") + 1
    lines = _lines(proposed.text)
    to_end = start + count > proposed.text.count("\n")
    end = len(lines) if to_end else start + count
    wanted = _lines(text if to_end else f"{text}\n")
    pieces = [proposed.encode(line) for line in lines]
    out, at = pieces[:start], start
    for i1, i2, j1, j2 in changed_spans([*map(_comparable, lines[start:end])], [*map(_comparable, wanted)]):
        out += pieces[at : start + i1]
        out += [_encoded(line, proposed) for line in wanted[j1:j2]]
        at = start + i2
    return b"".join((proposed.bom, *out, *pieces[at:], proposed.tail))


def _encoded(line: str, file: TextFile) -> bytes:
    try:
        return file.encode(line)
    except UnicodeEncodeError as error:
        char = line[error.start : error.end][:1]
        raise ToolError(f"The file is {file.label}, which can't hold {char!r} (U+{ord(char):04X}).") from error


def _comparable(line: str) -> str:
    return _LONE_SURROGATE.sub("\ufffd", line)


def _lines(text: str) -> list[str]:
    return list(StringIO(text, newline="\n"))
