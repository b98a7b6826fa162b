"""What a front-end may read of a session, as it is now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from swecli.core.context_management.cache import CacheHistory
from swecli.core.context_management.ledger import Entry
from swecli.core.context_management.projection import project
from swecli.core.engine.plan import ProposedPlan, proposed
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Connection, Services
from swecli.core.engine.state import Spending, Totals
from swecli.core.engine.work import Work
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import Mode, PermissionRequested, QuestionAsked, Queued, SandboxChanged
from swecli.core.protocol.messages import Message, Usage
from swecli.core.workspace.jobs import JobInfo, Jobs


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that the model sees (``active``, summaries among them) and all that were said. ``oldest_age`` is seconds
    since the oldest active message that is no summary; None where there is none."""

    active: int = 0
    total: int = 0
    summaries: int = 0
    oldest_age: float | None = None


class SessionView:
    """Current values; each property is cheap."""

    def __init__(self, services: Services, recorder: Recorder, connection: Connection, work: Work, jobs: Jobs) -> None:
        self._services = services
        self._recorder = recorder
        self._connection = connection
        self._work = work
        self._jobs = jobs

    @property
    def session_id(self) -> str:
        return self._recorder.session

    @property
    def started_seq(self) -> int:
        """Sequence number of the newest SessionStarted: events before it are of earlier runs."""
        return self._recorder.state.started_seq

    @property
    def cwd(self) -> Path:
        return self._services.workspace.cwd

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that belong to the work, ``cwd`` first."""
        return tuple(self._services.workspace.roots)

    @property
    def mode(self) -> Mode:
        return self._recorder.state.mode

    @property
    def model(self) -> ModelInfo | None:
        """None while no provider is configured."""
        client = self._connection.client
        return client.info if client else None

    @property
    def effort(self) -> str | None:
        """How much the model is to think, in its word; None: as the provider does."""
        return self._recorder.state.effort

    @property
    def busy(self) -> bool:
        return self._work.busy

    @property
    def budget(self) -> Budget | None:
        """The newest measure of the context; None before the first."""
        return self._recorder.state.budget

    @property
    def last_usage(self) -> Usage | None:
        return self._recorder.state.last_usage

    @property
    def totals(self) -> Totals:
        return self._recorder.state.totals

    @property
    def cache(self) -> CacheHistory:
        return self._recorder.cache

    @property
    def spending(self) -> Spending:
        """What was used by model and by turn. Not to be changed."""
        return self._recorder.state.spending

    @property
    def queue(self) -> tuple[Queued, ...]:
        return self._recorder.state.queue

    @property
    def todos(self) -> tuple[Todo, ...]:
        return self._recorder.state.todos

    @property
    def permission(self) -> PermissionRequested | None:
        """The permission question that waits longest, if any."""
        return next(iter(self._recorder.state.permissions.values()), None)

    @property
    def question(self) -> QuestionAsked | None:
        return next(iter(self._recorder.state.questions.values()), None)

    @property
    def sandbox(self) -> SandboxChanged | None:
        """How far commands are contained; None while that is not known."""
        return self._recorder.state.sandbox

    @property
    def jobs(self) -> tuple[JobInfo, ...]:
        """What runs in the background and what ended there last, oldest first."""
        return self._jobs.all

    @property
    def messages(self) -> Sequence[Message]:
        return project(self._recorder.ledger)

    @property
    def plan(self) -> ProposedPlan | None:
        """The plan that the newest answer proposes, while nothing has been said since."""
        return proposed(self.messages)

    @property
    def conversation(self) -> Conversation:
        ledger = self._recorder.ledger
        shown = [ledger.entries[entry.id] for entry in ledger.view if entry.id in ledger.entries]
        summaries = sum(entry.kind == "summary" for entry in ledger.view)
        active = len(project(ledger))
        hidden = _messages(ledger.entries.values()) - _messages(shown)
        since = min((entry.created for entry in shown), default=None)
        age = None if since is None else max(0.0, self._services.clock() - since)
        return Conversation(active, active - summaries + len(hidden), summaries, age)

    @property
    def extension_files(self) -> ExtensionFiles | None:
        """Skills, Markdown commands and agent profiles; None where none can be."""
        return self._services.extension_files

    @property
    def instructions(self) -> tuple[str, ...]:
        return tuple(self._services.instructions)


def _messages(entries: Iterable[Entry]) -> set[tuple[str, bool]]:
    """The messages that entries are in: results are one of their own."""
    return {(entry.message, entry.kind == "result") for entry in entries}
