"""Finding where something is by words, from the index of the folder: places instead of lines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome
from swecli.figures import plural

if TYPE_CHECKING:
    from swecli.core.retrieval.retrieve import Retrieval

_SHOWN = 10


class LocateParams(Params):
    query: Annotated[str, Meta(description="What it does, in words or names")]


class Locate(Tool[LocateParams]):
    """``retrieval`` answers from the index; None until there is one, and then ``missing`` gives the reason as a
    clause."""

    name = "locate"
    verb = "Locate"
    params = LocateParams

    def __init__(self, retrieval: Callable[[str], Awaitable[Retrieval | None]], missing: Callable[[], str]) -> None:
        self._retrieval = retrieval
        self._missing = missing

    def description(self) -> str:
        return Path(__file__).with_name("locate.md").read_text(encoding="utf-8").strip()

    def effects(self, params: LocateParams, ctx: ToolContext) -> Effects:
        return Effects(reads=(str(ctx.cwd),))

    def title(self, params: LocateParams, ctx: ToolContext) -> str:
        return params.query

    async def run(self, params: LocateParams, ctx: ToolContext) -> ToolOutcome:
        retrieval = await self._retrieval(params.query)
        if retrieval is None:
            raise ToolError(f"This folder has no index: {self._missing()}. Use search or list_files.")
        rules = ctx.read_rules()
        hidden = rules.hidden((str(ctx.cwd / file.path) for file in retrieval.ranked), str(ctx.cwd))
        ranked = [file for file in retrieval.ranked if str(ctx.cwd / file.path) not in hidden][:_SHOWN]
        note = f"\n({rules.note})" if rules.note else ""
        if not ranked:
            text = f"No file matches these words. Try other names, or search for text.{note}"
            return ToolOutcome(text, (), "nothing found")
        text = "\n".join(map(str, ranked)) + note
        return ToolOutcome(text, (TextBlock(text),), plural(len(ranked), "place"))
