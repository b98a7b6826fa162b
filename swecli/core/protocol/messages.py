"""Messages: what was said between user, model and tools, with ordered parts.

A part that a provider wants back unchanged (a signature, encrypted reasoning, an item id) carries it as
``Opaque`` together with its origin, so that it is replayed to that origin and to no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from swecli.core.protocol.usage import Usage
from swecli.core.protocol.value import value

Role = Literal["user", "assistant", "tool"]

StopKind = Literal[
    "end", "tool_use", "length", "stop_sequence", "content_filter", "refusal", "pause", "context_full", "other"
]
"""Why a model stopped. The raw word of the provider is kept beside it in ``Stop.raw``."""


@value
class Origin:
    """Where an assistant message came from: wire protocol, host name, model name."""

    protocol: str
    host: str
    model: str


@value
class Opaque:
    """Provider data to be echoed byte for byte, and only to the ``origin`` that sent it."""

    origin: Origin
    data: Any
    """Any JSON value."""


@value
class TextPart:
    text: str
    opaque: Opaque | None = None
    type: Literal["text"] = field(default="text", kw_only=True)


@value
class ReasoningPart:
    """Reasoning of the model. ``text`` may be empty where the provider sends only encrypted data."""

    text: str
    kind: Literal["raw", "summary"] = "raw"
    opaque: Opaque | None = None
    type: Literal["reasoning"] = field(default="reasoning", kw_only=True)


@value
class ToolCallPart:
    """A call as the model wrote it. ``arguments`` is the raw JSON text and is never re-serialised, so that
    the bytes of the prompt prefix stay stable; it may be invalid JSON."""

    call_id: str
    name: str
    arguments: str
    opaque: Opaque | None = None
    type: Literal["tool_call"] = field(default="tool_call", kw_only=True)


@value
class ImagePart:
    """An image. ``data`` is base64 text of the file's bytes."""

    media_type: str
    data: str
    name: str = ""
    type: Literal["image"] = field(default="image", kw_only=True)


@value
class ToolResultPart:
    """The answer to one call, as the model reads it."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()
    type: Literal["tool_result"] = field(default="tool_result", kw_only=True)


@value
class OpaquePart:
    """A whole provider item that swecli does not interpret (a server tool, an unknown block), kept in order."""

    opaque: Opaque
    note: str = ""
    type: Literal["opaque"] = field(default="opaque", kw_only=True)


Part = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | ImagePart | OpaquePart


@value
class Stop:
    """Why the model stopped: neutral kind and the provider's own word."""

    kind: StopKind | None = None
    raw: str | None = None
    detail: str | None = None


@value
class Response:
    """What is known of the model response that an assistant message came from."""

    origin: Origin
    stop: Stop = Stop()
    usage: Usage | None = None
    response_id: str | None = None
    complete: bool = True
    """False when the stream was cut, failed or interrupted: its tool calls were never executed."""


@value
class Message:
    """One entry of the conversation. Finished messages are immutable.

    ``id`` is the ledger id. ``response`` is set on assistant messages only. A ``tool`` message holds one
    ``ToolResultPart`` for each call of the assistant message before it, in call order.
    """

    role: Role
    parts: tuple[Part, ...]
    id: str = ""
    response: Response | None = None

    @property
    def text(self) -> str:
        """The visible text of the message, without reasoning, calls and results."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResultPart))


Json = Mapping[str, Any]
"""A decoded JSON object."""
