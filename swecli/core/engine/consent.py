"""Approval of a call: decision, question, amendment, and binding to what was shown."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Generator, Iterable, Sequence
from difflib import unified_diff
from typing import TypeVar

from msgspec import Struct, structs
from msgspec.structs import replace

from swecli.core.engine.companion import Companions
from swecli.core.engine.decisions import Decisions
from swecli.core.engine.prepared_call import PreparedCall, Rejected
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Permissions, Workspace
from swecli.core.engine.settings import Settings
from swecli.core.permissions.rules import read_rules
from swecli.core.permissions.types import SANDBOXED, Decision, Effects
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TextBlock
from swecli.core.protocol.commands import Answer, ReplyPermission
from swecli.core.protocol.events import (
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    RuleApplied,
    SandboxChanged,
)
from swecli.core.protocol.request_events import PERMISSION_CHOICES, EditedText, Hunk, Question, RefusedEdit, hunk_texts
from swecli.core.tools.base import (
    Choice,
    Preview,
    ToolContext,
    ToolError,
    ToolOutcome,
    binding,
)
from swecli.core.tools.bounding import bound_result
from swecli.core.tools.edit_file import OutdatedChoice


class AskingOrder:
    """Order of questions: a call asks once every earlier call has asked or will not ask, without waiting for
    answers."""

    def __init__(self) -> None:
        self._ahead: dict[str, asyncio.Future[None]] = {}
        """Calls that may still ask, in order."""

    def begin(self, items: Iterable[str]) -> None:
        """Announce calls that are about to run, in this order."""
        for item in items:
            self._ahead[item] = asyncio.get_running_loop().create_future()

    async def turn(self, item: str) -> None:
        """Wait until this call may ask; returns at once if it was not announced or has already asked."""
        if item not in self._ahead:
            return
        for other in tuple(self._ahead):
            if other == item:
                return
            future = self._ahead.get(other)
            if future is not None:
                await asyncio.wait((future,))

    def passed(self, item: str) -> None:
        """Mark this call as having asked, or as not going to ask."""
        future = self._ahead.pop(item, None)
        if future is not None and not future.done():
            future.set_result(None)


Answers = tuple[tuple[str, ...], ...]
T = TypeVar("T")


class Requests:
    """Open permission requests and questions. The first answer counts; answers to unknown or settled ids are
    ignored. The permission requests are those of all agents: ids differ between them."""

    def __init__(self, recorder: Recorder, outer: Requests | None = None) -> None:
        """``outer`` has the requests of the session around this one, in which the model's questions are dismissed."""
        self._recorder = recorder
        self._may_ask = outer is None
        self._permissions: dict[str, asyncio.Future[ReplyPermission | Decision]]
        self._permissions = {} if outer is None else outer._permissions
        self._deciding: dict[str, Callable[[], Decision]] = {} if outer is None else outer._deciding
        """Current decision on each open request."""
        self._questions: dict[str, asyncio.Future[Answer]] = {}
        self.order = AskingOrder()
        """Asking order of the running calls."""

    def new_id(self, prefix: str) -> str:
        return f"{prefix}{self._recorder.state.seq + 1}"

    async def permission(
        self, asked: PermissionRequested, decide: Callable[[], Decision] | None = None
    ) -> ReplyPermission | None:
        """Ask and wait. Cancelled while waiting, the request is settled as cancelled. "Always" becomes "once" if no
        rule was offered, or if it was offered for other arguments. None: according to ``decide`` the call no longer
        needs a question."""
        future: asyncio.Future[ReplyPermission | Decision] = asyncio.get_running_loop().create_future()
        self._permissions[asked.request] = future
        if decide is not None:
            self._deciding[asked.request] = decide
        self._recorder.emit(asked)
        self.order.passed(asked.item)
        settled = False
        try:
            reply = await future
            if isinstance(reply, Decision):
                choice = "once" if reply.outcome == "allow" else "reject"
                self._recorder.emit(PermissionResolved(asked.request, choice, "engine", reply.reason))
                settled = True
                return None
            if reply.choice not in PERMISSION_CHOICES:  # built by a program that was not type-checked
                text = f"The reply {reply.choice!r} to a permission request is unknown; it counts as reject"
                self._recorder.emit(Notice(text, "warning", "permissions"))
                reply = structs.replace(reply, choice="reject")
            if reply.choice == "always" and (asked.rule is None or reply.arguments is not None):
                reply = structs.replace(reply, choice="once")
            self._recorder.emit(
                PermissionResolved(
                    asked.request,
                    reply.choice,
                    reply.by,
                    reply.note,
                    reply.span,
                    reply.arguments,
                    reply.hunks,
                    reply.texts,
                )
            )
            settled = True
            return reply
        finally:
            del self._permissions[asked.request]
            self._deciding.pop(asked.request, None)
            if not settled:
                self._recorder.emit(PermissionResolved(asked.request, "cancelled", "engine"))

    async def ask(self, item: str, questions: Sequence[Question]) -> Answers | None:
        """Ask questions and wait; an empty tuple if they were dismissed, None if no user is there to answer."""
        if not self._may_ask:
            return None
        await self.order.turn(item)
        request = self.new_id("q")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[request] = future
        self._recorder.emit(QuestionAsked(request, item, tuple(questions)))
        self.order.passed(item)
        settled = False
        try:
            answer = await future
            self._recorder.emit(QuestionAnswered(request, answer.answers, answer.by))
            settled = True
            return answer.answers if answer.answers or answer.by == "user" else None
        finally:
            del self._questions[request]
            if not settled:
                self._recorder.emit(QuestionAnswered(request, (), "engine"))

    def reconsider(self) -> None:
        """Settle requests that a changed mode or changed rules now allow or refuse. The others stay open."""
        for request, decide in tuple(self._deciding.items()):
            decision = decide()
            if decision.outcome != "ask":
                _settle(self._permissions.get(request), decision)

    def reply(self, command: ReplyPermission) -> None:
        _settle(self._permissions.get(command.request), command)

    def answer(self, command: Answer) -> None:
        _settle(self._questions.get(command.request), command)


