"""Finding where something is by words, from the index of the folder: places instead of lines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome, plural

if TYPE_CHECKING:
    from swecli.core.retrieval.retrieve import Retrieval

_SHOWN = 10


class LocateParams(Params):
    query: str = Field(description="What it does, in words or names of the code")


class Locate(Tool[LocateParams]):
    """``retrieval`` answers from the index, and None while there is none; ``missing`` says why, a clause."""

    name = "locate"
    verb = "Locate"
    params = LocateParams

    def __init__(self, retrieval: Callable[[str], Awaitable[Retrieval | None]], missing: Callable[[], str]) -> None:
        self._retrieval = retrieval
        self._missing = missing

    def effects(self, params: LocateParams, ctx: ToolContext) -> Effects:
        return Effects(reads=(str(ctx.cwd),))

    def title(self, params: LocateParams, ctx: ToolContext) -> str:
        return params.query

    async def run(self, params: LocateParams, ctx: ToolContext) -> ToolOutcome:
        found = await self._retrieval(params.query)
        if found is None:
            raise ToolError(f"This folder has no index: {self._missing()}. Use search or list_files.")
        if not found.ranked:
            return ToolOutcome("Nothing fits these words. Try other names, or search for text.", (), "nothing found")
        text = "\n".join(map(str, found.ranked[:_SHOWN]))
        return ToolOutcome(text, (TextBlock(text),), plural(min(_SHOWN, len(found.ranked)), "place"))
