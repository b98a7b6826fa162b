"""The blocks of the transcript in order. Long ones that nobody has looked at for a while are on the shelf."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, overload

from swecli.core.shelf import Shelf, Ticket, weight_of
from swecli.tui.transcript.blocks import AnswerBlock, Block, NoticeBlock, ShownBlock, ToolBlock, UserBlock, is_live

LONG: Final = 2_000
"""Characters from which a block is put away at all."""
RESIDENT: Final = 1_000_000
"""Characters of long blocks that stay in memory, those used last."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What has to be known of a block without reading it: ``length`` and ``lines`` of its text, and how many of its
    ``displays`` are tall."""

    id: str
    kind: type[Block]
    length: int = 0
    lines: int = 0
    displays: int = 0


@dataclass(frozen=True, slots=True)
class _Away:
    shape: Shape
    ticket: Ticket


def shape_of(block: Block) -> Shape:
    """The shape of a block."""
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

    def __init__(self, resident: int = RESIDENT, shelf: Shelf[Block] | None = None) -> None:
        self._limit = resident
        self._slots: list[Block | _Away] = []
        self._places: dict[str, int] = {}
        self._recent: OrderedDict[str, tuple[Block, int]] = OrderedDict()
        """Long blocks in memory with their weights, the one used last at the end."""
        self.resident = 0
        """Characters of them."""
        self.shelf: Shelf[Block] = shelf or Shelf()

    def place(self, block_id: str) -> int | None:
        """Where a block stands; None when there is none with this id."""
        return self._places.get(block_id)

    def id_at(self, place: int) -> str:
        """The id of the block at a place, without reading it."""
        slot = self._slots[place]
        return slot.shape.id if isinstance(slot, _Away) else slot.id

    def kind_at(self, place: int) -> type[Block]:
        """What the block at a place is, without reading it."""
        slot = self._slots[place]
        return slot.shape.kind if isinstance(slot, _Away) else type(slot)

    def shape(self, place: int) -> Shape:
        """The shape of the block at a place, without reading it."""
        slot = self._slots[place]
        return slot.shape if isinstance(slot, _Away) else shape_of(slot)

    def put(self, block: Block) -> int:
        """Put a block in place of the one with its id, or at the end. Returns its place."""
        place = self._places.get(block.id)
        if place is None:
            place = self._places[block.id] = len(self._slots)
            self._slots.append(block)
        else:
            self._let_go(place)
            self._slots[place] = block
        weight = 0 if is_live(block) else weight_of(block)
        if weight >= LONG:
            self._keep(block, weight)
        return place

    def remove(self, place: int) -> None:
        """Take a block out; those behind it move up by one."""
        self._let_go(place)
        self._places.pop(self.id_at(place))
        del self._slots[place]
        for number in range(place, len(self._slots)):
            self._places[self.id_at(number)] = number

    def clear(self) -> None:
        """No blocks."""
        self._slots.clear()
        self._places.clear()
        self._recent.clear()
        self.resident = 0
        self.shelf.close()
        self.shelf = Shelf()

    def __len__(self) -> int:
        return len(self._slots)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | Sequence[Block]:
        if isinstance(index, slice):
            return [self._read(slot) for slot in self._slots[index]]
        slot = self._slots[index]
        if not isinstance(slot, _Away):
            if slot.id in self._recent:
                self._recent.move_to_end(slot.id)
            return slot
        known = self._recent.get(slot.shape.id)
        if known is not None:
            self._recent.move_to_end(slot.shape.id)
            return known[0]
        block = self._read(slot)
        self._keep(block, weight_of(block))
        return block

    def __iter__(self) -> Iterator[Block]:
        """All blocks; what is read for this is not kept."""
        return (self._read(slot) for slot in self._slots)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    def _read(self, slot: Block | _Away) -> Block:
        if not isinstance(slot, _Away):
            return slot
        known = self._recent.get(slot.shape.id)
        if known is not None:
            return known[0]
        try:
            return self.shelf.get(slot.ticket)
        except OSError as error:
            text = f"This part of the transcript can't be read back ({error}). The record of the session still has it."
            return NoticeBlock(slot.shape.id, text, "error")

    def _keep(self, block: Block, weight: int) -> None:
        self._recent[block.id] = (block, weight)
        self.resident += weight
        while self.resident > self._limit and len(self._recent) > 1:
            oldest, (old, old_weight) = self._recent.popitem(last=False)
            self.resident -= old_weight
            place = self._places[oldest]
            if not isinstance(self._slots[place], _Away):
                self._slots[place] = _Away(shape_of(old), self.shelf.put(old))

    def _let_go(self, place: int) -> None:
        slot = self._slots[place]
        known = self._recent.pop(self.id_at(place), None)
        if known is not None:
            self.resident -= known[1]
        if isinstance(slot, _Away):
            self.shelf.forget(slot.ticket)
