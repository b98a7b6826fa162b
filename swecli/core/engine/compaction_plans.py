"""Compactions that are not carried out: their plan, their draft, and what they would free."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from swecli.core.context_management.compaction.clearing import RuleReport, report
from swecli.core.context_management.compaction.options import Allowances, EntrySizes, Trigger
from swecli.core.context_management.compaction.package import Attachment, SessionFacts, attachments
from swecli.core.context_management.compaction.plan import CompactionPlan, PlanDraft, plan_compaction
from swecli.core.context_management.compaction.transaction import Compaction, Job
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.projection import project
from swecli.core.context_management.view_stack import View
from swecli.core.context_management.work_log import TouchedFile
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.engine.summaries import Summaries, writes_sealed
from swecli.core.llm.types import ModelClient, ModelRequest

_NOTHING = ModelRequest((), (), ())


class CompactionPlans:
    """Compactions at the user's request, as they would be now. None without a model."""

    def __init__(
        self,
        context: ContextManager,
        cwd: Path,
        settings: Settings,
        recorder: Recorder,
        connection: Connection,
        summaries: Summaries,
    ) -> None:
        self._context = context
        self._cwd = cwd
        self._settings = settings
        self._recorder = recorder
        self._connection = connection
        self._summaries = summaries

    def plan(self) -> CompactionPlan | None:
        client = self._connection.client
        if client is None:
            return None
        by_provider = self._summaries.why_not_by_provider(client) == ""
        planned = self._planned(client, by_provider=by_provider)
        return plan_compaction(planned, self._summaries.price, self._summaries.model)

    def draft(self) -> PlanDraft | None:
        """Editable plan with movable items."""
        client = self._connection.client
        if client is None:
            return None
        return PlanDraft(self._planned(client), self._summaries.price, self._summaries.model)

    def freed(self) -> View | None:
        """The view after space was freed without a model; None if there is nothing to free."""
        client = self._connection.client
        return self._planned(client, without_model=True).preview("") if client is not None else None

    def retention(self) -> Sequence[RuleReport]:
        """Effects of the user's retention rules so far; empty without rules or a model."""
        client = self._connection.client
        if client is None:
            return ()
        sizes = EntrySizes(self._context.monitor, client.info)
        return report(self._recorder.ledger, sizes, self._settings.now.compaction.retention)

    def _planned(self, client: ModelClient, *, without_model: bool = False, by_provider: bool = False) -> Compaction:
        effective = self._context.measure(project(self._recorder.ledger), client.info).effective
        ledger = self._recorder.ledger
        job = self.job(client, "manual", "plan", without_model=without_model, by_provider=by_provider)
        files = job.facts.work(ledger).files(ledger.left)
        job = replace(job, attachments=self.attachments(client, effective, files))
        return Compaction(self._context, ledger, job, self._settings.now.compaction)

    def job(
        self,
        client: ModelClient,
        trigger: Trigger,
        item: str,
        request: ModelRequest = _NOTHING,
        *,
        without_model: bool,
        by_provider: bool,
    ) -> Job:
        """A compaction of the conversation as it is now, without attachments."""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self._recorder.clock()))
        return Job(
            trigger,
            item,
            request,
            client,
            session_facts(self._recorder),
            when=when,
            without_model=without_model,
            by_provider=by_provider,
            sealed=writes_sealed(client),
        )

    def attachments(self, client: ModelClient, effective: int, files: Sequence[TouchedFile]) -> tuple[Attachment, ...]:
        """Files to attach to a summary, in a window with ``effective`` tokens. Reads them."""
        sizes = EntrySizes(self._context.monitor, client.info)
        return attachments(files, self._cwd, sizes, Allowances.of(effective).attached)


def session_facts(recorder: Recorder) -> SessionFacts:
    """Session facts for a summary. Their work log goes on from the session's, so that a long one is not read again."""
    state = recorder.state
    running = tuple(f"{job.job} `{job.command}` is running" for job in state.jobs.values() if job.status == "running")
    plan, open_steps = state.plan, any(todo.status != "completed" for todo in state.todos)
    counts = plan is not None and (not plan.accepted or open_steps or not state.todos)
    return SessionFacts(state.mode, state.todos, running, plan if counts else None, recorder.reductions.work.copy())
