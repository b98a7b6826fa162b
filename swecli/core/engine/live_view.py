"""The read-only view of a running session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from swecli.core.context_management.cache_history import CacheHistory
from swecli.core.context_management.projection import project
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.spending import Spending
from swecli.core.engine.view import Totals
from swecli.core.llm.types import ModelClient, ModelInfo
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import Budget, Mode, PermissionRequested, QuestionAsked, Queued, SandboxChanged
from swecli.core.protocol.messages import Message
from swecli.core.protocol.usage import Usage
from swecli.core.workspace.jobs import JobInfo, Jobs


class LiveView:
    """Implements ``SessionView`` over the recorder's state."""

    def __init__(
        self,
        recorder: Recorder,
        services: Services,
        client: Callable[[], ModelClient | None],
        busy: Callable[[], bool],
        jobs: Jobs,
    ) -> None:
        self._recorder = recorder
        self._services = services
        self._client = client
        self._busy = busy
        self._jobs = jobs

    @property
    def session_id(self) -> str:
        return self._recorder.session

    @property
    def started_seq(self) -> int:
        return self._recorder.state.started_seq

    @property
    def cwd(self) -> Path:
        return self._services.workspace.cwd

    @property
    def roots(self) -> tuple[Path, ...]:
        return tuple(self._services.workspace.roots)

    @property
    def mode(self) -> Mode:
        return self._recorder.state.mode

    @property
    def model(self) -> ModelInfo | None:
        client = self._client()
        return client.info if client else None

    @property
    def effort(self) -> str | None:
        return self._recorder.state.effort

    @property
    def busy(self) -> bool:
        return self._busy()

    @property
    def budget(self) -> Budget | None:
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
        return self._recorder.state.spending

    @property
    def queue(self) -> tuple[Queued, ...]:
        return self._recorder.state.queue

    @property
    def todos(self) -> tuple[Todo, ...]:
        return self._recorder.state.todos

    @property
    def permission(self) -> PermissionRequested | None:
        return next(iter(self._recorder.state.permissions.values()), None)

    @property
    def question(self) -> QuestionAsked | None:
        return next(iter(self._recorder.state.questions.values()), None)

    @property
    def sandbox(self) -> SandboxChanged | None:
        return self._recorder.state.sandbox

    @property
    def jobs(self) -> tuple[JobInfo, ...]:
        return self._jobs.all

    @property
    def messages(self) -> Sequence[Message]:
        return project(self._recorder.ledger)

    @property
    def instructions(self) -> tuple[str, ...]:
        return tuple(self._services.instructions)
