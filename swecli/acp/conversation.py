"""One session as the editor sees it: prompts in, updates and questions out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, cast

from acp import RequestError
from acp.interfaces import Client
from acp.schema import (
    AcceptElicitationResponse,
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    ClientCapabilities,
    ConfigOptionUpdate,
    PromptResponse,
    SelectedPermissionOutcome,
    SessionInfoUpdate,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UnstructuredCommandInput,
    Usage,
)
from msgspec import Struct
from pydantic import ValidationError

from swecli.acp.asking import (
    NEVER,
    SKIP,
    chosen_label,
    form_answers,
    permission_call,
    permission_options,
    permission_reply,
    plan_options,
    plan_reply,
    question_call,
    question_form,
    question_options,
    refused_before,
)
from swecli.acp.options import Choices
from swecli.acp.prompts import Said
from swecli.acp.updates import Update, Updates, blocks_text, message, notice_text, tool_text
from swecli.acp.words import clean, one_line
from swecli.commands.base import CommandResult, run_command
from swecli.commands.registry import CommandCall, UnknownCommand, command_table, commands_of
from swecli.core.protocol.commands import Answer, CarryOut, Interrupt, Submit
from swecli.core.protocol.events import (
    ANSWER_CUT,
    MAIN,
    Event,
    ModeChanged,
    ModelChanged,
    ModelResponded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import Stop
from swecli.core.protocol.messages import Usage as Tokens
from swecli.core.sessions.titles import title_from

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

MOST_WAITING = 20
"""Prompts that may wait for the running one."""
SETTLE_SECONDS = 0.05
LOOK_SECONDS = 1.0
MOST_QUIET = 5
"""Idle checks without any event after which a turn counts as failed silently."""
CLOSE_SECONDS = 10.0
QUIET_SECONDS = 0.3
AUTH_REQUIRED, INTERNAL, INVALID_REQUEST, INVALID_PARAMS = -32000, -32603, -32600, -32602

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
_SCREENS = {
    "quit": "Close the thread in your editor; the conversation is stored.",
    "clear": "Start a new thread in your editor; this one is kept.",
}

_ASKING = (PermissionRequested, PermissionResolved, QuestionAsked, QuestionAnswered)


class _Turn(Struct):
    ended: asyncio.Future[TurnEnded]
    stop: Stop | None = None


class Editor(Struct):
    """The client: asks the user and shows the updates. ``withdraw`` cancels the question that the current task waits
    for."""

    client: Client
    capabilities: ClientCapabilities
    withdraw: Callable[[], None]
    log: Callable[[str], None]

    @property
    def forms(self) -> bool:
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.form is not None

    @property
    def terminals(self) -> bool:
        return (self.capabilities.field_meta or {}).get("terminal_output") is True


class _Prompt(Struct):
    cancelled: bool = False


class Conversation:
    """Follows the session from the beginning: replays the stored part first, unless ``replay`` is False."""

    def __init__(
        self, session: Session, editor: Editor, *, replay: bool = False, remarks: tuple[str, ...] = ()
    ) -> None:
        self.session = session
        self.id = session.view.session_id
        self._editor = editor
        self._replay = replay
        self._updates = Updates(session.view.cwd, terminals=editor.terminals)
        self._choices = Choices(session)
        self._lock = asyncio.Lock()
        self._prompts: list[_Prompt] = []
        self._turn: _Turn | None = None
        self._in_command = False
        self._aside: asyncio.Task[CommandResult] | None = None
        """A slash command that asks the model by itself."""
        self._held = [f"> {remark}\n\n" for remark in remarks]
        """Remarks for the next prompt, because the client shows nothing before it."""
        self._titled = session.view.totals.turns > 0
        self._refused: set[str] = set()
        """Rules that the user does not want to be asked about again in this session."""
        self._commands: list[AvailableCommand] = []
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._plan_question: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sent_seq = session.view.published_seq
        """Number of the newest event that was taken and sent; those before the subscription are not awaited."""
        self._caught_up = asyncio.Event()
        self._own = 0
        """Turns requested here that have not started yet: the client knows their messages."""
        self._known = asyncio.Event()
        """Set once the client knows the session; updates are sent from then on."""
        self._follower = self._begin(self._follow(session.subscribe(replay=True)))

    @property
    def busy(self) -> bool:
        return bool(self._prompts)

    async def caught_up(self) -> None:
        """Wait until the whole stored part has been sent."""
        caught = asyncio.ensure_future(self._caught_up.wait())
        await asyncio.wait((caught, self._follower), return_when=asyncio.FIRST_COMPLETED)
        caught.cancel()

    def known(self) -> None:
        """The client knows the session: send the commands, the models, and updates from now on."""

        async def tell() -> None:
            with suppress(ConnectionError):
                await self._tell_commands()
                self._known.set()
                if await self._choices.look():
                    await self.tell_options()

        self._begin(tell())

    async def close(self) -> None:
        self._known.set()
        for task in tuple(self._tasks):
            if task is not self._follower:
                task.cancel()
        await self.session.close()
        await asyncio.wait((self._follower,), timeout=CLOSE_SECONDS)
        self._follower.cancel()

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- events ---

    async def _follow(self, events: AsyncIterator[Event]) -> None:
        started = self.session.view.started_seq
        try:
            async for event in events:
                if event.seq >= started and not self._caught_up.is_set():
                    self._updates.replaying = False
                    self._caught_up.set()
                live = event.seq >= started
                if live:
                    await self._known.wait()
                self._updates.cost = self.session.view.totals.cost
                for update in self._updates.apply(event) if event.agent == MAIN else ():
                    if live or self._replay:
                        await self._tell(update)
                if live:
                    await self._react(event)
                self._sent_seq = max(self._sent_seq, event.seq)
        except ConnectionError:
            self._editor.log(f"session {self.id}: the client disconnected")

    async def _tell(self, update: Update | ConfigOptionUpdate | SessionInfoUpdate | AvailableCommandsUpdate) -> None:
        await self._editor.client.session_update(self.id, update)

    async def _react(self, event: Event) -> None:
        match event.body:
            case body if event.agent != MAIN and not isinstance(body, _ASKING):
                pass  # of subagents only their questions
            case TurnStarted():
                self._updates.echo, self._own = self._own == 0, max(0, self._own - 1)
            case ModelResponded(stop=stop) if self._turn is not None and event.agent == "main":
                self._turn.stop = stop
            case TurnEnded() as ended:
                if self._turn is not None and not self._turn.ended.done():
                    self._turn.ended.set_result(ended)
            case Notice() as notice:
                await self._notice(notice)
            case PermissionRequested() as request:
                self._asking[request.request] = self._begin(self._ask(request))
            case QuestionAsked() as asked:
                self._asking[asked.request] = self._begin(self._question(asked))
            case PermissionResolved(request=request) | QuestionAnswered(request=request):
                task = self._asking.pop(request, None)
                if task is not None:
                    task.cancel()
            case ModeChanged() | ModelChanged():
                await self.tell_options()
            case _:
                pass

    async def _notice(self, notice: Notice) -> None:
        self._editor.log(f"{notice.level}: {notice.line}")
        if notice.level == "info" and not self._in_command:
            return  # about keys of the screen
        text = notice_text(notice)
        if self._prompts:
            await self._tell(message(text))
        else:
            self._held.append(text)

    async def _tell_commands(self) -> None:
        """Send the client new slash commands."""
        offered = available_commands(self.session)
        if offered != self._commands:
            self._commands = offered
            update = AvailableCommandsUpdate(session_update="available_commands_update", available_commands=offered)
            await self._tell(update)

    async def tell_options(self) -> None:
        options = await self._choices.options()
        await self._tell(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    @property
    def choices(self) -> Choices:
        return self._choices

    # --- questions ---

    async def _ask(self, request: PermissionRequested) -> None:
        reply = refused_before(request, self._refused)
        if reply is not None:
            self.session.send(reply)
            return
        options = permission_options(request)
        chosen = await self._chosen(permission_call(request, self.session.view.cwd), options)
        if chosen == NEVER:
            self._refused.update(request.offered)
        self.session.send(permission_reply(request, chosen))

    async def _question(self, asked: QuestionAsked) -> None:
        if self._editor.forms:
            self.session.send(await self._form(asked))
            return
        answers: list[tuple[str, ...]] = []
        for question in asked.questions:
            label = None
            if question.options:
                chosen = await self._chosen(question_call(asked, question), question_options(question))
                label = chosen_label(question, chosen)
                if chosen == SKIP:
                    label = None
            if label is None:
                by = "user" if question.options else "headless"
                self.session.send(Answer(asked.request, (), by=by))
                return
            answers.append((label,))
        self.session.send(Answer(asked.request, tuple(answers)))

    async def _form(self, asked: QuestionAsked) -> Answer:
        words = "; ".join(question.text for question in asked.questions)
        try:
            response = await self._editor.client.create_elicitation(one_line(words), question_form(asked, self.id))
        except asyncio.CancelledError:
            self._take_back()
            raise
        except (RequestError, ConnectionError, ValidationError) as error:
            self._editor.log(f"session {self.id}: the client could not ask the user: {error}")
            return Answer(asked.request, (), by="headless")
        content = response.content if isinstance(response, AcceptElicitationResponse) else None
        return form_answers(asked, content)

    async def _chosen(self, call: Any, options: list[Any]) -> str | None:
        """The option that the user chose; None if they closed the question, or could not be asked."""
        try:
            response = await self._editor.client.request_permission(self.id, call, options)
        except asyncio.CancelledError:
            self._take_back()
            raise
        except (RequestError, ConnectionError, ValidationError) as error:
            self._editor.log(f"session {self.id}: the client could not ask the user: {error}")
            return None
        outcome = response.outcome
        return outcome.option_id if isinstance(outcome, SelectedPermissionOutcome) else None

    def _take_back(self) -> None:
        """Close the question of this task after it was settled otherwise. A cancelled prompt closes it anyway."""
        if not any(prompt.cancelled for prompt in self._prompts):
            self._editor.withdraw()

    # --- prompts ---

    def cancel(self) -> None:
        """End all prompts; everything said so far is kept."""
        for prompt in self._prompts:
            prompt.cancelled = True
        if self._prompts:
            self.session.send(Interrupt())
        for task in (self._plan_question, self._aside):
            if task is not None:
                task.cancel()

    async def prompt(self, said: Said) -> PromptResponse:
        """Carry out a prompt, after the earlier ones.

        Raises:
            RequestError: it could not be answered; the message is for the user.
        """
        if len(self._prompts) > MOST_WAITING:
            raise RequestError(INVALID_REQUEST, f"this session already has {MOST_WAITING} waiting prompts")
        prompt = _Prompt()
        self._prompts.append(prompt)
        try:
            async with self._lock:
                if prompt.cancelled:
                    return PromptResponse(stop_reason="cancelled")
                response = await self._carry_out(said, prompt)
                await self._tell_commands()
                return response
        finally:
            self._prompts.remove(prompt)

    async def _carry_out(self, parsed: Said, prompt: _Prompt) -> PromptResponse:
        remarks = [*self._held, *(f"> Not attached: {what}\n\n" for what in parsed.left_out)]
        self._held.clear()
        if isinstance(parsed.command, UnknownCommand):
            remarks.append(parsed.command.message)
        elif parsed.command is None and self.session.view.model is None:
            for text in remarks:  # they may say why
                await self._tell(message(text))
            raise no_model()
        if isinstance(parsed.command, CommandCall | UnknownCommand):
            for text in remarks:
                await self._tell(message(text))
            if isinstance(parsed.command, CommandCall):
                turn = await self._run(parsed.command)
                if turn.ended.done():
                    return await self._response(turn.ended.result(), turn.stop, prompt)
            return PromptResponse(stop_reason="cancelled" if prompt.cancelled else "end_turn")
        # Held remarks follow the submit, so that a cancel in between finds the turn.
        turn = self._open_turn(parsed.message)
        for text in remarks:
            await self._tell(message(text))
        await self._title(parsed.message.text)
        ended = await self._ended(turn)
        while not prompt.cancelled and ended.outcome == "done":
            go_on = await self._plan()
            if go_on is None:
                break
            turn = self._open_turn(go_on)
            ended = await self._ended(turn)
        return await self._response(ended, turn.stop, prompt)

    def _open_turn(self, command: Submit | CarryOut) -> _Turn:
        self._turn = turn = _Turn(asyncio.get_running_loop().create_future())
        self._own += 1
        self.session.send(command)
        return turn

    async def _ended(self, turn: _Turn) -> TurnEnded:
        seen, quiet = -1, 0
        while not turn.ended.done():
            await asyncio.wait((turn.ended, self._follower), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            view = self.session.view
            idle = not view.busy and seen == self._sent_seq == view.newest_seq
            quiet = quiet + 1 if idle else 0
            if not turn.ended.done() and (quiet >= MOST_QUIET or self._follower.done()):
                return TurnEnded("error", "the turn ended without a result; the log has details")
            seen = self._sent_seq
        return turn.ended.result()

    async def _response(self, ended: TurnEnded, stop: Stop | None, prompt: _Prompt) -> PromptResponse:
        usage = _usage(ended.usage)
        if prompt.cancelled or ended.outcome == "interrupted":
            if ended.reason and not prompt.cancelled:  # a hook, or the user's answer to a question
                await self._tell(message(f"\n\n> {ended.reason}"))
            return PromptResponse(stop_reason="cancelled", usage=usage)
        reason: StopReason = "end_turn"
        match ended.outcome:
            case "error":
                code = AUTH_REQUIRED if ended.error_kind == "auth" else INTERNAL
                raise RequestError(code, ended.reason or "the turn failed", {"kind": ended.error_kind or "error"})
            case "blocked":
                reason = "max_tokens"
            case "limit" if ended.error_kind == ANSWER_CUT:
                reason = "max_tokens"
            case "limit":
                reason = "max_turn_requests"
            case _ if stop is not None and stop.kind in ("refusal", "content_filter"):
                reason = "refusal"
            case _:
                pass
        if ended.reason:
            await self._tell(message(f"\n\n> {ended.reason}"))
        return PromptResponse(stop_reason=reason, usage=usage)

    async def _plan(self) -> CarryOut | None:
        """Ask whether to carry out a proposed plan."""
        plan = self.session.view.plan
        if self.session.view.mode != "plan" or plan is None:
            return None
        where = f" You can edit it in {plan.path} before you approve it." if plan.path else ""
        call = ToolCallStart(
            session_update="tool_call",
            tool_call_id=f"plan-{self._sent_seq}",
            title="Go ahead with this plan?",
            kind="switch_mode",
            status="pending",
            content=[tool_text(f"The plan is in the answer above.{where} Nothing changes until you approve it.")],
        )
        await self._tell(call)
        asked = ToolCallUpdate(tool_call_id=call.tool_call_id, title=call.title, kind=call.kind, content=call.content)
        self._plan_question = asking = self._begin(self._chosen(asked, plan_options()))
        await asyncio.wait((asking,))
        self._plan_question = None
        chosen = None if asking.cancelled() else cast("str | None", asking.result())
        go_on = plan_reply(chosen)
        status = "completed" if go_on is not None else "failed"
        await self._tell(
            ToolCallProgress(session_update="tool_call_update", tool_call_id=call.tool_call_id, status=status)
        )
        return go_on

    async def _title(self, text: str) -> None:
        if not self._titled:
            self._titled = True
            await self._tell(
                SessionInfoUpdate(session_update="session_info_update", title=title_from(clean(text)) or None)
            )

    # --- slash commands ---

    async def _run(self, call: CommandCall) -> _Turn:
        """Run a command. If it begins a turn, returns the completed turn."""
        self._turn = turn = _Turn(asyncio.get_running_loop().create_future())
        if call.command.name == "help":
            await self._tell(message(blocks_text((command_table(commands_of(self.session)),))))
            return turn
        self._in_command = True
        try:
            await self._show(call)
        finally:
            self._in_command = False
        return turn

    async def _show(self, call: CommandCall) -> None:
        """Run a command, and show its result and what it begins."""
        result = await self._result(call)
        blocks = (*result.blocks, *result.instead)
        text = blocks_text(blocks) or _SCREENS.get(result.screen or "", "")
        if result.clip is not None:
            text = text or "Copy it in your editor; swecli has no access to its clipboard."
        if not text and result.screen is not None:
            text = f"/{call.command.name} needs an argument here, or swecli's terminal interface."
        if text:
            await self._tell(message(text))
        if result.offer is not None and result.offer.unattended:
            self.session.send(result.offer.command)
        await self._settled()

    async def _result(self, call: CommandCall) -> CommandResult:
        """Run a command. One that asks the model has no result if it is cancelled."""
        work = run_command(call.command, self.session, call.arguments)
        if not call.command.asks_model:
            return await work
        self._aside = task = self._begin(work)
        try:
            await asyncio.wait((task,))
        finally:
            self._aside = None
            task.cancel()
        return CommandResult() if task.cancelled() else task.result()

    async def _settled(self) -> None:
        """Wait until the session is idle, and all its updates have been sent."""
        view, seen = self.session.view, -1
        while (view.busy or not seen == self._sent_seq == view.newest_seq) and not self._follower.done():
            seen = self._sent_seq
            await asyncio.wait((self._follower,), timeout=SETTLE_SECONDS)


WITH_SCREEN = frozenset(
    (
        "clear",
        "config",
        "copy",
        "find",
        "help",
        "keys",
        "login",
        "logout",
        "permissions",
        "quit",
        "resume",
        "theme",
        "vim",
    )
)
"""Commands to hide: they need swecli's own screen, or the editor has its own equivalent."""


