"""Subagents: tasks from the model, carried out by sessions inside the session, with services of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from swecli.core.engine.companion import Companion, Companions
from swecli.core.engine.inner import Relay
from swecli.core.engine.model_call import has_content
from swecli.core.engine.notes import add_note
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.work import Work
from swecli.core.protocol.blocks import DisplayBlock, MarkdownBlock, TextBlock
from swecli.core.protocol.commands import RevokeRule, SetMode, Submit
from swecli.core.protocol.events import (
    CHOSEN,
    AgentEnded,
    AgentStarted,
    Event,
    ModeChanged,
    RuleRevoked,
    TurnOutcome,
)
from swecli.core.protocol.messages import Message
from swecli.core.tools.base import ToolError, ToolOutcome
from swecli.core.uninterrupted import uninterrupted
from swecli.core.worktrees import WorkTree
from swecli.features.subagents.profiles import AgentProfile, AgentTask
from swecli.features.subagents.report import Report, report_text
from swecli.features.subagents.services import AgentServices, in_mode
from swecli.features.subagents.work_trees import AgentTrees

if TYPE_CHECKING:
    from swecli.core.engine.core import OwnSession
    from swecli.core.engine.session import Session


class _Run(Struct):
    """A running or waiting subagent."""

    item: str
    task: AgentTask
    profile: AgentProfile
    relay: Relay
    services: Services
    model: str
    apart: bool
    """Whether it works in a work tree of its own."""
    inner: Session | None = None
    tree: WorkTree | None = None

    @property
    def agent(self) -> str:
        return self.relay.agent


class Subagents(Companion):
    """Starts, limits and ends the subagents of one session."""

    watches = (ModeChanged, RuleRevoked)

    def __init__(
        self,
        services: Services,
        recorder: Recorder,
        companions: Companions,
        work: Work,
        session: OwnSession,
        profiles: Callable[[], Sequence[AgentProfile]],
        trees: AgentTrees,
    ) -> None:
        """``profiles`` returns the present ones."""
        self._services = services
        self._recorder = recorder
        self._companions = companions
        self._work = work
        self._session = session
        self._profiles = profiles
        self._trees = trees
        self._agent_services = AgentServices(services, recorder)
        self._at_work = 0
        self._freed = asyncio.Event()
        """Set whenever one more may work."""
        self._runs: dict[str, _Run] = {}
        """Subagents that have not ended, by id."""
        self._count = 0
        self._expected: dict[str, int] = {}
        """Numbers reserved for calls."""
        services.settings.changed.append(self._freed.set)  # more may work at once

    def start(self, *, resumed: bool) -> None:
        """Record the ends of subagents that a kill cut off. The model is informed of background ones; the calls of the
        others report them."""
        for agent in [agent for agent in self._recorder.state.agents.values() if agent.outcome is None]:
            usage = agent.steps, agent.tokens, agent.cost
            self._recorder.emit(AgentEnded(agent.id, "interrupted", STOPPED, *usage, folder=agent.folder))
            if agent.started.background:
                text = report_text(Report(agent, ""), STOPPED_TOKENS, len)
                add_note(self._recorder, f"{agent.id} was interrupted: {agent.started.title}", text)

    # --- the task -------------------------------------------------------------------------------------------------

    def expect(self, item: str) -> None:
        """Call ``item`` may start a subagent: numbers follow the order of the calls."""
        self._expected[item] = self._next_number()

    def _next_number(self) -> int:
        """The next number; gaps remain if a call started nothing."""
        known = (int(digits) for id in self._recorder.state.agents if (digits := id.rpartition("-")[2]).isdecimal())
        self._count = max(self._count, *known, 0) + 1
        return self._count

    def _prepared(self, item: str, task: AgentTask) -> _Run:
        profile = self._profile(task.agent)
        services, model = self._agent_services.of(profile)
        number = self._expected.pop(item, 0) or self._next_number()
        apart = task.worktree or profile.worktree
        relay = Relay(self._recorder, f"agent-{number}", number, profile.name, apart=apart)
        return _Run(item, task, profile, relay, services, model, apart)

    def _profile(self, name: str) -> AgentProfile:
        profiles = {profile.name: profile for profile in self._profiles()}
        match = profiles.get(name) or profiles.get(name.strip().lower())
        if match is None:
            raise ToolError(f"Unknown agent {name!r}. Agents: {', '.join(profiles)}.")
        return match

    async def work(self, item: str, task: AgentTask, output: Callable[[str], None]) -> ToolOutcome:
        """Run the task for call ``item``. ``output`` receives progress before the end.

        Raises:
            ToolError: the subagent can't start.
        """
        run = self._prepared(item, task)
        self._runs[run.agent] = run
        folder = str(self._trees.folder(run.agent) or "") if run.apart else ""
        began = AgentStarted(run.agent, item, task.title, run.profile.name, run.model, task.background, folder)
        self._recorder.emit(began)
        if task.background:
            self._work.begin_beside(run.agent, self._in_background(run))
            text = f"{run.agent} ({run.profile.name}) is running in the background. Its result comes as a message."
            return ToolOutcome(text, detail=f"{run.agent} is running in the background")
        output(f'{run.agent} ({run.profile.name}); its transcript: read_result with ref_id "{run.agent}"\n')
        report = await self._carried_out(run)
        blocks: tuple[DisplayBlock, ...] = (MarkdownBlock(report.answer),) if report.answer else ()
        if blocks and report.folder:
            blocks += (TextBlock(report.whereabouts, "dim"),)
        return ToolOutcome(self._reported(report), blocks, report.detail, is_error=not report.done)

    async def _in_background(self, run: _Run) -> None:
        try:
            report = await self._carried_out(run)
        except Exception as error:  # noqa: BLE001 - a defect in the background is reported and ends nothing
            if not isinstance(error, ToolError):
                self._services.store.report_defect(error)
            why = _why_failed(error)
            self._session.tell(f"{run.agent} failed: {why}", f"{run.agent} ({run.task.title}) failed: {why}")
            return
        apart = f". {report.whereabouts}" if report.folder else ""
        self._session.tell(
            f"{run.agent} ({run.profile.name}) {report.detail}: {run.task.title}{apart}", self._reported(report)
        )

    def _reported(self, report: Report) -> str:
        options, monitor = self._services.settings.now.subagents, self._services.toolset.context.monitor
        return report_text(report, options.result_tokens, monitor.count_tokens)

    async def _carried_out(self, run: _Run) -> Report:
        """Wait until the subagent has ended and nothing of it runs. Cancellation interrupts it first; a background one
        then reports its results so far."""
        began = self._services.time.monotonic()
        answer, problem = "", ""
        tree_kept = False
        try:
            async with self._slot():
                try:
                    await uninterrupted(self._make_tree(run))
                    told = await self._companions.agent_begins(run.agent, run.profile.name)
                    inner = run.inner = self._begin(run)
                    try:
                        await self._converse(run, inner, told)
                    finally:
                        await uninterrupted(inner.close())
                        answer = inner.answer
                finally:
                    if run.tree is not None:
                        tree_kept = await uninterrupted(self._trees.keep_or_remove(run.tree))
            if run.relay.ended is None:
                problem = run.relay.trouble or "it could not start"
                raise ToolError(problem)
        except asyncio.CancelledError:
            if not run.task.background:
                raise
        except Exception as error:
            problem = _why_failed(error)
            raise
        finally:
            del self._runs[run.agent]
            folder = str(run.tree.root) if run.tree is not None and tree_kept else ""
            self._end(run, problem, self._services.time.monotonic() - began, folder)
        record = self._recorder.state.agents[run.agent]
        tree = run.tree
        cwd = tree.folder if tree is not None else self._services.workspace.cwd
        branch = tree.branch if tree is not None else ""
        return Report(record, answer, _shown(run.relay.changed, cwd), record.folder, branch)

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None]:
        """Wait until one more subagent may work."""
        while self._at_work >= self._services.settings.now.subagents.at_once:
            self._freed.clear()
            await self._freed.wait()
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            self._freed.set()

    async def _make_tree(self, run: _Run) -> None:
        """Also noted if the wait for it is cancelled, so that it is removed."""
        if run.apart:
            run.tree = await self._trees.create(run.agent)

    def _begin(self, run: _Run) -> Session:
        if run.tree is None:
            return self._session.begin(run.relay, run.services, run.model, None)
        services = self._trees.inside(run.tree, run.services)
        return self._session.begin(run.relay, services, run.model, run.tree.folder)

    async def _converse(self, run: _Run, inner: Session, told: str) -> None:
        """Send the task, with any additions by hooks, and continue as long as hooks demand it."""
        added = f"\n\n[Added by the user's SubagentStart hook]\n{told}" if told else ""
        message, continued = f"{run.task.prompt}{added}", 0
        while message:
            inner.send(Submit(message, mentions=()))
            await inner.worked()
            ended = run.relay.ended
            if ended is None or ended.outcome != "done":
                return
            message = await self._companions.agent_ends(run.agent, run.profile.name, inner.answer, continued)
            continued += 1

    def _end(self, run: _Run, problem: str, duration: float, folder: str) -> None:
        record, ended = self._recorder.state.agents[run.agent], run.relay.ended
        outcome: TurnOutcome = "error" if problem else ended.outcome if ended is not None else "interrupted"
        reason = problem or (ended.reason if ended is not None else "")
        self._recorder.emit(
            AgentEnded(run.agent, outcome, reason, record.steps, record.tokens, record.cost, duration, folder)
        )

    # --- running subagents ----------------------------------------------------------------------------------------

    def watch(self, event: Event) -> None:
        match event.body:
            case ModeChanged(mode=mode, reason=reason) if reason == CHOSEN:
                for run in self._runs.values():
                    if run.inner is not None:
                        run.inner.send(SetMode(run.profile.mode_in(mode)))
                    run.services = in_mode(run.services, run.profile.mode_in(mode))
            case RuleRevoked(rule=rule):
                for run in self._runs.values():
                    if run.inner is not None:
                        run.inner.send(RevokeRule(rule))
            case _:
                pass

    async def stay(self, answer: Message) -> bool:
        """Wait for background subagents if the user can't send another message. True if they have reported."""
        return self._services.toolset.context.unattended and has_content(answer) and await self._work.beside_settled()


def _why_failed(error: Exception) -> str:
    if isinstance(error, ToolError):
        return str(error)
    return f"swecli failed internally: {type(error).__name__}: {error}"


def _shown(paths: Iterable[str], cwd: Path) -> tuple[str, ...]:
    return tuple(str(Path(path).relative_to(cwd)) if Path(path).is_relative_to(cwd) else path for path in paths)


STOPPED: Final = "swecli was stopped"
STOPPED_TOKENS: Final = 2_000
"""Limit of a stopped report, in characters, which are never fewer than tokens."""
