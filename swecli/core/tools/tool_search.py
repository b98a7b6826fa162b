"""Finding tools that are withheld to save context; what is found can be called from then on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final

from swecli.core.llm.types import ToolSchema
from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock
from swecli.core.tools.base import Params, Tool, ToolContext, ToolOutcome, plural

NAME: Final = "tool_search"


class ToolSearchParams(Params):
    query: str


class ToolSearch(Tool[ToolSearchParams]):
    """``search`` finds withheld tools and lets the model call them."""

    name = NAME
    verb = "Find tools"
    params = ToolSearchParams
    result_kind = "page"

    def __init__(self, search: Callable[[str], Sequence[ToolSchema]], waiting: Callable[[], int]) -> None:
        self._search = search
        self._waiting = waiting

    def effects(self, params: ToolSearchParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    def title(self, params: ToolSearchParams, ctx: ToolContext) -> str:
        return params.query

    async def run(self, params: ToolSearchParams, ctx: ToolContext) -> ToolOutcome:
        found = await asyncio.to_thread(self._search, params.query)
        if not found:
            count = plural(self._waiting(), "tool")
            text = f"No tool fits {params.query!r}. {count} can be found; try other words: what it does, and to what."
            return ToolOutcome(text, (TextBlock(text),), "none found")
        parts = [
            f"{tool.name}: {tool.description}\nParameters: {json.dumps(tool.parameters, ensure_ascii=False)}"
            for tool in found
        ]
        text = f"{plural(len(found), 'tool')} found; call them by name from now on.\n\n" + "\n\n".join(parts)
        block = TextBlock("\n".join(f"{tool.name}: {tool.description.splitlines()[0][:120]}" for tool in found))
        return ToolOutcome(text, (block,), f"{plural(len(found), 'tool')} found")
