"""The user's hooks in a session: fires each event with its payload and types the hooks' decisions.

Without hooks nothing is imported, started or recorded. Hooks tighten and never loosen: "allow" answers no question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from swecli.core.context_management.compaction.options import (
    CompactContext,
    CompactDecision,
    CompactionOptions,
    CompactResult,
)
from swecli.core.engine.companion import CallCompanion, EndReason, Refused, Step, TurnStopped
from swecli.core.engine.prepared_call import PreparedCall, Rejected, short_line
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Workspace
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import Command, Interrupt
from swecli.core.protocol.events import (
    Event,
    HookRan,
    HooksRunning,
    ItemCompleted,
    ItemStarted,
    Notice,
    PermissionRequested,
    QuestionAsked,
    TurnEnded,
)
from swecli.core.protocol.messages import Message, ToolResultPart
from swecli.core.tools.base import ToolError, ToolOutcome
from swecli.figures import cut

if TYPE_CHECKING:
    from swecli.core.hooks.answer import Verdict
    from swecli.core.hooks.hook import Hook, HookEvent
    from swecli.core.hooks.runner import HookRecord, HookRun, Hooks
    from swecli.core.hooks.translation import ToolUse
    from swecli.core.permissions.types import Policy
    from swecli.features.hooks.transcript_file import TranscriptFile

CONTINUATIONS = 5
"""How many times in a row a Stop hook may keep the model from ending its turn."""
NOTICE_AFTER = 0.5
"""Seconds after which the screen names the running hooks."""
MOST_SHOWN = 500
"""Most characters of a line about a hook."""
END_SECONDS = 2.0
"""Longest run time of SessionEnd hooks, because the user is waiting for the program to exit."""
IDLE_SECONDS = 60.0
"""Seconds without a message after a turn until the Notification hooks report that swecli is waiting."""

Allow = Callable[["Hook"], "Hook"]
"""Remembers the user's approval of a hook in its current form and returns it approved. Blocks on the disk; raises
OSError if it can't be stored."""
StartSource = Literal["startup", "resume", "compact"]


def named(by: str) -> str:
    """A hook for the user: by its name, if it is a named program."""
    return f"the hook {by}" if by and " " not in by else "a hook"


