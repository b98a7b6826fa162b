"""Blocks: one value per thing that the transcript shows. Plain, untrusted data; the renderers sanitise it. A changed
block is replaced by a new value with the same id."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, Literal, overload

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.llm.foreign_calls import own_name
from swecli.core.protocol.blocks import DisplayBlock, ImageBlock, TextBlock
from swecli.core.protocol.events import ItemStatus, NoticeLevel, TurnOutcome
from swecli.core.protocol.messages import ImagePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart, Usage
from swecli.core.spill import SpillHandle, SpillStore, weight_of

LiveStatus = Literal["pending", "waiting", "asking", "running"]
"""State of a tool call: arguments being written, waiting for consent, waiting for an answer to its question,
running."""
Status = LiveStatus | ItemStatus

LIVE: frozenset[str] = frozenset(("pending", "waiting", "asking", "running"))


class SessionBlock(Struct, frozen=True):
    """Start or continuation of a session."""

    id: str
    model: str
    cwd: str
    mode: str
    version: str
    resumed: bool = False
    address: str = ""
    """Address of the model, unless it is its provider's own."""
    lines: tuple[tuple[str, str], ...] = ()
    """Greeting of a new session in place of the other fields: labels and texts."""
    advice: tuple[TextBlock, ...] = ()
    """How to connect a model, in the greeting while none is connected."""
    brief: bool = False
    """Whether the greeting is the folder and the advice only, where space is short."""


class UserBlock(Struct, frozen=True):
    id: str
    text: str = ""
    images: tuple[ImageBlock, ...] = ()
    title: str = ""
    """Slash command from which ``text`` was generated; empty for a message."""


class AnswerBlock(Struct, frozen=True):
    """The model's text. While ``revision`` is unchanged, text is only appended."""

    id: str
    text: str = ""
    status: Status = "running"
    revision: int = 0
    detail: str = ""
    """Why it was cut off."""


class ReasoningBlock(Struct, frozen=True):
    id: str
    text: str = ""
    status: Status = "running"
    duration: float | None = None
    """Seconds."""
    revision: int = 0
    detail: str = ""
    """Why it was cut off."""


AGENT_CALLS: Final = 60
"""Newest calls of a subagent that are listed."""


class AgentFigures(Struct, frozen=True):
    """A subagent as shown in its call. ``outcome`` is empty while it works; ``doing`` is its current activity apart
    from open questions, ``calls`` the titles of its newest calls, ``earlier`` the number of calls before them. ``cost``
    is None for an unknown price."""

    id: str
    profile: str
    background: bool = False
    outcome: TurnOutcome | Literal[""] = ""
    reason: str = ""
    """Why it ended early."""
    steps: int = 0
    tokens: int = 0
    cost: Decimal | None = Decimal(0)
    doing: str = ""
    calls: tuple[str, ...] = ()
    earlier: int = 0
    open: tuple[tuple[str, str], ...] = ()
    """Its open questions to the user, oldest first: id of the request, and title of the call that is asked about."""

    @property
    def asks(self) -> int:
        """Number of open questions to the user."""
        return len(self.open)

    def with_call(self, title: str) -> AgentFigures:
        calls = (*self.calls, title)
        cut = max(0, len(calls) - AGENT_CALLS)
        return replace(self, doing=title, calls=calls[cut:], earlier=self.earlier + cut)


class ToolBlock(Struct, frozen=True):
    """A tool call. ``arguments`` is the JSON text written so far, ``output`` the end of the live output, ``preview``
    the subject of the consent request, ``blocks`` and ``result`` the outcome."""

    id: str
    name: str
    title: str = ""
    status: Status = "pending"
    arguments: str = ""
    output: str = ""
    output_cut: bool = False
    """Whether the start of the live output was discarded."""
    preview: tuple[DisplayBlock, ...] = ()
    blocks: tuple[DisplayBlock, ...] = ()
    detail: str = ""
    result: str = ""
    note: str = ""
    """Why it waits for consent, or the user's note on a rejection."""
    duration: float | None = None
    since: float = 0.0
    """Start of the run in Unix seconds."""
    elapsed: int = 0
    """Displayed seconds since it started."""
    agent: AgentFigures | None = None
    """The subagent that executes the call."""


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
    """Description for during and after the compaction."""
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
    """Seconds of the duration spent waiting for the user."""
    estimated: bool = False
    """Whether a part of ``usage`` is an estimate."""


