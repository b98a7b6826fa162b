"""Reading a stored result in parts."""

from __future__ import annotations

import asyncio
import tempfile
from bisect import bisect_left
from pathlib import Path

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.ports import BlobError
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.files import plural, readable_size
from swecli.core.tools.text_page import MAX_PAGE, page_of
from swecli.core.workspace.search import SearchError, SearchRequest, search

DEFAULT_LIMIT = 4_096
SECONDS = 10.0
"""For a search with a pattern."""


class ReadResultParams(Params):
    ref_id: str
    offset: int = Field(0, ge=0, description="First byte")
    limit: int = Field(DEFAULT_LIMIT, ge=1, description="Bytes, default 4096")
    pattern: str | None = Field(None, description="Only lines that match this regular expression")


class ReadResult(Tool[ReadResultParams]):
    """Reads a result that was too large for the context."""

    name = "read_result"
    verb = "Read result"
    params = ReadResultParams
    result_kind = "stored"

    def effects(self, params: ReadResultParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

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
            f"There is no stored result {ref!r} in this session. Ids stand in the references and notes that replace "
            "what is not in the context, and in summaries."
        )
    return content


async def _matching(params: ReadResultParams, raw: bytes, ctx: ToolContext) -> ToolOutcome:
    """Lines that match, from ``offset`` on. The search runs where it can be killed: patterns come from a model."""
    pattern = params.pattern or ""
    if "\n" in pattern or "\0" in pattern:
        raise ToolError("The pattern is matched with single lines: it can't have a line break or NUL in it.")
    with tempfile.TemporaryDirectory(prefix="swecli-") as name:
        try:
            file = await asyncio.to_thread(_written, Path(name), raw)
            found = await search(SearchRequest(pattern, file, (file.parent,), seconds=SECONDS), ctx.environment)
        except (SearchError, OSError) as error:
            raise ToolError(str(error)) from error
    starts = _line_starts(raw)
    first = bisect_left(starts, params.offset) + 1
    lines = [line for line in found.lines if line.number >= first]
    shown: list[str] = []
    left = min(params.limit, MAX_PAGE)
    for line in lines:
        text = f"{line.number:>6} @{starts[line.number - 1]}: {line.text}"
        left -= len(text.encode("utf-8", "replace")) + 1
        if shown and left < 0:
            break
        shown.append(text)
    count = plural(found.matches, "matching line")
    note = f" ({found.incomplete})" if found.incomplete else ""
    where = f" from byte {params.offset:,} on: {len(lines):,}" if params.offset else ""
    more = f"; go on with offset={starts[lines[len(shown)].number - 1]}" if len(shown) < len(lines) else ""
    head = f"[{params.ref_id}: {count} of {len(starts):,}{note}{where}{more}; @ is the byte where a line begins]"
    return ToolOutcome("\n".join((head, *shown)), (), count)


def _written(folder: Path, raw: bytes) -> Path:
    file = folder.resolve() / "result"
    # A NUL would make it a binary file, in which nothing is found.
    file.write_bytes(raw.replace(b"\0", b" "))
    return file


def _line_starts(raw: bytes) -> list[int]:
    """The byte at which each line begins."""
    starts = [0]
    at = raw.find(b"\n")
    while 0 <= at < len(raw) - 1:
        starts.append(at + 1)
        at = raw.find(b"\n", at + 1)
    return starts
