"""Events of items: one lifecycle for all that is on screen."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.messages import Part
from swecli.core.protocol.value import value

ItemKind = Literal["user", "text", "reasoning", "tool", "opaque", "compaction", "subagent"]
"""``opaque`` items are provider data that nobody needs to see; they are kept for the next request."""

ItemStatus = Literal["ok", "error", "rejected", "interrupted"]


@value
class ItemStarted:
    """Something begins to appear. ``name`` is the tool's name for a tool call, else empty."""

    item: str
    kind: ItemKind
    name: str = ""
    title: str = ""
    """Target of a tool call once it is known (a path, a command), else empty."""
    type: Literal["item_started"] = field(default="item_started", kw_only=True)


@value
class ItemDelta:
    """A piece of text (of text and reasoning items), of arguments or of live output (of tool items)."""

    item: str
    text: str
    channel: Literal["text", "arguments", "output"] = "text"
    type: Literal["item_delta"] = field(default="item_delta", kw_only=True)


@value
class ItemCheckpointed:
    """What the item holds so far, whole: stored at least every 500 ms of a running answer.

    For a tool call it is stored once, with the complete ``ToolCallPart``, before the tool can run. A later
    checkpoint with ``running`` set marks that execution has begun. ``awaits`` says, as a clause, what it waits for
    before that.
    """

    item: str
    part: Part
    title: str = ""
    running: bool = False
    awaits: str = ""
    type: Literal["item_checkpointed"] = field(default="item_checkpointed", kw_only=True)


@value
class ItemCompleted:
    """Terminal event of an item. ``parts`` is its final content.

    User items: their text and images; one named "shell" is the user's own ``!command``, with a
    ``TerminalBlock`` to show and the text that joins the context. Text and reasoning: the one part; ``detail`` is why
    it broke off, if it did. Tool calls: the one
    ``ToolResultPart`` (the call itself is in the checkpoint). ``blocks`` is what a person sees, ``detail``
    one short phrase of result ("15 matches in 4 files", "+3 -1", "exit 1").
    """

    item: str
    status: ItemStatus
    parts: tuple[Part, ...] = ()
    blocks: tuple[DisplayBlock, ...] = ()
    detail: str = ""
    duration: float | None = None
    type: Literal["item_completed"] = field(default="item_completed", kw_only=True)