class ShownBlock(Struct, frozen=True):
    """Output of a slash command or of the program itself; not part of the session."""

    id: str
    blocks: tuple[DisplayBlock, ...]
    title: str = ""


class RewoundBlock(Struct, frozen=True):
    """Messages removed by a rewind, still readable."""

    id: str
    blocks: tuple[Block, ...]
    reason: str = ""
    not_sent: bool = False
    """Whether it is a message that was blocked and returned to the prompt."""
    undoable: bool = False
    """Whether the user asked for it."""


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
    """Whether the block may still change."""
    match block:
        case AnswerBlock() | ReasoningBlock() | ToolBlock() | CompactionBlock():
            return block.status in LIVE
        case _:
            return False


class Put(Struct, frozen=True):
    """Show the block: in place of the one with the same id, or at the end."""

    block: Block


class Remove(Struct, frozen=True):
    """Remove the block with this id."""

    id: str


Operation = Put | Remove


LONG: Final = 2_000
"""Characters from which a block may leave memory for the spill store."""
RESIDENT: Final = 1_000_000
"""Characters of long blocks kept in memory, the most recently used ones."""


class Shape(Struct, frozen=True):
    """Layout facts about a block, available without loading it: ``length`` and ``lines`` of its text, and how many of
    its ``displays`` are tall."""

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
    """A sequence of blocks with unique ids; none is ever lost. ``resident`` is the number of characters of long ones
    kept in memory."""

    def __init__(self, resident: int = RESIDENT, spill: SpillStore[Block] | None = None) -> None:
        self._limit = resident
        self._entries: list[Block | _Spilled] = []
        self._places: dict[str, int] = {}
        self._recent: OrderedDict[str, tuple[Block, int]] = OrderedDict()
        """Long blocks in memory with their weights, the most recently used last."""
        self.resident = 0
        """Their characters."""
        self.spill: SpillStore[Block] = spill or SpillStore()

    def place(self, block_id: str) -> int | None:
        """Index of a block; None if there is none with this id."""
        return self._places.get(block_id)

    def id_at(self, place: int) -> str:
        """Id of the block at an index, without loading it."""
        entry = self._entries[place]
        return entry.shape.id if isinstance(entry, _Spilled) else entry.id

    def kind_at(self, place: int) -> type[Block]:
        """Type of the block at an index, without loading it."""
        entry = self._entries[place]
        return entry.shape.kind if isinstance(entry, _Spilled) else type(entry)

    def shape(self, place: int) -> Shape:
        """Shape of the block at an index, without loading it."""
        entry = self._entries[place]
        return entry.shape if isinstance(entry, _Spilled) else shape_of(entry)

    def put(self, block: Block) -> int:
        """Replace the block with the same id, or append it. Returns its index."""
        index = self._places.get(block.id)
        if index is None:
            index = self._places[block.id] = len(self._entries)
            self._entries.append(block)
        else:
            self._release(index)
            self._entries[index] = block
        weight = 0 if is_live(block) else weight_of(block)
        if weight >= LONG:
            self._keep(block, weight)
        return index

    def remove(self, place: int) -> None:
        """Remove a block; later ones move up by one."""
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
        """All blocks; blocks loaded for this are not kept."""
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
            index = self._places[oldest]
            if not isinstance(self._entries[index], _Spilled):
                self._entries[index] = _Spilled(shape_of(old), self.spill.put(old))

    def _release(self, index: int) -> None:
        entry = self._entries[index]
        known = self._recent.pop(self.id_at(index), None)
        if known is not None:
            self.resident -= known[1]
        if isinstance(entry, _Spilled):
            self.spill.forget(entry.ticket)


OUTPUT_TAIL: Final = 16_000
"""Characters of live output to keep; the result has all of it."""


def with_part(block: Block | None, part: Part) -> Block | None:
    """The block with a part of its item added; parts of another kind change nothing."""
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
    """The block with more live output; long output keeps its end, from the start of a line."""
    output = block.output + text
    if len(output) > 2 * OUTPUT_TAIL:
        begin = output.find("\n", len(output) - OUTPUT_TAIL)
        begin = begin + 1 if begin >= 0 else len(output) - OUTPUT_TAIL
        return replace(block, output=output[begin:], output_cut=True)
    return replace(block, output=output)


def image_of(part: ImagePart) -> ImageBlock:
    """A user's image for display: name and size."""
    size = len(part.data) * 3 // 4 - part.data[-2:].count("=")
    return ImageBlock(part.name or "image", part.media_type, max(0, size))
