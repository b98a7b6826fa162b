"""What a front-end may read of a session: items, budget, rules, jobs, spending."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from swecli.core.context_management.cache import CacheHistory
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import DisplayBlock, Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Command
from swecli.core.protocol.events import (
    Event,
    FilesRestored,
    Mode,
    PermissionRequested,
    QuestionAsked,
    Queued,
    SandboxChanged,
)
from swecli.core.protocol.messages import Message, Usage, added

if TYPE_CHECKING:
    from swecli.core.checkpoints.history import Difference
    from swecli.core.checkpoints.restore import Recent, Target
    from swecli.core.context_management.compaction.clearing import RuleReport
    from swecli.core.context_management.compaction.plan import CompactionPlan
    from swecli.core.llm.offers import ModelOffer
    from swecli.core.workspace.jobs import JobInfo


@dataclass(frozen=True, slots=True)
class Tally:
    """A sum over responses. ``cost`` is US dollars, None as soon as one price is unknown: a partial sum would look
    like the whole. ``estimated``: a response broke off before its usage was told, so a part is a guess."""

    responses: int = 0
    usage: Usage = Usage()
    cost: Decimal | None = Decimal(0)
    estimated: bool = False

    def plus(self, usage: Usage | None, cost: str | None, estimated: bool = False) -> Tally:
        """With one more response."""
        total = replace(added(self.usage, usage), cost=None) if usage is not None else self.usage
        return Tally(self.responses + 1, total, _sum(self.cost, cost), self.estimated or estimated)


@dataclass(slots=True)
class Spending:
    """Tallies. ``by_model`` has ``provider/name``, ``by_turn`` the turn's number (0 outside of turns); both in the
    order of their first response."""

    total: Tally = Tally()
    by_model: dict[str, Tally] = field(default_factory=dict)
    by_turn: dict[int, Tally] = field(default_factory=dict)

    def add(self, model: str, turn: int, usage: Usage | None, cost: str | None, estimated: bool = False) -> None:
        """Take in one response."""
        self.total = self.total.plus(usage, cost, estimated)
        self.by_model[model] = self.by_model.get(model, Tally()).plus(usage, cost, estimated)
        self.by_turn[turn] = self.by_turn.get(turn, Tally()).plus(usage, cost, estimated)


def _sum(known: Decimal | None, cost: str | None) -> Decimal | None:
    try:
        return None if known is None or cost is None else known + Decimal(cost)
    except InvalidOperation:
        return None


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Result of a tool that a slash command ran through the permission gate."""

    text: str
    is_error: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the session. ``cost`` is US dollars, None while any price is unknown."""

    turns: int = 0
    steps: int = 0
    tools: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cost: Decimal | None = None
    by_tool: Mapping[str, int] = field(default_factory=lambda: {})
    estimated: bool = False
    """Whether a part of tokens and cost is a guess, because an answer broke off before its usage was told."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that the model sees (``active``, summaries among them) and all that were said. ``oldest_age`` is seconds
    since the oldest active message that is no summary; None where there is none."""

    active: int = 0
    total: int = 0
    summaries: int = 0
    oldest_age: float | None = None


class SessionView(Protocol):
    """Current values; each property is cheap."""

    @property
    def session_id(self) -> str: ...
    @property
    def started_seq(self) -> int:
        """Sequence number of the newest SessionStarted: events before it are of earlier runs."""
        ...

    @property
    def cwd(self) -> Path: ...
    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that belong to the work, ``cwd`` first."""
        ...

    @property
    def mode(self) -> Mode: ...
    @property
    def model(self) -> ModelInfo | None:
        """None while no provider is configured."""
        ...

    @property
    def effort(self) -> str | None:
        """How much the model is to think, in its word; None: as the provider does."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        ...

    @property
    def budget(self) -> Budget | None:
        """The newest measure of the context; None before the first."""
        ...

    @property
    def last_usage(self) -> Usage | None: ...
    @property
    def totals(self) -> Totals: ...
    @property
    def cache(self) -> CacheHistory:
        """What became of the prompt cache."""
        ...

    @property
    def spending(self) -> Spending:
        """What was used by model and by turn. Not to be changed."""
        ...

    @property
    def queue(self) -> tuple[Queued, ...]: ...
    @property
    def todos(self) -> tuple[Todo, ...]: ...
    @property
    def permission(self) -> PermissionRequested | None:
        """The permission question that waits longest, if any."""
        ...

    @property
    def question(self) -> QuestionAsked | None: ...
    @property
    def sandbox(self) -> SandboxChanged | None:
        """How far commands are contained; None while that is not known."""
        ...

    @property
    def jobs(self) -> Sequence[JobInfo]:
        """What runs in the background and what ended there last, oldest first."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation as the model sees it."""
        ...

    @property
    def conversation(self) -> Conversation:
        """The messages in figures."""
        ...

    @property
    def instructions(self) -> tuple[str, ...]:
        """Paths of the project instruction files in the prompt."""
        ...


class FilesPort(Protocol):
    """What a session changed in files, and the ways back."""

    async def undo(self, target: Target) -> FilesRestored:
        """Take changes of files back; only between turns. Says what was done and what was left alone."""
        ...

    async def redo(self) -> FilesRestored:
        """Bring back what was taken back last; only between turns."""
        ...

    async def changes(self) -> Recent:
        """What changes of files can be taken back, and what is not covered."""
        ...

    async def difference(self) -> Difference:
        """What the session changed in files, from the first change to the last; what was taken back is left out."""
        ...


class SessionPort(Protocol):
    """What a front-end holds of a session."""

    @property
    def view(self) -> SessionView: ...
    @property
    def files(self) -> FilesPort: ...

    def send(self, command: Command) -> None:
        """Hand over a command. Never blocks and never raises; results come as events."""
        ...

    def subscribe(self, *, replay: bool = False) -> AsyncIterator[Event]:
        """Events from now on, in order, none lost; with ``replay`` the stored facts of the session first.
        Ends after the session is closed."""
        ...

    def plan_compaction(self) -> CompactionPlan | None:
        """What a compaction would do now; None without a model."""
        ...

    def retention(self) -> Sequence[RuleReport]:
        """What the user's rules about the context did so far; empty without rules or a model."""
        ...

    async def run_tool(self, name: str, arguments: Mapping[str, object]) -> ToolRun:
        """Run one tool on behalf of a slash command, through the same gate, items and events as the model's
        calls. Only between turns."""
        ...

    async def ask_model(self, system: str, prompt: str, *, max_output_tokens: int = 2000) -> str | None:
        """One question to the model outside of the conversation. None when there is no model or it failed
        (a Notice says why)."""
        ...

    async def examine(self, *, online: bool = False) -> Sequence[DisplayBlock]:
        """What of providers, keys, models and the sandbox works and what does not; with ``online``, each provider is
        asked."""
        ...

    async def models(self) -> Sequence[ModelOffer]:
        """Models to choose from, the usable ones first. Looks for servers on this machine, so it may take a moment."""
        ...

    async def job_output(self, job: str) -> str:
        """What a job wrote, without its middle where that is long.

        Raises:
            JobsError: there is no such job.
        """
        ...

    async def stop_job(self, job: str) -> JobInfo:
        """End all processes of a job, and what became of it.

        Raises:
            JobsError: there is no such job.
        """
        ...

    def report_defect(self, error: BaseException) -> None:
        """Write an internal failure of something beside the session to where its own go. Never raises."""
        ...

    async def close(self) -> None:
        """Interrupt, commit, stop processes."""
        ...
