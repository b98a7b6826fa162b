"""Under what a call may run: decided, asked about, changed on the way, and bound to what was shown.

A call that the user changed is decided again by the same function as one of the model: what is refused stays refused,
and what always has to be asked is asked about as it is now. An edit that is refused leaves the question open.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from swecli.core.engine.amendments import amended
from swecli.core.engine.prepared_call import PreparedCall
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.requests import Requests
from swecli.core.engine.sandbox_watch import SandboxWatch
from swecli.core.engine.services import Services
from swecli.core.permissions.types import Call as PermissionCall
from swecli.core.permissions.types import Decision
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.events import Notice, RefusedEdit, RuleApplied
from swecli.core.tools.base import Preview, ToolContext, ToolError, ToolOutcome, binding
from swecli.core.tools.chosen import OutdatedChoice


class Rejected(Exception):
    """The call may not run. The message is for the model, ``detail`` for the screen."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Consent:
    """``call`` is what may run, as the user may have changed it; ``shown`` is the binding of what was approved, None
    where no question was needed; ``ctx`` is what the call runs with. ``reads_only``: it is proven to change nothing."""

    call: PreparedCall
    shown: str | None
    ctx: ToolContext
    reads_only: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    """A reply, the call as it changes it, and as it was before."""

    reply: ReplyPermission
    call: PreparedCall
    before: PreparedCall
    problem: str = ""
    """Why the change could not be made."""