def _settle(future: asyncio.Future[T] | None, value: T) -> None:
    if future is not None and not future.done():
        future.set_result(value)


_MOST_SHOWN = 4_000
"""Bytes of a change that are shown to the model."""
_MOST_LINES = 120


def amended(call: PreparedCall, preview: Preview, reply: ReplyPermission) -> PreparedCall:
    """The call as changed by the reply; the same call if the reply changes nothing.

    Raises:
        ToolError: the reply does not fit the request; the message says why.
    """
    ways = (reply.arguments is not None, reply.hunks is not None, bool(reply.texts))
    if sum(ways) > 1:
        raise ToolError("A reply contains either arguments, hunks or texts.")
    if reply.arguments is not None:
        return call.with_arguments(reply.arguments)
    if reply.hunks is not None:
        return _with_hunks(call, preview, reply.hunks, reply.note)
    if reply.texts:
        return _with_texts(call, preview, reply.texts, reply.note)
    return call


def _with_hunks(call: PreparedCall, preview: Preview, numbers: Sequence[int], note: str) -> PreparedCall:
    accepted = tuple(sorted(set(numbers)))
    total = len(preview.hunks)
    if any(not 1 <= number <= total for number in accepted):
        raise ToolError(f"Choose among hunks 1 to {total}." if total else "This request has no hunks.")
    if len(accepted) == total:
        return call
    rejected = [hunk for number, hunk in enumerate(preview.hunks, 1) if number not in accepted]
    lines = [f"The user accepted {len(accepted)} of {total} changes. Rejected, so not in the file:"]
    for hunk in rejected:
        lines += _hunk_lines(preview.blocks, hunk)
    return call.with_choice(Choice(preview.state, accepted), _bounded(lines) + _word(note))


