"""Bringing back what left the context."""

from __future__ import annotations

import asyncio

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.ports import BlobError, TranscriptSearch
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.files import readable_size
from swecli.core.tools.text_page import page_of

MOST_HITS = 8
PAGE = 8_000
"""Bytes of an entry that are given at once."""


class RecallParams(Params):
    query: str | None = Field(None, description="Words")
    id: str | None = Field(None, description="Id, or a range such as t12-t15")
    offset: int = Field(0, ge=0, description="First byte, with id")


class Recall(Tool[RecallParams]):
    """Searches what was cleared, summarised, dropped or stored, and gives entries back whole."""

    name = "recall"
    verb = "Recall"
    params = RecallParams
    result_kind = "stored"

    def effects(self, params: RecallParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    def title(self, params: RecallParams, ctx: ToolContext) -> str:
        return params.id or params.query or ""

    async def run(self, params: RecallParams, ctx: ToolContext) -> ToolOutcome:
        if ctx.transcript is None:
            raise ToolError("This run keeps no transcript, so nothing can be recalled.")
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
        raise ToolError(f"Nothing in this session has the id {reference!r}. Search with query instead.")
    raw = text.encode("utf-8", "replace")
    if offset >= len(raw) > 0:
        raise ToolError(f"{reference} has {len(raw):,} bytes; offset {offset} is past its end.")
    page = page_of(raw, offset, PAGE)
    return ToolOutcome(f"[{reference}: {page.position}]\n{page.text}", (), readable_size(page.end - page.start))


def _found(query: str, transcript: TranscriptSearch) -> ToolOutcome:
    hits = transcript.search(query, MOST_HITS)
    if not hits:
        return ToolOutcome(
            "Nothing that left the context matches. What was said lately is still above; for files use search.",
            (),
            "nothing",
        )
    lines = [f"[{hit.item}] {hit.about}\n{hit.excerpt}" for hit in hits]
    count = "1 entry" if len(hits) == 1 else f"{len(hits)} entries"
    return ToolOutcome("\n\n".join((*lines, "recall(id=…) gives one whole.")), (), count)
