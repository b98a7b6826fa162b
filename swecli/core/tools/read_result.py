"""Reading stored results in pages, and recalling content that left the context."""

from __future__ import annotations

import asyncio
import tempfile
from bisect import bisect_left
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from swecli.core.ports import BlobError, TranscriptSearch
from swecli.core.tools.base import Params, SessionTool, ToolContext, ToolError, ToolOutcome, readable_size
from swecli.core.workspace.search import SearchError, SearchRequest, search
from swecli.figures import plural

MAX_PAGE = 24_000
"""Maximum bytes of a page."""


class TextPage(Struct, frozen=True):
    """Bytes ``start`` to ``end`` of ``total``; the next page begins at ``end``."""

    text: str
    start: int
    end: int
    total: int

    @property
    def position(self) -> str:
        """Position of this page and how to continue, in words."""
        if self.start == 0 and self.end == self.total:
            return f"all {self.total:,} bytes"
        more = f"continue with offset={self.end}" if self.end < self.total else "this is the end"
        return f"bytes {self.start:,} to {self.end:,} of {self.total:,}; {more}"


def page_of(raw: bytes, offset: int, limit: int) -> TextPage:
    """About ``limit`` bytes of UTF-8 from ``offset``, adjusted to whole characters: an offset inside a character starts
    at that character. At least one character, unless the offset is past the end."""
    start = _character(raw, min(offset, len(raw)))
    end = _character(raw, min(len(raw), start + min(limit, MAX_PAGE)))
    if end == start < len(raw):
        end = _character(raw, min(len(raw), start + 4))
        while end < len(raw) and raw[end] & 0xC0 == 0x80:
            end += 1
        end = max(end, start + 1)
    return TextPage(raw[start:end].decode("utf-8", "replace"), start, end, len(raw))


def _character(raw: bytes, at: int) -> int:
    """``at``, moved back to the start of its character."""
    for back in range(4):
        if at - back <= 0 or at >= len(raw) or raw[at - back] & 0xC0 != 0x80:
            return max(0, at - back)
    return at


MOST_HITS = 8
PAGE = 8_000
"""Bytes of an entry per page."""


class RecallParams(Params):
    query: str | None = None
    id: Annotated[str | None, Meta(description="Or a range: t12-t15")] = None
    offset: Annotated[int, Meta(ge=0, description="First byte, with id")] = 0


class Recall(SessionTool[RecallParams]):
    """Searches content that was cleared, summarised, dropped or stored, and returns entries in full."""

    name = "recall"
    verb = "Recall"
    params = RecallParams
    result_kind = "stored"

    def title(self, params: RecallParams, ctx: ToolContext) -> str:
        return params.id or params.query or ""

    async def run(self, params: RecallParams, ctx: ToolContext) -> ToolOutcome:
        if ctx.transcript is None:
            raise ToolError("This run keeps no transcript to recall from.")
        if params.id and params.id.strip():
            return await asyncio.to_thread(_entry, params.id.strip(), params.offset, ctx.transcript)
        if params.query and params.query.strip():
            return await asyncio.to_thread(_found, params.query.strip(), ctx.transcript)
        raise ToolError("Give a query (words) or an id.")


def _entry(reference: str, offset: int, transcript: TranscriptSearch) -> ToolOutcome:
    try:
        text = transcript.text(reference)
    except BlobError as error:
        raise ToolError(str(error)) from error
    if text is None:
        raise ToolError(f"No entry in this session has the id {reference!r}. Search with query instead.")
    raw = text.encode("utf-8", "replace")
    if offset >= len(raw) > 0:
        raise ToolError(f"{reference} has {len(raw):,} bytes; offset {offset} is past its end.")
    page = page_of(raw, offset, PAGE)
    return ToolOutcome(f"[{reference}: {page.position}]\n{page.text}", (), readable_size(page.end - page.start))


NOTHING_RECALLED = "No match in the removed content. Recent messages are still above; for files use search."
"""For the model, where a search finds nothing."""


def _found(query: str, transcript: TranscriptSearch) -> ToolOutcome:
    hits = transcript.search(query, MOST_HITS)
    if not hits:
        return ToolOutcome(NOTHING_RECALLED, (), "nothing")
    lines = [f"[{hit.item}] {hit.about}\n{hit.excerpt}" for hit in hits]
    count = plural(len(hits), "entry")
    return ToolOutcome("\n\n".join((*lines, "recall(id=…) returns one in full.")), (), count)


