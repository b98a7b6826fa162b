"""Estimated size of messages by component, counted once per content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from swecli.core.context_management.components import ASSISTANT, CALLS, REASONING, RESULTS, USER
from swecli.core.context_management.tokens import IMAGE_TOKENS, CountsTokens, PieceEstimator
from swecli.core.llm.types import ToolSchema
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

MESSAGE_OVERHEAD = 4
"""Tokens that a provider's chat template spends on role and borders of one message, about."""

CALL_OVERHEAD = 8
"""The same for one tool call, one result or one tool description."""

_VARIANTS = 4
"""Contents that are remembered per message id: live, stub, and what an undo brings back."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageSize:
    """Estimate of one content of one message. Compared by identity: one object stands for one content."""

    role: Role
    parts: tuple[Part, ...]
    counts: tuple[tuple[str, int], ...]
    """Component and tokens."""
    total: int


class SizeCache:
    """Estimates of messages and tool schemas. Memory is that of one small tuple per message."""

    def __init__(self, counter: CountsTokens | None = None) -> None:
        self.counter: CountsTokens = counter or PieceEstimator()
        self._messages: dict[str, list[MessageSize]] = {}
        self._schemas: dict[str, tuple[ToolSchema, int]] = {}
        self._texts: dict[str, int] = {}
        self._newest: tuple[tuple[Message, ...], tuple[MessageSize, ...]] = ((), ())

    def message(self, message: Message) -> MessageSize:
        """The estimate of one message: the same object as long as its parts are the same."""
        variants = self._messages.get(message.id)
        if variants is None:
            variants = self._messages[message.id] = []
        for size in variants:
            if size.parts == message.parts and size.role == message.role:
                return size
        size = self._measure(message)
        variants.insert(0, size)
        del variants[_VARIANTS:]
        return size

    def adopt(self, message: Message, counts: tuple[tuple[str, int], ...]) -> None:
        """Take a size over that was counted in an earlier run. What was counted here stays."""
        if message.id not in self._messages:
            size = MessageSize(message.role, message.parts, counts, sum(tokens for _, tokens in counts))
            self._messages[message.id] = [size]

    def messages(self, messages: Sequence[Message]) -> tuple[MessageSize, ...]:
        """The estimates of a whole conversation. What it has in common with the one before, from its beginning, is
        taken over, for every step of a session measures all that was said before."""
        before, sizes = self._newest
        same = min(len(before), len(messages))
        # The newest message of all may be another object while it grows; what stands before it is the same.
        while same and before[same - 1] is not messages[same - 1]:
            same -= 1
        if tuple(messages[:same]) != before[:same]:
            same = 0
        found = (*sizes[:same], *(self.message(message) for message in messages[same:]))
        self._newest = (tuple(messages), found)
        return found

    def schema(self, schema: ToolSchema) -> int:
        """Tokens of one tool description."""
        known = self._schemas.get(schema.name)
        if known is not None and (known[0] is schema or known[0] == schema):
            return known[1]
        text = f"{schema.name}\n{schema.description}\n{_compact(schema.parameters)}"
        tokens = self.counter.count(text) + CALL_OVERHEAD
        self._schemas[schema.name] = (schema, tokens)
        return tokens

    def stable_text(self, text: str) -> int:
        """Tokens of a text that comes again in every request, such as a section of the system prompt."""
        tokens = self._texts.get(text)
        if tokens is None:
            if len(self._texts) >= 64:
                self._texts.clear()
            tokens = self._texts[text] = self.counter.count(text)
        return tokens

    def _measure(self, message: Message) -> MessageSize:
        counts: dict[str, int] = {}
        for component, tokens in self._parts(message):
            counts[component] = counts.get(component, 0) + tokens
        first = next(iter(counts), USER if message.role == "user" else ASSISTANT)
        counts[first] = counts.get(first, 0) + MESSAGE_OVERHEAD
        return MessageSize(message.role, message.parts, tuple(counts.items()), sum(counts.values()))

    def _parts(self, message: Message) -> Iterable[tuple[str, int]]:
        spoken = USER if message.role == "user" else ASSISTANT
        for part in message.parts:
            match part:
                case TextPart(text=text):
                    yield spoken, self.counter.count(text)
                case ReasoningPart(text=text, opaque=opaque):
                    yield REASONING, max(self.counter.count(text), self._opaque(opaque.data) if opaque else 0)
                case ToolCallPart(name=name, arguments=arguments):
                    yield CALLS, self.counter.count(arguments) + self.counter.count(name) + CALL_OVERHEAD
                case ToolResultPart(text=text, images=images):
                    yield RESULTS, self.counter.count(text) + CALL_OVERHEAD + IMAGE_TOKENS * len(images)
                case ImagePart():
                    yield spoken, IMAGE_TOKENS
                case OpaquePart(opaque=opaque):
                    yield ASSISTANT, self._opaque(opaque.data)

    def _opaque(self, data: Any) -> int:
        # Encrypted reasoning and signatures: the provider counts what is inside, which its length tells roughly.
        return len(_compact(data)) // 5


def mark_of(message: Message) -> str:
    """A short text that is the same for messages of the same content, whatever their ids."""
    digest = blake2b(message.role.encode(), digest_size=9)
    for part in message.parts:
        digest.update(b"\0" + part.type.encode())
        for text in texts_of(part):
            digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
        opaque = part.opaque if isinstance(part, TextPart | ReasoningPart | ToolCallPart | OpaquePart) else None
        if opaque is not None:
            digest.update(_compact(opaque.data).encode("utf-8", "surrogatepass"))
        images = part.images if isinstance(part, ToolResultPart) else (part,) if isinstance(part, ImagePart) else ()
        for image in images:
            digest.update(image.data.encode())
    return digest.hexdigest()


def texts_of(part: Part) -> tuple[str, ...]:
    """The texts of a part that are counted."""
    match part:
        case TextPart(text=text) | ReasoningPart(text=text) | ToolResultPart(text=text):
            return (text,)
        case ToolCallPart(arguments=arguments):
            return (arguments,)
        case _:
            return ()


def _compact(value: Mapping[str, Any] | Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (ValueError, RecursionError):
        return str(value)
