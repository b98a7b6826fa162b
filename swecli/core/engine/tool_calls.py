"""The tool calls of one answer: prepared, scheduled by their effects, approved, run, and ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.recall import Recall
from swecli.core.engine.consent import Consent, Consents
from swecli.core.engine.model_call import Call
from swecli.core.engine.prepared_call import PreparedCall, Rejected, short_line
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import Results, SeenFiles
from swecli.core.engine.services import Workspace
from swecli.core.engine.transcripts import agent_transcript
from swecli.core.permissions.types import Effects
from swecli.core.ports import BlobStore
from swecli.core.protocol.blocks import TerminalBlock, TextBlock
from swecli.core.protocol.events import (
    MAIN,
    FileChanged,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStatus,
    ScratchpadChanged,
    TodosChanged,
    UntrustedContent,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import ToolContext, ToolError, ToolOutcome
from swecli.core.tools.registry import ToolRegistry
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.jobs import Jobs
from swecli.core.worktrees import whereabouts


def overlap(one: str, other: str) -> bool:
    a, b = PurePath(one), PurePath(other)
    return a == b or a in b.parents or b in a.parents


def conflict(one: Effects, other: Effects) -> bool:
    if one.interactive or other.interactive or one.internal or other.internal:
        return False
    if one.opaque or other.opaque:
        return True
    return _touches(one, other) or _touches(other, one)


def conflict_of_agents(one: Effects, other: Effects) -> bool:
    """Whether calls of different agents conflict. A command conflicts only with changes: reads while another agent's
    command runs are allowed."""
    if one.interactive or other.interactive or one.internal or other.internal:
        return False
    if one.opaque or other.opaque:
        return bool(one.opaque or one.writes) and bool(other.opaque or other.writes)
    return _touches(one, other) or _touches(other, one)


def _touches(writer: Effects, other: Effects) -> bool:
    touched = (*other.reads, *other.writes)
    return any(overlap(path, known) for path in writer.writes for known in touched)


class EffectLocks:
    """Locks in order of arrival: a call waits for every earlier one that it conflicts with, running or waiting. Agents
    in the same folder share one instance."""

    def __init__(self) -> None:
        self._holders: list[_Holder] = []

    @asynccontextmanager
    async def hold(
        self, effects: Effects, agent: str = MAIN, *, reads_only: bool = False
    ) -> AsyncGenerator[None, None]:
        """Wait for these effects to be free, and hold them until exit. Calls of other agents neither wait for
        ``reads_only`` effects, which are proven to change nothing, nor are waited for."""
        entry = _Holder(effects, agent, reads_only, asyncio.Event())
        earlier = [other.done for other in self._holders if _waits(entry, other)]
        self._holders.append(entry)
        try:
            for done in earlier:
                await done.wait()
            yield
        finally:
            self._holders.remove(entry)
            entry.done.set()


class _Holder(Struct, frozen=True, eq=False):
    effects: Effects
    agent: str
    reads_only: bool
    done: asyncio.Event


def _waits(later: _Holder, earlier: _Holder) -> bool:
    if later.agent == earlier.agent:
        return conflict(later.effects, earlier.effects)
    if later.reads_only or earlier.reads_only:
        return False
    return conflict_of_agents(later.effects, earlier.effects)


KEPT: Final = 4_000
"""Characters kept of each call's output."""


class LiveOutput:
    """Output of running calls, kept by call until it is forgotten."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}
        self._cut: set[str] = set()

    def add(self, item: str, text: str) -> None:
        written = self._written.get(item, "") + text
        if len(written) > KEPT:
            self._cut.add(item)
        self._written[item] = written[-KEPT:]

    def of(self, item: str) -> tuple[str, bool]:
        """The end of a call's output, and whether it was cut at the beginning."""
        return self._written.get(item, ""), item in self._cut

    def forget(self, item: str) -> None:
        self._written.pop(item, None)
        self._cut.discard(item)


INTERRUPTED = "Interrupted by the user while this ran; it may have taken effect in part."
RECORDING = "recording the files first"
NOT_RUN = "Interrupted by the user before this ran; nothing was done."


def _require_folder(effects: Effects, ctx: ToolContext) -> None:
    """Refuse a call with files in the working directory if that is gone: a write would create it again.

    Raises:
        ToolError: it is gone.
    """
    if ctx.cwd.is_dir():
        return
    gone = ctx.cwd.resolve()
    if any(Path(path).is_relative_to(gone) for path in (*effects.reads, *effects.writes)):
        raise ToolError(f"The working directory {ctx.cwd} no longer exists: it was moved or deleted. Nothing was done.")


