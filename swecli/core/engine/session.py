"""A session: one writer that takes commands, runs one piece of work at a time, and publishes events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from swecli.core.checkpoints.restore import Target
from swecli.core.context_management.compaction.clearing import RuleReport
from swecli.core.context_management.compaction.plan import CompactionPlan, PlanDraft
from swecli.core.context_management.compaction.summary import Summary
from swecli.core.engine.attachments import words_of
from swecli.core.engine.building import session_parts
from swecli.core.engine.companion import Companions, EndReason
from swecli.core.engine.core import OwnSession
from swecli.core.engine.feature import Feature
from swecli.core.engine.inner import Parent, ParentLimits, Relay
from swecli.core.engine.invoked import NotInvoked, invocation_of, listed_commands
from swecli.core.engine.jobs import agent_jobs, run_shell
from swecli.core.engine.models import READY_SECONDS
from swecli.core.engine.notes import add_note
from swecli.core.engine.offered_tools import SourceSize
from swecli.core.engine.own_companions import companions_of
from swecli.core.engine.plan import ACCEPTED, go_ahead, todos_of
from swecli.core.engine.recorder import LogFactory, Recorder
from swecli.core.engine.reductions import Before
from swecli.core.engine.services import Mentionable, PromptTemplate, Services
from swecli.core.engine.session_view import SessionView
from swecli.core.engine.snapshots import recover
from swecli.core.engine.transcripts import agent_transcript, transcript_of
from swecli.core.engine.turn import Begun, Turn
from swecli.core.engine.work import Work, add_user_message, edit_queue, enqueue, take_first
from swecli.core.llm.types import AnswerFormat
from swecli.core.ports import Asker
from swecli.core.protocol.blocks import DisplayBlock, Todo
from swecli.core.protocol.commands import (
    Answer,
    ApplyPlan,
    Background,
    CancelItem,
    CarryOut,
    ChangeContext,
    Close,
    Command,
    Compact,
    EditQueue,
    Interrupt,
    Invoke,
    RedoCompaction,
    RedoFiles,
    ReplyPermission,
    RevokeRule,
    Rewind,
    RunShell,
    SetEffort,
    SetMode,
    SetModel,
    Steer,
    StopJob,
    Submit,
    UndoCompaction,
    UndoFiles,
    UndoRewind,
)
from swecli.core.protocol.events import (
    CHOSEN,
    MAIN,
    Event,
    ItemStarted,
    Mode,
    ModeChanged,
    Notice,
    NoticeLevel,
    PlanChanged,
    Queued,
    RuleRevoked,
    SessionStarted,
    TodosChanged,
    TurnStarted,
    UntrustedContent,
)
from swecli.core.tools.registry import ToolRegistry, small_schemas
from swecli.core.tools.run_command import RunCommand
from swecli.core.workspace.jobs import JobInfo
from swecli.own_files import REPLACED, replaced

if TYPE_CHECKING:
    from swecli.core.extensions.markdown_commands import Invocation
    from swecli.core.protocol.result import Kept


T = TypeVar("T")

BetweenTurns = (
    ApplyPlan
    | CarryOut
    | ChangeContext
    | Compact
    | RedoCompaction
    | RedoFiles
    | Rewind
    | RunShell
    | SetModel
    | UndoCompaction
    | UndoFiles
    | UndoRewind
)
_BUSY: dict[type, str] = {
    SetModel: "A turn is running; change the model when it ends.",
    Rewind: "A turn is running; rewind when it ends.",
    UndoRewind: "A turn is running; undo the rewind when it ends.",
}


class Session:
    """One conversation in one workspace. Create it inside a running event loop; ``send`` commands; read ``view`` and
    ``subscribe`` to events. ``files`` has its file changes with undo and redo, ``offers`` the models to choose from,
    ``prices`` what changes of the context would cost; ``questions`` asks a model beside the conversation,
    ``command_tools`` runs a tool for a slash command."""

    def __init__(
        self,
        session_id: str,
        services: Services,
        make_log: LogFactory,
        history: Sequence[Event] = (),
        *,
        features: Sequence[Feature] = (),
        parent: Parent | None = None,
        before: Before | None = None,
    ) -> None:
        """``before`` describes the events before ``history``, if that has only the newest. ``parent`` makes it a
        subagent's session, which leaves shared parts open when it ends."""
        first = parent.relay.first if parent is not None else (0, 0)
        self._services = services = replace(services, settings=services.settings.own())
        self._recorder = recorder = Recorder(session_id, history, make_log, services.time.clock, first, before)
        if parent is not None:
            recorder.turn = parent.relay.turn - 1  # its work belongs to the turn that started it
        self._companions = Companions()
        self._parent, self._features, self._environment, self._closed = parent, features, "", False
        self._continues = bool(history)
        self._work = Work(self._ended)
        self._settled = recorder.turn
        """The newest turn whose end was handled: other work, such as a command of the user, may end after it."""
        self._held = {waiting.id for waiting in recorder.state.queue}
        """Messages that a turn without success left waiting: the user decides about them."""
        self._refused: dict[str, str] = {}
        """Waiting commands and skills that could not be sent, with the reason."""
        self._counting: asyncio.Task[None] | None = None
        own = OwnSession(self._begin_inside, self.tell_model, self.follow_settings)
        parts = session_parts(services, recorder, self._work, self._companions, parent, own)
        self._core = core = parts.core
        self._requests, self._connection, self._context_parts = core.requests, core.connection, parts.context
        self._results, self._models, self._sandbox = parts.results, core.models, parts.sandbox
        self._notes, self._prompts, self._jobs = core.notes, core.prompts, parts.jobs
        self._offered, self._calls, self._plans = core.offered, parts.calls, parts.plans
        self._scheduler, self.command_tools, self.files = core.scheduler, parts.command_tools, parts.files
        self.offers, self.questions, self.rewinds = parts.offers, core.questions, parts.rewinds
        self.inspection, self.prices = parts.inspection, parts.prices
        self._closing = (
            parent.closing
            if parent is not None
            else (self.files.close, partial(asyncio.to_thread, services.workspace.sandbox.close))
        )
        services.settings.changed.append(self._follow)
        self.view = SessionView(core, self._work, self._jobs.jobs, self._plans)
        self._companions.take(companions_of(parts, features, parent))
        recorder.watchers.extend(self._companions.watching)

    def subscribe(self, *, replay: bool = False, turns: int | None = None) -> AsyncIterator[Event]:
        """All events from now on, in order; with ``replay`` preceded by the stored facts of the session, or of its
        newest ``turns``. Ends after the session is closed."""
        return self._recorder.subscribe(replay=replay, turns=turns)

    def start(self, model: str | None, environment: str) -> None:
        """Begin the session, or continue one with history after closing everything that a crash left open.

        ``environment`` is the model's information on date and place, given once per session.
        """
        resumed = self._continues
        self._environment = environment
        for body in recover(self._recorder.ledger, self._recorder.state):
            self._recorder.emit(body)
        name = model or self._recorder.state.model
        trouble = self._connection.connect(name) if name else None
        cwd, version = str(self._services.workspace.cwd), self._services.store.version
        mode = self._available(self._services.permissions.policy.mode)
        address = self._models.address
        commands = listed_commands(self._services.extension_files)
        self._recorder.emit(SessionStarted(cwd, name, mode, version, resumed, environment, address, commands))
        self._offered.adopt()
        for extension in self._services.extensions:
            extension.start(self)
        if self._services.extensions:
            self._counting = asyncio.create_task(self._count_arriving(bool(self._services.toolset.tools.pending)))
        if resumed:
            self._adopt_tools()
            self._context_parts.snapshots.resume()
            self._prompts.adopt()
            if (sent := self._recorder.cache.sent) is not None:
                self._services.toolset.context.resume_cache(sent, self._recorder.ledger, self._prompts.built_anew)
        self._companions.start(resumed=resumed)
        self._sandbox.publish()
        if self._services.workspace.sandbox_early or self._services.workspace.sandbox.has_leftovers():
            self._sandbox.start()
        if mode != self._services.permissions.policy.mode:
            self._refuse(self._services.permissions.policy.mode)
        if trouble is not None:
            self.notice(trouble, "error")
        elif name:
            self._models.start(name)

    def _adopt_tools(self) -> None:
        """Offer the model its earlier tools, because they are the beginning of every request."""
        prefix, tools, offered = self._recorder.cache.prefix, self._services.toolset.tools, self._recorder.state.offered
        if prefix is not None and tools.restore([part.name for part in prefix.tools if part.name not in offered]):
            self._services.toolset.context.adopt_tools(tools.schemas(), small_schemas(tools))

    def companion(self, kind: type[T]) -> T | None:
        """The session's companion of this class, if any."""
        return self._companions.find(kind)

    def extension(self, kind: type[T]) -> T | None:
        """The session's extension of this class, if any."""
        return next((one for one in self._services.extensions if isinstance(one, kind)), None)

    @property
    def tools(self) -> ToolRegistry:
        return self._services.toolset.tools

    def instruct(self, source: str, text: str) -> None:
        """Keep the instructions of a source in the conversation from the next request on; empty for none."""
        self._offered.instruct(source, text)

    def offer(
        self, source: str, prompts: Sequence[PromptTemplate] = (), mentionables: Sequence[Mentionable] = ()
    ) -> None:
        """Replace the prompts and mentionables of a source."""
        self._offered.offer(source, prompts, mentionables)

    @property
    def prompts(self) -> tuple[PromptTemplate, ...]:
        return self._offered.prompts

    @property
    def mentionables(self) -> tuple[Mentionable, ...]:
        """Mentionables besides files."""
        return self._offered.mentionables

    @property
    def extended(self) -> bool:
        return bool(self._services.extensions)

    def status(self) -> Sequence[tuple[str, str]]:
        """What its companions add to ``/status``: rows of label and text."""
        return self._companions.status()

    async def start_settled(self) -> None:
        """Wait briefly until the model's window and the sandbox are known; earlier statements about them may be
        wrong."""
        await asyncio.gather(self._models.asked(), self._sandbox.checked(READY_SECONDS))

    async def extensions_settled(self) -> None:
        """Wait until all expected tools and prompts have arrived, but no longer than a request would."""
        waiting = asyncio.ensure_future(self._services.toolset.tools.settled())
        await asyncio.wait((waiting,), timeout=self._services.settings.tools_wait)
        waiting.cancel()
        self._count_arrived()

    async def _count_arriving(self, expected: bool) -> None:
        """Count the tools of servers as soon as all have arrived: until the first request, the record has none. If any
        were ``expected``, the size was an estimate until now."""
        await self._services.toolset.tools.settled()
        self._count_arrived(anyway=expected)

    def _count_arrived(self, *, anyway: bool = False) -> None:
        client = self._connection.client
        if client is not None and not self._work.busy and (self._offered.preview(client.info) or anyway):
            self._context_parts.meter.measure()

    def tools_of(self, source: str) -> SourceSize:
        """Number of a source's tools and their size in each request."""
        client = self._connection.client
        return self._offered.size_of(source, client.info if client is not None else None)

    @property
    def asker(self) -> Asker:
        return self._requests

    def tell_model(self, title: str, text: str) -> None:
        """Append a note to the conversation before the next request, or at once while idle: ``text`` for the model,
        ``title`` for the user."""
        if self._closed:
            return
        if self._work.busy:
            self._notes.add(title, text)
        else:
            add_note(self._recorder, title, text)
            self._context_parts.meter.measure()

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "", topic: str = "session") -> None:
        self._recorder.emit(Notice(text, level, topic, hint))

    def require_answers(self, schema: Mapping[str, Any] | None, *, last: bool = False) -> None:
        """From the next request on, have answers generated by this JSON schema if the model can do that; None: no
        longer. ``last``: the next answer ends the work."""
        wish = None if schema is None else AnswerFormat(schema, last)
        self._services.toolset.context.answer_format = wish

    # --- commands ---------------------------------------------------------------------------------------------

    def send(self, command: Command) -> None:
        """Carry out or start a command. Called on the event loop; never blocks and never raises; results arrive as
        events."""
        if self._closed or self._heard(command):
            return
        match command:
            case Submit():
                self._submit(command)
            case Steer() if self._work.busy:
                enqueue(self._recorder, command)
            case Steer():
                self._submit(Submit(command.text, mentions=command.mentions))
            case Invoke():
                self._invoke(command)
            case EditQueue():
                edit_queue(self._recorder, command.id, command.text)
            case Interrupt():
                if not (command.skip and (self._models.skip() or self._offered.skip())):
                    self._work.interrupt()
            case Close():
                self._work.interrupt()
            case CancelItem():
                if not self._scheduler.cancel(command.item):
                    self.notice("That call has already ended.")
            case Background():
                if not self._jobs.jobs.to_background(command.item):
                    self.notice("Only a running command can move to the background.")
            case StopJob():
                if not self._work.stop_beside(command.job):
                    self._jobs.stop_soon(command.job)
            case ReplyPermission():
                self._requests.reply(command)
            case RevokeRule():
                if any(rule.text == command.rule for rule in self._recorder.state.rules):
                    self._recorder.emit(RuleRevoked(command.rule))
            case Answer():
                self._requests.answer(command)
            case SetMode():
                mode = self._available(command.mode)
                if mode != command.mode:
                    self._refuse(command.mode)
                elif mode != self._recorder.state.mode:
                    self._recorder.emit(ModeChanged(mode, CHOSEN))
                    self._requests.reconsider()
            case SetEffort():
                self._models.announce(command.effort)
            case _:
                self._between_turns(command)

    def _between_turns(self, command: BetweenTurns) -> None:
        if self._work.busy:
            self.notice(_BUSY.get(type(command), "A turn is running; try again when it ends."), "warning")
            return
        client = self._connection.client
        match command:
            case CarryOut():
                self._carry_out(command)
            case SetModel():
                choose = self._models.plan if command.later else self._models.choose
                trouble = choose(command.model)
                if trouble is not None:
                    self.notice(trouble, "error")
            case Rewind() | UndoRewind() if self._work.has_beside:
                self.notice("A background subagent is running; rewind when it ends.", "warning", "See /jobs.")
            case Rewind():
                self.rewinds.begin(command)
            case UndoRewind():
                self.rewinds.begin_undo()
            case RunShell():
                self._work.begin(self._run_shell(command))
            case Compact():
                if client is None:
                    self.notice("Not measured: no model is connected.", "warning")
                else:
                    self._work.begin(self._context_parts.triggers.compact_now(client, command))
            case ApplyPlan():
                if client is None:
                    self.notice("Not measured: no model is connected.", "warning")
                else:
                    self._work.begin(self._context_parts.compactions.apply_plan(client, command))
            case UndoCompaction():
                self._context_parts.changes.undo(command.item)
            case RedoCompaction():
                self._context_parts.changes.redo(command.item)
            case ChangeContext():
                self._context_parts.changes.change(command)
            case UndoFiles() | RedoFiles() if self._work.has_beside:
                self.notice("A background subagent is running; restore files when it ends.", "warning", "See /jobs.")
            case UndoFiles():
                self.files.begin("undo", Target(command.scope, command.turn, command.name))
            case RedoFiles():
                self.files.begin("redo", Target())

    async def _run_shell(self, order: RunShell) -> None:
        try:
            with self._sandbox.announced(None):
                await run_shell(self._recorder, self._services.workspace, self._results, self._jobs.jobs, order)
        finally:
            self._context_parts.meter.measure()  # the output joined the conversation

    def _submit(self, message: Submit) -> None:
        if self._work.busy:
            enqueue(self._recorder, message)
        elif self._connection.client is None:
            self.notice(
                "No model is connected; your message was not sent.",
                "error",
                "Choose one with /model or -m; /login stores a key.",
            )
        else:
            self._begin_turn(message)

    def _invoke(self, call: Invoke) -> None:
        if self._work.busy:
            enqueue(self._recorder, call)
        elif self._connection.client is None:
            text = f"No model is connected; /{call.name} was not sent."
            self.notice(text, "error", "Choose one with /model or -m; /login stores a key.")
        else:
            if self._services.extension_files is not None:
                self._services.extension_files.look()  # run the current version of the file
            self._begin_turn(call)

    def _available(self, mode: Mode) -> Mode:
        """The mode, or the default one if it is not available."""
        return "default" if self.view.mode_refusal(mode) else mode

    def _refuse(self, mode: Mode) -> None:
        declined = self._services.permissions.policy.trust == "declined"
        remedy = "Run `swecli permissions trust` and restart swecli." if declined else "/permissions lists it."
        self.notice(self.view.mode_refusal(mode), "warning", remedy)

    def _carry_out(self, command: CarryOut) -> None:
        plan = self.view.plan
        if plan is None:
            self.notice("The newest answer proposes no plan. Describe the task in plan mode first.", "warning")
        elif self._connection.client is None:
            self.notice("No model is connected; the plan was not started.", "error", "Use /model; see /help.")
        else:
            shown, plan = plan.text, self._plans.accept(plan)
            todos = todos_of(plan, self._recorder.state.todos)
            if todos != self._recorder.state.todos:
                self._recorder.emit(TodosChanged(todos))
            mode = self._available(command.mode)
            if mode != command.mode:
                self._refuse(command.mode)
            if mode != self._recorder.state.mode:
                self._recorder.emit(ModeChanged(mode, ACCEPTED))
            self._begin_titled(*go_ahead(plan, shown, todos=bool(todos) and (plan.listed or bool(plan.steps))))

    def begin(self, title: str, text: str) -> str:
        """Begin a turn with a message from a slash command; the user sees ``title``. Only between turns. Returns why it
        failed, as a sentence, or an empty text."""
        if self._work.busy:
            return "A turn is running; try again when it ends."
        if self._connection.client is None:
            return "No model is connected; nothing was sent. Use /model; see /help."
        self._begin_titled(title, text)
        return ""

    def _begin_titled(self, title: str, text: str) -> None:
        from swecli.core.extensions.markdown_commands import Invocation

        self._begin_turn(Invocation(title, (text,)))

    def _begin_turn(self, message: Submit | Queued | Invoke | Invocation) -> None:
        invocation = message if not isinstance(message, Submit | Queued | Invoke) else None
        if isinstance(message, Invoke) or (isinstance(message, Queued) and message.invokes):
            try:
                invocation = invocation_of(self._services.extension_files, message)
            except NotInvoked as error:
                self.notice(str(error), "error")
                return
        self._recorder.turn += 1
        item = self._recorder.new_item("u")
        self._recorder.emit(TurnStarted(item, invocation.allow if invocation is not None else ()))
        todos = self._recorder.state.todos
        if todos and all(todo.status == "completed" for todo in todos):
            self._recorder.emit(TodosChanged(()))  # a list that is done says nothing about the next request
        if invocation is not None:
            self._recorder.emit(ItemStarted(item, "user", "command", invocation.title))
        elif isinstance(message, Submit | Queued):
            add_user_message(self._recorder, item, message)
        text, mentions = "", ()
        if isinstance(message, Submit | Queued):
            text, mentions = message.text, words_of(message)
        turn = Turn(self._core, self._companions, Begun(item, text, mentions, invocation))
        if self._services.workspace.checkpoints is not None:
            self._services.workspace.checkpoints.start()
        self._work.begin(turn.run())

    def _begin_inside(self, relay: Relay, services: Services, model: str, folder: Path | None) -> Session:
        limits = ParentLimits(self._services.settings, self._recorder.state, self._companions)
        locks = self._calls.locks if folder is None else None
        closing = () if folder is None else (partial(asyncio.to_thread, services.workspace.sandbox.close),)
        parent = Parent(relay, limits, self._requests, locks, closing)
        session_id, features = self._recorder.session, self._features
        session = Session(session_id, services, lambda publish: relay, features=features, parent=parent)
        place = str(self._services.workspace.cwd)
        session.start(model, self._environment.replace(place, str(folder)) if folder else self._environment)
        return session

    async def worked(self) -> None:
        """Wait until nothing runs."""
        await self._work.settled()

    @property
    def answer(self) -> str:
        """The newest text of the model; empty if there is none."""
        said = (message.text for message in reversed(self.view.messages) if message.role == "assistant")
        return next((text.strip() for text in said if text.strip()), "")

    def _heard(self, command: Command) -> bool:
        """Whether a companion has acted on it alone. One that fails has not: front-ends can do nothing about it."""
        try:
            return self._companions.heard(command)
        except Exception as defect:  # noqa: BLE001 - a defect is reported, and the session acts on the command
            self._tell_defect(defect)
            return False

    def _tell_defect(self, defect: BaseException) -> None:
        self._services.store.report_defect(defect)
        if replaced():
            hint = "The conversation is kept; restart swecli to continue."
            self.notice(f"swecli failed: {REPLACED}.", "error", hint)
            return
        self.notice(
            f"swecli failed internally: {type(defect).__name__}: {defect}",
            "error",
            "The conversation is kept; you can continue. Details are in the log.",
        )

    def _ended(self, defect: BaseException | None) -> None:
        if defect is not None:
            self._tell_defect(defect)
        # Queued messages start by themselves only after successful work; otherwise the user decides.
        state = self._recorder.state
        turned, self._settled = self._recorder.turn != self._settled, self._recorder.turn
        if self._work.interrupted or (turned and state.outcome not in ("done", "limit")):
            self._held = {waiting.id for waiting in state.queue}
        elif turned:
            self._held.clear()
        goes_on = not self._closed and not self._work.interrupted
        if goes_on and self._connection.client is not None:
            waiting = take_first(self._recorder, self._held | self._not_invoked())
            if waiting is not None:
                self._begin_turn(waiting)

    def _not_invoked(self) -> set[str]:
        """Waiting commands and skills that can't be sent now. They stay, each with one notice of the reason."""
        why: dict[str, str] = {}
        for waiting in self._recorder.state.queue:
            if waiting.invokes and waiting.id not in self._held:
                try:
                    invocation_of(self._services.extension_files, waiting)
                except NotInvoked as error:
                    why[waiting.id] = str(error)
                    if self._refused.get(waiting.id) != str(error):
                        self.notice(str(error), "error", f"{waiting.text} stays among the waiting messages.")
        self._refused = why
        return set(why)

    # --- requests of slash commands ---------------------------------------------------------------------------

    def plan_compaction(self) -> CompactionPlan | None:
        """Plan of a compaction now; None without a model."""
        return self._context_parts.plans.plan()

    def draft_compaction(self) -> PlanDraft | None:
        """Editable plan of a compaction now, with movable items; None without a model."""
        return self._context_parts.plans.draft()

    async def draft_summary(self, focus: str = "") -> Summary | None:
        """The model's summary, which changes nothing yet; its price is recorded. None without a model, or while a turn
        runs."""
        return None if self._work.busy else await self._context_parts.summaries.draft(focus)

    def retention(self) -> Sequence[RuleReport]:
        """Effects of the user's retention rules so far; empty without rules or a model."""
        return self._context_parts.plans.retention()

    async def facts(self) -> Sequence[Event]:
        """All facts of the session so far, in order. Reads the disk if they are not in memory."""
        await self._recorder.log.barrier()
        return await asyncio.to_thread(list, self._recorder.facts)

    def stored_result(self, ref: str) -> bytes | None:
        """A large result of the session by its reference; None if there is none. Not for the event loop.

        Raises:
            BlobError: it can't be read.
        """
        return self._services.store.blobs.get(ref) if self._services.store.blobs is not None else None

    def cover(self, text: str) -> str:
        """The text with keys masked, for export to a file."""
        return self._services.store.cover(text)

    def go_on_from(self, title: str, text: str, todos: Sequence[Todo], origin: str) -> None:
        """Begin with another session's handoff from a file: ``text`` is for the model, ``title`` for the user. It
        counts as untrusted text from ``origin``."""
        add_note(self._recorder, title, text)
        self._recorder.emit(UntrustedContent("", origin))
        if todos:
            self._recorder.emit(TodosChanged(tuple(todos)))
        self._context_parts.meter.measure()

    async def name(self) -> str:
        """The user's name for the session; empty without one."""
        return await asyncio.to_thread(self._services.store.name)

    @property
    def kept(self) -> Kept:
        """What of it can be continued after the end of the program."""
        return self._services.store.kept()

    async def rename(self, name: str) -> str:
        """Name the session so that it can be resumed by name; an empty name removes it. Returns the stored name.

        Raises:
            ValueError: the name is not possible; a sentence.
        """
        if self._services.store.rename is None:
            raise ValueError("This session is not stored, so it can't have a name.")
        return await asyncio.to_thread(self._services.store.rename, name)

    def _follow(self) -> None:
        """Adopt the settings from which something was made."""
        now = self._services.settings.now
        self._services.toolset.context.adjust(now.context_limits, now.advice)
        command = self._services.toolset.tools.get(RunCommand.name)
        if isinstance(command, RunCommand):
            command.seconds = now.command_timeout
        self._connection.use_beside(now.side_models)
        self._jobs.jobs.processes = now.process_limit

    async def follow_settings(self) -> None:
        """Adopt those current settings that apply at once.

        Raises:
            ValueError: they can't be read; nothing has changed. A sentence.
        """
        settings, model = self._services.settings, self._recorder.state.model
        if settings.read is None:
            return
        effort = self._services.access.effort(model)
        settings.take(await asyncio.to_thread(settings.read))
        if (now := self._services.access.effort(model)) != effort:
            self._models.announce(now)
        self._requests.reconsider()
        if not self._work.busy:
            self._context_parts.meter.measure()

    async def examine(self, *, online: bool = False) -> Sequence[DisplayBlock]:
        """Report on what works and what does not among providers, keys, models and the sandbox; with ``online`` each
        provider is contacted."""
        return await self._services.examine(self.offers.current, online)

    def plan(self) -> PlanChanged | None:
        """The last proposed or accepted plan, with the current text of its file. Blocks on the disk."""
        return self._plans.newest()

    def transcript(self) -> str:
        """Full text of the conversation with calls and results. Blocks on the disk."""
        return transcript_of(self._recorder.facts, MAIN) or ""

    async def job_output(self, job: str) -> str:
        """Output of a job, with the middle of long output removed.

        Raises:
            JobsError: no such job exists.
        """
        transcript = await asyncio.to_thread(agent_transcript, self._recorder, job)
        return transcript if transcript is not None else await self._jobs.jobs.output(job)

    async def stop_job(self, job: str) -> JobInfo:
        """End all processes of a job and return its final state.

        Raises:
            JobsError: no such job exists.
        """
        await self._work.beside_ended(job)
        ended = next((agent for agent in agent_jobs(self.view.agents) if agent.id == job), None)
        return ended or await self._jobs.jobs.stop(job)

    def report_defect(self, error: BaseException) -> None:
        """Record an internal failure of a companion of the session. Never raises."""
        self._services.store.report_defect(error)

    async def close(self, reason: EndReason = "other") -> None:
        """End all work and the session. Hooks receive the ``reason``."""
        if self._closed:
            return
        self._closed = True
        try:  # cancelled because it takes too long, it still leaves no process and no open record
            try:
                await self._end_work(reason)
            finally:
                await self._end_programs()
            await self._end_storage()
        finally:
            await self._recorder.close()

    async def _end_work(self, reason: EndReason) -> None:
        if self._counting is not None:
            self._counting.cancel()
        await self._work.stop()
        await self._work.end_beside()
        await asyncio.gather(*(extension.close() for extension in self._services.extensions))
        await self._companions.close(reason)  # may wait for the model, which hooks must not
        await self._models.close()
        await self._sandbox.stop(last=self._parent is None)

    async def _end_programs(self) -> None:
        await self._jobs.end()
        await asyncio.to_thread(self._services.workspace.end_processes)

    async def _end_storage(self) -> None:
        for close in self._closing:
            await close()
        await self._context_parts.snapshots.close(self._connection.client)
        await self._connection.close()
