"""One tool call from raw arguments to its result: validate, decide, ask, check the approval, run, admit.

Whatever happens, the call ends with exactly one terminal item that carries a result for the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from swecli.core.context_management.recall import Recall
from swecli.core.engine.answer import Call
from swecli.core.engine.consent import Consent, Consents, Rejected
from swecli.core.engine.live_output import LiveOutput
from swecli.core.engine.locks import EffectLocks
from swecli.core.engine.prepared_call import PreparedCall
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.requests import Requests
from swecli.core.engine.results import Results
from swecli.core.engine.sandbox_watch import SandboxWatch
from swecli.core.engine.seen_files import SeenFiles
from swecli.core.engine.services import Services
from swecli.core.engine.todo_board import SessionTodos
from swecli.core.ports import CompactionRequests
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import (
    FileChanged,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStatus,
    UntrustedContent,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import ToolContext, ToolError, ToolOutcome
from swecli.core.workspace.jobs import Jobs

INTERRUPTED = "Interrupted by the user while this ran; it may have had part of its effect."
RECORDING = "recording the files first"
NOT_RUN = "Interrupted by the user before this ran; nothing was done."


class ToolCalls:
    """Runs single calls for the scheduler."""

    def __init__(
        self,
        services: Services,
        recorder: Recorder,
        requests: Requests,
        results: Results,
        sandbox: SandboxWatch,
        compaction: CompactionRequests | None = None,
        jobs: Jobs | None = None,
    ) -> None:
        self._services = services
        self._compaction = compaction
        self._jobs = jobs
        self._recorder = recorder
        self._requests = requests
        self.order = requests.order
        self._results = results
        self._sandbox = sandbox
        self._consents = Consents(services, recorder, requests, sandbox)
        self._recall = Recall(recorder.ledger, services.blobs)
        self._files = SeenFiles(recorder, services.workspace.cwd)
        self._locks = EffectLocks()
        self._live = LiveOutput()

    def prepare(self, call: Call) -> PreparedCall | None:
        """Validate the arguments. None when the call already ended with an error result."""
        part = call.part
        tool = self._services.tools.get(part.name)
        try:
            if tool is None:
                raise ToolError(self._services.tools.unknown(part.name))
            params = parse_arguments(part.arguments, tool)
            ctx = self._context(call.item)
            effects = tool.effects(params, ctx)
            title = tool.title(params, ctx)
        except (ToolError, OSError, ValueError, RuntimeError) as error:
            self._end(call.item, part, "error", ToolOutcome(str(error), is_error=True, detail=_short(str(error))))
            return None
        self._recorder.emit(ItemCheckpointed(call.item, part, title))
        return PreparedCall(call.item, part, tool, params, ctx, effects, title)

    def _context(self, item: str) -> ToolContext:
        workspace = self._services.workspace
        return ToolContext(
            item=item,
            cwd=workspace.cwd,
            roots=workspace.roots,
            output=lambda text: self._output(item, text),
            asker=self._requests,
            todos=SessionTodos(self._recorder),
            environment=dict(workspace.environment),
            blobs=self._services.blobs,
            transcript=self._recall,
            files=self._files,
            compaction=self._compaction,
            jobs=self._jobs,
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
        """Decide, ask if need be, and execute after the calls of ``before``. Ends the item in every case."""
        started = self._services.monotonic()
        running = False
        outcome: ToolOutcome | None = None
        consent: Consent | None = None
        try:
            if earlier_writers:  # the preview must show the file as the earlier calls leave it
                await asyncio.wait(earlier_writers)
            while outcome is None or consent is not None:
                consent = consent or await self._consents.obtain(call)
                call = consent.call
                if not call.effects.interactive:  # else the question is what it does
                    self.order.passed(call.item)
                if before:
                    await asyncio.wait(before)
                await self._files_recorded(consent)
                async with self._locks.hold(call.effects):
                    if not await self._consents.holds(consent):
                        consent, call = None, consent.call.as_proposed()
                        continue
                    outcome = None
                    running = True
                    started = self._services.monotonic()
                    self._recorder.emit(ItemCheckpointed(call.item, call.part, call.title, running=True))
                    outcome = await self._execute(consent)
                consent, outcome = await self._consents.outside(call, outcome)
            duration = self._services.monotonic() - started
            outcome = self._files.shortened(outcome)
            outcome = await self._results.admit(call.item, call.tool.name, call.tool.result_kind, outcome)
            outcome = replace(outcome, text=call.told(outcome.text))
            self._end(call.item, call.part, _status(outcome), outcome, duration)
            self._files.record(call.item, outcome.seen)
        except Rejected as rejected:
            outcome = ToolOutcome(str(rejected), is_error=True, detail=rejected.detail)
            self._end(call.item, call.part, "rejected", outcome)
        except ToolError as error:
            outcome = ToolOutcome(call.told(str(error)), is_error=True, detail=_short(str(error)))
            self._end(call.item, call.part, "error", outcome)
            self._files.record(call.item, error.seen)
        except asyncio.CancelledError:
            if outcome is not None:  # it is done; only storing its result was interrupted
                self._end(call.item, call.part, _status(outcome), self._results.bounded("output", outcome))
                raise
            self._end(call.item, call.part, "interrupted", self._cut_off(call) if running else _not_run("interrupted"))
            raise
        finally:
            self._live.forget(call.item)
            self.order.passed(call.item)
            self.close(call)

    def close(self, call: PreparedCall) -> None:
        """Give a call that never came to its end a terminal item; a call that has one stays as it is."""
        if call.item in self._recorder.ledger.open:
            self._end(call.item, call.part, "interrupted", _not_run("not executed"))

    def _cut_off(self, call: PreparedCall) -> ToolOutcome:
        """What is left of a call that was interrupted while it ran: the end of what it wrote until then."""
        written, cut = self._live.of(call.item)
        if not written:
            return ToolOutcome(INTERRUPTED, is_error=True, detail="interrupted")
        begin = f"… (only the last {len(written):,} characters are kept)\n" if cut else ""
        text = f"{INTERRUPTED} What it wrote until then:\n{begin}{written}"
        block = TerminalBlock(call.effects.command or call.title, written, None, str(call.ctx.cwd), truncated=cut)
        return ToolOutcome(text, (block,), "interrupted", is_error=True)

    async def _files_recorded(self, consent: Consent) -> None:
        """Wait for the first record of the files, without which a command could not be taken back, and show that."""
        checkpoints, call = self._services.checkpoints, consent.call
        if checkpoints is not None and not consent.reads_only and checkpoints.delays(call.effects):
            self._recorder.emit(ItemCheckpointed(call.item, call.part, call.title, awaits=RECORDING))
            await checkpoints.ready()

    async def _execute(self, consent: Consent) -> ToolOutcome:
        call, ctx = consent.call, consent.ctx
        async with self._recorded(consent):
            outcome = await call.tool.run(call.params, ctx)
        self._sandbox.tell()
        for origin in _strangers(call, ctx, outcome):
            self._recorder.emit(UntrustedContent(call.item, origin))
        for changed in outcome.changed:
            self._recorder.emit(FileChanged(changed.path, changed.before, changed.after, call.item))
        return outcome

    def _recorded(self, consent: Consent) -> AbstractAsyncContextManager[None]:
        """What the call changes while it runs is recorded, so that it can be taken back."""
        checkpoints, call = self._services.checkpoints, consent.call
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
        result = ToolResultPart(part.call_id, part.name, text, outcome.is_error, outcome.images)
        self._recorder.emit(ItemCompleted(item, status, (result,), outcome.blocks, outcome.detail, duration))


def _strangers(call: PreparedCall, ctx: ToolContext, outcome: ToolOutcome) -> tuple[str, ...]:
    """Whose text the result brings: a host's, or that of files outside the workspace."""
    host = (outcome.untrusted,) if outcome.untrusted else ()
    outside = [path for path in call.effects.reads if not any(Path(path).is_relative_to(root) for root in ctx.roots)]
    return (*host, *outside)


def _not_run(detail: str) -> ToolOutcome:
    return ToolOutcome(NOT_RUN, is_error=True, detail=detail)


def _status(outcome: ToolOutcome) -> ItemStatus:
    return "error" if outcome.is_error else "ok"


def _short(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 100 else line[:99] + "…"
