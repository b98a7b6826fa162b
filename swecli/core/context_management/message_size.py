"""Estimated size of messages by component, counted once per content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any
from weakref import WeakSet

from swecli.core.context_management.counter import IMAGE_TOKENS, CountsTokens, PieceEstimator
from swecli.core.llm.types import ToolSchema
from swecli.core.protocol.budget import ASSISTANT, CALLS, REASONING, RESULTS, USER
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

KEPT_BESIDE = 2_048
"""Messages that are not in the newest conversation whose sizes are remembered, for an undo."""
_SLACK = 512
"""How many more there may be until the oldest are forgotten."""


class MessageSize:
    """Estimate of one content of one message. Compared by identity: one object stands for one content. ``counts`` are
    component and tokens."""

    __slots__ = ("__weakref__", "_content", "counts", "role", "total")

    def __init__(self, role: Role, parts: tuple[Part, ...], counts: tuple[tuple[str, int], ...]) -> None:
        self.role: Role = role
        self.counts = counts
        self.total = sum(tokens for _, tokens in counts)
        self._content: tuple[Part, ...] | bytes = parts

    def is_of(self, message: Message) -> bool:
        if self.role != message.role:
            return False
        if isinstance(self._content, tuple):
            return self._content == message.parts
        if self._content != _digest(message.parts):
            return False
        self._content = message.parts  # the conversation holds them, too, and they are the quicker way
        return True

    def recount(self, counts: tuple[tuple[str, int], ...]) -> None:
        self.counts = counts
        self.total = sum(tokens for _, tokens in counts)

    def let_go(self) -> None:
        """Tell the content by its digest: nobody else needs the texts any more."""
        if isinstance(self._content, tuple):
            self._content = _digest(self._content)


class SizeCache:
    """Estimates of messages and tool schemas. Texts that left the conversation are not kept, only their sizes, and
    these only of the newest."""

    def __init__(self, counter: CountsTokens | None = None) -> None:
        self.counter: CountsTokens = counter or PieceEstimator()
        self._messages: dict[str, list[MessageSize]] = {}
        self._schemas: dict[str, tuple[ToolSchema, int]] = {}
        self._texts: dict[str, int] = {}
        self._newest: tuple[tuple[Message, ...], tuple[MessageSize, ...]] = ((), ())
        self._exact: WeakSet[MessageSize] = WeakSet()
        """What was counted when the counter was exact."""

    def message(self, message: Message) -> MessageSize:
        """The estimate of one message: the same object as long as its parts are the same."""
        variants = self._messages.get(message.id)
        if variants is None:
            variants = self._messages[message.id] = []
        for size in variants:
            if size.is_of(message):
                return size
        size = self.measure(message)
        variants.insert(0, size)
        del variants[_VARIANTS:]
        return size

    def adopt(self, message: Message, counts: tuple[tuple[str, int], ...]) -> None:
        """Take a size over that was counted in an earlier run. What was counted here stays."""
        if message.id not in self._messages:
            self._messages[message.id] = [MessageSize(message.role, message.parts, counts)]

    def estimated(self, messages: Sequence[Message]) -> list[tuple[Message, MessageSize]]:
        """Messages whose remembered sizes may be estimates."""
        known = [(message, size) for message in messages for size in self._variants(message) if size.is_of(message)]
        return [(message, size) for message, size in known if size not in self._exact]

    def settle(self, sizes: Iterable[MessageSize]) -> None:
        """These need no better counts any more."""
        self._exact.update(sizes)

    def forget_fixed(self) -> None:
        """Count what is in every request anew."""
        self._texts.clear()
        self._schemas.clear()

    def _variants(self, message: Message) -> Sequence[MessageSize]:
        return self._messages.get(message.id, ())

    def messages(self, messages: Sequence[Message]) -> tuple[MessageSize, ...]:
        """The estimates of a whole conversation. What it has in common with the one before, from its beginning, is
        taken over, for every step of a session measures all that was said before."""
        sizes = self._newest[1]
        same = self._common(messages)
        found = (*sizes[:same], *(self.message(message) for message in messages[same:]))
        if same < len(sizes):
            here = set(found)
            for size in sizes[same:]:
                if size not in here:
                    size.let_go()
            self._forget_oldest(messages)
        self._newest = (tuple(messages), found)
        return found

    def beside(self, messages: Sequence[Message]) -> tuple[MessageSize, ...]:
        """The estimates of messages that do not take the place of the conversation: those of what both begin with, and
        new ones of the rest, which nobody remembers."""
        same = self._common(messages)
        return (*self._newest[1][:same], *(self.measure(message) for message in messages[same:]))

    def _common(self, messages: Sequence[Message]) -> int:
        """How many messages these begin with that the newest conversation begins with, too."""
        before = self._newest[0]
        same = min(len(before), len(messages))
        # The newest message of all may be another object while it grows; what stands before it is the same.
        while same and before[same - 1] is not messages[same - 1]:
            same -= 1
        return same if tuple(messages[:same]) == before[:same] else 0

    def _forget_oldest(self, messages: Sequence[Message]) -> None:
        if len(self._messages) <= len(messages) + KEPT_BESIDE + _SLACK:
            return
        here = {message.id for message in messages}
        beside = [name for name in self._messages if name not in here]
        for name in beside[:-KEPT_BESIDE]:
            del self._messages[name]

    def schema(self, schema: ToolSchema) -> int:
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

    def measure(self, message: Message) -> MessageSize:
        """The estimate of one message, which is not remembered."""
        counts: dict[str, int] = {}
        for component, tokens in self._parts(message):
            counts[component] = counts.get(component, 0) + tokens
        first = next(iter(counts), USER if message.role == "user" else ASSISTANT)
        counts[first] = counts.get(first, 0) + MESSAGE_OVERHEAD
        return MessageSize(message.role, message.parts, tuple(counts.items()))

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
    _feed(digest, message.parts)
    return digest.hexdigest()


def _digest(parts: tuple[Part, ...]) -> bytes:
    """The same for everything in the parts, names and ids too."""
    digest = blake2b(digest_size=16)
    _feed(digest, parts)
    for part in parts:
        if isinstance(part, ToolCallPart | ToolResultPart):
            digest.update(f"\0{part.call_id}\0{part.name}\0".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _feed(digest: blake2b, parts: tuple[Part, ...]) -> None:
    for part in parts:
        digest.update(b"\0" + part.type.encode())
        for text in texts_of(part):
            digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
        opaque = part.opaque if isinstance(part, TextPart | ReasoningPart | ToolCallPart | OpaquePart) else None
        if opaque is not None:
            digest.update(_compact(opaque.data).encode("utf-8", "surrogatepass"))
        images = part.images if isinstance(part, ToolResultPart) else (part,) if isinstance(part, ImagePart) else ()
        for image in images:
            digest.update(image.data.encode())


def texts_of(part: Part) -> tuple[str, ...]:
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
