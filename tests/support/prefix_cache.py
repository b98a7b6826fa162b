"""A provider's prompt cache with its real rules, for tests and benchmarks that measure hits instead of assuming them.

Anthropic's ("marked"): what comes before a cache breakpoint is kept, in the order tools, system prompt, messages; a
request has at most four of them, and looks for kept prefixes at 20 content blocks for each, the one with the breakpoint
being the first; prefixes below a smallest size are never kept; what is not used for five minutes is gone; reading costs
a tenth, writing a quarter more.

OpenAI's and DeepSeek's ("automatic"): any prefix of at least 1,024 tokens is kept, in steps of 128 tokens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from msgspec import structs

from swecli.core.context_management.counter import SizeCache
from swecli.core.llm.types import (
    Finished,
    ModelClient,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    SystemBlock,
    ToolSchema,
    UsageUpdate,
)
from swecli.core.protocol.messages import Message, Part, Usage

READ, WRITE, OUTPUT = 0.1, 1.25, 5.0
"""Prices in units of one input token that no cache has seen."""

LOOKBACK = 20
MOST_MARKS = 4
MARKED_MINIMUM = 1_024
STEP = 128

Style = Literal["marked", "automatic"]


@dataclass(frozen=True)
class Charge:
    """What a prompt was charged as, in tokens. ``read`` came from the cache, ``written`` went into it."""

    read: int
    written: int
    plain: int

    @property
    def total(self) -> int:
        return self.read + self.written + self.plain

    @property
    def share(self) -> float:
        """Share of the prompt that came from the cache."""
        return self.read / self.total if self.total else 0.0

    def cost(self, output: int = 0) -> float:
        """In units of one uncached input token."""
        return READ * self.read + WRITE * self.written + self.plain + OUTPUT * output


@dataclass
class PrefixCache:
    """``tokens`` is the provider's own tokenizer for one content block, ``clock`` gives seconds."""

    tokens: Callable[[object], int]
    clock: Callable[[], float] = lambda: 0.0
    style: Style = "marked"
    minimum: int = MARKED_MINIMUM
    ttl: float = 300.0
    _kept: dict[int, float] = field(default_factory=dict)
    """Hash of a prefix -> when it was used last."""
    _known: dict[tuple[str, int], tuple[object, int, int]] = field(default_factory=dict)
    """Role and identity of a part -> the part itself, its hash and its tokens: long histories come again and again."""

    def forget(self) -> None:
        """The provider throws everything away, for a reason of its own."""
        self._kept.clear()

    def charge(self, request: ModelRequest, model: str = "") -> Charge:
        """Look the request up and keep its prefixes.

        Raises:
            ValueError: more breakpoints than a provider takes.
        """
        blocks, marks = blocks_of(request)
        tail = self.tokens(request.tail) if request.tail else 0
        return self.charge_blocks([self._looked_up(block) for block in blocks], marks, tail, model)

    def charge_blocks(
        self, blocks: Sequence[tuple[int, int]], marks: list[int], tail: int = 0, model: str = ""
    ) -> Charge:
        """The same of content blocks by hash and tokens, with the indexes of those that have a breakpoint.

        Raises:
            ValueError: more breakpoints than a provider takes.
        """
        if len(marks) > MOST_MARKS:
            raise ValueError(f"{len(marks)} breakpoints; {MOST_MARKS} are allowed")
        chain: list[int] = []
        sizes: list[int] = []
        digest, size = hash(model), 0
        for key, tokens in blocks:
            digest = hash((digest, key))
            size += tokens
            chain.append(digest)
            sizes.append(size)
        now = self.clock()
        self._kept = {kept: used for kept, used in self._kept.items() if now - used < self.ttl}
        if self.style == "automatic":
            return self._automatic(chain, sizes, tail, now)
        return self._marked(chain, sizes, marks, tail, now)

    def _looked_up(self, block: object) -> tuple[int, int]:
        """Hash and tokens of one block."""
        role, part, first = (block.role, block.part, block.first) if isinstance(block, Framed) else ("", block, False)
        known = self._known.get((role, id(part)))
        if known is None:
            known = self._known[role, id(part)] = (part, hash((role, _key(part))), self.tokens(block))
        return hash((known[1], first)), known[2]

    def _marked(self, chain: list[int], sizes: list[int], marks: list[int], tail: int, now: float) -> Charge:
        hit = -1
        for mark in marks:
            for at in range(mark, max(-1, mark - LOOKBACK), -1):
                if chain[at] in self._kept:
                    hit = max(hit, at)
                    break
        written = max((mark for mark in marks if sizes[mark] >= self.minimum), default=-1)
        for at in {hit, *marks} - {-1}:
            if sizes[at] >= self.minimum:
                self._kept[chain[at]] = now
        read = sizes[hit] if hit >= 0 else 0
        write = max(0, (sizes[written] if written >= 0 else 0) - read)
        total = (sizes[-1] if sizes else 0) + tail
        return Charge(read, write, total - read - write)

    def _automatic(self, chain: list[int], sizes: list[int], tail: int, now: float) -> Charge:
        hit = max((at for at, digest in enumerate(chain) if digest in self._kept), default=-1)
        for digest in chain:
            self._kept[digest] = now
        read = sizes[hit] if hit >= 0 else 0
        read = read // STEP * STEP if read >= self.minimum else 0
        total = (sizes[-1] if sizes else 0) + tail
        return Charge(read, 0, total - read)


