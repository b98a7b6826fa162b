"""Subagents: tasks from the model, carried out by sessions inside the session, with services of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.prompts import read_prompt
from swecli.core.engine.companion import Companion, Companions
from swecli.core.engine.inner import Relay
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.engine.model_call import has_content, tokens_left
from swecli.core.engine.notes import add_note
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services, Toolset
from swecli.core.engine.settings import TurnLimits
from swecli.core.engine.work import Work
from swecli.core.git import git_facts
from swecli.core.llm.types import ModelClient
from swecli.core.permissions.types import Policy, tightest
from swecli.core.protocol.blocks import DisplayBlock, MarkdownBlock, TextBlock
from swecli.core.protocol.commands import RevokeRule, SetMode, Submit
from swecli.core.protocol.events import (
    CHOSEN,
    AgentEnded,
    AgentStarted,
    Event,
    Mode,
    ModeChanged,
    Notice,
    RuleRevoked,
    TurnOutcome,
)
from swecli.core.protocol.messages import Message
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.tools.base import ToolError, ToolOutcome
from swecli.core.uninterrupted import uninterrupted
from swecli.core.worktrees import WorkTree, WorkTreeError, add_worktree, keep_or_remove, place_of
from swecli.features.subagents.profiles import AgentProfile, AgentTask, tools_of
from swecli.features.subagents.report import Report, report_text

if TYPE_CHECKING:
    from swecli.core.engine.core import OwnSession
    from swecli.core.engine.session import Session


class Places(Struct, frozen=True):
    """What the session has for its subagents."""

    profiles: Callable[[], Sequence[AgentProfile]]
    """The present ones."""
    worktrees: Path | None
    """Folder of their work trees; None if none can be created."""
    sandbox_for: Callable[[Path], Sandbox]
    """Sandbox for the commands of one in this folder."""


class _Run(Struct):
    """A running or waiting subagent."""

    item: str
    task: AgentTask
    profile: AgentProfile
    relay: Relay
    services: Services
    model: str
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
        places: Places,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._companions = companions
        self._work = work
        self._session = session
        self._places = places
        self._at_work = 0
        self._freed = asyncio.Event()
        """Set whenever one more may work."""
        self._runs: dict[str, _Run] = {}
        """Subagents that have not ended, by id."""
        self._count = 0
        self._expected: dict[str, int] = {}
        """Numbers reserved for calls."""
        self._warned: set[str] = set()
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

    async def work(self, item: str, task: AgentTask, output: Callable[[str], None]) -> ToolOutcome:
        """Run the task for call ``item``. ``output`` receives progress before the end.

        Raises:
            ToolError: the subagent can't start.
        """
        run = self._prepared(item, task)
        self._runs[run.agent] = run
        folder = str(self._folder_of(run) or "")
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
                    inner = run.inner = self._begin_inner(run)
                    try:
                        await self._converse(run, inner, told)
                    finally:
                        await uninterrupted(inner.close())
                        answer = inner.answer
                except WorkTreeError as error:
                    problem = str(error)
                    raise ToolError(problem) from error
                finally:
                    if run.tree is not None:
                        tree_kept = await uninterrupted(self._kept(run.tree))
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

    # --- work tree ------------------------------------------------------------------------------------------------

    def _folder_of(self, run: _Run) -> Path | None:
        """Path of its future work tree; None if it gets none or none can be created."""
        git = git_facts(self._services.workspace.cwd)
        if not (run.task.worktree or run.profile.worktree) or git is None or self._places.worktrees is None:
            return None
        return place_of(self._places.worktrees, git, self._name(run))

    def _name(self, run: _Run) -> str:
        return f"{''.join(sign for sign in self._recorder.session if sign.isalnum())[-12:]}-{run.agent}"

    async def _make_tree(self, run: _Run) -> None:
        if not (run.task.worktree or run.profile.worktree):
            return
        base, workspace = self._places.worktrees, self._services.workspace
        if base is None:
            raise WorkTreeError("Worktrees are not available in this run. Give the task without worktree.")
        run.tree = await asyncio.to_thread(add_worktree, workspace.cwd, base, self._name(run), workspace.environment)

    async def _kept(self, tree: WorkTree) -> bool:
        return await asyncio.to_thread(keep_or_remove, tree, self._services.workspace.environment)

    def _begin_inner(self, run: _Run) -> Session:
        """Its session. Its own work tree needs no undo, and commands are contained there."""
        tree, services = run.tree, run.services
        if tree is None:
            return self._session.begin(run.relay, services, run.model, None)
        sandbox = self._places.sandbox_for(tree.root)
        workspace = replace(services.workspace, cwd=tree.folder, roots=(tree.root,), checkpoints=None, sandbox=sandbox)
        return self._session.begin(run.relay, replace(services, workspace=workspace), run.model, tree.folder)

    # --- services -------------------------------------------------------------------------------------------------

    def _prepared(self, item: str, task: AgentTask) -> _Run:
        services, state = self._services, self._recorder.state
        profile = self._profile(task.agent)
        names, unknown = tools_of(profile, services.toolset.tools.names())
        if not names:
            raise ToolError(f"The agent {profile.name} has no available tools. Use another agent.")
        if unknown:
            self._warn_once(f"The agent {profile.name} runs without unknown tools: {', '.join(unknown)}.")
        model, client = self._model_of(profile, services.settings.now.subagents.model or state.model)
        number = self._expected.pop(item, 0) or self._next_number()
        apart = task.worktree or profile.worktree
        relay = Relay(self._recorder, f"agent-{number}", number, profile.name, apart=apart)
        return _Run(item, task, profile, relay, self._inner_services(profile, names, client, model), model)

    def _model_of(self, profile: AgentProfile, usual: str) -> tuple[str, ModelClient]:
        """Model of the profile with its client; the ``usual`` one if the profile names none or an unavailable one."""
        make = self._services.access.make_client
        if profile.model:
            try:
                return profile.model, make(profile.model)
            except ModelUnavailable as error:
                text = f"The agent {profile.name} uses {usual}; its own model {profile.model} is not available: {error}"
                self._warn_once(text)
        try:
            return usual, make(usual)
        except ModelUnavailable as error:
            raise ToolError(f"The agent {profile.name} cannot use the model {usual}: {error}") from error

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._recorder.emit(Notice(text, "warning", "agents"))

    def _profile(self, name: str) -> AgentProfile:
        profiles = {profile.name: profile for profile in self._places.profiles()}
        match = profiles.get(name) or profiles.get(name.strip().lower())
        if match is None:
            raise ToolError(f"Unknown agent {name!r}. Agents: {', '.join(profiles)}.")
        return match

    def _inner_services(self, profile: AgentProfile, names: Sequence[str], client: ModelClient, model: str) -> Services:
        """The session's services with separate context, tools, mode and caps. The user's permissions in the session,
        and its untrusted text, apply to its subagents at once."""
        services, recorder, now = self._services, self._recorder, self._services.settings.now
        options = now.subagents
        first, permissions = [client], services.permissions
        began = frozenset(permissions.rules(now))

        def make_client(wanted: str) -> ModelClient:
            return first.pop() if first and wanted == model else services.access.make_client(wanted)

        def inherited(policy: Policy) -> Policy:
            state = recorder.state
            own = (rule for rule in policy.rules if rule not in began)
            current = permissions.rules(services.settings.now)  # of the files
            rules = tuple(dict.fromkeys((*current, *own, *state.rules)))
            untrusted = tuple(dict.fromkeys((*policy.untrusted, *state.untrusted)))
            mode = tightest(profile.mode, policy.mode)  # also where a looser one is considered
            return replace(policy, mode=mode, rules=rules, untrusted=untrusted)

        policy = replace(permissions.policy, mode=tightest(profile.mode, recorder.state.mode))
        limits = TurnLimits(options.max_steps, options.max_tokens, options.max_price, now.limits.max_retries)
        tools = services.toolset.tools.selected(names)
        prompt = "\n\n".join(filter(None, (read_prompt("subagent"), profile.prompt)))
        return replace(
            services,
            toolset=Toolset(tools, services.context_for(tools, prompt)),
            access=replace(services.access, make_client=make_client),
            permissions=replace(permissions, inherited=inherited, policy=policy),
            settings=replace(services.settings.own(), now=replace(now, limits=limits)),
            store=replace(services.store, snapshots=None),
            extensions=(),
            workspace=replace(services.workspace, end_processes=lambda: None),
            parents_tokens=partial(tokens_left, services.settings, recorder.state, services.parents_tokens),
        )

    # --- running subagents ----------------------------------------------------------------------------------------

    def watch(self, event: Event) -> None:
        match event.body:
            case ModeChanged(mode=mode, reason=reason) if reason == CHOSEN:
                self._follow(mode)
            case RuleRevoked(rule=rule):
                for run in self._runs.values():
                    if run.inner is not None:
                        run.inner.send(RevokeRule(rule))
            case _:
                pass

    def _follow(self, mode: Mode) -> None:
        """Adopt a changed mode of the session."""
        for run in self._runs.values():
            if run.inner is not None:
                run.inner.send(SetMode(tightest(run.profile.mode, mode)))
            permissions = run.services.permissions
            policy = replace(permissions.policy, mode=tightest(run.profile.mode, mode))
            run.services = replace(run.services, permissions=replace(permissions, policy=policy))

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
