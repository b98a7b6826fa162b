"""Blocks: one value for each thing that the transcript shows. Plain data, as it came from outside; the
renderers sanitise it. A block that changes is replaced by a new value with the same id."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, Literal, overload

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.protocol.blocks import DisplayBlock, ImageBlock
from swecli.core.protocol.events import ItemStatus, NoticeLevel, TurnOutcome
from swecli.core.protocol.messages import ImagePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart, Usage
from swecli.core.spill import SpillHandle, SpillStore, weight_of
from swecli.core.tools.aliases import own_name

LiveStatus = Literal["pending", "waiting", "asking", "running"]
"""Of a tool call: arguments are being written, consent is awaited, an answer to its question is awaited, it runs."""
Status = LiveStatus | ItemStatus

LIVE: frozenset[str] = frozenset(("pending", "waiting", "asking", "running"))


class SessionBlock(Struct, frozen=True):
    """Start of a session, or of its continuation."""

    id: str
    model: str
    cwd: str
    mode: str
    version: str
    resumed: bool = False
    address: str = ""
    """Where the model is asked, unless it is its provider's own address."""
    lines: tuple[tuple[str, str], ...] = ()
    """The first screen of a new session in place of all that: labels and texts."""


class UserBlock(Struct, frozen=True):
    id: str
    text: str = ""
    images: tuple[ImageBlock, ...] = ()
    title: str = ""
    """The call of a command that ``text`` was made of; empty for a message."""


class AnswerBlock(Struct, frozen=True):
    """Text of the model. While ``revision`` stays the same, text is only ever added at its end."""

    id: str
    text: str = ""
    status: Status = "running"
    revision: int = 0
    detail: str = ""
    """Why it broke off."""


class ReasoningBlock(Struct, frozen=True):
    id: str
    text: str = ""
    status: Status = "running"
    duration: float | None = None
    """Seconds."""
    revision: int = 0
    detail: str = ""
    """Why it broke off."""


AGENT_CALLS: Final = 60
"""Calls of a subagent that are listed, the newest."""


class AgentFigures(Struct, frozen=True):
    """A subagent as its call shows it. ``outcome`` is empty while it works; ``doing`` is what it is at, ``calls`` are
    the titles of its calls, the newest ones, ``earlier`` how many were before them. ``cost`` is None where a price is
    unknown."""

    id: str
    profile: str
    background: bool = False
    outcome: TurnOutcome | Literal[""] = ""
    steps: int = 0
    tokens: int = 0
    cost: Decimal | None = Decimal(0)
    doing: str = ""
    calls: tuple[str, ...] = ()
    earlier: int = 0
    asks: int = 0
    """Questions to the user that are open."""

    def with_call(self, title: str) -> AgentFigures:
        calls = (*self.calls, title)
        cut = max(0, len(calls) - AGENT_CALLS)
        return replace(self, doing=title, calls=calls[cut:], earlier=self.earlier + cut)


class ToolBlock(Struct, frozen=True):
    """A tool call. ``arguments`` is the JSON text written so far, ``output`` the end of the live output,
    ``preview`` what consent was asked for, ``blocks`` and ``result`` what came out."""

    id: str
    name: str
    title: str = ""
    status: Status = "pending"
    arguments: str = ""
    output: str = ""
    output_cut: bool = False
    """Whether the beginning of the live output has been let go."""
    preview: tuple[DisplayBlock, ...] = ()
    blocks: tuple[DisplayBlock, ...] = ()
    detail: str = ""
    result: str = ""
    note: str = ""
    """Why consent is awaited, or the user's word with a rejection."""
    duration: float | None = None
    since: float = 0.0
    """When it began to run, in Unix seconds."""
    elapsed: int = 0
    """Seconds that it has been running, as far as they are shown."""
    agent: AgentFigures | None = None
    """The subagent that works for the call."""


class NoticeBlock(Struct, frozen=True):
    id: str
    text: str
    level: NoticeLevel = "info"
    hint: str = ""


