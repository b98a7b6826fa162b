"""Read-only view of a session for front-ends and commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.core.context_management.cache import CacheHistory
from swecli.core.context_management.forecast import Forecast, draft_tokens, forecast
from swecli.core.context_management.projection import project
from swecli.core.engine.conversation import Conversation, conversation
from swecli.core.engine.core import Core
from swecli.core.engine.jobs import agent_jobs
from swecli.core.engine.plan import Plans, ProposedPlan
from swecli.core.engine.state import AgentRecord, Spending, Totals
from swecli.core.engine.work import Work
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.llm.types import ModelInfo
from swecli.core.permissions.decide import mode_refusal
from swecli.core.permissions.types import Rule
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    ContextSuggested,
    Mode,
    PermissionRequested,
    QuestionAsked,
    Queued,
    SandboxChanged,
)
from swecli.core.protocol.messages import Message, Usage
from swecli.core.secret_names import SecretNames
from swecli.core.workspace.jobs import JobInfo, Jobs

if TYPE_CHECKING:
    from swecli.core.context_management.rule_files import RuleFile


class SessionView:
    """Current values; each property is cheap."""

    def __init__(
        self,
        core: Core,
        work: Work,
        jobs: Jobs,
        plans: Plans,
    ) -> None:
        self._plans = plans
        self._services = core.services
        self._recorder = core.recorder
        self._connection = core.connection
        self._work = work
        self._jobs = jobs

    @property
    def session_id(self) -> str:
        return self._recorder.session

    @property
    def started_seq(self) -> int:
        """Sequence number of the newest SessionStarted: events before it belong to earlier runs."""
        return self._recorder.state.started_seq

    @property
    def newest_seq(self) -> int:
        """Sequence number of the newest event, which may not be published yet."""
        return self._recorder.state.seq

    @property
    def published_seq(self) -> int:
        """Sequence number of the newest event that was passed to the subscribers of that moment."""
        return self._recorder.published

    @property
    def cwd(self) -> Path:
        return self._services.workspace.cwd

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders of the workspace, ``cwd`` first."""
        return tuple(self._services.workspace.roots)

    @property
    def secret_names(self) -> SecretNames:
        """Names of files whose content is sent only with consent."""
        return self._services.permissions.policy.facts.secret_names

    @property
    def mode(self) -> Mode:
        return self._recorder.state.mode

    def mode_refusal(self, mode: Mode) -> str:
        """Why the mode is not available, as a sentence; empty if it is."""
        return mode_refusal(self._services.permissions.policy, mode)

    @property
    def yolo(self) -> bool:
        """Whether everything but plan mode's refusals runs without approval."""
        return self._services.permissions.policy.yolo

    @property
    def model(self) -> ModelInfo | None:
        """None while no provider is configured."""
        client = self._connection.client
        return client.info if client else None

    @property
    def effort(self) -> str | None:
        """Reasoning effort in the model's own term; None: the provider's default."""
        return self._recorder.state.effort

    @property
    def replaced(self) -> str:
        """The user's model while another one answers in its place for a turn; otherwise empty."""
        return self._recorder.state.replaced

    @property
    def own_effort(self) -> str | None:
        """Reasoning effort of the user's model."""
        return self._recorder.state.own_effort

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
    def ratio(self) -> float:
        """The model's tokens per estimated token, as far as known."""
        return 1.0 if self.model is None else self._services.toolset.context.monitor.ratio(self.model)

    def forecast(self, text: str, images: int = 0, attached: int = 0) -> Forecast | None:
        """The next request if this message were sent now with ``attached`` estimated tokens of files; None without a
        measure or a model."""
        budget, model, services = self.budget, self.model, self._services
        if budget is None or model is None or budget.source == "unknown":
            return None
        draft = round((draft_tokens(text, images) + attached) * self.ratio)
        now, ttl = services.time.clock(), model.cache_seconds
        return forecast(
            budget, draft, self._recorder.trend, now, lambda usage: services.access.price(model.ref, usage), ttl
        )

    def price(self, model: str, usage: Usage) -> str | None:
        """US dollars of a response of a model (``provider/name``), as a decimal string; None if unknown."""
        return self._services.access.price(model, usage)

    @property
    def spending(self) -> Spending:
        """Usage by model and by turn. Not to be changed."""
        return self._recorder.state.spending

    @property
    def queue(self) -> tuple[Queued, ...]:
        return self._recorder.state.queue

    @property
    def todos(self) -> tuple[Todo, ...]:
        return self._recorder.state.todos

    @property
    def permission(self) -> PermissionRequested | None:
        """The oldest open permission question, if any."""
        return next(iter(self._recorder.state.permissions.values()), None)

    @property
    def question(self) -> QuestionAsked | None:
        return next(iter(self._recorder.state.questions.values()), None)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules that the user granted for this session or turn, besides those of files and flags."""
        return self._recorder.state.rules

    @property
    def sandbox(self) -> SandboxChanged | None:
        """Containment of commands; None while unknown."""
        return self._recorder.state.sandbox

    @property
    def suggestion(self) -> ContextSuggested | None:
        """Current suggestion for the context; None if suggestions or its kind are turned off."""
        found, sentinel = self._recorder.state.suggestion, self._services.settings.now.sentinel
        return found if found is not None and sentinel.enabled and found.kind not in sentinel.silenced else None

    @property
    def taken_up(self) -> ContextSuggested | None:
        """The newest suggestion carried out by changes of single items."""
        return self._recorder.state.taken_up

    @property
    def jobs(self) -> tuple[JobInfo, ...]:
        """Running and recently ended background jobs, oldest first; subagents last."""
        return (*self._jobs.all, *agent_jobs(self.agents))

    @property
    def planned_model(self) -> str:
        """The model that answers from the next compaction on; empty if none waits."""
        return self._recorder.state.planned_model

    @property
    def agents(self) -> tuple[AgentRecord, ...]:
        """Subagents of the session, in order of their start. Not to be changed."""
        return tuple(self._recorder.state.agents.values())

    @property
    def messages(self) -> Sequence[Message]:
        return project(self._recorder.ledger)

    @property
    def plan(self) -> ProposedPlan | None:
        """The plan proposed by the newest answer, if no message has followed it."""
        return self._plans.proposed

    @property
    def conversation(self) -> Conversation:
        return conversation(self._services, self._recorder, self._connection.client)

    @property
    def attribution(self) -> bool:
        """Whether commits name swecli and the model."""
        return self._services.settings.now.attribution

    @property
    def watches_instructions(self) -> bool:
        """Whether changes of instruction files are reported to the model."""
        return self._services.instruction_files.watch

    @property
    def no_instructions(self) -> str:
        """Why the folder's instruction files are ignored; empty if they count."""
        return self._services.instruction_files.off

    @property
    def safe_mode(self) -> bool:
        """Whether the user disabled hooks, skills, memories and the like for this session."""
        return self._services.settings.safe_mode

    @property
    def scratchpad(self) -> str:
        return self._recorder.state.scratchpad

    @property
    def extension_files(self) -> ExtensionFiles | None:
        """Skills, Markdown commands and agent profiles; None if they are unavailable."""
        return self._services.extension_files

    @property
    def instructions(self) -> tuple[str, ...]:
        """Paths of the instruction files in the prompt."""
        return self._services.instruction_files.loaded.paths

    @property
    def rule_files(self) -> tuple[RuleFile, ...]:
        """Instruction files that apply only under a condition."""
        return self._services.instruction_files.loaded.rules
