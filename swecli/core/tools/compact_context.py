"""Making room in the context window when the model wants it."""

from __future__ import annotations

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome


class CompactContextParams(Params):
    """Takes nothing."""


class CompactContextTool(Tool[CompactContextParams]):
    """Asks for a compaction at the next point where the conversation is whole."""

    name = "compact_context"
    verb = "Compact"
    params = CompactContextParams

    def effects(self, params: CompactContextParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    async def run(self, params: CompactContextParams, ctx: ToolContext) -> ToolOutcome:
        if ctx.compaction is None:
            raise ToolError("There is no conversation to compact here.")
        line = ctx.compaction.request_compaction()
        return ToolOutcome(line, detail="before the next step")