@dataclass(frozen=True)
class Framed:
    """A content block with the role of its message: equal text in another role is another prefix, and so is equal
    text that does not begin a message as it did."""

    role: str
    part: Part
    first: bool = False


def blocks_of(request: ModelRequest) -> tuple[list[object], list[int]]:
    """The content blocks of a request in the order of the cache, and the indexes of those with a breakpoint."""
    blocks: list[object] = [*request.tools]
    marks: list[int] = []
    for system in request.system:
        blocks.append(replace(system, breakpoint=False))
        if system.breakpoint:
            marks.append(len(blocks) - 1)
    for index, message in enumerate(request.messages):
        blocks.extend(Framed(message.role, part, place == 0) for place, part in enumerate(message.parts))
        if index in request.breakpoints and message.parts:
            marks.append(len(blocks) - 1)
    return blocks, marks


def _key(block: object) -> Hashable:
    try:
        hash(block)
    except TypeError:
        return repr(block)
    return block


@dataclass
class CachedModel:
    """A model client in front of another one, which reports usage as the cache charged it.

    ``output`` counts the tokens of an answer. ``charges`` has one entry for each request.
    """

    inner: ModelClient
    cache: PrefixCache
    output: Callable[[Message], int] = lambda message: 50
    charges: list[Charge] = field(default_factory=list)

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        charge = self.cache.charge(request, self.info.ref)
        self.charges.append(charge)
        async for event in self.inner.stream(request):
            match event:
                case UsageUpdate():
                    continue
                case Finished(message=message) if message.response is not None:
                    usage = Usage(
                        input_total=charge.total,
                        cache_read=charge.read,
                        cache_write=charge.written,
                        output_total=self.output(message),
                    )
                    yield UsageUpdate(usage)
                    yield Finished(structs.replace(message, response=structs.replace(message.response, usage=usage)))
                case _:
                    yield event

    async def close(self) -> None:
        await self.inner.close()


def provider_tokens(factor: float) -> Any:
    """The provider's own tokenizer over content blocks: so many times our estimates."""
    sizes = SizeCache()

    def tokens(block: object) -> int:
        match block:
            case Framed(part=part):
                count = sizes.message(Message("user", (part,), f"{id(part)}")).total
            case SystemBlock(text=text):
                count = sizes.stable_text(text)
            case ToolSchema():
                count = sizes.schema(block)
            case _:
                count = sizes.counter.count(str(block))
        return round(factor * count)

    return tokens