def _with_texts(call: PreparedCall, preview: Preview, texts: Sequence[EditedText], note: str) -> PreparedCall:
    lines = ["The user edited the proposed text. From your proposal to the written text:"]
    for one in texts:
        block = preview.blocks[one.block] if 0 <= one.block < len(preview.blocks) else None
        if not isinstance(block, DiffBlock) or block.new is None:
            raise ToolError(f"Block {one.block} has no editable text.")
        before, after = block.new.splitlines(), one.text.splitlines()
        lines += [line.rstrip("\n") for line in unified_diff(before, after, block.path, block.path, n=1, lineterm="")]
    if all(one.text == _text(preview.blocks[one.block]) for one in texts):
        return call
    return call.with_choice(Choice(preview.state, None, tuple(texts)), _bounded(lines) + _word(note))


def _text(block: DisplayBlock) -> str | None:
    return block.new if isinstance(block, DiffBlock) else None


def _hunk_lines(blocks: Sequence[DisplayBlock], hunk: Hunk) -> list[str]:
    block = blocks[hunk.block]
    if not isinstance(block, DiffBlock):
        return []
    removed, added = hunk_texts(block, hunk)
    return [
        f"{block.path}, line {hunk.old_start}:",
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
    ]


def _bounded(lines: Sequence[str]) -> str:
    return bound_result("\n".join(lines), _MOST_SHOWN, _MOST_LINES)


def _word(note: str) -> str:
    return f"\nThe user says: {note}" if note else ""


MOST_NAMED = 8
"""Paths that a notice names."""
MOST_MASKED = 12
"""Masked paths that the state names."""


CHECK_SECONDS = 1.0
"""Longest wait for a check of the sandbox that nothing depends on yet, in seconds."""


