"""One tool call from raw arguments to its result: validate, decide, ask, check the approval, run, admit.

Whatever happens, the call ends with exactly one terminal item that carries a result for the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace

from swecli.core.context_management.recall import Recall
from swecli.core.engine.answer import Call
from swecli.core.engine.locks import EffectLocks
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.requests import Requests
from swecli.core.engine.results import Results
from swecli.core.engine.sandbox_watch import SandboxWatch
from swecli.core.engine.seen_files import SeenFiles
from swecli.core.engine.services import Services
from swecli.core.engine.todo_board import SessionTodos
from swecli.core.permissions.types import Call as PermissionCall
from swecli.core.permissions.types import Decision, Effects
from swecli.core.ports import CompactionRequests
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.events import (
    FileChanged,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStatus,
    Notice,
    RuleApplied,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import AnyTool, Params, Preview, ToolContext, ToolError, ToolOutcome, binding

INTERRUPTED = "Interrupted by the user while this ran; it may have had part of its effect."
NOT_RUN = "Interrupted by the user before this ran; nothing was done."


class Rejected(Exception):
    """The call may not run. The message is for the model, ``detail`` for the screen."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call whose arguments are valid."""

    item: str
    part: ToolCallPart
    tool: AnyTool
    params: Params
    ctx: ToolContext
    effects: Effects
    title: str


