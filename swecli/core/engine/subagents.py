"""Subagents: tasks from the model, carried out by nested sessions of their own.

A subagent is a session of the same engine with services of its own. Its events go through its parent session's
recorder, so they are stored before anything is shown, in one order with all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.prompts import read_prompt
from swecli.core.engine.companion import BUDGET_KIND, Companion, Companions, TurnStopped
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.engine.model_call import cap_reached, has_content, tokens_left
from swecli.core.engine.notes import add_note
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import AgentProfile, Services
from swecli.core.engine.settings import TurnLimits
from swecli.core.engine.state import AgentRecord
from swecli.core.engine.tool_calls import EffectLocks
from swecli.core.extensions.profiles import NEVER
from swecli.core.git import git_facts
from swecli.core.llm.types import ModelClient
from swecli.core.permissions.types import Policy, tightest
from swecli.core.protocol.blocks import DisplayBlock, MarkdownBlock, TextBlock
from swecli.core.protocol.commands import Command, SetMode, Submit
from swecli.core.protocol.events import (
    DELTAS,
    AgentEnded,
    AgentStarted,
    Event,
    FileChanged,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    Mode,
    Notice,
    PermissionRequested,
    RetryScheduled,
    TurnEnded,
    TurnOutcome,
)
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart
from swecli.core.tools.base import AgentTask, ToolError, ToolOutcome
from swecli.core.tools.bounding import bound_result
from swecli.core.uninterrupted import uninterrupted
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.jobs import JobInfo
from swecli.core.worktrees import WorkTree, WorkTreeError, add_worktree, keep_or_remove, place_of, whereabouts
from swecli.figures import plural
from swecli.safe_text import printable_line, printable_name

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

# Transcripts of subagents as text, and their reports to the parent session.


_NAMED = 12
"""Most changed files named in a report."""


def transcript_of(events: Iterable[Event], agent: str) -> str | None:
    """Everything that a subagent read, said and called, with results, in order; None if no such agent exists. Each call
    appears once, in its last form: it is recorded when complete, and again with each change on its way to the tool."""
    parts: list[str] = []
    calls: dict[str, int] = {}
    kinds: dict[str, ItemStarted] = {}
    known = False
    for event in events:
        if event.agent != agent:
            continue
        known = True
        match event.body:
            case ItemStarted(item=item) as started:
                kinds[item] = started
            case ItemCheckpointed(item=item, part=ToolCallPart(name=name, arguments=arguments)):
                at = calls.setdefault(item, len(parts))
                parts[at : at + 1] = [f"[call of {name}]\n{arguments}"]
            case ItemCompleted() as completed:
                parts += _completed(completed, kinds.pop(completed.item, None))
            case Notice(text=text, level="warning" | "error"):
                parts.append(f"[notice]\n{text}")
            case TurnEnded(outcome=outcome, reason=reason):
                parts.append(f"[ended: {outcome}{f', {reason}' if reason else ''}]")
            case _:
                pass
    return "\n\n".join(parts) if known else None


def _completed(completed: ItemCompleted, started: ItemStarted | None) -> list[str]:
    kind = started.kind if started is not None else ""
    texts: list[str] = []
    for part in completed.parts:
        match part:
            case TextPart(text=text) if kind in ("user", "text", "note") and text.strip():
                texts.append(f"[{'task' if kind == 'user' else 'agent' if kind == 'text' else 'note'}]\n{text}")
            case ToolResultPart(name=name):
                texts.append(f"[result of {name}, {completed.status}]\n{part.whole_text}")
            case _:
                pass
    return texts


class Report(Struct, frozen=True):
    """Report of a subagent. ``answer`` is its last message; ``folder`` is its own work tree if that was kept,
    ``branch`` the branch checked out there."""

    record: AgentRecord
    answer: str
    changed: tuple[str, ...] = ()
    folder: str = ""
    branch: str = ""

    @property
    def done(self) -> bool:
        return self.record.outcome == "done"

    @property
    def whereabouts(self) -> str:
        return whereabouts(self.folder, self.branch)

    @property
    def detail(self) -> str:
        """Outcome and usage, in short."""
        record = self.record
        cost = f" · ${record.tally.cost:.4f}" if record.tally.cost else ""
        state = "done" if self.done else record.outcome or "interrupted"
        return f"{state} · {plural(record.steps, 'step')} · {record.tokens:,} tokens{cost}"


def report_text(report: Report, most: int, count: Callable[[str], int]) -> str:
    """Report for the parent agent, with at most ``most`` tokens as counted by ``count``."""
    record = report.record
    why = f": {record.reason}" if record.reason else ""
    how = "is done" if report.done else f"ended early ({record.outcome}{why})"
    lines = [
        f"[{record.id} ({record.started.profile}) {how}: {plural(record.steps, 'step')}, {record.tokens:,} tokens. "
        f'Its transcript: read_result with ref_id "{record.id}"]'
    ]
    if report.changed:
        more = f" and {len(report.changed) - _NAMED} more" if len(report.changed) > _NAMED else ""
        lines.append(f"Files it changed: {', '.join(map(printable_name, report.changed[:_NAMED]))}{more}")
    if report.folder:
        lines.append(printable_line(report.whereabouts))
    if not report.done and report.answer:
        lines.append("It did not finish. Its last words:")
    lines.append(as_read(report.answer) or "It gave no answer.")
    text = "\n".join(lines)
    size = len(text.encode("utf-8", "replace"))
    while (tokens := count(text)) > most and size > 100:
        size = min(size - 1, int(size * min(0.9, most / tokens)))
        text = bound_result("\n".join(lines), size, size)
    return text


# --- subagents at work --------------------------------------------------------------------------------------


ITEMS: Final = 1_000_000
"""Range of item numbers for one subagent; those of the next one begin after it."""
EVENTS: Final = 1_000_000_000_000


def tools_of(profile: AgentProfile, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The session's tools available to a subagent, in their order, and unknown names in its profile."""
    wanted = names if profile.tools is None else profile.tools
    unknown = tuple(name for name in (*wanted, *profile.disallowed) if name not in names and name not in NEVER)
    kept = tuple(name for name in names if name in wanted and name not in profile.disallowed and name not in NEVER)
    return kept, unknown