class SandboxWatch:
    """The session's view of the workspace's sandbox."""

    def __init__(self, workspace: Workspace, permissions: Permissions, settings: Settings, recorder: Recorder) -> None:
        self._sandbox = workspace.sandbox
        self._roots = workspace.roots
        self._permissions = permissions
        self._home = permissions.policy.home
        self._settings = settings
        self._recorder = recorder
        self._task: asyncio.Task[None] | None = None
        self._accepting: set[asyncio.Task[None]] = set()
        self._advised = False

    def advice(self, effects: Effects) -> str:
        """How to get a full sandbox, as a sentence, the first time that auto mode asks about a command for lack of one;
        otherwise empty."""
        wanted = effects.command is not None and self._recorder.state.mode == "auto" and not self._advised
        if not wanted or not self._sandbox.state.advice:
            return ""
        self._advised = True
        return self._sandbox.state.advice

    def start(self) -> None:
        """Start the check in the background."""
        self._task = asyncio.create_task(self._check())

    async def checked(self) -> None:
        """Wait for a running check, ``CHECK_SECONDS`` at most."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=CHECK_SECONDS)

    async def stop(self, *, last: bool) -> None:
        """Wait for background tasks, which hold open files. ``last``: no other session uses the sandbox, so that a
        check of a large workspace need not finish."""
        if last:
            self._sandbox.abandon()
        begun = {*self._accepting, *((self._task,) if self._task is not None else ())}
        if begun:
            await asyncio.wait(begun)

    async def ready(self, effects: Effects) -> None:
        """Make sure that the sandbox state is known before a decision on a command that depends on it."""
        wanted = self._recorder.state.mode == "auto" or self._sandbox.options.mode == "on" or self._hides_files()
        state = self._sandbox.state
        if effects.command is not None and wanted and (not state.checked or state.closable):
            await self._check()
        elif effects.command is not None:
            self.publish()

    def _hides_files(self) -> bool:
        """Whether rules keep files from being read, which the sandbox may hide from commands."""
        rules = (*self._permissions.rules(self._settings.now), *self._recorder.state.rules)
        policy = replace(self._permissions.policy, rules=rules)
        return bool(read_rules(policy, ()).rules)

    def publish(self) -> None:
        """Record the state if it is known and new."""
        state = self._sandbox.state
        if state.checked:
            body = SandboxChanged(
                state.level,
                state.layer,
                state.reason,
                state.uncovered,
                state.label,
                state.contains,
                *self._masked(),
            )
            if body != self._recorder.state.sandbox:
                self._recorder.emit(body)
        settled, self._sandbox.settled = self._sandbox.settled, ()
        if settled:
            more = f" and {len(settled) - MOST_NAMED} more" if len(settled) > MOST_NAMED else ""
            self._recorder.emit(
                Notice(
                    "swecli was killed while a sandboxed command ran. The command had written files that control other "
                    f"programs; swecli reverted {', '.join(settled[:MOST_NAMED])}{more} and kept copies in "
                    f"{self._sandbox.kept}.",
                    "warning",
                )
            )

    def _masked(self) -> tuple[tuple[str, ...], int]:
        """Some of what commands can't read, as shown, and the number of all."""
        paths = self._sandbox.masked if self._sandbox.state.level != "off" else ()
        roots = sorted(map(str, self._roots), key=len, reverse=True)

        def shown(path: str) -> tuple[bool, str]:
            for root in roots:
                if path.startswith(f"{root}/"):
                    return False, path[len(root) + 1 :]
            return True, f"~{path[len(self._home) :]}" if self._home and path.startswith(f"{self._home}/") else path

        return tuple(text for _, text in sorted(map(shown, paths))[:MOST_MASKED]), len(paths)

    def context(self, ctx: ToolContext, effects: Effects, decision: Decision) -> ToolContext:
        """Context for this call's command: in the sandbox if only that lets it run unasked, if it contains an approved
        one, or if the user wants every command there and did not approve this one outside."""
        wanted = self._sandbox.options.mode == "on" and not effects.outside
        inside = decision.contained or decision.containable or wanted
        if effects.command is None or not (inside or decision.masked):
            return ctx
        return replace(ctx, sandbox=self._sandbox, contained=decision.contained, masked=decision.masked and not inside)

    @contextlib.contextmanager
    def around(self, ctx: ToolContext, effects: Effects) -> Generator[None]:
        """Encloses a call, so that its writes outside the sandbox are not attributed to contained commands."""
        everything = effects.command is not None and (ctx.sandbox is None or ctx.masked)
        if not everything and (effects.command is not None or not effects.writes):
            yield
            return
        with self.announced(None if everything else effects.writes):
            yield

    @contextlib.contextmanager
    def announced(self, paths: Sequence[str] | None) -> Generator[None]:
        """Encloses writes with consent; None stands for any files."""
        self._sandbox.expect(paths)
        try:
            yield
        finally:
            task = asyncio.create_task(asyncio.to_thread(self._sandbox.accept, paths))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)

    async def _check(self) -> None:
        if self._sandbox.has_leftovers():
            await asyncio.to_thread(self._sandbox.settle)  # even where nothing will be contained
        await asyncio.to_thread(self._sandbox.check)
        self.publish()


class Consent(Struct, frozen=True):
    """Consent to a call. ``call`` may run, possibly changed by the user; ``shown`` is the binding of the approved
    display, None if no question was needed; ``ctx`` is the context to run it in. ``reads_only``: proven to change
    nothing."""

    call: PreparedCall
    shown: str | None
    ctx: ToolContext
    reads_only: bool = False


class _Answer(Struct, frozen=True):
    """A reply, with the call after and before its changes."""

    reply: ReplyPermission
    call: PreparedCall
    before: PreparedCall
    problem: str = ""
    """Reason why the change could not be made."""