class CompactionBlock(Struct, frozen=True):
    id: str
    status: Literal["running", "done", "failed", "undone", "redone"] = "running"
    tokens_before: int = 0
    words: str = ""
    """What is done while it runs, and what was done."""
    clearing: bool = False
    """Whether it only cleared old results."""
    summary: str = ""
    reason: str = ""


class TurnEndBlock(Struct, frozen=True):
    id: str
    outcome: TurnOutcome
    reason: str = ""
    duration: float = 0.0
    usage: Usage | None = None
    waited: float = 0.0
    """Seconds of the duration in which the user was asked."""


class ShownBlock(Struct, frozen=True):
    """What a slash command or the program itself shows; not part of the session."""

    id: str
    blocks: tuple[DisplayBlock, ...]
    title: str = ""


class RewoundBlock(Struct, frozen=True):
    """What a rewind has taken out of the conversation. It stays readable."""

    id: str
    blocks: tuple[Block, ...]
    reason: str = ""
    not_sent: bool = False
    """Whether it is a message that was blocked, and returned to the prompt."""


Block = (
    SessionBlock
    | UserBlock
    | AnswerBlock
    | ReasoningBlock
    | ToolBlock
    | NoticeBlock
    | CompactionBlock
    | TurnEndBlock
    | ShownBlock
    | RewoundBlock
)


def is_live(block: Block) -> bool:
    """Whether more is to come for this block."""
    match block:
        case AnswerBlock() | ReasoningBlock() | ToolBlock() | CompactionBlock():
            return block.status in LIVE
        case _:
            return False


class Put(Struct, frozen=True):
    """Show the block: in place of the one with its id, or at the end."""

    block: Block


class Remove(Struct, frozen=True):
    """Show the block with this id no longer."""

    id: str


Operation = Put | Remove


LONG: Final = 2_000
"""Characters from which a block is put away at all."""
RESIDENT: Final = 1_000_000
"""Characters of long blocks that stay in memory, those used last."""


class Shape(Struct, frozen=True):
    """What has to be known of a block without reading it: ``length`` and ``lines`` of its text, and how many of its
    ``displays`` are tall."""

    id: str
    kind: type[Block]
    length: int = 0
    lines: int = 0
    displays: int = 0


class _Spilled(Struct, frozen=True):
    shape: Shape
    ticket: SpillHandle


def shape_of(block: Block) -> Shape:
    match block:
        case UserBlock() | AnswerBlock():
            return Shape(block.id, type(block), len(block.text), block.text.count("\n"))
        case ToolBlock():
            tall = sum(1 for shown in block.blocks if shown.type in ("diff", "terminal"))
            return Shape(block.id, type(block), displays=tall)
        case ShownBlock():
            return Shape(block.id, type(block), displays=len(block.blocks))
        case _:
            return Shape(block.id, type(block))