class Relay:
    """Log of a subagent: its events become events of the parent session, tagged with its id. Streaming texts are left
    out, because the complete items follow and several agents at once are unreadable anyway."""

    def __init__(self, recorder: Recorder, agent: str, number: int, profile: str, *, apart: bool = False) -> None:
        """``apart``: the subagent has a work tree of its own."""
        self._recorder = recorder
        self._named = f"{agent} ({profile}){', in a git worktree of its own' if apart else ''}"
        self.agent = agent
        self.turn = recorder.turn
        self.first = (number * EVENTS, number * ITEMS)
        self.ended: TurnEnded | None = None
        self.trouble = ""
        """The newest error outside a turn."""
        self.changed: dict[str, None] = {}

    def append(self, event: Event) -> None:
        body = event.body
        match body:
            case TurnEnded():
                self.ended = body
            case FileChanged(path=path):
                self.changed[path] = None
            case Notice(level="error", text=text):
                self.trouble = text
            case PermissionRequested(facts=facts):
                body = structs.replace(body, facts=(f"asked by {self._named}", *facts))
            case RetryScheduled():
                pass
            case _ if isinstance(body, DELTAS):
                return
            case _:
                pass
        self._recorder.relay(body, self.agent, self.turn)

    async def barrier(self) -> None:
        await self._recorder.log.barrier()

    async def close(self) -> None:
        """Do nothing: the parent session's log stays open."""


class ParentLimits(Companion):
    """Stops a subagent once a limit of the session that started it is reached: ``cap`` returns a reached cap as reason
    and error kind; or one of the session's companions blocks it."""

    def __init__(self, cap: Callable[[], tuple[str, str] | None], companions: Companions) -> None:
        self._cap = cap
        self._companions = companions

    async def check_request(self, prepared: PreparedRequest) -> None:
        if (reached := self._cap()) is not None:
            raise TurnStopped("limit", *reached)
        if why := await self._companions.agent_blocked():
            raise TurnStopped("limit", f"stopped because {why}", BUDGET_KIND)


class InnerParts(Struct, frozen=True):
    """Parts for a subagent's session. ``folder`` is its own work tree, None in the session's folder."""

    relay: Relay
    services: Services
    limits: ParentLimits
    folder: Path | None = None


class Parent(Struct, frozen=True):
    """The session that started a subagent, as the subagent's own session sees it."""

    relay: Relay
    limits: ParentLimits
    locks: EffectLocks | None
    """Those of all agents in its folder; None if it has a work tree of its own."""
    sweep: Callable[[], None]
    """Settles the open requests of all agents that no longer need a question."""
    closing: Sequence[Callable[[], Awaitable[object]]]
    """Ends what the subagent has for itself alone, once its session has ended."""


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
    work: asyncio.Task[None] | None = None
    """Task of a background subagent."""

    @property
    def agent(self) -> str:
        return self.relay.agent