@dataclass(frozen=True, slots=True)
class _Consent:
    """``shown`` is the binding of what the user approved, None where no question was needed; ``ctx`` is what the call
    runs with."""

    shown: str | None
    ctx: ToolContext


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
    ) -> None:
        self._services = services
        self._compaction = compaction
        self._recorder = recorder
        self._requests = requests
        self._results = results
        self._sandbox = sandbox
        self._recall = Recall(recorder.ledger, services.blobs)
        self._files = SeenFiles(recorder, services.workspace.cwd)
        self._locks = EffectLocks()

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
        )

    def _output(self, item: str, text: str) -> None:
        if text and item in self._recorder.ledger.open:
            self._recorder.emit(ItemDelta(item, text, "output"))

    async def run(self, call: PreparedCall, earlier_writers: Sequence[asyncio.Task[None]]) -> None:
        """Decide, ask if need be, and execute. Ends the item in every case."""
        started = self._services.monotonic()
        running = False
        outcome: ToolOutcome | None = None
        consent: _Consent | None = None
        try:
            if earlier_writers:  # the preview must show the file as the earlier calls leave it
                await asyncio.wait(earlier_writers)
            while outcome is None or consent is not None:
                consent = consent or await self._consent(call)
                async with self._locks.hold(call.effects):
                    if consent.shown is not None and await self._binding(call) != consent.shown:
                        self._recorder.emit(
                            Notice(
                                f"{call.title or call.tool.name} changed after it was shown; asking again.",
                                "warning",
                                "permissions",
                            )
                        )
                        consent = None
                        continue
                    outcome = None
                    running = True
                    started = self._services.monotonic()
                    self._recorder.emit(ItemCheckpointed(call.item, call.part, call.title, running=True))
                    outcome = await self._execute(call, consent.ctx)
                consent, outcome = await self._outside(call, outcome)
            duration = self._services.monotonic() - started
            outcome = self._files.shortened(outcome)
            outcome = await self._results.admit(call.item, call.tool.name, call.tool.result_kind, outcome)
            self._end(call.item, call.part, _status(outcome), outcome, duration)
            self._files.record(call.item, outcome.seen)
        except Rejected as rejected:
            outcome = ToolOutcome(str(rejected), is_error=True, detail=rejected.detail)
            self._end(call.item, call.part, "rejected", outcome)
        except ToolError as error:
            outcome = ToolOutcome(str(error), is_error=True, detail=_short(str(error)))
            self._end(call.item, call.part, "error", outcome)
            self._files.record(call.item, error.seen)
        except asyncio.CancelledError:
            if outcome is not None:  # it is done; only storing its result was interrupted
                self._end(call.item, call.part, _status(outcome), self._results.bounded("output", outcome))
                raise
            text = INTERRUPTED if running else NOT_RUN
            self._end(call.item, call.part, "interrupted", ToolOutcome(text, is_error=True, detail="interrupted"))
            raise
        finally:
            self.close(call)

    def close(self, call: PreparedCall) -> None:
        """Give a call that never came to its end a terminal item; a call that has one stays as it is."""
        if call.item in self._recorder.ledger.open:
            outcome = ToolOutcome(NOT_RUN, is_error=True, detail="not executed")
            self._end(call.item, call.part, "interrupted", outcome)

    async def _consent(self, call: PreparedCall) -> _Consent:
        """Under what the call may run.

        Raises:
            Rejected: by rule, mode or user.
            ToolError: the call can't succeed anyway.
        """
        await self._sandbox.ready(call.effects)
        decision = self.decide(call)
        hook = await self._services.hooks.fire("pre_tool_use", {"tool_name": call.tool.name, "item": call.item})
        if hook.block:
            raise Rejected(f"Blocked by a hook: {hook.reason}", "blocked by a hook")
        if (rule := decision.rule) is not None:
            self._recorder.emit(RuleApplied(call.item, rule.effect, rule.text, rule.scope, rule.origin))
        if decision.outcome == "deny":
            raise Rejected(f"Not allowed: {decision.reason}", decision.reason)
        if decision.outcome == "allow":
            return self._consented(call, decision)
        preview = await call.tool.preview(call.params, call.ctx)
        decision = self.decide(call)  # the mode or the rules may have changed while the preview was made
        if decision.outcome == "allow":
            return self._consented(call, decision)
        shown = self._bind(call, preview)
        reply = await self._requests.permission(
            item=call.item,
            tool=call.tool.name,
            title=call.title,
            blocks=(*(preview.blocks or (TextBlock(call.title),)), *self._uncovered(call)),
            reason=decision.reason,
            binding=shown,
            rule=decision.offer,
            evidence=decision.evidence,
        )
        self._keep(decision.offer, reply)
        if reply.choice == "reject" and reply.by == "headless":
            raise Rejected(f"Not allowed; nothing was done. {reply.note}".strip(), "nobody could be asked")
        if reply.choice == "reject":
            word = f" The user says: {reply.note}" if reply.note else ""
            raise Rejected(
                f"The user rejected this call; nothing was done.{word}",
                f"rejected: {reply.note}" if reply.note else "rejected",
            )
        return self._consented(call, decision, shown)

    def _consented(self, call: PreparedCall, decision: Decision, shown: str | None = None) -> _Consent:
        return _Consent(shown, self._sandbox.context(call.ctx, call.effects, decision))

    async def _outside(self, call: PreparedCall, outcome: ToolOutcome) -> tuple[_Consent | None, ToolOutcome]:
        """Ask whether a command that the sandbox stopped may run outside of it. Without consent the model is told."""
        if not outcome.blocked or not self._sandbox.offers:
            return None, outcome
        preview = await call.tool.preview(call.params, call.ctx)
        shown = self._bind(call, preview)
        reply = await self._requests.permission(
            item=call.item,
            tool=call.tool.name,
            title=call.title,
            blocks=outcome.blocks or preview.blocks,
            reason=f"Blocked by the sandbox, as it seems: {outcome.blocked}. Run it again, outside?",
            binding=shown,
            rule=None,
            evidence=(),
        )
        if reply.choice != "reject":
            return _Consent(shown, call.ctx), outcome
        word = f" The user says: {reply.note}" if reply.note else ""
        told = f"The user was asked whether it may run outside of the sandbox, and said no.{word}"
        return None, replace(outcome, text=f"{outcome.text}\n{told}")

    def _keep(self, rule: str | None, reply: ReplyPermission) -> None:
        """Keep a rule that is to hold longer than the session."""
        if rule is not None and reply.choice == "always" and (reply.span == "week" or reply.span == "project"):
            problem = self._services.keep_rule(rule, reply.span)
            if problem:
                self._recorder.emit(Notice(problem, "warning", "permissions"))

    def decide(self, call: PreparedCall) -> Decision:
        """The permission decision under the mode and rules of this moment."""
        state = self._recorder.state
        rules = (*self._services.policy.rules, *state.rules)
        policy = replace(
            self._services.policy, mode=state.mode, rules=rules, sandbox=self._services.sandbox.state.level
        )
        workspace = self._services.workspace
        return self._services.decide(
            policy,
            PermissionCall(
                call.tool.name,
                call.params.model_dump(),
                call.effects,
                str(workspace.cwd),
                tuple(str(root) for root in workspace.roots),
            ),
        )

    def _bind(self, call: PreparedCall, preview: Preview) -> str:
        return binding(call.tool.name, call.params, self._services.workspace.cwd, preview.state)

    async def _binding(self, call: PreparedCall) -> str:
        return self._bind(call, await call.tool.preview(call.params, call.ctx))

    async def _execute(self, call: PreparedCall, ctx: ToolContext) -> ToolOutcome:
        async with self._recorded(call):
            outcome = await call.tool.run(call.params, ctx)
        self._sandbox.tell()
        for changed in outcome.changed:
            self._recorder.emit(FileChanged(changed.path, changed.before, changed.after, call.item))
        return outcome

    def _recorded(self, call: PreparedCall) -> AbstractAsyncContextManager[None]:
        """What the call changes while it runs is recorded, so that it can be taken back."""
        checkpoints = self._services.checkpoints
        if checkpoints is None:
            return nullcontext()
        title = call.title if call.effects.command is not None else f"{call.tool.verb} {call.title}".strip()
        return checkpoints.around(self._recorder.session, self._recorder.turn, call.item, title, call.effects)

    def _uncovered(self, call: PreparedCall) -> tuple[TextBlock, ...]:
        """Said beforehand: what could not be taken back."""
        checkpoints = self._services.checkpoints
        warning = checkpoints.warning(call.effects) if checkpoints is not None else ""
        return (TextBlock(warning, "warning"),) if warning else ()

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


def _status(outcome: ToolOutcome) -> ItemStatus:
    return "error" if outcome.is_error else "ok"


def _short(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 100 else line[:99] + "…"
