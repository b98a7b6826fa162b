"""Messages: what was said between user, model and tools, with ordered parts.

A part that a provider wants back unchanged (a signature, encrypted reasoning, an item id) carries it as
``Opaque`` together with its origin, so that it is replayed to that origin and to no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct


class Tagged(Struct, frozen=True):
    """A member of a union, distinguished by ``type`` in its JSON form."""

    @property
    def type(self) -> str:
        """The tag of the class."""
        return str(self.__struct_config__.tag)


class Usage(Struct, frozen=True):
    """Tokens of one model response. ``None`` means the provider did not say.

    ``input_total`` counts the whole prompt, cached part included; ``output_total`` counts the whole
    answer, reasoning included. ``cost`` is the price in US dollars where the provider itself reported
    one (it wins over any catalogue price).
    """

    input_total: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output_total: int | None = None
    reasoning: int | None = None
    cost: Decimal | None = None
    """US dollars, only where the provider reported it."""
    cleared: int | None = None
    """Tokens of the request that the provider left out by itself; ``input_total`` is without them."""

    @property
    def prompt(self) -> int:
        """Tokens of the prompt; 0 where the provider did not say."""
        return self.input_total or 0

    @property
    def completion(self) -> int:
        """Tokens of the answer; 0 where the provider did not say."""
        return self.output_total or 0

    @property
    def total(self) -> int:
        """Tokens of both."""
        return self.prompt + self.completion

    @property
    def cache_share(self) -> float | None:
        """Share of the prompt that was served from the provider's cache, 0..1; None when unknown."""
        if self.cache_read is None or not self.input_total:
            return None
        return min(1.0, self.cache_read / self.input_total)


def added(one: Usage, other: Usage) -> Usage:
    """The sum of two responses; what only one of them reported counts as it is, a cost needs both."""

    def plus(a: int | None, b: int | None) -> int | None:
        return None if a is None and b is None else (a or 0) + (b or 0)

    return Usage(
        plus(one.input_total, other.input_total),
        plus(one.cache_read, other.cache_read),
        plus(one.cache_write, other.cache_write),
        plus(one.output_total, other.output_total),
        plus(one.reasoning, other.reasoning),
        None if one.cost is None or other.cost is None else one.cost + other.cost,
        plus(one.cleared, other.cleared),
    )


def usage_words(usage: Usage | None) -> str:
    """As in "34,120 tokens in, 1,200 out"; empty where nothing is known."""
    if usage is None or not usage.total:
        return ""
    return f"{usage.prompt:,} tokens in, {usage.completion:,} out"


Role = Literal["user", "assistant", "tool"]

StopKind = Literal[
    "end", "tool_use", "length", "stop_sequence", "content_filter", "refusal", "pause", "context_full", "other"
]
"""Why a model stopped. The raw word of the provider is kept beside it in ``Stop.raw``."""


class Origin(Struct, frozen=True):
    """Where an assistant message came from: wire protocol, host name, model name."""

    protocol: str
    host: str
    model: str


class Opaque(Struct, frozen=True):
    """Provider data to be echoed byte for byte, and only to the ``origin`` that sent it."""

    origin: Origin
    data: Any
    """Any JSON value."""


class TextPart(Tagged, frozen=True, tag="text"):
    text: str
    opaque: Opaque | None = None


class ReasoningPart(Tagged, frozen=True, tag="reasoning"):
    """Reasoning of the model. ``text`` may be empty where the provider sends only encrypted data."""

    text: str
    kind: Literal["raw", "summary"] = "raw"
    opaque: Opaque | None = None


class ToolCallPart(Tagged, frozen=True, tag="tool_call"):
    """A call as the model wrote it. ``arguments`` is the raw JSON text and is never re-serialised, so that
    the bytes of the prompt prefix stay stable; it may be invalid JSON."""

    call_id: str
    name: str
    arguments: str
    opaque: Opaque | None = None


class ImagePart(Tagged, frozen=True, tag="image"):
    """An image. ``data`` is base64 text of the file's bytes."""

    media_type: str
    data: str
    name: str = ""


class ToolResultPart(Tagged, frozen=True, tag="tool_result"):
    """The answer to one call, as the model reads it."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()


class OpaquePart(Tagged, frozen=True, tag="opaque"):
    """A whole provider item that swecli does not interpret (a server tool, an unknown block), kept in order."""

    opaque: Opaque
    note: str = ""


Part = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | ImagePart | OpaquePart


class Stop(Struct, frozen=True):
    """Why the model stopped: neutral kind and the provider's own word."""

    kind: StopKind | None = None
    raw: str | None = None
    detail: str | None = None


class Response(Struct, frozen=True):
    """What is known of the model response that an assistant message came from."""

    origin: Origin
    stop: Stop = Stop()
    usage: Usage | None = None
    response_id: str | None = None
    complete: bool = True
    """False when the stream was cut, failed or interrupted: its tool calls were never executed."""


class Message(Struct, frozen=True):
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
