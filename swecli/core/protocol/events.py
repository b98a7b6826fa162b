"""Events: everything that happens in a session, as one stream.

Each event is an envelope around a body from a closed union. Bodies are of two classes:

- **facts** are stored before the next model call; the session's state is a reduction of them;
- **deltas** are shown and forgotten (a running answer is coalesced into ``ItemCheckpointed`` facts).

An event of a type that this version does not know decodes to ``Unknown`` and is written back as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swecli.core.protocol.budget import Budget as Budget
from swecli.core.protocol.budget import Component as Component
from swecli.core.protocol.budget import ContextLevel as ContextLevel
from swecli.core.protocol.context_events import (
    CacheBreak,
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    ContextMeasured,
    ContextRestored,
    ItemsOffloaded,
)
from swecli.core.protocol.context_events import Offloaded as Offloaded
from swecli.core.protocol.context_events import ViewEntry as ViewEntry
from swecli.core.protocol.item_events import ItemCheckpointed, ItemCompleted, ItemDelta, ItemStarted
from swecli.core.protocol.item_events import ItemKind as ItemKind
from swecli.core.protocol.item_events import ItemStatus as ItemStatus
from swecli.core.protocol.request_events import GrantSpan as GrantSpan
from swecli.core.protocol.request_events import Option as Option
from swecli.core.protocol.request_events import PermissionChoice as PermissionChoice
from swecli.core.protocol.request_events import (
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    RuleApplied,
    UntrustedContent,
)
from swecli.core.protocol.request_events import Question as Question
from swecli.core.protocol.request_events import RefusedEdit as RefusedEdit
from swecli.core.protocol.turn_events import Mode as Mode
from swecli.core.protocol.turn_events import (
    ModeChanged,
    ModelChanged,
    ModelResponded,
    Notice,
    QueueChanged,
    RetryScheduled,
    Rewound,
    SessionStarted,
    SideAnswered,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.turn_events import NoticeLevel as NoticeLevel
from swecli.core.protocol.turn_events import Queued as Queued
from swecli.core.protocol.turn_events import TurnOutcome as TurnOutcome
from swecli.core.protocol.value import value
from swecli.core.protocol.workspace_events import (
    FileChanged,
    FileRead,
    FilesRestored,
    JobChanged,
    SandboxChanged,
    TodosChanged,
)
from swecli.core.protocol.workspace_events import LeftFile as LeftFile
from swecli.core.protocol.workspace_events import RestoredFile as RestoredFile

PROTOCOL_VERSION = 1


@value
class Unknown:
    """A body of a later version: its type and the whole body, kept so that a replay loses nothing."""

    type: str
    data: Mapping[str, Any]


Body = (
    SessionStarted
    | TurnStarted
    | StepStarted
    | ModelResponded
    | StepEnded
    | SideAnswered
    | RetryScheduled
    | TurnEnded
    | ModeChanged
    | ModelChanged
    | QueueChanged
    | Rewound
    | Notice
    | ItemStarted
    | ItemDelta
    | ItemCheckpointed
    | ItemCompleted
    | PermissionRequested
    | PermissionResolved
    | RuleApplied
    | UntrustedContent
    | QuestionAsked
    | QuestionAnswered
    | ContextMeasured
    | CompactionStarted
    | CompactionCompleted
    | CompactionFailed
    | CompactionUndone
    | CompactionRedone
    | ItemsOffloaded
    | ContextEdited
    | ContextRestored
    | CacheBreak
    | FileChanged
    | FilesRestored
    | FileRead
    | TodosChanged
    | JobChanged
    | SandboxChanged
)
"""The closed union of known bodies, discriminated by ``type``."""

DELTAS: tuple[type, ...] = (ItemDelta, RetryScheduled, ContextMeasured)
"""Bodies that are shown but not stored."""


def is_fact(body: Body | Unknown) -> bool:
    """Whether the body is stored before the next model call."""
    return not isinstance(body, DELTAS)


@value
class Event:
    """Envelope. ``seq`` rises by one within a session, over facts and deltas alike; ``ts`` is Unix seconds;
    ``turn`` counts from 1 (0 outside of turns); ``agent`` is "main" or a subagent's id."""

    seq: int
    ts: float
    session: str
    turn: int
    body: Body | Unknown
    agent: str = "main"
    v: int = PROTOCOL_VERSION
