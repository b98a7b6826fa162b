"""Blocks: one value for each thing that the transcript shows. Plain data, as it came from outside; the
renderers sanitise it. A block that changes is replaced by a new value with the same id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from swecli.core.protocol.blocks import DisplayBlock, ImageBlock
from swecli.core.protocol.events import ItemStatus, NoticeLevel, TurnOutcome

LiveStatus = Literal["pending", "waiting", "running"]
"""Of a tool call: arguments are being written, consent is awaited, it runs."""
Status = LiveStatus | ItemStatus

LIVE: frozenset[str] = frozenset(("pending", "waiting", "running"))


@dataclass(frozen=True, slots=True)
class SessionBlock:
    """Start of a session, or of its continuation."""

    id: str
    model: str
    cwd: str
    mode: str
    version: str
    resumed: bool = False
    address: str = ""
    """Where the model is asked, unless it is its provider's own address."""


@dataclass(frozen=True, slots=True)
class UserBlock:
    id: str
    text: str = ""
    images: tuple[ImageBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """Text of the model. While ``revision`` stays the same, text is only ever added at its end."""

    id: str
    text: str = ""
    status: Status = "running"
    revision: int = 0
    detail: str = ""
    """Why it broke off."""


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    id: str
    text: str = ""
    status: Status = "running"
    duration: float | None = None
    """Seconds."""
    revision: int = 0
    detail: str = ""
    """Why it broke off."""


@dataclass(frozen=True, slots=True)
class ToolBlock:
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


@dataclass(frozen=True, slots=True)
class NoticeBlock:
    id: str
    text: str
    level: NoticeLevel = "info"
    hint: str = ""


@dataclass(frozen=True, slots=True)
class CompactionBlock:
    id: str
    status: Literal["running", "done", "failed", "undone", "redone"] = "running"
    tokens_before: int = 0
    tokens_after: int = 0
    messages_before: int = 0
    messages_after: int = 0
    strategies: tuple[str, ...] = ()
    summary: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SubagentBlock:
    id: str
    name: str = ""
    title: str = ""
    status: Status = "running"
    calls: int = 0
    activity: str = ""
    """The tool call that it made last."""
    result: str = ""
    blocks: tuple[DisplayBlock, ...] = ()
    detail: str = ""
    duration: float | None = None


@dataclass(frozen=True, slots=True)
class TurnEndBlock:
    id: str
    outcome: TurnOutcome
    reason: str = ""
    duration: float = 0.0


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """What a slash command or the program itself shows; not part of the session."""

    id: str
    blocks: tuple[DisplayBlock, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class RewoundBlock:
    """What a rewind has taken out of the conversation. It stays readable."""

    id: str
    blocks: tuple[Block, ...]
    reason: str = ""


Block = (
    SessionBlock
    | UserBlock
    | AnswerBlock
    | ReasoningBlock
    | ToolBlock
    | NoticeBlock
    | CompactionBlock
    | SubagentBlock
    | TurnEndBlock
    | ShownBlock
    | RewoundBlock
)


def is_live(block: Block) -> bool:
    """Whether more is to come for this block."""
    match block:
        case AnswerBlock() | ReasoningBlock() | ToolBlock() | SubagentBlock() | CompactionBlock():
            return block.status in LIVE
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Put:
    """Show the block: in place of the one with its id, or at the end."""

    block: Block


@dataclass(frozen=True, slots=True)
class Remove:
    """Show the block with this id no longer."""

    id: str


Operation = Put | Remove
