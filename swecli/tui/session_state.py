"""What the screen around the transcript knows of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from swecli.core.protocol.events import (
    MAIN,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    Event,
    FileChanged,
    HookRan,
    HooksRunning,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    RetryScheduled,
    SandboxChanged,
    SessionStarted,
    StepStarted,
    TodosChanged,
    TurnEnded,
    TurnStarted,
)
from swecli.core.tools.aliases import own_name

if TYPE_CHECKING:
    from swecli.core.protocol.blocks import Todo
    from swecli.core.protocol.events import ItemKind, Queued


_OF_ANYONE = (PermissionRequested, PermissionResolved, QuestionAsked, QuestionAnswered, FileChanged)
"""What of a subagent concerns the user as that of the main agent does."""

Request: TypeAlias = "PermissionRequested | QuestionAsked"


class Running(Struct):
    """An item that has begun and not ended. ``since`` is Unix seconds; of a call, from when it runs."""

    kind: ItemKind
    name: str
    title: str
    since: float
    executing: bool = False
    awaits: str = ""
    """What it waits for before it runs, as a clause."""

    @property
    def is_command(self) -> bool:
        """Whether it is a command that runs now, the model's or the user's own."""
        return (self.name == "run_command" and self.executing) or (self.kind == "user" and self.name == "shell")


class UiState(Struct):
    """State as ``reduction`` makes it of the session's events. Times are Unix seconds as the events carry them."""

    busy: bool = False
    turn_since: float = 0.0
    heard: float = 0.0
    """When something last came from the model or about it."""
    awaits: str = ""
    """What a request waits for before it is sent, as a sentence."""
    interrupting: bool = False
    retry: RetryScheduled | None = None
    retry_at: float = 0.0
    hooks: dict[int, HooksRunning] = field(default_factory=lambda: {})
    """Hooks that are waited for, by the number of the wait."""
    running: dict[str, Running] = field(default_factory=lambda: {})
    requests: list[Request] = field(default_factory=lambda: [])
    asked_since: float = 0.0
    """When the user was asked what waits now, or the answer before it came."""
    waited: float = 0.0
    """Seconds that the turn has waited for the user's answers."""
    todos: tuple[Todo, ...] = ()
    queue: tuple[Queued, ...] = ()
    ended: TurnEnded | None = None
    sandbox: SandboxChanged | None = None
    changed: dict[str, None] = field(default_factory=lambda: {})
    """Files that tools changed in this run, in the order of their newest change."""
    last_answer: str = ""
    """Text of the newest finished answer of the main agent."""


def feed(state: UiState, event: Event) -> None:
    """Change the state by one event."""
    body = event.body
    state.heard = event.ts
    if event.agent != MAIN and not isinstance(body, _OF_ANYONE):
        return
    match body:
        case ItemDelta():
            state.retry = None
        case ItemStarted():
            state.retry = None
            state.running[body.item] = Running(
                body.kind, own_name(body.name) if body.kind == "tool" else body.name, body.title, event.ts
            )
        case ItemCheckpointed():
            _checkpoint(state, body, event.ts)
        case ItemCompleted():
            _complete(state, body, event.ts)
        case PermissionRequested() | QuestionAsked():
            if not state.requests:
                state.asked_since = event.ts
            state.requests.append(body)
        case PermissionResolved() | QuestionAnswered():
            _answered(state, [request for request in state.requests if request.request != body.request], event.ts)
        case StepStarted():
            state.retry, state.interrupting, state.awaits = None, False, ""
        case Notice(topic="tools", text=text) if state.busy:
            state.awaits = text if body.level == "info" else ""
            state.interrupting = False
        case RetryScheduled():
            state.retry, state.retry_at = body, event.ts + body.delay
        case TodosChanged():
            state.todos = body.todos
        case FileChanged():
            state.changed.pop(body.path, None)
            state.changed[body.path] = None
        case QueueChanged():
            state.queue = body.queue
        case CompactionStarted():
            state.running.setdefault(body.item, Running("compaction", "", "", event.ts))
        case CompactionCompleted() | CompactionFailed():
            state.running.pop(body.item, None)
        case TurnStarted():
            _rest(state)
            state.busy, state.turn_since, state.waited, state.ended = True, event.ts, 0.0, None
        case TurnEnded():
            _rest(state)
            state.ended = body
        case SandboxChanged():
            state.sandbox = body
        case HooksRunning(run=run, commands=commands):
            state.hooks.pop(run, None)
            if commands:
                state.hooks[run] = body
        case HookRan(outcome="skipped"):
            state.interrupting = False
        case SessionStarted():
            _rest(state)
            state.requests.clear()
            state.hooks.clear()
            state.sandbox = None
        case _:
            pass


def _rest(state: UiState) -> None:
    state.busy = state.interrupting = False
    state.retry, state.awaits = None, ""
    state.running.clear()
    state.requests = [request for request in state.requests if not request.item]  # what no turn asks still waits


def _checkpoint(state: UiState, body: ItemCheckpointed, at: float) -> None:
    item = state.running.get(body.item)
    if item is not None:
        item.title = body.title or item.title
        if body.running and not item.executing:
            item.since = at
        item.executing = item.executing or body.running
        item.awaits = "" if body.running else body.awaits


def _answered(state: UiState, left: list[Request], at: float) -> None:
    """Only ``left`` of the requests still waits."""
    if len(left) < len(state.requests):
        state.waited += max(0.0, at - state.asked_since)
        state.requests, state.asked_since = left, at


def _complete(state: UiState, body: ItemCompleted, at: float) -> None:
    item = state.running.pop(body.item, None)
    if item is not None and item.kind == "user":
        state.interrupting = False  # no turn ends with a command of the user
    _answered(state, [request for request in state.requests if request.item != body.item], at)
    if item is not None and item.kind == "text" and body.parts:
        text = getattr(body.parts[0], "text", "")
        state.last_answer = text or state.last_answer