class Consents:
    """Obtains consent for the calls of one session."""

    def __init__(self, services: Services, recorder: Recorder, requests: Requests, sandbox: SandboxWatch) -> None:
        self._services = services
        self._recorder = recorder
        self._requests = requests
        self._sandbox = sandbox

    async def obtain(self, call: PreparedCall) -> Consent:
        """Under what the call may run.

        Raises:
            Rejected: by rule, mode or user.
            ToolError: the call can't succeed anyway.
        """
        answer: _Answer | None = None
        refused: RefusedEdit | None = None
        while True:
            await self._sandbox.ready(call.effects)
            try:
                decision = await self._decided(call)
            except Rejected as error:
                if answer is None or answer.reply.arguments is None or answer.reply.choice != "edit":
                    raise
                refused = RefusedEdit(answer.reply.arguments, error.detail)
                call, answer = answer.before, None
                continue
            if decision.outcome == "allow":
                return await self._allowed(call, decision)
            await self._requests.order.turn(call.item)
            preview = await call.tool.preview(call.params, call.ctx)
            decision = self.decide(call)  # the mode or the rules may have changed while the preview was made
            if decision.outcome == "allow":
                return await self._allowed(call, decision)
            shown = self._bind(call, preview)
            if answer is not None and _covers(answer, decision):
                return self._consented(call, decision, shown)
            answer = await self._asked(call, preview, decision, shown, refused)
            refused = None
            if answer is not None and answer.problem and answer.reply.arguments is not None:
                refused = RefusedEdit(answer.reply.arguments, answer.problem)
            if answer is not None and answer.call is call and answer.reply.choice != "edit":
                return self._consented(call, decision, shown)
            call = answer.call if answer is not None else call.as_proposed()

    async def holds(self, consent: Consent) -> bool:
        """Whether what would run is what was approved; the user is told where it is not."""
        if consent.shown is None:
            return True
        try:
            if await self._binding(consent.call) == consent.shown:
                return True
        except OutdatedChoice:
            pass
        self._tell_changed(consent.call)
        return False

    async def outside(self, call: PreparedCall, outcome: ToolOutcome) -> tuple[Consent | None, ToolOutcome]:
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
            facts=(OUTSIDE, *preview.facts),
            warnings=self._uncovered(call),
        )
        if reply.choice in ("once", "always") and reply.arguments is None:
            return Consent(call, shown, call.ctx), outcome
        word = f" The user says: {reply.note}" if reply.note else ""
        told = f"The user was asked whether it may run outside of the sandbox, and said no.{word}"
        return None, replace(outcome, text=f"{outcome.text}\n{told}")

    def decide(self, call: PreparedCall) -> Decision:
        """The permission decision under the mode and rules of this moment."""
        state = self._recorder.state
        rules = (*self._services.policy.rules, *state.rules)
        policy = replace(
            self._services.policy,
            mode=state.mode,
            rules=rules,
            sandbox=self._services.sandbox.state.level,
            untrusted=state.untrusted,
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

    async def _decided(self, call: PreparedCall) -> Decision:
        decision = self.decide(call)
        hook = await self._services.hooks.fire("pre_tool_use", {"tool_name": call.tool.name, "item": call.item})
        if hook.block:
            raise Rejected(call.told(f"Blocked by a hook: {hook.reason}"), "blocked by a hook")
        if (rule := decision.rule) is not None:
            self._recorder.emit(RuleApplied(call.item, rule.effect, rule.text, rule.scope, rule.origin))
        if decision.outcome == "deny":
            raise Rejected(call.told(f"Not allowed: {decision.reason}"), decision.reason)
        return decision

    async def _asked(
        self, call: PreparedCall, preview: Preview, decision: Decision, shown: str, refused: RefusedEdit | None
    ) -> _Answer | None:
        """The answer that lets the call go on; None where it has to be asked about again.

        Raises:
            Rejected: by the user.
        """
        reply = await self._requests.permission(
            item=call.item,
            tool=call.tool.name,
            title=call.title,
            blocks=preview.blocks or (TextBlock(call.title),),
            reason=decision.reason,
            binding=shown,
            rule=decision.offer,
            evidence=decision.evidence,
            hunks=preview.hunks,
            facts=(*self._place(call, decision), *preview.facts),
            warnings=(*((f"Your edit was refused: {refused.reason}",) if refused else ()), *self._uncovered(call)),
            arguments=None if preview.hunks else call.params.model_dump(mode="json", exclude_defaults=True),
            refused=refused,
        )
        self._keep(decision.offer, reply)
        if reply.choice == "reject" and reply.by == "headless":
            raise Rejected(f"Not allowed; nothing was done. {reply.note}".strip(), "nobody could be asked")
        if reply.choice == "reject" or (reply.hunks is not None and not reply.hunks):
            word = f" The user says: {reply.note}" if reply.note else ""
            text = f"The user rejected this call; nothing was done.{word}"
            raise Rejected(call.told(text), f"rejected: {reply.note}" if reply.note else "rejected")
        try:
            changed = amended(call, preview, reply)
            if changed is call:
                return _Answer(reply, call, call)
            if changed.ctx.choices and await self._binding(call) != shown:
                self._tell_changed(call)
                return None
            await changed.tool.preview(changed.params, changed.ctx)
        except (ToolError, OSError, ValueError, RuntimeError) as error:
            self._recorder.emit(Notice(f"{error} The call stays as it was.", "warning", "permissions"))
            return _Answer(replace(reply, choice="edit"), call, call, str(error))
        return _Answer(reply, changed, call)

    async def _allowed(self, call: PreparedCall, decision: Decision) -> Consent:
        """What the user made of a change is bound also where it needs no question."""
        return self._consented(call, decision, await self._binding(call) if call.ctx.choices else None)

    def _consented(self, call: PreparedCall, decision: Decision, shown: str | None = None) -> Consent:
        return Consent(call, shown, self._sandbox.context(call.ctx, call.effects, decision), decision.reads_only)

    def _keep(self, rule: str | None, reply: ReplyPermission) -> None:
        """Keep a rule that is to hold longer than the session."""
        if rule is not None and reply.choice == "always" and (reply.span == "week" or reply.span == "project"):
            problem = self._services.keep_rule(rule, reply.span)
            if problem:
                self._recorder.emit(Notice(problem, "warning", "permissions"))

    def _bind(self, call: PreparedCall, preview: Preview) -> str:
        choices = hashlib.sha256(repr(call.ctx.choices).encode("utf-8", "surrogatepass")).hexdigest()
        return binding(call.tool.name, call.params, self._services.workspace.cwd, f"{preview.state}\n{choices}")

    async def _binding(self, call: PreparedCall) -> str:
        return self._bind(call, await call.tool.preview(call.params, call.ctx))

    def _tell_changed(self, call: PreparedCall) -> None:
        text = f"{call.title or call.tool.name} changed after it was shown; asking again."
        self._recorder.emit(Notice(text, "warning", "permissions"))

    def _place(self, call: PreparedCall, decision: Decision) -> tuple[str, ...]:
        """Where a command would run, and how long it is."""
        command = call.effects.command
        if command is None:
            return ()
        if self._sandbox.context(call.ctx, call.effects, decision).sandbox is not None:
            place = "runs in the sandbox"
        else:
            place = OUTSIDE if self._services.sandbox.state.level != "off" else "runs without a sandbox"
        return (place, f"{len(command.encode('utf-8', 'surrogatepass')):,} bytes")

    def _uncovered(self, call: PreparedCall) -> tuple[str, ...]:
        """Said beforehand: what could not be taken back."""
        checkpoints = self._services.checkpoints
        warning = checkpoints.warning(call.effects) if checkpoints is not None else ""
        return (warning,) if warning else ()


OUTSIDE = "runs outside of the sandbox"


def _covers(answer: _Answer, decision: Decision) -> bool:
    """Whether a yes that came with a change holds for the changed call as it is decided now. Other arguments may be
    something that always has to be asked, which the user has not been told."""
    if answer.reply.choice not in ("once", "always"):
        return False
    return answer.reply.arguments is None or (decision.outcome == "ask" and decision.offer is not None)