class Subagents(Companion):
    """Starts, limits and ends the subagents of one session; implements ``AgentRunner``. ``begin`` creates a subagent's
    session and starts it with a model; ``tell`` takes a title and a text for the conversation."""

    def __init__(
        self,
        services: Services,
        recorder: Recorder,
        companions: Companions,
        begin: Callable[[InnerParts, str], Session],
        tell: Callable[[str, str], None],
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._companions = companions
        self._begin = begin
        self._tell = tell
        self._at_work = 0
        self._freed = asyncio.Event()
        """Set whenever one more may work."""
        self._runs: dict[str, _Run] = {}
        """Subagents that have not ended, by id."""
        self._count = 0
        self._expected: dict[str, int] = {}
        """Numbers reserved for calls."""
        self._warned: set[str] = set()

    # --- the task -------------------------------------------------------------------------------------------------

    def expect(self, item: str) -> None:
        self._expected[item] = self._next_number()

    def _next_number(self) -> int:
        """The next number; gaps remain if a call started nothing."""
        known = (int(digits) for id in self._recorder.state.agents if (digits := id.rpartition("-")[2]).isdecimal())
        self._count = max(self._count, *known, 0) + 1
        return self._count

    async def work(self, item: str, task: AgentTask, output: Callable[[str], None]) -> ToolOutcome:
        run = self._prepared(item, task)
        self._runs[run.agent] = run
        folder = str(self._folder_of(run) or "")
        began = AgentStarted(run.agent, item, task.title, run.profile.name, run.model, task.background, folder)
        self._recorder.emit(began)
        if task.background:
            run.work = asyncio.create_task(self._in_background(run))
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
            self._tell(f"{run.agent} failed: {why}", f"{run.agent} ({run.task.title}) failed: {why}")
            return
        apart = f". {report.whereabouts}" if report.folder else ""
        self._tell(f"{run.agent} ({run.profile.name}) {report.detail}: {run.task.title}{apart}", self._reported(report))

    def _reported(self, report: Report) -> str:
        options, monitor = self._services.settings.now.subagents, self._services.context.monitor
        return report_text(report, options.result_tokens, monitor.count_tokens)

    async def _carried_out(self, run: _Run) -> Report:
        """Wait until the subagent has ended and nothing of it runs. Cancellation interrupts it first; a background one
        then reports its results so far."""
        began = self._services.time.monotonic()
        answer, problem = "", ""
        kept = False
        try:
            async with self._slot():
                try:
                    await uninterrupted(self._make_tree(run))
                    told = await self._companions.agent_begins(run.agent, run.profile.name)
                    inner = run.inner = self._begin(self._parts(run), run.model)
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
                        kept = await uninterrupted(self._kept(run.tree))
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
            folder = str(run.tree.root) if run.tree is not None and kept else ""
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

    def adjusted(self) -> None:
        """React to changed options, which may allow more to work at once."""
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
        if not (run.task.worktree or run.profile.worktree) or git is None or self._services.worktrees is None:
            return None
        return place_of(self._services.worktrees, git, self._name(run))

    def _name(self, run: _Run) -> str:
        return f"{''.join(sign for sign in self._recorder.session if sign.isalnum())[-12:]}-{run.agent}"

    async def _make_tree(self, run: _Run) -> None:
        if not (run.task.worktree or run.profile.worktree):
            return
        base, place = self._services.worktrees, self._services.workspace
        if base is None:
            raise WorkTreeError("Worktrees are not available in this run. Give the task without worktree.")
        run.tree = await asyncio.to_thread(add_worktree, place.cwd, base, self._name(run), place.environment)

    async def _kept(self, tree: WorkTree) -> bool:
        return await asyncio.to_thread(keep_or_remove, tree, self._services.workspace.environment)

    def _parts(self, run: _Run) -> InnerParts:
        """Parts of its session. Its own work tree needs no undo, and commands are contained there."""
        tree = run.tree
        limits = ParentLimits(lambda: cap_reached(self._services, self._recorder), self._companions)
        if tree is None:
            return InnerParts(run.relay, run.services, limits)
        services = run.services
        sandbox = services.sandbox_for(tree.root)
        place = replace(services.workspace, cwd=tree.folder, roots=(tree.root,), checkpoints=None, sandbox=sandbox)
        services = replace(services, workspace=place)
        return InnerParts(run.relay, services, limits, tree.folder)

    # --- services -------------------------------------------------------------------------------------------------

    def _prepared(self, item: str, task: AgentTask) -> _Run:
        services, state = self._services, self._recorder.state
        profile = self._profile(task.agent)
        names, unknown = tools_of(profile, services.tools.names())
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
        profiles = {profile.name: profile for profile in self._services.profiles()}
        found = profiles.get(name) or profiles.get(name.strip().lower())
        if found is None:
            raise ToolError(f"Unknown agent {name!r}. Agents: {', '.join(profiles)}.")
        return found

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
        tools = services.tools.selected(names)
        prompt = "\n\n".join(filter(None, (read_prompt("subagent"), profile.prompt)))
        return replace(
            services,
            tools=tools,
            context=services.context_for(tools, prompt),
            access=replace(services.access, make_client=make_client),
            permissions=replace(permissions, inherited=inherited, policy=policy),
            settings=replace(services.settings.own(), now=replace(now, limits=limits)),
            store=replace(services.store, snapshots=None),
            extensions=(),
            workspace=replace(services.workspace, end_processes=lambda: None),
            parents_tokens=lambda: tokens_left(services, recorder),
        )

    # --- running subagents ----------------------------------------------------------------------------------------

    def send(self, command: Command) -> None:
        """Forward a reply to all subagents; its addressee accepts it."""
        for inner in self._working():
            inner.send(command)

    def follow(self, mode: Mode) -> None:
        """Adopt a changed mode of the session."""
        for run in self._runs.values():
            if run.inner is not None:
                run.inner.send(SetMode(tightest(run.profile.mode, mode)))
            permissions = run.services.permissions
            policy = replace(permissions.policy, mode=tightest(run.profile.mode, mode))
            run.services = replace(run.services, permissions=replace(permissions, policy=policy))

    def settle_decided(self) -> None:
        for inner in self._working():
            inner.settle_decided()

    def _working(self) -> list[Session]:
        return [run.inner for run in self._runs.values() if run.inner is not None]

    def stop(self, agent: str) -> bool:
        """Interrupt a background subagent. False if none with this id runs."""
        run = self._runs.get(agent)
        if run is None or run.work is None:
            return False
        # A task cancelled before its first step runs nothing, not even its clean-up.
        asyncio.get_running_loop().call_soon(run.work.cancel)
        return True

    async def ended(self, agent: str) -> JobInfo | None:
        """Interrupt a background subagent and return its final state; None if there is none with this id."""
        run = self._runs.get(agent)
        if self.stop(agent) and run is not None and run.work is not None:
            await asyncio.wait((run.work,))
        return next((job for job in self.jobs() if job.id == agent), None)

    def stop_all(self) -> None:
        """Interrupt background subagents; those that a call waits for end with the call."""
        for agent in [*self._runs]:
            self.stop(agent)

    @property
    def in_background(self) -> bool:
        return any(run.work is not None for run in self._runs.values())

    async def stay(self, answer: Message) -> bool:
        """Wait for background subagents if the user can't send another message. True if they have reported."""
        return self._services.context.unattended and has_content(answer) and await self.settled()

    async def settled(self) -> bool:
        """Wait for background subagents. False if there are none."""
        works = [run.work for run in self._runs.values() if run.work is not None]
        if works:
            await asyncio.wait(works)
        return bool(works)

    async def end(self) -> None:
        """End all of them. Apart from the companions' close, which comes after their reports."""
        self.stop_all()
        await self.settled()

    # --- inspection -----------------------------------------------------------------------------------------------

    def jobs(self) -> tuple[JobInfo, ...]:
        """Background subagents as jobs."""
        return tuple(
            JobInfo(
                record.id,
                f"{record.started.profile}: {record.started.title}",
                record.started.item,
                0,
                record.began,
                "running" if record.outcome is None else "exited" if record.outcome == "done" else "killed",
                None if record.outcome is None else 0 if record.outcome == "done" else 1,
                record.ended,
                note=record.reason,
                reported=record.outcome is not None,
                tokens=record.tokens,
            )
            for record in self._recorder.state.agents.values()
            if record.started.background
        )

    def transcript(self, agent: str) -> str | None:
        """Transcript of one subagent; None if there is none with this id. Blocks on the disk."""
        if agent not in self._recorder.state.agents:
            return None
        return transcript_of(self._recorder.facts, agent) or "(not started)"


def _why_failed(error: Exception) -> str:
    if isinstance(error, ToolError):
        return str(error)
    return f"swecli failed internally: {type(error).__name__}: {error}"


def _shown(paths: Iterable[str], cwd: Path) -> tuple[str, ...]:
    return tuple(str(Path(path).relative_to(cwd)) if Path(path).is_relative_to(cwd) else path for path in paths)


def close_interrupted(recorder: Recorder) -> None:
    """Record the ends of subagents that a kill cut off. The model is informed of background ones; the calls of the
    others report them."""
    cut_off = [one for one in recorder.state.agents.values() if one.outcome is None]
    for one in cut_off:
        recorder.emit(AgentEnded(one.id, "interrupted", STOPPED, one.steps, one.tokens, one.cost, folder=one.folder))
        if one.started.background:
            text = report_text(Report(one, ""), STOPPED_TOKENS, len)
            add_note(recorder, f"{one.id} was interrupted: {one.started.title}", text)


STOPPED: Final = "swecli was stopped"
STOPPED_TOKENS: Final = 2_000
"""Limit of a stopped report, in characters, which are never fewer than tokens."""