class BlockList(Sequence[Block]):
    """A sequence of blocks with different ids. None is ever lost. ``resident`` is how many characters of
    long ones stay in memory."""

    def __init__(self, resident: int = RESIDENT, spill: SpillStore[Block] | None = None) -> None:
        self._limit = resident
        self._entries: list[Block | _Spilled] = []
        self._places: dict[str, int] = {}
        self._recent: OrderedDict[str, tuple[Block, int]] = OrderedDict()
        """Long blocks in memory with their weights, the one used last at the end."""
        self.resident = 0
        """Characters of them."""
        self.spill: SpillStore[Block] = spill or SpillStore()

    def place(self, block_id: str) -> int | None:
        """Where a block stands; None when there is none with this id."""
        return self._places.get(block_id)

    def id_at(self, place: int) -> str:
        """The id of the block at a place, without reading it."""
        entry = self._entries[place]
        return entry.shape.id if isinstance(entry, _Spilled) else entry.id

    def kind_at(self, place: int) -> type[Block]:
        """What the block at a place is, without reading it."""
        entry = self._entries[place]
        return entry.shape.kind if isinstance(entry, _Spilled) else type(entry)

    def shape(self, place: int) -> Shape:
        """The shape of the block at a place, without reading it."""
        entry = self._entries[place]
        return entry.shape if isinstance(entry, _Spilled) else shape_of(entry)

    def put(self, block: Block) -> int:
        """Put a block in place of the one with its id, or at the end. Returns its place."""
        place = self._places.get(block.id)
        if place is None:
            place = self._places[block.id] = len(self._entries)
            self._entries.append(block)
        else:
            self._release(place)
            self._entries[place] = block
        weight = 0 if is_live(block) else weight_of(block)
        if weight >= LONG:
            self._keep(block, weight)
        return place

    def remove(self, place: int) -> None:
        """Take a block out; those behind it move up by one."""
        self._release(place)
        self._places.pop(self.id_at(place))
        del self._entries[place]
        for number in range(place, len(self._entries)):
            self._places[self.id_at(number)] = number

    def clear(self) -> None:
        self._entries.clear()
        self._places.clear()
        self._recent.clear()
        self.resident = 0
        self.spill.close()
        self.spill = SpillStore()

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | Sequence[Block]:
        if isinstance(index, slice):
            return [self._read(entry) for entry in self._entries[index]]
        entry = self._entries[index]
        if not isinstance(entry, _Spilled):
            if entry.id in self._recent:
                self._recent.move_to_end(entry.id)
            return entry
        known = self._recent.get(entry.shape.id)
        if known is not None:
            self._recent.move_to_end(entry.shape.id)
            return known[0]
        block = self._read(entry)
        self._keep(block, weight_of(block))
        return block

    def __iter__(self) -> Iterator[Block]:
        """All blocks; what is read for this is not kept."""
        return (self._read(entry) for entry in self._entries)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    def _read(self, entry: Block | _Spilled) -> Block:
        if not isinstance(entry, _Spilled):
            return entry
        known = self._recent.get(entry.shape.id)
        if known is not None:
            return known[0]
        try:
            return self.spill.get(entry.ticket)
        except OSError as error:
            text = f"Cannot read back this part of the transcript ({error}). The session's record still has it."
            return NoticeBlock(entry.shape.id, text, "error")

    def _keep(self, block: Block, weight: int) -> None:
        self._recent[block.id] = (block, weight)
        self.resident += weight
        while self.resident > self._limit and len(self._recent) > 1:
            oldest, (old, old_weight) = self._recent.popitem(last=False)
            self.resident -= old_weight
            place = self._places[oldest]
            if not isinstance(self._entries[place], _Spilled):
                self._entries[place] = _Spilled(shape_of(old), self.spill.put(old))

    def _release(self, place: int) -> None:
        entry = self._entries[place]
        known = self._recent.pop(self.id_at(place), None)
        if known is not None:
            self.resident -= known[1]
        if isinstance(entry, _Spilled):
            self.spill.forget(entry.ticket)


OUTPUT_TAIL: Final = 16_000
"""Characters of live output that are kept; the whole of it is in the result."""


def with_part(block: Block | None, part: Part) -> Block | None:
    """The block with a part of its item; parts that are none of its kind change nothing."""
    match block, part:
        case UserBlock(), TextPart():
            return replace(block, text=part.text)
        case (AnswerBlock(), TextPart()) | (ReasoningBlock(), ReasoningPart()):
            if part.text == block.text:
                return block
            grown = part.text.startswith(block.text)
            return replace(block, text=part.text, revision=block.revision + (0 if grown else 1))
        case ToolBlock(), ToolCallPart():
            return replace(block, name=own_name(part.name) or block.name, arguments=part.arguments)
        case ToolBlock(), ToolResultPart():
            return replace(block, result=part.text)
        case _:
            return block


def with_output(block: ToolBlock, text: str) -> ToolBlock:
    """The block with more output of a tool that runs; of long output the end is kept, from the start of a line."""
    output = block.output + text
    if len(output) > 2 * OUTPUT_TAIL:
        begin = output.find("\n", len(output) - OUTPUT_TAIL)
        begin = begin + 1 if begin >= 0 else len(output) - OUTPUT_TAIL
        return replace(block, output=output[begin:], output_cut=True)
    return replace(block, output=output)


def image_of(part: ImagePart) -> ImageBlock:
    """An image of the user as it is shown: by its name and size."""
    size = len(part.data) * 3 // 4 - part.data[-2:].count("=")
    return ImageBlock(part.name or "image", part.media_type, max(0, size))
