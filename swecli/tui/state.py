"""What the screen around the transcript knows of the session: a reduction of its events, without widgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemKind,
    ItemStarted,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    Queued,
    RetryScheduled,
    SessionStarted,
    StepStarted,
    TodosChanged,
    TurnEnded,
    TurnStarted,
)

Request = PermissionRequested | QuestionAsked


@dataclass(slots=True)
class Running:
    """An item that has begun and not ended. ``since`` is Unix seconds."""

    kind: ItemKind
    name: str
    title: str
    since: float
    executing: bool = False


@dataclass(slots=True)
class UiState:
    """Reduced state. Times are Unix seconds as the events carry them."""

    busy: bool = False
    turn_since: float = 0.0
    interrupting: bool = False
    retry: RetryScheduled | None = None
    retry_at: float = 0.0
    running: dict[str, Running] = field(default_factory=lambda: {})
    requests: list[Request] = field(default_factory=lambda: [])
    todos: tuple[Todo, ...] = ()
    queue: tuple[Queued, ...] = ()
    ended: TurnEnded | None = None
    last_answer: str = ""
    """Text of the newest finished answer of the main agent."""

    def feed(self, events: Sequence[Event]) -> None:
        """Take events in order."""
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        body = event.body
        match body:
            case ItemDelta():
                self.retry = None
            case ItemStarted():
                self.retry = None
                self.running[body.item] = Running(body.kind, body.name, body.title, event.ts)
            case ItemCheckpointed():
                self._checkpoint(body)
            case ItemCompleted():
                self._complete(body)
            case PermissionRequested() | QuestionAsked():
                self.requests.append(body)
            case PermissionResolved() | QuestionAnswered():
                self.requests = [request for request in self.requests if request.request != body.request]
            case StepStarted():
                self.retry = None
            case RetryScheduled():
                self.retry, self.retry_at = body, event.ts + body.delay
            case TodosChanged():
                self.todos = body.todos
            case QueueChanged():
                self.queue = body.queue
            case CompactionStarted():
                self.running.setdefault(body.item, Running("compaction", "", "", event.ts))
            case CompactionCompleted() | CompactionFailed():
                self.running.pop(body.item, None)
            case TurnStarted():
                self._rest()
                self.busy, self.turn_since, self.ended = True, event.ts, None
            case TurnEnded():
                self._rest()
                self.ended = body
            case SessionStarted():
                self._rest()
            case _:
                pass

    def _rest(self) -> None:
        self.busy = self.interrupting = False
        self.retry = None
        self.running.clear()
        self.requests.clear()

    def _checkpoint(self, body: ItemCheckpointed) -> None:
        item = self.running.get(body.item)
        if item is not None:
            item.title = body.title or item.title
            item.executing = item.executing or body.running

    def _complete(self, body: ItemCompleted) -> None:
        item = self.running.pop(body.item, None)
        self.requests = [request for request in self.requests if request.item != body.item]
        if item is not None and item.kind == "text" and body.parts:
            text = getattr(body.parts[0], "text", "")
            self.last_answer = text or self.last_answer