_MAIN_ONLY: frozenset[HookEvent] = frozenset(
    ("SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "Notification", "SubagentStart", "SubagentStop")
)
"""Events that do not fire in a subagent's session."""


class SessionHooks(CallCompanion):
    """Hooks of one session; with ``inner``, of a subagent's, in which only call and compaction hooks run."""

    watches = (TurnEnded, QuestionAsked, PermissionRequested)

    def __init__(
        self,
        hooks: Hooks,
        allow: Allow,
        workspace: Workspace,
        policy: Policy,
        recorder: Recorder,
        *,
        inner: bool = False,
    ) -> None:
        self._inner = inner
        self._allow = allow
        self._workspace = workspace
        self._policy = policy
        self._recorder = recorder
        self._hooks = hooks
        self._starting: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._beside: set[asyncio.Task[Verdict]] = set()
        """Background tasks."""
        self._contexts: list[tuple[str, str]] = []
        """Texts not yet passed to the model, by event."""
        self._stopped = ""
        self._continued = 0
        self._told = 0
        """Number of waits for hooks that were reported to the user."""
        self._trigger: Literal["manual", "auto"] = "auto"
        self._transcript: TranscriptFile | None = None
        if not inner:
            hooks.heard = self._background_ended

    # --- display ------------------------------------------------------------------------------------------

    @property
    def records(self) -> Sequence[HookRecord]:
        return self._hooks.records

    async def allow(self, record: HookRecord) -> str:
        """Approve a hook in its current form. Returns what went wrong, or an empty text."""
        try:
            record.hook = await asyncio.to_thread(self._allow, record.hook)
        except OSError as error:
            return f"Could not store your consent ({error.strerror or error}); the hook remains off."
        return ""

    def skip(self) -> bool:
        """Continue without the running hooks. False if none runs."""
        return self._hooks.skip()

    def listens(self, event: HookEvent) -> bool:
        if self._inner and event in _MAIN_ONLY:
            return False
        return bool(self._hooks.listening(event))

    def heard(self, command: Command) -> bool:
        return isinstance(command, Interrupt) and command.skip and self.skip()

    # --- the session --------------------------------------------------------------------------------------

    def start(self, *, resumed: bool) -> None:
        """Run SessionStart hooks; the first turn waits for them."""
        if self.listens("SessionStart"):
            self._starting = asyncio.create_task(self._started("resume" if resumed else "startup"))

    async def _started(self, source: StartSource) -> None:
        verdict = await self._fire("SessionStart", {"source": source})
        self._add_context("SessionStart", verdict.context)

    async def screen(self, text: str, *, first: bool) -> None:
        if first:
            await self._begin_turn()
        await self._submit(text)

    async def _begin_turn(self) -> None:
        self._stopped, self._continued = "", 0
        self._stop_waiting()
        if self._starting is not None:
            await asyncio.shield(self._starting)  # an interrupted turn leaves its context to the next one
            self._starting = None

    async def _submit(self, text: str) -> None:
        if not self.listens("UserPromptSubmit"):
            return
        verdict = await self._fire("UserPromptSubmit", {"prompt": text})
        if verdict.wish == "block" or verdict.stop:
            reason = verdict.reason or verdict.stop_reason or "it gives no reason"
            raise Refused(reason, named(verdict.by))
        self._add_context("UserPromptSubmit", verdict.context)

    async def before_request(self) -> None:
        """Add the hooks' texts to the conversation, each as an item of its own."""
        waiting, self._contexts = self._contexts, []
        for event, text in waiting:
            item = self._recorder.new_item("t")
            self._recorder.emit(ItemStarted(item, "attachment", "hook", event))
            part = ToolResultPart(item, "hook", f"[Added by the user's {event} hook]\n{text}")
            shown = (TextBlock(text, "dim"),)
            self._recorder.emit(ItemCompleted(item, "ok", (part,), shown, "added for the model"))

    async def after_step(self, step: Step) -> None:
        if self._stopped:
            raise TurnStopped("interrupted", f"stopped by a hook: {self._stopped}", "hook")

    async def stay(self, answer: Message) -> bool:
        """Run Stop hooks when the model is done. True if it has to continue; their reason is in the next request."""
        if not self.listens("Stop"):
            return False
        payload = {"stop_hook_active": self._continued > 0, "last_assistant_message": answer.text}
        verdict = await self._fire("Stop", payload)
        if verdict.stop or verdict.wish != "block":
            return False
        self._continued += 1
        if self._continued > CONTINUATIONS:
            text = f"A Stop hook kept the model from ending {CONTINUATIONS} times in a row; the turn ends now."
            self._recorder.emit(Notice(text, "warning", "hooks"))
            return False
        self._add_context("Stop", verdict.reason)
        return bool(verdict.reason)

    def watch(self, event: Event) -> None:
        """Notify when the user is wanted."""
        match event.body:
            case TurnEnded():
                self._begin_waiting()
            case QuestionAsked(questions=questions):
                self._notify("elicitation_dialog", questions[0].text if questions else "swecli asks a question")
            case PermissionRequested(tool=tool) if self.listens("Notification"):
                from swecli.core.hooks.translation import claude_name

                self._notify("permission_prompt", f"swecli needs your permission to use {claude_name(tool)}")
            case _:
                pass

    def _begin_waiting(self) -> None:
        """Start the timer for idle notifications."""
        if self.listens("Notification"):
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(IDLE_SECONDS, self._notify, "idle_prompt", "swecli is waiting for your input")

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _notify(self, kind: str, message: str) -> None:
        """Run Notification hooks in the background."""
        if self.listens("Notification"):
            payload = {"message": message, "title": "swecli", "notification_type": kind}
            task = asyncio.create_task(self._fire("Notification", payload))
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)

    async def close(self, reason: EndReason) -> None:
        """Run SessionEnd hooks."""
        self._stop_waiting()
        begun: set[asyncio.Task[Any]] = {*self._beside, *((self._starting,) if self._starting is not None else ())}
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        if not self._inner:
            await self._hooks.close()
        if self.listens("SessionEnd"):
            await self._fire("SessionEnd", {"reason": reason}, limit=END_SECONDS)
        if self._transcript is not None:
            await asyncio.to_thread(self._transcript.remove)

    # --- calls --------------------------------------------------------------------------------------------

    async def before_call(self, call: PreparedCall) -> PreparedCall:
        """Run PreToolUse hooks before the permission decision: they may change the call or have the user decide."""
        if not self.listens("PreToolUse") or not self._is_models(call):
            return call
        from swecli.core.hooks.translation import arguments_of

        use = _use_of(call)
        verdict = await self._fire_tool("PreToolUse", call.item, use)
        if verdict.stop:
            self._stopped = verdict.stop_reason or "a hook ended the turn"
        if verdict.stop or verdict.wish == "block":
            reason = self._stopped if verdict.stop else verdict.reason
            text = call.with_note(f"A PreToolUse hook of the user blocked this call; nothing was done. {reason}")
            raise Rejected(text, f"blocked by {named(verdict.by)}: {short_line(reason)}")
        if verdict.updated is not None:
            try:
                call = call.with_arguments(arguments_of(use, verdict.updated), "A PreToolUse hook of the user")
            except ToolError as error:
                text = f"A hook's updatedInput does not fit {call.tool.name}, so the call was not run. {error}"
                raise Rejected(call.with_note(text), "a hook's updatedInput does not fit") from None
        asked = (verdict.reason or "a hook asks you to decide") if verdict.wish == "ask" else ""
        return replace(call, must_ask=asked, told=verdict.context)

    def _is_models(self, call: PreparedCall) -> bool:
        """Whether the model made the call, rather than the user by attaching a file."""
        opened = self._recorder.ledger.open.get(call.item)
        return opened is None or opened.kind != "attachment"

    async def before_asking(self, call: PreparedCall, reason: str) -> str:
        """Run PermissionRequest hooks. Returns those that reached no verdict."""
        if not self.listens("PermissionRequest"):
            return ""
        verdict = await self._fire_tool("PermissionRequest", call.item, _use_of(call), reason)
        if verdict.stop:
            self._stopped = verdict.stop_reason or "a hook ended the turn"
        if verdict.stop or verdict.wish == "block":
            reason = verdict.reason or verdict.stop_reason or "a hook refused this call"
            text = f"A PermissionRequest hook of the user refused this call; nothing was done. {reason}"
            why = " ".join(reason.split())
            raise Rejected(call.with_note(text), f"refused by {named(verdict.by)}: {why[:100]}")
        return verdict.reason if verdict.wish == "ask" else ""

    async def after_call(self, call: PreparedCall, outcome: ToolOutcome) -> ToolOutcome:
        """Add what the hooks said before the call, and run those after it, which may replace the output."""
        added, output = call.told, None
        if self.listens("PostToolUseFailure" if outcome.is_error else "PostToolUse") and self._is_models(call):
            more, output = await self._after_tool(
                call.item, _use_of(call), outcome.text, failed=outcome.is_error, exit_status=outcome.exit_status
            )
            added = "\n".join(filter(None, (added, more)))
        if output is not None:
            outcome = replace(outcome, text=output, images=(), documents=())
        return replace(outcome, added="\n".join(filter(None, (outcome.added, added))))

    async def _after_tool(
        self, item: str, use: ToolUse, text: str, *, failed: bool, exit_status: int | None
    ) -> tuple[str, str | None]:
        """Run hooks after a call. Returns additional text for the model, empty if none, and a replacement for the
        output."""
        from swecli.core.hooks.translation import response_of, views

        event: HookEvent = "PostToolUseFailure" if failed else "PostToolUse"
        shown = [
            (
                view.subjects,
                self._tool_payload(use, view.name, view.given)
                | {"tool_response": response_of(view, text, failed=failed, exit_status=exit_status)}
                | ({"error": text[:10_000]} if failed else {}),
            )
            for view in views(use)
        ]
        verdict = await self._run(event, shown, item, use=use)
        if verdict.stop:
            self._stopped = verdict.stop_reason or "a hook ended the turn"
        replaced = f"[The user's {event} hook replaced the output.]" if verdict.output is not None else ""
        blocked = f"[The user's {event} hook objects: {verdict.reason}]" if verdict.wish == "block" else ""
        context = f"[Added by the user's {event} hook]\n{verdict.context}" if verdict.context else ""
        return "\n".join(filter(None, (replaced, blocked, context))), verdict.output

    async def _fire_tool(self, event: HookEvent, item: str, use: ToolUse, reason: str = "") -> Verdict:
        from swecli.core.hooks.translation import views

        more = {"permission_reason": reason} if reason else {}
        shown = [(view.subjects, self._tool_payload(use, view.name, view.given) | more) for view in views(use)]
        return await self._run(event, shown, item, use=use)

    def _tool_payload(self, use: ToolUse, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "tool_name": name,
            "tool_input": dict(given),
            "tool_use_id": use.call_id,
            "swecli_tool_name": use.tool,
            "swecli_tool_input": dict(use.arguments),
        }

    # --- compaction ---------------------------------------------------------------------------------------

    def around_compaction(self, options: CompactionOptions) -> CompactionOptions:
        """The options with these hooks before and after a compaction, in addition to existing callbacks."""
        if not any(map(self.listens, ("PreCompact", "PostCompact", "SessionStart"))):
            return options

        async def before(context: CompactContext) -> CompactDecision:
            self._trigger = context.trigger
            own = await options.on_pre_compact(context) if options.on_pre_compact is not None else CompactDecision()
            if own.cancel or not self.listens("PreCompact"):
                return own
            asked = own.custom_instructions or context.custom_instructions or ""
            payload = {"trigger": context.trigger, "custom_instructions": asked}
            verdict = await self._fire("PreCompact", payload)
            if verdict.wish == "block" or verdict.stop:
                return replace(own, cancel=True, reason=verdict.reason or verdict.stop_reason)
            words = "\n".join(filter(None, (own.custom_instructions, verdict.context)))
            return replace(own, custom_instructions=words or None)

        async def after(result: CompactResult) -> None:
            if options.on_post_compact is not None:
                await options.on_post_compact(result)
            if self.listens("PostCompact"):
                payload = {"trigger": self._trigger, "compact_summary": result.summary}
                await self._fire("PostCompact", payload)
            if self.listens("SessionStart"):
                await self._started("compact")

        return replace(options, on_pre_compact=before, on_post_compact=after)

    # --- subagents ----------------------------------------------------------------------------------------

    async def agent_begins(self, agent: str, profile: str) -> str:
        """Run SubagentStart hooks."""
        if not self.listens("SubagentStart"):
            return ""
        return (await self._fire("SubagentStart", {"agent_id": agent, "agent_type": profile})).context

    async def agent_ends(self, agent: str, profile: str, answer: str, continued: int) -> str:
        """Run SubagentStop hooks."""
        if not self.listens("SubagentStop"):
            return ""
        payload = {
            "agent_id": agent,
            "agent_type": profile,
            "agent_transcript_path": "",
            "stop_hook_active": continued > 0,
            "last_assistant_message": answer,
        }
        verdict = await self._fire("SubagentStop", payload)
        goes_on = verdict.wish == "block" and not verdict.stop and continued < CONTINUATIONS
        return verdict.reason if goes_on else ""

    # --- firing -------------------------------------------------------------------------------------------

    def _common(self, event: HookEvent) -> dict[str, Any]:
        from swecli.core.hooks.translation import claude_mode

        return {
            "session_id": self._recorder.session,
            "transcript_path": self._transcript.path if self._transcript is not None else "",
            "cwd": str(self._workspace.cwd),
            "permission_mode": claude_mode(self._recorder.state.mode, yolo=self._policy.yolo),
            "hook_event_name": event,
        }

    async def _fire(self, event: HookEvent, payload: Mapping[str, Any], limit: float | None = None) -> Verdict:
        from swecli.core.hooks.translation import subjects_of

        return await self._run(event, [(subjects_of(event, payload), payload)], limit=limit)

    async def _run(
        self,
        event: HookEvent,
        shown: Sequence[tuple[tuple[str, ...], Mapping[str, Any]]],
        item: str = "",
        limit: float | None = None,
        use: ToolUse | None = None,
    ) -> Verdict:
        from swecli.core.hooks.answer import NOTHING, decide
        from swecli.core.protocol.hook_words import short_command

        if not self.listens(event):
            return NOTHING
        await self._write_transcript()  # before its path is passed on
        common = self._common(event)
        payloads = [(subjects, {**payload, **common}) for subjects, payload in shown]
        with self._report_running(self._hooks, event):
            runs = await self._hooks.run(event, payloads, limit, self._condition_matcher(use))
        for run in runs:
            self._recorder.emit(hook_ran(run, item))
        blocking = (run.hook.command for run in runs if run.answer.stop or run.answer.wish == "block")
        return replace(decide([run.answer for run in runs]), by=", ".join(dict.fromkeys(map(short_command, blocking))))

    def _condition_matcher(self, use: ToolUse | None) -> Callable[[str], bool]:
        """Matcher for hook conditions; conditions on calls never match without a call."""
        if use is None:
            return lambda condition: False
        from swecli.core.hooks.hook import holds

        roots = tuple(map(str, self._workspace.roots))
        return lambda condition: holds(condition, use.tool, use.effects, roots, self._policy.home)

    def _background_ended(self, run: HookRun) -> None:
        """Handle the end of a background hook: it decides nothing, and its text joins the next context."""
        answer = replace(run.answer, wish="none", reason="", stop=False, stop_reason="", updated=None, output=None)
        self._recorder.emit(hook_ran(replace(run, answer=answer)))
        wakes, told = run.hook.wakes, answer.context
        if wakes is not None and run.answer.wish == "block":
            told = "\n".join(filter(None, (wakes, run.answer.reason, told)))
        self._add_context(run.hook.event, told)

    @contextlib.contextmanager
    def _report_running(self, hooks: Hooks, event: HookEvent) -> Generator[None]:
        """Report the running hooks on screen if they take longer than a moment; Notification hooks are not waited
        for."""
        if event == "Notification":
            yield
            return
        number = 0

        def tell() -> None:
            nonlocal number
            commands = hooks.running(event)
            if commands:
                number = self._told = self._told + 1
                self._recorder.emit(HooksRunning(number, event, commands))

        timer = asyncio.get_running_loop().call_later(NOTICE_AFTER, tell)
        try:
            yield
        finally:
            timer.cancel()
            if number:
                self._recorder.emit(HooksRunning(number, event))

    def _add_context(self, event: str, text: str) -> None:
        if text:
            self._contexts.append((event, text))

    async def _write_transcript(self) -> None:
        folder = self._workspace.output_folder
        if folder is None or self._inner:
            return
        if self._transcript is None:
            from swecli.features.hooks.transcript_file import TranscriptFile

            path = os.path.join(folder.parent, "transcripts", f"{self._recorder.session}.jsonl")
            self._transcript = TranscriptFile(path, str(self._workspace.cwd))
        self._transcript.add(self._recorder)
        cover = self._hooks.place.cover
        with contextlib.suppress(OSError):  # hooks then get the path of a missing or outdated file
            await asyncio.to_thread(self._transcript.write, cover)


