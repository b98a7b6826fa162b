"""Simulation of a provider's prompt cache with its real rules: tokens read, written and billed for each request.

Anthropic's ("marked"): everything before a cache breakpoint is kept, in the order tools, system prompt, messages; a
request has at most four breakpoints, and looks for kept prefixes at 20 content blocks for each, the one with the
breakpoint being the first; another effort changes the messages' prefix; prefixes below a minimum size are never kept;
entries unused for five minutes expire; reading costs a tenth, writing a quarter more.

OpenAI's and DeepSeek's ("automatic"): any prefix of at least 1,024 tokens is kept, in steps of 128 tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.context_management.counter import CountsTokens, SizeCache
from swecli.core.llm.types import ModelRequest, SystemBlock, ToolSchema
from swecli.core.protocol.messages import Message, Part

READ, WRITE, OUTPUT = 0.1, 1.25, 5.0
"""Prices in units of one uncached input token."""

LOOKBACK = 20
MOST_MARKS = 4
MARKED_MINIMUM = 1_024
STEP = 128

Style = Literal["marked", "automatic"]


class Charge(Struct, frozen=True):
    """Billing of a prompt, in tokens. ``read`` came from the cache, ``written`` went into it."""

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


class PrefixCache(Struct):
    """``tokens`` is the provider's own tokenizer for one content block, ``clock`` returns seconds."""

    tokens: Callable[[object], int]
    clock: Callable[[], float] = lambda: 0.0
    style: Style = "marked"
    minimum: int = MARKED_MINIMUM
    ttl: float = 300.0
    _kept: dict[int, float] = field(default_factory=dict)
    """Hash of a prefix -> time of its last use."""
    _known: dict[tuple[str, int], tuple[object, int, int]] = field(default_factory=dict)
    """Role and identity of a part -> the part itself, its hash and its tokens: long histories are repeated in every
    request."""
    _newest: _Chain = field(default_factory=lambda: _Chain(0))
    """Chain of the newest request, which shares its beginning with the next one."""

    def forget(self) -> None:
        """Drop everything, as a provider may do at any time."""
        self._kept.clear()

    def charge(self, request: ModelRequest, model: str = "") -> Charge:
        """Look the request up and keep its prefixes.

        Raises:
            ValueError: more breakpoints than a provider accepts.
        """
        fixed, marks = fixed_blocks(request)
        chain = _Chain(hash(model))
        for block in fixed:
            chain.add(*self._looked_up(block))
        if request.effort is not None and self.style == "marked":
            chain.add(hash(("effort", request.effort)), 0)
        start = (chain.digests[-1] if chain.digests else hash(model), len(chain.digests))
        chain = self._continued(chain, start, request.messages)
        for index in request.breakpoints:
            if request.messages[index].parts:
                marks.append(chain.ends[index] - 1)
        self._newest = chain
        return self._charged(chain.digests, chain.sizes, marks)

    def _continued(self, chain: _Chain, start: tuple[int, int], messages: Sequence[Message]) -> _Chain:
        """The chain of the fixed part with the messages; reuses the part shared with the newest request."""
        before = self._newest
        same = 0
        if before.start == start:
            most = min(len(messages), len(before.messages))
            while same < most and messages[same] is before.messages[same]:
                same += 1
            end = before.ends[same - 1] if same else start[1]
            chain = _Chain(0, before.digests[:end], before.sizes[:end], before.ends[:same], before.messages[:same])
        chain.start = start
        for message in messages[same:]:
            for number, part in enumerate(message.parts):
                chain.add(*self._looked_up(Framed(message.role, part, number == 0)))
            chain.messages.append(message)
            chain.ends.append(len(chain.digests))
        return chain

    def charge_blocks(self, blocks: Sequence[tuple[int, int]], marks: list[int]) -> Charge:
        """Charge content blocks given by hash and tokens, with the indexes of those that have a breakpoint.

        Raises:
            ValueError: more breakpoints than a provider accepts.
        """
        chain = _Chain(0)
        for key, tokens in blocks:
            chain.add(key, tokens)
        return self._charged(chain.digests, chain.sizes, marks)

    def _charged(self, chain: list[int], sizes: list[int], marks: list[int]) -> Charge:
        if len(marks) > MOST_MARKS:
            raise ValueError(f"{len(marks)} breakpoints; {MOST_MARKS} are allowed")
        now = self.clock()
        if self.style == "automatic":
            return self._automatic(chain, sizes, now)
        return self._marked(chain, sizes, marks, now)

    def _has(self, digest: int, now: float) -> bool:
        used = self._kept.get(digest)
        return used is not None and now - used < self.ttl

    def _looked_up(self, block: object) -> tuple[int, int]:
        """Hash and tokens of one block."""
        role, part, first = (block.role, block.part, block.first) if isinstance(block, Framed) else ("", block, False)
        known = self._known.get((role, id(part)))
        if known is None:
            known = self._known[role, id(part)] = (part, hash((role, _key(part))), self.tokens(block))
        return hash((known[1], first)), known[2]

    def _marked(self, chain: list[int], sizes: list[int], marks: list[int], now: float) -> Charge:
        hit = -1
        for mark in marks:
            for at in range(mark, max(-1, mark - LOOKBACK), -1):
                if self._has(chain[at], now):
                    hit = max(hit, at)
                    break
        written = max((mark for mark in marks if sizes[mark] >= self.minimum), default=-1)
        for at in {hit, *marks} - {-1}:
            if sizes[at] >= self.minimum:
                self._kept[chain[at]] = now
        read = sizes[hit] if hit >= 0 else 0
        write = max(0, (sizes[written] if written >= 0 else 0) - read)
        total = sizes[-1] if sizes else 0
        return Charge(read, write, total - read - write)

    def _automatic(self, chain: list[int], sizes: list[int], now: float) -> Charge:
        hit = next((at for at in range(len(chain) - 1, -1, -1) if self._has(chain[at], now)), -1)
        self._kept.update(dict.fromkeys(chain, now))
        read = sizes[hit] if hit >= 0 else 0
        read = read // STEP * STEP if read >= self.minimum else 0
        total = sizes[-1] if sizes else 0
        return Charge(read, 0, total - read)


class _Chain(Struct):
    """For each block of a request the hash and the tokens of the prefix that ends with it; ``ends`` has the number of
    blocks up to the end of each message. ``start`` is the hash and the number of the blocks before them."""

    seed: int
    digests: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list[Message])
    start: tuple[int, int] = (0, -1)

    def add(self, key: int, tokens: int) -> None:
        self.digests.append(hash((self.digests[-1] if self.digests else self.seed, key)))
        self.sizes.append((self.sizes[-1] if self.sizes else 0) + tokens)


class Framed(Struct, frozen=True):
    """A content block with the role of its message: equal text in another role is another prefix, and so is equal text
    that no longer begins its message."""

    role: str
    part: Part
    first: bool = False


def fixed_blocks(request: ModelRequest) -> tuple[list[object], list[int]]:
    """The content blocks before the messages, and the indexes of those with a breakpoint."""
    blocks: list[object] = [*request.tools]
    marks: list[int] = []
    for system in request.system:
        blocks.append(replace(system, breakpoint=False))
        if system.breakpoint:
            marks.append(len(blocks) - 1)
    return blocks, marks


def _key(block: object) -> Hashable:
    try:
        hash(block)
    except TypeError:
        return repr(block)
    return block


def provider_tokens(factor: float, counter: CountsTokens | None = None) -> Callable[[object], int]:
    """The provider's tokenizer over content blocks: our estimates times ``factor``."""
    sizes = SizeCache(counter)

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
