"""Getting a summary from a model, down a ladder of requests that ends without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import reduce

from swecli.core.context_management.compaction.options import SummarizationStrategy
from swecli.core.context_management.compaction.summary import chunked, serialised_request, suffix_request, unusable
from swecli.core.context_management.door import Door
from swecli.core.llm.types import Failed, Finished, ModelClient, ModelRequest, ProviderError
from swecli.core.protocol.messages import Message
from swecli.core.protocol.usage import Usage, added

CALLS = 3
"""Model calls at the most for one summary, whatever goes wrong."""
CHARACTERS_PER_TOKEN = 3
BOUNDED_SHARE = 0.6
CALLS_BESIDES = 2
"""The same where enough room can be made without one."""
CHUNK = 20
"""Messages that stay together where the conversation is too long for one request."""
LEAST_CHARACTERS = 400
"""A text of the conversation that is shorter is not worth a call."""
TOO_SMALL = "no summary was asked for: the model's window has no room for the conversation, nor for a part of it"
PAUSE = 1.0
"""Seconds before a failed call is repeated."""


@dataclass(frozen=True, slots=True)
class Summary:
    """``text`` is empty when no model gave a usable one; ``notes`` say what went wrong on the way."""

    text: str
    notes: tuple[str, ...] = ()
    usage: tuple[Usage, ...] = ()

    @property
    def total_usage(self) -> Usage | None:
        """What all calls took together; None when nothing was reported."""
        return reduce(added, self.usage) if self.usage else None


class Summarizer:
    """Asks the session's model on its live prefix, or another one with the text of the conversation."""

    def __init__(
        self,
        door: Door,
        client: ModelClient,
        options: SummarizationStrategy | None,
        sleep: Callable[[float], Awaitable[None]],
        other: ModelClient | None = None,
    ) -> None:
        self._door = door
        self._other = other or (options.summarize_with if options else None)
        self._client = self._other or client
        self._sleep = sleep
        self._chunk = max(1, options.summarize_chunk_size) if options else CHUNK

    async def summarize(
        self, request: ModelRequest, focus: str, max_tokens: int, effective: int, calls: int = CALLS
    ) -> Summary:
        """At most so many calls; every answer is checked before it counts."""
        characters = int(effective * BOUNDED_SHARE * CHARACTERS_PER_TOKEN)
        whole = suffix_request(request, focus, max_tokens)
        if self._other is None and not await self._door.too_long(whole, self._client.info, likely=True):
            texts: list[str] = []
        elif not (texts := await self._texts(request, focus, max_tokens, characters, calls)):
            return Summary("", (TOO_SMALL,))
        notes: list[str] = []
        usages: list[Usage] = []
        earlier = ""
        for left in range(calls - 1, -1, -1):
            wanted = serialised_request(request, focus, max_tokens, texts[0], earlier) if texts else whole
            message, error = await self._ask(wanted, likely=not texts)
            if message is not None and message.response and message.response.usage:
                usages.append(message.response.usage)
            trouble = str(error) if error else unusable(message) if message else "no answer"
            if trouble is None and message is not None and len(texts) > 1:
                earlier = message.text.strip()
                del texts[0]
                continue
            if trouble is None and message is not None:
                return Summary(message.text.strip(), tuple(notes), tuple(usages))
            notes.append(f"summary refused: {trouble}")
            overflow = error is not None and error.kind in ("context_overflow", "too_large")
            if error is not None and not error.retryable and not overflow:
                break
            if error is not None and error.retryable:
                await self._sleep(PAUSE)
            elif overflow or not texts:
                # What the server says counts: of texts that were too long for it, shorter ones are made.
                characters = characters // 2 if texts else characters
                texts, earlier = await self._texts(request, focus, max_tokens, characters, max(1, left)), ""
                if not texts:
                    notes.append(TOO_SMALL)
                    break
        return Summary("", tuple(notes), tuple(usages))

    async def _texts(self, request: ModelRequest, focus: str, max_tokens: int, characters: int, most: int) -> list[str]:
        """The conversation as texts that each fit a request, the summary of those before it included; empty where the
        window has no room for any."""
        while characters >= LEAST_CHARACTERS:
            texts = chunked(request.messages, self._chunk, characters, most)
            earlier = " word" * max_tokens if len(texts) > 1 else ""
            for text in texts:
                wanted = serialised_request(request, focus, max_tokens, text, earlier)
                if await self._door.too_long(wanted, self._client.info):
                    break
            else:
                return texts
            characters //= 2
        return []

    async def _ask(self, request: ModelRequest, *, likely: bool) -> tuple[Message | None, ProviderError | None]:
        async with aclosing(self._door.send(self._client, request, likely=likely)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.message, None
                if isinstance(event, Failed):
                    return None, event.error
        return None, ProviderError("truncated", "the answer ended without its end marker")