async def _require_current(call: PreparedCall) -> None:
    """Refuse a call whose consent has lapsed.

    Raises:
        Rejected: it has.
    """
    why = await call.outdated() if call.outdated is not None else ""
    if why:
        raise Rejected(call.with_note(f"{why} Nothing was done."), "changed after it was shown")


class CallParts(Struct, frozen=True):
    """What a session lends to its tools, and to the order of calls."""

    blobs: BlobStore | None = None
    request_compaction: Callable[[], str] | None = None
    jobs: Jobs | None = None
    locks: EffectLocks | None = None
    """Those of other agents in the same folder; None without others."""
    agent: str = MAIN
    """The agent whose calls these are."""


class ToolCalls:
    """Runs single calls for the scheduler."""

    def __init__(
        self,
        tools: ToolRegistry,
        workspace: Workspace,
        monotonic: Callable[[], float],
        consents: Consents,
        results: Results,
        recorder: Recorder,
        parts: CallParts = CallParts(),  # noqa: B008 - a frozen value
    ) -> None:
        self._tools = tools
        self._workspace = workspace
        self._monotonic = monotonic
        self._consents = consents
        self._requests = consents.requests
        self.order = consents.requests.order
        self.companions = consents.companions
        self._results = results
        self._recorder = recorder
        self._parts = parts
        self._recall = Recall(recorder.ledger, parts.blobs, partial(agent_transcript, recorder))
        self._files = SeenFiles(recorder, workspace.cwd)
        self.locks = parts.locks or EffectLocks()
        self._live = LiveOutput()

    def prepare(self, call: Call) -> PreparedCall | None:
        """Validate the arguments. None if the call has already ended with an error result."""
        part = call.part
        tool = self._tools.get(part.name)
        try:
            if tool is None:
                raise ToolError(self._tools.unknown(part.name))
            params = parse_arguments(part.arguments, tool)
            ctx = self._context(call.item)
            effects = tool.effects(params, ctx)
            _require_folder(effects, ctx)
            title = tool.title(params, ctx)
        except (ToolError, OSError, ValueError, RuntimeError) as error:
            text = f"{call.note}\n{error}" if call.note else str(error)
            self._end(call.item, part, "error", ToolOutcome(text, is_error=True, detail=short_line(str(error))))
            return None
        self._recorder.emit(ItemCheckpointed(call.item, part, title))
        tool.announce(ctx)
        return PreparedCall(
            call.item,
            part,
            tool,
            params,
            ctx,
            effects,
            title,
            call.note,
            call.rules,
            typed=call.typed,
            outdated=call.outdated,
        )

    def _context(self, item: str) -> ToolContext:
        workspace, decisions = self._workspace, self._consents.decisions
        return ToolContext(
            item=item,
            cwd=workspace.cwd,
            roots=workspace.roots,
            output=lambda text: self._output(item, text),
            asker=self._requests,
            set_todos=lambda todos: self._recorder.emit(TodosChanged(todos)),
            set_scratchpad=lambda text: self._recorder.emit(ScratchpadChanged(text)),
            environment=dict(workspace.environment),
            blobs=self._parts.blobs,
            transcript=self._recall,
            last_seen=self._files.last_seen,
            own_names=decisions.own_names,
            read_rules=decisions.read_rules,
            request_compaction=self._parts.request_compaction,
            jobs=self._parts.jobs,
            companion=self.companions.find,
            editor=workspace.editor,
            turn=self._recorder.turn,
            reads_documents=self._results.reads_documents,
        )

    def _output(self, item: str, text: str) -> None:
        if text and item in self._recorder.ledger.open:
            self._live.add(item, text)
            self._recorder.emit(ItemDelta(item, text, "output"))

    async def run(
        self,
        call: PreparedCall,
        earlier_writers: Sequence[asyncio.Task[None]],
        before: Sequence[asyncio.Task[None]] = (),
    ) -> None:
        """Decide, ask if necessary, and execute after the calls of ``before``. Ends the item in every case."""
        started = self._monotonic()
        running = False
        outcome: ToolOutcome | None = None
        consent: Consent | None = None
        try:
            if earlier_writers:  # the preview must show the file after the earlier calls
                await asyncio.wait(earlier_writers)
            call = await self.companions.before_call(call)
            while outcome is None or consent is not None:
                consent = consent or await self._consents.obtain(call, before)
                call = consent.call
                if not call.effects.interactive:  # an interactive call is itself the question
                    self.order.passed(call.item)
                if before:
                    await asyncio.wait(before)
                    before = ()
                    if not await self._consents.stands(consent):
                        consent = None
                        continue
                await self._files_recorded(consent)
                async with self.locks.hold(call.effects, self._parts.agent, reads_only=consent.reads_only):
                    current = call.as_now()
                    if current is not call or not await self._consents.holds(consent):
                        consent, call = None, current.as_proposed()
                        continue
                    await _require_current(call)
                    outcome = None
                    running = True
                    started = self._monotonic()
                    self._recorder.emit(ItemCheckpointed(call.item, call.part, call.title, running=True))
                    outcome = await self._execute(consent)
                    outcome = await self.companions.after_run(call, outcome)
                consent, outcome = await self._consents.outside(call, outcome)
            duration = self._monotonic() - started
            outcome = self._files.shortened(outcome)
            outcome = await self._results.admit(call.item, call.tool.name, call.tool.result_kind, outcome)
            text = "\n".join(filter(None, (outcome.text, outcome.added)))
            outcome = replace(outcome, text=call.with_note(text))  # in full, regardless of the stored part
            self._end(call.item, call.part, _status(outcome), outcome, duration)
            self._files.record(call.item, outcome.seen)
            if call.effects.opaque or call.effects.writes:
                self._requests.reconsider()  # another call may have asked because of the files before this one
        except Rejected as rejected:
            outcome = ToolOutcome(str(rejected), is_error=True, detail=rejected.detail)
            self._end(call.item, call.part, "rejected", outcome)
        except ToolError as error:
            outcome = ToolOutcome(call.with_note(str(error)), is_error=True, detail=short_line(str(error)))
            self._end(call.item, call.part, "error", outcome)
            self._files.record(call.item, error.seen)
        except asyncio.CancelledError:
            if outcome is not None:  # finished; only storing its result was interrupted
                self._end(call.item, call.part, _status(outcome), self._results.bounded("output", outcome))
                raise
            self._end(call.item, call.part, "interrupted", self._cut_off(call) if running else _not_run("interrupted"))
            raise
        finally:
            self._live.forget(call.item)
            self.order.passed(call.item)
            self.close(call)

    def close(self, call: PreparedCall) -> None:
        """Give an unfinished call a terminal item; a finished one is unchanged."""
        if call.item in self._recorder.ledger.open:
            self._end(call.item, call.part, "interrupted", _not_run("not executed"))

    def _cut_off(self, call: PreparedCall) -> ToolOutcome:
        """Outcome of a call interrupted while it ran: the end of its output so far, and what its agent left."""
        agents = [agent for agent in self._recorder.state.agents.values() if agent.started.item == call.item]
        left = "\n".join(whereabouts(agent.folder) for agent in agents if agent.folder)
        written, cut = self._live.of(call.item)
        if not written:
            return ToolOutcome(INTERRUPTED, is_error=True, detail="interrupted")
        begin = f"… (only the last {len(written):,} characters are kept)\n" if cut else ""
        text = f"{INTERRUPTED} Its output until then:\n{begin}{as_read(written)}"
        if agents:  # they write for the model
            shown = (TextBlock(left, "dim"),) if left else ()
            return ToolOutcome(f"{text}\n{left}".rstrip(), shown, "interrupted", is_error=True)
        block = TerminalBlock(call.effects.command or call.title, written, None, str(call.ctx.cwd), truncated=cut)
        return ToolOutcome(text, (block,), "interrupted", is_error=True)

    async def _files_recorded(self, consent: Consent) -> None:
        """Wait visibly for the first record of the files, without which a command could not be undone."""
        checkpoints, call = self._workspace.checkpoints, consent.call
        if checkpoints is not None and not consent.reads_only and checkpoints.delays(call.effects):
            self._recorder.emit(ItemCheckpointed(call.item, call.part, call.title, awaits=RECORDING))
            await checkpoints.ready()

    async def _execute(self, consent: Consent) -> ToolOutcome:
        call, ctx = consent.call, consent.ctx
        await self.companions.before_run(call)
        with self._consents.sandbox.around(ctx, call.effects):
            async with self._recorded(consent):  # hooks' file changes belong to the call and are undone with it
                outcome = await self.companions.after_call(call, await self._run_tool(consent))
        self._consents.sandbox.publish()
        for origin in _untrusted_origins(call, self._consents.decisions.folders, outcome):
            self._recorder.emit(UntrustedContent(call.item, origin))
        for changed in outcome.changed:
            self._recorder.emit(FileChanged(changed.path, changed.before, changed.after, call.item))
        return outcome

    async def _run_tool(self, consent: Consent) -> ToolOutcome:
        """Run the tool. The companions receive an error before it propagates."""
        call = consent.call
        try:
            _require_folder(call.effects, consent.ctx)  # it may have gone while the user decided
            return await call.tool.run(call.params, consent.ctx)
        except ToolError as error:
            failed = await self.companions.after_call(call, ToolOutcome(str(error), is_error=True))
            if not failed.added:
                raise
            raise ToolError(f"{error}\n{failed.added}", error.seen) from error

    def _recorded(self, consent: Consent) -> AbstractAsyncContextManager[None]:
        """Record changes during the call, so that they can be undone."""
        checkpoints, call = self._workspace.checkpoints, consent.call
        if checkpoints is None:
            return nullcontext()
        title = call.title if call.effects.command is not None else f"{call.tool.verb} {call.title}".strip()
        session, turn = self._recorder.session, self._recorder.turn
        return checkpoints.around(session, turn, call.item, title, call.effects, reads_only=consent.reads_only)

    def _end(
        self,
        item: str,
        part: ToolCallPart,
        status: ItemStatus,
        outcome: ToolOutcome,
        duration: float | None = None,
    ) -> None:
        text = self._results.bounded("page", outcome).text
        if status == "error":
            text = self.companions.on_failure(part, item, text)
        result = ToolResultPart(part.call_id, part.name, text, outcome.is_error, outcome.images, outcome.documents)
        self._recorder.emit(ItemCompleted(item, status, (result,), outcome.blocks, outcome.detail, duration))


