"""A ledger over messages that did not come from a session, so that the same compaction works on them."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.events import (
    Body,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemKind,
    ItemStarted,
    ModelResponded,
)
from swecli.core.protocol.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    Response,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def ledger_of(messages: Sequence[Message]) -> Ledger:
    """The ledger that a session with these messages would have. Results without a call are left out."""
    ledger = Ledger()
    seq = 0
    open_calls: dict[str, str] = {}

    def apply(body: Body) -> None:
        nonlocal seq
        seq += 1
        ledger.apply(Event(seq, 0.0, "history", 1, body))

    for number, message in enumerate(messages):
        name = message.id or f"h{number}"
        if message.role == "user":
            apply(ItemStarted(name, "user"))
            apply(ItemCompleted(name, "ok", message.parts))
        elif message.role == "assistant":
            items: list[str] = []
            for place, part in enumerate(message.parts):
                item = f"{name}.{place}"
                items.append(item)
                apply(ItemStarted(item, _kind(part), part.name if isinstance(part, ToolCallPart) else ""))
                if isinstance(part, ToolCallPart):
                    apply(ItemCheckpointed(item, part))
                    open_calls[part.call_id] = item
                else:
                    apply(ItemCompleted(item, "ok", (part,)))
            response = message.response or Response(Origin("unknown", "", ""))
            apply(ModelResponded(name, tuple(items), response.origin, response.stop, response.usage))
        else:
            for result in message.tool_results:
                item = open_calls.pop(result.call_id, "")
                if item:
                    apply(ItemCompleted(item, "error" if result.is_error else "ok", (result,)))
    return ledger


def _kind(part: Part) -> ItemKind:
    match part:
        case TextPart():
            return "text"
        case ReasoningPart():
            return "reasoning"
        case ToolCallPart() | ToolResultPart():
            return "tool"
        case _:
            return "opaque"