class Consents:
    """Consent to the calls of one session."""

    def __init__(
        self,
        decisions: Decisions,
        permissions: Permissions,
        workspace: Workspace,
        recorder: Recorder,
        requests: Requests,
        sandbox: SandboxWatch,
        companions: Companions,
    ) -> None:
        self.decisions = decisions
        self._permissions = permissions
        self._workspace = workspace
        self._recorder = recorder
        self.requests = requests
        self.sandbox = sandbox
        self.companions = companions

    async def obtain(self, call: PreparedCall, before: Sequence[asyncio.Task[None]] = ()) -> Consent:
        """Consent for the call. An edit that only the files as they are now keep from running unasked is judged once
        the calls of ``before``, which may change them, have ended.

        Raises:
            Rejected: by rule, mode or user.
            ToolError: the call can't succeed anyway.
        """
        answer: _Answer | None = None
        refused: RefusedEdit | None = None
        while True:
            await self.sandbox.ready(call.effects)
            try:
                decision = self._decided(call)
            except Rejected as error:
                if answer is None or answer.reply.arguments is None or answer.reply.choice != "edit":
                    raise
                refused = RefusedEdit(answer.reply.arguments, error.detail)
                call, answer = answer.before, None
                continue
            if decision.outcome == "allow":
                return await self._allowed(call, decision)
            await self.requests.order.turn(call.item)
            checkpoints = self._workspace.checkpoints
            if decision.loss is not None and checkpoints is not None:
                await checkpoints.ready()  # once files are copied, /undo restores what they lose
            if decision.for_now and before:
                await asyncio.wait(before)
            preview = await call.tool.preview(call.params, call.ctx)
            counted = await self._counted(call, decision)
            decision = self.decisions.decide(call)  # the mode or the rules may have changed meanwhile
            if decision.git_knows and counted.reads_only:
                decision = counted
            if decision.outcome == "allow":
                return await self._allowed(call, decision)
            decision = counted if counted.outcome == decision.outcome else decision
            shown = self._bind(call, preview.state)
            if preview.unchanged and self.decisions.decide(call.as_look()).outcome == "allow":
                return self._consented(call, decision, shown)
            if answer is not None and _covers(answer, decision):
                return self._consented(call, decision, shown)
            answer = await self._asked(call, preview, decision, shown, refused)
            refused = None
            if answer is not None and answer.problem and answer.reply.arguments is not None:
                refused = RefusedEdit(answer.reply.arguments, answer.problem)
            if answer is not None and answer.call is call and answer.reply.choice != "edit":
                return self._consented(call, decision, shown)
            call = answer.call if answer is not None else call.as_proposed()

    async def stands(self, consent: Consent) -> bool:
        """Whether a call that was allowed without a question still is, now that the calls before it have run."""
        if consent.shown is not None:
            return True
        call, decision = consent.call, self.decisions.decide(consent.call)
        if decision.outcome == "ask" and decision.git_knows:
            decision = await self._counted(call, decision)
        ctx = self.sandbox.context(call.ctx, call.effects, decision)
        same = (ctx.contained, ctx.masked) == (consent.ctx.contained, consent.ctx.masked)
        same &= decision.reads_only == consent.reads_only
        return decision.outcome == "allow" and same

    async def holds(self, consent: Consent) -> bool:
        """Whether the call about to run is the one that was approved; a notice reports a difference."""
        call = consent.call
        if consent.shown is None:
            return True
        try:
            state = await call.tool.target_state(call.params, call.ctx)
            if state is not None and self._bind(call, state) == consent.shown:
                return True
            if await self._binding(call) == consent.shown:
                return True
        except OutdatedChoice:
            pass
        self._report_changed(call)
        return False

    async def outside(self, call: PreparedCall, outcome: ToolOutcome) -> tuple[Consent | None, ToolOutcome]:
        """Ask whether a command that the sandbox stopped may run outside it. A refusal is reported to the model."""
        if not outcome.blocked or not self._workspace.sandbox.options.ask_outside:
            return None, outcome
        declined = "The user declined to run it unsandboxed."
        try:
            await self.companions.before_asking(call, outcome.blocked)
        except Rejected as rejected:
            return None, replace(outcome, text=f"{outcome.text}\n{declined} {rejected}")
        preview = await call.tool.preview(call.params, call.ctx)
        shown = self._bind(call, preview.state)
        advice = self.sandbox.advice(call.effects)
        asked = PermissionRequested(
            self.requests.new_id("p"),
            call.item,
            call.tool.name,
            call.title,
            blocks=outcome.blocks or preview.blocks,
            reason=f"The sandbox probably blocked this: {outcome.blocked}. Run it again unsandboxed? {advice}".rstrip(),
            binding=shown,
            facts=(OUTSIDE, *preview.facts),
            warnings=self._uncovered(call),
        )
        reply = await self.requests.permission(asked)
        assert reply is not None  # only the user settles this question
        if reply.choice in ("once", "always") and reply.arguments is None:
            return Consent(call, shown, call.ctx), outcome
        word = f" The user says: {reply.note}" if reply.note else ""
        return None, replace(outcome, text=f"{outcome.text}\n{declined}{word}")

    async def _counted(self, call: PreparedCall, decision: Decision) -> Decision:
        """The decision with what git knows: what a dangerous command would destroy, or which files a diff would show.
        Asks git in a thread, because that takes time in a large repository."""
        if not decision.danger and not decision.git_knows:
            return decision
        return await asyncio.to_thread(self.decisions.decide, call, counted=True)

    def _decided(self, call: PreparedCall) -> Decision:
        decision = self.decisions.decide(call)
        if (rule := decision.rule) is not None:
            self._recorder.emit(RuleApplied(call.item, rule.effect, rule.text, rule.scope, rule.origin))
        if decision.outcome == "deny":
            raise Rejected(call.with_note(f"{NOT_ALLOWED}{decision.reason}"), decision.reason)
        return decision

    async def _asked(
        self, call: PreparedCall, preview: Preview, decision: Decision, shown: str, refused: RefusedEdit | None
    ) -> _Answer | None:
        """The answer that allows the call to continue; None if the call has to be decided or asked about again.

        Raises:
            Rejected: by the user.
        """
        asked_about = await self.companions.before_asking(call, decision.reason)
        danger, warnings = self._danger(call, decision)
        hooked = tuple(text for text in (call.must_ask, *asked_about) if text and text != decision.reason)
        advice = self.sandbox.advice(call.effects)
        asked = PermissionRequested(
            self.requests.new_id("p"),
            call.item,
            call.tool.name,
            call.title,
            blocks=preview.blocks or (TextBlock(call.title),),
            reason=f"{decision.reason} {advice}".rstrip(),
            binding=shown,
            rule=decision.offer,
            evidence=decision.evidence,
            hunks=preview.hunks,
            facts=(*self._place(call, decision), *preview.facts),
            warnings=(*((f"Your edit was refused: {refused.reason}",) if refused else ()), *hooked, *warnings),
            arguments=None if preview.hunks else call.params.given(),
            refused=refused,
            rules=decision.offers,
            rule_note=decision.offer_note,
            danger=danger,
            acceptable=bool(call.effects.writes) and self.decisions.decide(call, "accept-edits").outcome == "allow",
        )
        reply = await self.requests.permission(asked, lambda: self.decisions.decide(call))
        if reply is None:
            return None
        self._keep(decision.offers, reply)
        if reply.choice == "always":
            self.requests.reconsider()
        if reply.choice == "reject" and reply.by == "headless":
            text = call.with_note(f"{UNATTENDED} {reply.note}".strip())
            raise Rejected(text, "no user to ask")
        if reply.choice == "reject" or (reply.hunks is not None and not reply.hunks):
            text = f"{REJECTED}; nothing was done.{f'{_SAYS}{reply.note}' if reply.note else ''}"
            raise Rejected(call.with_note(text), f"rejected: {reply.note}" if reply.note else "rejected")
        try:
            changed = amended(call, preview, reply)
            if changed is call:
                return _Answer(reply, call, call)
            if changed.ctx.choices and await self._binding(call) != shown:
                self._report_changed(call)
                return None
            await changed.tool.preview(changed.params, changed.ctx)
        except (ToolError, OSError, ValueError, RuntimeError) as error:
            self._recorder.emit(Notice(f"{error} The call is unchanged.", "warning", "permissions"))
            return _Answer(structs.replace(reply, choice="edit"), call, call, str(error))
        return _Answer(reply, changed, call)

    async def _allowed(self, call: PreparedCall, decision: Decision) -> Consent:
        """Consent without a question, still bound to the user's selection of changes."""
        return self._consented(call, decision, await self._binding(call) if call.ctx.choices else None)

    def _consented(self, call: PreparedCall, decision: Decision, shown: str | None = None) -> Consent:
        return Consent(call, shown, self.sandbox.context(call.ctx, call.effects, decision), decision.reads_only)

    def _keep(self, rules: Sequence[str], reply: ReplyPermission) -> None:
        if reply.choice == "always" and (reply.span == "week" or reply.span == "project"):
            for rule in rules:
                if rule == SANDBOXED:  # for the session only: a sandbox may be missing in the next one
                    continue
                problem = self._permissions.keep_rule(rule, reply.span)
                if problem:
                    self._recorder.emit(Notice(problem, "warning", "permissions"))

    def _bind(self, call: PreparedCall, state: str) -> str:
        choices = hashlib.sha256(repr(call.ctx.choices).encode("utf-8", "surrogatepass")).hexdigest()
        return binding(call.tool.name, call.params, self._workspace.cwd, f"{state}\n{choices}")

    async def _binding(self, call: PreparedCall) -> str:
        return self._bind(call, (await call.tool.preview(call.params, call.ctx)).state)

    def _report_changed(self, call: PreparedCall) -> None:
        text = f"{call.title or call.tool.name} changed after it was shown; asking again."
        self._recorder.emit(Notice(text, "warning", "permissions"))

    def _place(self, call: PreparedCall, decision: Decision) -> tuple[str, ...]:
        command = call.effects.command
        if command is None:
            return ()
        if self.sandbox.context(call.ctx, call.effects, decision).sandbox is not None:
            place = IN_SANDBOX
        else:
            place = APPROVED_OUTSIDE if self._workspace.sandbox.state.level != "off" else OUTSIDE
        return (place,)

    def _danger(self, call: PreparedCall, decision: Decision) -> tuple[str, tuple[str, ...]]:
        """Possible losses and whether they can be undone, on one line, plus further warnings to show."""
        uncovered = self._uncovered(call)
        if not decision.danger:
            return "", () if decision.only_reads else uncovered
        loss, checkpoints = decision.loss, self._workspace.checkpoints
        if loss is not None and not decision.counted:
            lost = f"/undo can't restore {loss.beyond}" if loss.beyond else ""
            return "; ".join(filter(None, (loss.clause, decision.danger, lost, *uncovered))), ()
        if loss is not None:
            missing = (
                checkpoints.unrestorable(loss.paths, call.effects.command or "")
                if checkpoints is not None
                else "it: checkpoints are off"
            )
            line = loss.line(missing)
            return (line if decision.told else f"{decision.danger}; {line}"), ()
        return "; ".join((decision.danger, *uncovered)), ()

    def _uncovered(self, call: PreparedCall) -> tuple[str, ...]:
        """Changes that could not be undone, known in advance."""
        checkpoints = self._workspace.checkpoints
        warning = checkpoints.warning(call.effects) if checkpoints is not None else ""
        return (warning,) if warning else ()


IN_SANDBOX = "Runs in the sandbox."
OUTSIDE = "Not sandboxed."
APPROVED_OUTSIDE = "Runs outside the sandbox once you approve it."
"""Shown if a sandbox is in use but does not contain this command."""
NOT_ALLOWED = "Not allowed: "
"""Prefix of the reason why a rule or mode refuses a call."""
REJECTED = "The user rejected this call"
UNATTENDED = "Not allowed; nothing was done."
_SAYS = " The user says: "


def rejection_note(result: str) -> str | None:
    """The user's note with a rejection, taken from the call's result; None if the user did not reject the call."""
    return result.partition(_SAYS)[2] if result.startswith(REJECTED) else None


def unattended(result: str) -> bool:
    """Whether the call with this result was refused because no user was there to ask."""
    return result.startswith(UNATTENDED)


def _covers(answer: _Answer, decision: Decision) -> bool:
    """Whether an approval with a change covers the changed call under the current decision. Changed arguments may
    require a question of their own that the user has not seen."""
    if answer.reply.choice not in ("once", "always"):
        return False
    return answer.reply.arguments is None or (decision.outcome == "ask" and bool(decision.offers))