def _untrusted_origins(call: PreparedCall, folders: Sequence[Path], outcome: ToolOutcome) -> tuple[str, ...]:
    """Untrusted origins of the result: a host, or files outside these folders."""
    host = (outcome.untrusted,) if outcome.untrusted else ()
    outside = [path for path in call.effects.reads if not any(Path(path).is_relative_to(root) for root in folders)]
    return (*host, *outside)


def _not_run(detail: str) -> ToolOutcome:
    return ToolOutcome(NOT_RUN, is_error=True, detail=detail)


def _status(outcome: ToolOutcome) -> ItemStatus:
    return "error" if outcome.is_error else "ok"


class Scheduler:
    """Starts the calls of a step and waits for all of them."""

    def __init__(self, calls: ToolCalls) -> None:
        self._calls = calls
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, calls: Sequence[Call]) -> None:
        """Return when every call has its terminal item and the companions are done with them; cancelled, cancel the
        calls and still wait.

        A call that waits for the user delays only calls that write the same file, and commands, which run after the
        writes and commands before them regardless of the order of answers. Questions appear in the order of the calls.
        """
        prepared = [ready for call in calls if (ready := self._calls.prepare(call)) is not None]
        self._calls.order.begin(call.item for call in prepared)
        try:
            for position, call in enumerate(prepared):
                earlier = prepared[:position]
                writers = [self._tasks[other.item] for other in earlier if _same_target(other, call)]
                before = [self._tasks[other.item] for other in earlier if _comes_after(other, call)]
                self._tasks[call.item] = asyncio.create_task(self._calls.run(call, writers, before), name=call.item)
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            _raise_defects(self._tasks.values())
            await self._calls.companions.after_calls()
        except asyncio.CancelledError:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            raise
        finally:
            for call in prepared:  # a task cancelled before its first step never ran its own clean-up
                self._calls.order.passed(call.item)
                self._calls.close(call)
            self._tasks.clear()

    def cancel(self, item: str) -> bool:
        """Stop one running call; the others continue. False if it is not running."""
        task = self._tasks.get(item)
        if task is None or task.done():
            return False
        # A task cancelled before its first step runs nothing, not even its clean-up. That step is already scheduled.
        asyncio.get_running_loop().call_soon(task.cancel)
        return True


def _same_target(earlier: PreparedCall, later: PreparedCall) -> bool:
    return any(overlap(one, other) for one in earlier.effects.writes for other in later.effects.writes)


def _comes_after(earlier: PreparedCall, later: PreparedCall) -> bool:
    """Whether ``later`` has unknown effects, as a command does, and so may depend on ``earlier``."""
    return later.effects.opaque and (earlier.effects.opaque or bool(earlier.effects.writes))


def _raise_defects(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Re-raise an exception other than ``ToolError``: a defect of swecli, which ends the turn visibly."""
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