def available_commands(session: Session) -> list[AvailableCommand]:
    """The slash commands that work in an editor, unlisted ones too: it may refuse a name that was not announced."""
    return [
        AvailableCommand(
            name=clean(each.name),
            description=clean(each.summary),
            input=AvailableCommandInput(root=UnstructuredCommandInput(hint=clean(each.arguments)))
            if each.arguments
            else None,
        )
        for each in commands_of(session)
        if each.name not in WITH_SCREEN
    ]


def no_model(why: str = "") -> RequestError:
    return RequestError(
        AUTH_REQUIRED,
        f"{why or 'No model is connected.'} For this agent, set a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, "
        "GEMINI_API_KEY) in the editor's settings or store one with `swecli login PROVIDER`; -m selects a model.",
    )


async def why_no_model(session: Session) -> str:
    """The session's reason for a start without a model."""
    events, reason = session.subscribe(replay=True), ""
    with suppress(TimeoutError):
        while (event := await asyncio.wait_for(anext(events, None), QUIET_SECONDS)) is not None:
            if isinstance(event.body, Notice) and event.body.level != "info":
                reason = event.body.line
    return reason


def _usage(usage: Tokens | None) -> Usage | None:
    if usage is None or not usage.total:
        return None
    return Usage(
        total_tokens=usage.total,
        input_tokens=usage.prompt,
        output_tokens=usage.completion,
        thought_tokens=usage.reasoning,
        cached_read_tokens=usage.cache_read,
        cached_write_tokens=usage.cache_write,
    )
