"""Messages as the bodies of the events that would have made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from swecli.core.protocol.events import (
    Body,
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


def bodies_of(messages: Sequence[Message], prefix: str = "") -> Iterator[Body]:
    """The events of a conversation, in order. Results without a call are left out. With ``prefix`` all ids are new
    ones that begin with it; else those of the messages are kept."""
    open_calls: dict[str, str] = {}
    for number, message in enumerate(messages):
        name = f"{prefix}.{number}" if prefix else message.id or f"h{number}"
        if message.role == "user":
            yield ItemStarted(name, "user")
            yield ItemCompleted(name, "ok", message.parts)
        elif message.role == "assistant":
            items: list[str] = []
            for place, part in enumerate(message.parts):
                item = f"{name}.{place}"
                items.append(item)
                yield ItemStarted(item, _kind(part), part.name if isinstance(part, ToolCallPart) else "")
                if isinstance(part, ToolCallPart):
                    yield ItemCheckpointed(item, part)
                    open_calls[part.call_id] = item
                else:
                    yield ItemCompleted(item, "ok", (part,))
            made = message.response or Response(Origin("unknown", "", ""))
            yield ModelResponded(
                name, tuple(items), made.origin, made.stop, made.usage, made.response_id, made.complete
            )
        else:
            for result in message.tool_results:
                item = open_calls.pop(result.call_id, "")
                if item:
                    yield ItemCompleted(item, "error" if result.is_error else "ok", (result,))


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
