"""Session state for the parts of the screen around the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from swecli.core.llm.foreign_calls import own_name
from swecli.core.protocol.events import (
    MAIN,
    CallProgress,
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
    PromptProgress,
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

if TYPE_CHECKING:
    from swecli.core.checkpoints.history import RunChanges
    from swecli.core.protocol.blocks import Todo
    from swecli.core.protocol.events import ItemKind, Queued


_OF_ANYONE = (PermissionRequested, PermissionResolved, QuestionAsked, QuestionAnswered, FileChanged)
"""Subagent events that concern the user like the main agent's."""

Request: TypeAlias = "PermissionRequested | QuestionAsked"


class Running(Struct):
    """An item in progress. ``since`` is Unix seconds; for a call, when it started running."""

    kind: ItemKind
    name: str
    title: str
    since: float
    executing: bool = False
    awaits: str = ""
    """What it waits for before it runs, as a clause."""

    @property
    def is_command(self) -> bool:
        """Whether it is a running command, the model's or the user's own."""
        return (self.name == "run_command" and self.executing) or (self.kind == "user" and self.name == "shell")


class UiState(Struct):
    """State that ``feed`` derives from the session's events. Times are Unix seconds from the events."""

    busy: bool = False
    turn_since: float = 0.0
    turn_item: str = ""
    """The message that began the newest turn."""
    unanswered: bool = False
    """Whether nothing but its attachments has followed that message."""
    heard: float = 0.0
    """Time of the last event from or about the model."""
    awaits: str = ""
    """What a request waits for before it is sent, as a sentence."""
    interrupting: bool = False
    prompt: PromptProgress | None = None
    """How far the server has read the prompt of the request; None if it has not said so, or answers."""
    call: CallProgress | None = None
    """The call that the model writes as text; None if it does not."""
    retry: RetryScheduled | None = None
    retry_at: float = 0.0
    hooks: dict[int, HooksRunning] = field(default_factory=lambda: {})
    """Running hooks, by the number of the wait."""
    running: dict[str, Running] = field(default_factory=lambda: {})
    requests: list[Request] = field(default_factory=lambda: [])
    of_agents: set[str] = field(default_factory=lambda: set())
    """Ids of the requests of subagents."""
    asked_since: float = 0.0
    """When the pending request was shown, or the previous answer arrived."""
    waited: float = 0.0
    """Seconds that the turn has waited for the user's answers."""
    todos: tuple[Todo, ...] = ()
    queue: tuple[Queued, ...] = ()
    ended: TurnEnded | None = None
    sandbox: SandboxChanged | None = None
    changed: dict[str, bool] = field(default_factory=lambda: {})
    """Files that the session's tools reported as changed in this run, ordered by newest change, and whether each
    existed before."""
    earlier: dict[str, bool] = field(default_factory=lambda: {})
    """All files changed by the sessions that ended in this run, in the same form."""
    last_answer: str = ""
    """Text of the main agent's newest finished answer."""
    parting: tuple[str, ...] = ()
    """What the sessions that ended in this run reported while they ended, when nothing was drawn any more."""


def feed(state: UiState, event: Event) -> None:
    """Update the state with one event."""
    body = event.body
    state.heard = event.ts
    if event.agent != MAIN and not isinstance(body, _OF_ANYONE):
        return
    match body:
        case ItemDelta():
            state.retry = state.prompt = state.call = None
        case PromptProgress():
            state.retry, state.prompt = None, body
        case CallProgress():
            state.retry, state.prompt, state.call = None, None, body
        case ItemStarted():
            state.retry = state.prompt = state.call = None
            first = body.kind == "user" and body.item == state.turn_item
            state.unanswered = first or (state.unanswered and body.kind in ("attachment", "note"))
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
            if event.agent != MAIN:
                state.of_agents.add(body.request)
        case PermissionResolved() | QuestionAnswered():
            answered(state, body.request, event.ts)
        case StepStarted():
            state.retry = state.prompt = state.call = None
            state.interrupting, state.awaits = False, ""
        case Notice(topic="tools", text=text) if state.busy:
            state.awaits = text if body.level == "info" else ""
            state.interrupting = False
        case RetryScheduled():
            state.prompt = state.call = None
            state.retry, state.retry_at = body, event.ts + body.delay
        case TodosChanged():
            state.todos = body.todos
        case FileChanged():
            state.changed[body.path] = state.changed.pop(body.path, body.before is not None)
        case QueueChanged():
            state.queue = body.queue
        case CompactionStarted():
            state.running.setdefault(body.item, Running("compaction", "", "", event.ts))
            state.unanswered = False
        case CompactionCompleted() | CompactionFailed():
            state.running.pop(body.item, None)
        case TurnStarted():
            _rest(state)
            state.busy, state.turn_since, state.waited, state.ended = True, event.ts, 0.0, None
            state.turn_item, state.unanswered = body.item, False
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
            state.of_agents.clear()
            state.hooks.clear()
            state.sandbox = None
            state.changed.clear()  # by an earlier run
        case _:
            pass


def changed_in_run(state: UiState, run: RunChanges | None) -> dict[str, bool]:
    """All files changed in this run of the program, ordered by newest change, and whether each existed before. ``run``
    is the record of the session that ends, which includes commands and undos; reports about other files, such as those
    of a subagent's own work tree, count as well."""
    found = dict(state.earlier)
    recorded = run.recorded if run is not None else frozenset[str]()
    reported = {path: existed for path, existed in state.changed.items() if path not in recorded}
    for path, existed in (*reported.items(), *(run.changed.items() if run is not None else ())):
        found[path] = found.pop(path, existed)
    return found


def _rest(state: UiState) -> None:
    state.busy = state.interrupting = False
    state.retry = state.prompt = state.call = None
    state.awaits = ""
    state.running.clear()
    # Those without an item, and those of background subagents, outlive the turn.
    state.requests = [one for one in state.requests if not one.item or one.request in state.of_agents]


def _checkpoint(state: UiState, body: ItemCheckpointed, at: float) -> None:
    item = state.running.get(body.item)
    if item is not None:
        item.title = body.title or item.title
        if body.running and not item.executing:
            item.since = at
        item.executing = item.executing or body.running
        item.awaits = "" if body.running else body.awaits


def answered(state: UiState, request: str, at: float) -> None:
    """Remove the request with this id: it was answered, or resolved otherwise. ``at`` is Unix seconds."""
    _keep(state, [waiting for waiting in state.requests if waiting.request != request], at)


def _keep(state: UiState, left: list[Request], at: float) -> None:
    """Reduce the waiting requests to ``left``."""
    if len(left) < len(state.requests):
        state.waited += max(0.0, at - state.asked_since)
        state.requests, state.asked_since = left, at


def _complete(state: UiState, body: ItemCompleted, at: float) -> None:
    item = state.running.pop(body.item, None)
    if item is not None and item.kind == "user" and not state.busy:
        state.interrupting = False  # a user's command outside a turn, whose end does it otherwise
    _keep(state, [request for request in state.requests if request.item != body.item], at)
    if item is not None and item.kind == "text" and body.parts:
        text = getattr(body.parts[0], "text", "")
        state.last_answer = text or state.last_answer
