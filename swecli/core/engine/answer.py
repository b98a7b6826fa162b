"""The model's running answer: stream events become items, checkpoints, and one final response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from swecli.core.engine.recorder import Recorder
from swecli.core.llm.types import (
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolArgsDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageUpdate,
)
from swecli.core.protocol.events import (
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemKind,
    ItemStarted,
    ItemStatus,
    ModelResponded,
)
from swecli.core.protocol.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    Response,
    Stop,
    TextPart,
    ToolCallPart,
)
from swecli.core.protocol.usage import Usage

CHECKPOINT_SECONDS = 0.5


@dataclass(slots=True)
class _Running:
    """One part on its way."""

    item: str
    kind: ItemKind
    pieces: list[str] = field(default_factory=list)
    call: ToolCallPart | None = None
    reasoning_kind: str = "raw"
    stored: bool = True
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A complete call of a complete answer, ready for the scheduler."""

    item: str
    part: ToolCallPart


class Answer:
    """Follows one stream. Exactly one of ``complete`` and ``cut`` ends it; both leave every item terminal
    except the tool calls of a complete answer, which are the scheduler's."""

    def __init__(self, recorder: Recorder, origin: Origin, monotonic: Callable[[], float]) -> None:
        self._recorder = recorder
        self._origin = origin
        self._monotonic = monotonic
        self._started = monotonic()
        self._first: float | None = None
        self._parts: dict[int, _Running] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._usage: Usage | None = None

    @property
    def visible(self) -> bool:
        """Whether anything of the answer has been shown."""
        return bool(self._parts)

    @property
    def usage(self) -> Usage | None:
        """What the provider has reported so far."""
        return self._usage

    @property
    def written(self) -> int:
        """Characters that have come so far, of all parts."""
        return sum(len(piece) for running in self._parts.values() for piece in running.pieces)

    def feed(self, event: StreamEvent) -> None:
        """Take in one delta of the stream."""
        match event:
            case TextDelta(part=part, text=text):
                self._grow(part, "text", text)
            case ReasoningDelta(part=part, text=text, kind=kind):
                self._grow(part, "reasoning", text).reasoning_kind = kind
            case ToolCallStarted(part=part, name=name):
                self._part(part, "tool", name)
            case ToolArgsDelta(part=part, text=text) if part in self._parts:
                running = self._parts[part]
                running.pieces.append(text)
                self._recorder.emit(ItemDelta(running.item, text, "arguments"))
            case ToolCallDone(part=part, call=call):
                running = self._part(part, "tool", call.name)
                running.call = call
            case UsageUpdate(usage=usage):
                self._usage = usage
            case _:
                pass

    def complete(self, message: Message) -> tuple[Call, ...]:
        """The stream ended well: close its items and commit the response. Returns the calls to run."""
        self._stop_timer()
        items: list[str] = []
        calls: list[Call] = []
        for index, part in enumerate(message.parts):
            running = self._part(index, _kind(part), part.name if isinstance(part, ToolCallPart) else "")
            items.append(running.item)
            running.ended = True
            if isinstance(part, ToolCallPart):
                self._recorder.emit(ItemCheckpointed(running.item, part))
                calls.append(Call(running.item, part))
            else:
                self._recorder.emit(ItemCompleted(running.item, "ok", (part,)))
        for running in self._parts.values():
            if not running.ended:  # shown while streaming, but not part of the final message
                self._recorder.emit(ItemCompleted(running.item, "ok"))
        response = message.response or Response(self._origin)
        self._respond(items, response)
        return tuple(calls)

    def cut(self, status: ItemStatus, detail: str, message: Message | None = None, reason: str = "") -> None:
        """The stream failed or was interrupted: keep what there is, mark it, run nothing. ``detail`` goes to the
        stop of the response, ``reason`` is a sentence for the user."""
        self._stop_timer()
        final = dict(enumerate(message.parts)) if message else {}
        for index in sorted(final.keys() - self._parts.keys()):
            part = final[index]
            self._part(index, _kind(part), part.name if isinstance(part, ToolCallPart) else "")
        items: list[str] = []
        newest = max(self._parts, default=-1)
        for index, running in sorted(self._parts.items()):
            part = final.get(index) or _partial(running)
            if isinstance(part, ToolCallPart):
                self._recorder.emit(ItemCheckpointed(running.item, part))
                self._recorder.emit(ItemCompleted(running.item, "interrupted", detail="not executed"))
            else:
                whole = index != newest and status == "error"  # what follows shows that it came to its end
                ended = ItemCompleted(running.item, "ok" if whole else status, (part,) if part else ())
                self._recorder.emit(ended if whole else replace(ended, detail=reason))
            if part is not None:
                items.append(running.item)
        if items:
            response = message.response if message and message.response else Response(self._origin)
            stop = Stop(response.stop.kind, response.stop.raw, detail)
            usage = response.usage or self._usage
            self._respond(items, Response(response.origin, stop, usage, response.response_id, complete=False))

    def _respond(self, items: list[str], response: Response) -> None:
        self._recorder.emit(
            ModelResponded(
                message=f"m{self._recorder.state.seq + 1}",
                items=tuple(items),
                origin=response.origin,
                stop=response.stop,
                usage=response.usage or self._usage,
                response_id=response.response_id,
                complete=response.complete,
                first_token_ms=self._since_start(self._first) if self._first is not None else None,
                duration_ms=self._since_start(self._monotonic()),
            )
        )

    def _since_start(self, moment: float) -> int:
        return round((moment - self._started) * 1000)

    def _part(self, index: int, kind: ItemKind, name: str = "") -> _Running:
        running = self._parts.get(index)
        if running is None:
            if self._first is None:
                self._first = self._monotonic()
            item = self._recorder.new_item(_PREFIX[kind])
            running = self._parts[index] = _Running(item, kind)
            self._recorder.emit(ItemStarted(item, kind, name))
        return running

    def _grow(self, index: int, kind: ItemKind, text: str) -> _Running:
        running = self._part(index, kind)
        if text:
            running.pieces.append(text)
            running.stored = False
            self._recorder.emit(ItemDelta(running.item, text))
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(CHECKPOINT_SECONDS, self._checkpoint)
        return running

    def _checkpoint(self) -> None:
        self._timer = None
        for running in self._parts.values():
            part = _partial(running)
            if not running.stored and not running.ended and part is not None:
                running.stored = True
                self._recorder.emit(ItemCheckpointed(running.item, part))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_PREFIX: dict[ItemKind, str] = {"text": "a", "reasoning": "r", "tool": "t", "opaque": "o", "user": "u"}


def _kind(part: Part) -> ItemKind:
    match part:
        case ReasoningPart():
            return "reasoning"
        case ToolCallPart():
            return "tool"
        case TextPart(text=""):  # only what the provider wants back with it
            return "opaque"
        case TextPart():
            return "text"
        case _:
            return "opaque"


def _partial(running: _Running) -> Part | None:
    """What has arrived of a part. A call counts only once it is whole: half of its arguments are no call."""
    if running.kind == "tool":
        return running.call
    text = "".join(running.pieces)
    if not text:
        return None
    if running.kind == "reasoning":
        return ReasoningPart(text, "summary" if running.reasoning_kind == "summary" else "raw")
    return TextPart(text)