DEFAULT_LIMIT = 4_096
SECONDS = 10.0
"""Time limit of a search with a pattern."""


class ReadResultParams(Params):
    ref_id: str
    offset: Annotated[int, Meta(ge=0, description="First byte")] = 0
    limit: Annotated[int, Meta(ge=1, description="Bytes, default 4096")] = DEFAULT_LIMIT
    pattern: Annotated[str | None, Meta(description="Regular expression")] = None


class ReadResult(SessionTool[ReadResultParams]):
    name = "read_result"
    verb = "Read result"
    params = ReadResultParams
    result_kind = "stored"

    def title(self, params: ReadResultParams, ctx: ToolContext) -> str:
        return f"{params.ref_id} {params.pattern!r}" if params.pattern else params.ref_id

    async def run(self, params: ReadResultParams, ctx: ToolContext) -> ToolOutcome:
        raw = await asyncio.to_thread(_stored, params.ref_id.strip(), ctx)
        if params.pattern:
            return await _matching(params, raw, ctx)
        page = page_of(raw, params.offset, params.limit)
        if params.offset >= len(raw) > 0:
            raise ToolError(f"{params.ref_id} has {len(raw):,} bytes; offset {params.offset} is past its end.")
        return ToolOutcome(f"[{params.ref_id}: {page.position}]\n{page.text}", (), readable_size(page.end - page.start))


def _stored(ref: str, ctx: ToolContext) -> bytes:
    try:
        content = ctx.blobs.get(ref) if ctx.blobs is not None else None
        if content is None and ctx.transcript is not None:  # an id of an entry, where that of a result was meant
            text = ctx.transcript.text(ref)
            content = text.encode("utf-8", "replace") if text is not None else None
    except BlobError as error:
        raise ToolError(str(error)) from error
    if content is None:
        raise ToolError(
            f"Unknown stored result {ref!r}. Ids appear in summaries and in the notes that replace removed content."
        )
    return content


async def _matching(params: ReadResultParams, raw: bytes, ctx: ToolContext) -> ToolOutcome:
    """Matching lines from ``offset`` on. The search runs in a killable process, because patterns come from a model."""
    pattern = params.pattern or ""
    if "\n" in pattern or "\0" in pattern:
        raise ToolError("The pattern matches single lines, so it can't contain a line break or NUL.")
    try:
        with tempfile.TemporaryDirectory(prefix="swecli-") as name:
            file = await asyncio.to_thread(_written, Path(name), raw)
            result = await search(SearchRequest(pattern, file, (file.parent,), seconds=SECONDS), ctx.environment)
    except (SearchError, OSError) as error:
        raise ToolError(str(error)) from error
    starts = _line_starts(raw)
    first = bisect_left(starts, params.offset) + 1
    lines = [line for line in result.lines if line.number >= first]
    shown: list[str] = []
    left = min(params.limit, MAX_PAGE)
    for line in lines:
        text = f"{line.number:>6} @{starts[line.number - 1]}: {line.text}"
        left -= len(text.encode("utf-8", "replace")) + 1
        if shown and left < 0:
            break
        shown.append(text)
    count = plural(result.matches, "matching line")
    note = f" ({result.incomplete})" if result.incomplete else ""
    where = f" from byte {params.offset:,}: {len(lines):,}" if params.offset else ""
    more = f"; continue with offset={starts[lines[len(shown)].number - 1]}" if len(shown) < len(lines) else ""
    head = f"[{params.ref_id}: {count} of {len(starts):,}{note}{where}{more}; @ is the byte at which a line starts]"
    return ToolOutcome("\n".join((head, *shown)), (), count)


def _written(folder: Path, raw: bytes) -> Path:
    file = folder.resolve() / "result"
    # A NUL would make it a binary file, in which nothing is found.
    file.write_bytes(raw.replace(b"\0", b" "))
    return file


def _line_starts(raw: bytes) -> list[int]:
    """Byte offset of each line."""
    starts = [0]
    at = raw.find(b"\n")
    while 0 <= at < len(raw) - 1:
        starts.append(at + 1)
        at = raw.find(b"\n", at + 1)
    return starts
