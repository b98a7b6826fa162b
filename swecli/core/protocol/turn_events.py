"""Events of the session, its turns and steps."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.messages import ImagePart, Origin, Stop
from swecli.core.protocol.usage import Usage
from swecli.core.protocol.value import value

Mode = Literal["default", "accept-edits", "plan", "auto"]
"""Permission modes; they are enforced where calls are executed."""

TurnOutcome = Literal["done", "interrupted", "blocked", "limit", "error"]

NoticeLevel = Literal["info", "warning", "error"]


@value
class SessionStarted:
    """First event of a session, and again at each resume (``resumed`` set)."""

    cwd: str
    model: str
    mode: Mode
    swecli: str
    """Version of swecli."""
    resumed: bool = False
    environment: str = ""
    """What the model is told about date, directory and platform; it goes in front of the first user message."""
    address: str = ""
    """Base URL where the model is asked; empty where that is its provider's own, or not known."""
    type: Literal["session_started"] = field(default="session_started", kw_only=True)


@value
class TurnStarted:
    """The user's message is accepted and work on it begins. ``item`` is the user item that opened it."""

    item: str
    type: Literal["turn_started"] = field(default="turn_started", kw_only=True)


@value
class StepStarted:
    """One model request and the tools that it calls. ``step`` counts from 1 within the turn."""

    step: int
    budget: Budget
    type: Literal["step_started"] = field(default="step_started", kw_only=True)


@value
class ModelResponded:
    """The model's answer of one step is final: the named items, in order, form one assistant message.

    Written before any of its tools starts. ``complete`` is False for a cut, failed or interrupted stream,
    whose calls are never executed.
    """

    message: str
    """Ledger id of the assistant message."""
    items: tuple[str, ...]
    origin: Origin
    stop: Stop = Stop()
    usage: Usage | None = None
    response_id: str | None = None
    complete: bool = True
    first_token_ms: int | None = None
    duration_ms: int | None = None
    type: Literal["model_responded"] = field(default="model_responded", kw_only=True)


@value
class StepEnded:
    """The step's tools have ended as well. ``cost`` is US dollars as a decimal string; None = unknown.

    ``estimated``: the answer broke off before the provider told its usage, so usage and cost are guesses.
    """

    step: int
    usage: Usage | None = None
    cost: str | None = None
    estimated: bool = False
    type: Literal["step_ended"] = field(default="step_ended", kw_only=True)


@value
class SideAnswered:
    """The model answered a question beside the conversation. ``purpose`` is one word; ``cost`` as in StepEnded."""

    purpose: str
    model: str
    usage: Usage | None = None
    cost: str | None = None
    type: Literal["side_answered"] = field(default="side_answered", kw_only=True)


@value
class RetryScheduled:
    """A failed request is tried again after ``delay`` seconds; Esc cancels the wait."""

    attempt: int
    limit: int
    delay: float
    kind: str
    reason: str
    type: Literal["retry_scheduled"] = field(default="retry_scheduled", kw_only=True)


@value
class TurnEnded:
    """``reason`` is one sentence for the user; ``error_kind`` the error taxonomy's word for outcome error."""

    outcome: TurnOutcome
    reason: str = ""
    error_kind: str = ""
    duration: float = 0.0
    """Seconds."""
    usage: Usage | None = None
    """Sum over the turn's steps."""
    type: Literal["turn_ended"] = field(default="turn_ended", kw_only=True)


@value
class ModeChanged:
    mode: Mode
    reason: str = ""
    type: Literal["mode_changed"] = field(default="mode_changed", kw_only=True)


@value
class ModelChanged:
    """Which model answers from now on, how much it thinks, and its context window in tokens. ``switched`` is false
    where only more has become known of the model that answers anyway. ``address`` is the base URL where it is asked,
    empty where that is its provider's own."""

    model: str
    effort: str | None = None
    window: int | None = None
    switched: bool = True
    address: str = ""
    type: Literal["model_changed"] = field(default="model_changed", kw_only=True)


@value
class Queued:
    """A message that waits: ``steer`` goes in at the next tool boundary, otherwise after the turn."""

    id: str
    text: str
    steer: bool = False
    images: tuple[ImagePart, ...] = ()


@value
class QueueChanged:
    queue: tuple[Queued, ...]
    type: Literal["queue_changed"] = field(default="queue_changed", kw_only=True)


@value
class Rewound:
    """The conversation continues from before ``item``; what came after it is no longer in the view."""

    item: str
    reason: str = ""
    type: Literal["rewound"] = field(default="rewound", kw_only=True)


@value
class Notice:
    """A line for the user that belongs to no item. ``topic`` names the subsystem; ``hint`` what to do next."""

    text: str
    level: NoticeLevel = "info"
    topic: str = ""
    hint: str = ""
    type: Literal["notice"] = field(default="notice", kw_only=True)
