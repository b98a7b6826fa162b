"""A tool call whose arguments are valid, and what the user made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from swecli.core.permissions.types import Effects
from swecli.core.protocol.messages import ToolCallPart
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import AnyTool, Choice, Params, ToolContext


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """``part`` is the call as the model wrote it; everything else is as it would run. ``amended`` tells the model what
    the user changed; empty when nothing."""

    item: str
    part: ToolCallPart
    tool: AnyTool
    params: Params
    ctx: ToolContext
    effects: Effects
    title: str
    amended: str = ""

    def told(self, text: str) -> str:
        """A text for the model, after what the user changed of the call."""
        return f"{self.amended}\n{text}" if self.amended else text

    def with_arguments(self, arguments: Mapping[str, Any]) -> PreparedCall:
        """The call with other arguments; itself where they come to the same.

        Raises:
            ToolError: they are not valid.
        """
        params = parse_arguments(json.dumps(arguments), self.tool)
        if params == self.params:
            return self
        ctx = replace(self.ctx, choices=())
        shown = params.model_dump(mode="json", exclude_defaults=True)
        only = next(iter(shown.values())) if len(shown) == 1 else None
        text = only if isinstance(only, str) else json.dumps(shown, ensure_ascii=False)
        return replace(
            self,
            params=params,
            ctx=ctx,
            effects=self.tool.effects(params, ctx),
            title=self.tool.title(params, ctx),
            amended=f"[The user changed this call before it ran. What ran, in place of what you wrote: {text}]",
        )

    def as_proposed(self) -> PreparedCall:
        """The call without the choices that the user made among its changes: what they chose from is gone."""
        return replace(self, ctx=replace(self.ctx, choices=()), amended="") if self.ctx.choices else self

    def with_choice(self, choice: Choice, told: str) -> PreparedCall:
        """The call with what the user made of its change."""
        before = f"{self.amended}\n" if self.amended else ""
        return replace(self, ctx=replace(self.ctx, choices=(*self.ctx.choices, choice)), amended=f"{before}[{told}]")