def _use_of(call: PreparedCall) -> ToolUse:
    """The call in the form for hooks."""
    from swecli.core.hooks.translation import ToolUse

    given, effects = call.params.given(), call.effects
    return ToolUse(call.part.call_id, call.tool.name, given, str(call.ctx.cwd), effects.writes, effects)


def hook_ran(run: HookRun, item: str = "") -> HookRan:
    """The run as an event."""
    answer, ran, hook = run.answer, run.ran, run.hook
    outcome: Literal["ok", "blocked", "asked", "context", "stopped", "problem", "skipped"] = "ok"
    text = answer.message
    if ran.ending == "skipped":
        outcome, text = "skipped", answer.problem
    elif answer.problem:
        outcome, text = "problem", answer.problem
    elif answer.stop:
        outcome, text = "stopped", answer.stop_reason or answer.message
    elif answer.wish == "block":
        outcome, text = "blocked", answer.message or answer.reason
    elif answer.wish == "ask":
        outcome, text = "asked", answer.message or answer.reason
    elif answer.context:
        outcome = "context"
    if answer.quiet and outcome in ("ok", "context"):
        text = ""
    text = cut(text, MOST_SHOWN)
    return HookRan(
        hook.event, hook.command, outcome, text, item, hook.matcher, hook.origin, ran.exit_status, ran.duration
    )
