"""A tool call on its way to the tool: validated, perhaps changed by the user, perhaps refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.engine.model_call import Outdated
from swecli.core.permissions.types import Effects, Rule
from swecli.core.protocol.messages import ToolCallPart
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import AnyTool, Choice, LastPlan, Params, ToolContext


def short_line(text: str) -> str:
    """The first line of a text, short enough to stand beside a call."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= 100 else line[:99] + "…"


class Rejected(Exception):
    """A call that may not run. The message is for the model, ``detail`` for the screen."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


class PreparedCall(Struct, frozen=True):
    """A validated call. ``part`` is the call as the model wrote it; everything else is as it would run. ``amended``
    precedes the result and informs the model of the user's changes, or that the user made the call. ``must_ask`` is a
    hook's reason why the user has to decide, ``told`` a hook's text for the model; all three are empty by default.
    ``typed``: the user typed the content or question, which is consent unless something else changes it. ``outdated``
    tells whether a consent has lapsed since."""

    item: str
    part: ToolCallPart
    tool: AnyTool
    params: Params
    ctx: ToolContext
    effects: Effects
    title: str
    amended: str = ""
    rules: tuple[Rule, ...] = ()
    must_ask: str = ""
    told: str = ""
    typed: bool = False
    outdated: Outdated | None = None

    def as_look(self) -> PreparedCall:
        """The call as one that only reads its files: it may tell the model what they contain."""
        reads = (*self.effects.reads, *self.effects.writes)
        return replace(self, effects=replace(self.effects, reads=reads, writes=(), unread=()))

    def with_note(self, text: str) -> str:
        """Text for the model, preceded by the user's changes to the call."""
        return f"{self.amended}\n{text}" if self.amended else text

    def with_arguments(self, arguments: Mapping[str, Any], who: str = "The user") -> PreparedCall:
        """The call with other arguments, changed by ``who``; unchanged if they are equivalent.

        Raises:
            ToolError: the arguments are not valid.
        """
        params = parse_arguments(json.dumps(arguments), self.tool)
        if params == self.params:
            return self
        ctx = replace(self.ctx, choices=())
        shown = params.given()
        only = next(iter(shown.values())) if len(shown) == 1 else None
        text = only if isinstance(only, str) else json.dumps(shown, ensure_ascii=False)
        return replace(
            self,
            params=params,
            ctx=ctx,
            typed=False,
            effects=self.tool.effects(params, ctx),
            title=self.tool.title(params, ctx),
            amended=f"[{who} changed this call before it ran. What ran instead of your call: {text}]",
        )

    def as_now(self) -> PreparedCall:
        """The call with the places that its paths lead to now; the same call if they are unchanged. A link may have
        appeared or changed since the call was prepared.

        Raises:
            ToolError: a path is no longer usable.
        """
        ctx = replace(self.ctx, resolved={}, planned=LastPlan())
        effects = self.tool.effects(self.params, ctx)
        if (effects.reads, effects.writes) == (self.effects.reads, self.effects.writes):
            return self
        return replace(self, ctx=ctx, effects=effects, title=self.tool.title(self.params, ctx))

    def as_proposed(self) -> PreparedCall:
        """The call without the user's choice among its changes, because the choices no longer exist."""
        return replace(self, ctx=replace(self.ctx, choices=()), amended="") if self.ctx.choices else self

    def with_choice(self, choice: Choice, note: str) -> PreparedCall:
        before = f"{self.amended}\n" if self.amended else ""
        return replace(self, ctx=replace(self.ctx, choices=(*self.ctx.choices, choice)), amended=f"{before}[{note}]")
