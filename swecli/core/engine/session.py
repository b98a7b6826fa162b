"""A session: one writer that takes commands, runs one piece of work at a time, and publishes events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swecli.core.checkpoints.restore import Target
from swecli.core.context_management.cache import CacheHistory
from swecli.core.context_management.compaction.clearing import RuleReport
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.context_management.ledger import Entry
from swecli.core.context_management.marks import harmless
from swecli.core.context_management.projection import project
from swecli.core.engine.attachments import words_of
from swecli.core.engine.compaction import Compactions, ContextKeeper
from swecli.core.engine.consent import Requests, SandboxWatch
from swecli.core.engine.files import FileUndo, SessionFiles
from swecli.core.engine.jobs import JobWatch
from swecli.core.engine.model_call import Call, door_of
from swecli.core.engine.models import ModelChoice
from swecli.core.engine.recorder import LogFactory, Recorder
from swecli.core.engine.results import Results
from swecli.core.engine.services import Connection, Services
from swecli.core.engine.snapshots import recover
from swecli.core.engine.tool_calls import Scheduler, ToolCalls
from swecli.core.engine.turn import Turn
from swecli.core.engine.view import Conversation, SessionView, Spending, ToolRun, Totals
from swecli.core.engine.work import MessageQueue, Work
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.types import Failed, Finished, ModelClient, ModelInfo, ModelRequest, SystemBlock
from swecli.core.protocol import commands as c
from swecli.core.protocol.blocks import DisplayBlock, TerminalBlock, TextBlock, Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Close, Command, RunShell
from swecli.core.protocol.events import (
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    Mode,
    ModeChanged,
    Notice,
    NoticeLevel,
    PermissionRequested,
    QuestionAsked,
    Queued,
    Rewound,
    SandboxChanged,
    SessionStarted,
    SideAnswered,
    TurnStarted,
)
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart, Usage
from swecli.core.tools.base import ToolOutcome
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.jobs import Foreground, JobInfo, Jobs
from swecli.core.workspace.process import CommandSpec, LaunchError


async def run_tool(recorder: Recorder, scheduler: Scheduler, name: str, arguments: Mapping[str, object]) -> ToolRun:
    """One call that belongs to no message: it shows and asks like any other, and the model never sees it."""
    item = recorder.new_item("t")
    part = ToolCallPart(item, name, json.dumps(arguments))
    recorder.emit(ItemStarted(item, "tool", name))
    recorder.emit(ItemCheckpointed(item, part))
    await scheduler.run([Call(item, part)])
    record = recorder.ledger.items[item]
    result = next((part for part in record.parts if isinstance(part, ToolResultPart)), None)
    return ToolRun(result.text if result else "", record.status != "ok")


async def ask_model(
    recorder: Recorder, services: Services, client: ModelClient, system: str, prompt: str, max_output_tokens: int
) -> str | None:
    """The answer's text, or None after a Notice that says why there is none."""
    request = ModelRequest(
        system=(SystemBlock(system),),
        tools=(),
        messages=(Message("user", (TextPart(prompt),), "question"),),
        max_output_tokens=max_output_tokens,
        session=recorder.session,
    )
    async with aclosing(door_of(services, recorder).send(client, request)) as events:
        async for event in events:
            if isinstance(event, Finished):
                usage = event.message.response.usage if event.message.response else None
                cost = services.price(client.info.ref, usage) if usage is not None else None
                recorder.emit(SideAnswered("question", client.info.ref, usage, cost))
                return event.message.text or None
            if isinstance(event, Failed):
                recorder.emit(Notice(f"The model could not be asked: {event.error.message}", "warning", "model"))
                return None
    return None


@dataclass(frozen=True, slots=True)
class _Ran:
    output: str
    exit_status: int | None
    duration: float | None
    exited: bool = True
    job: str = ""
    """Under which id what goes on in the background can be found."""


async def run_shell(recorder: Recorder, services: Services, results: Results, jobs: Jobs, order: RunShell) -> None:
    """The user's ``!command``: it needs no consent, and its output joins the conversation."""
    item = recorder.new_item("u")
    recorder.emit(ItemStarted(item, "user", "shell", order.command))
    try:
        ran = await _run(recorder, services, jobs, order, item)
    except LaunchError as error:
        recorder.emit(ItemCompleted(item, "error", (), (TextBlock(str(error), "error"),), "not started"))
        return
    except asyncio.CancelledError:
        recorder.emit(ItemCompleted(item, "interrupted", (), (), "interrupted"))
        raise
    failed = ran.exit_status not in (0, None)
    outcome = ToolOutcome(as_read(ran.output), is_error=failed, exit_status=ran.exit_status)
    try:
        outcome = await results.admit(item, "shell", "output", outcome)
    except asyncio.CancelledError:
        outcome = results.bounded("output", outcome)
        raise
    finally:
        state = f"exit {ran.exit_status}" if ran.exited else f"job {ran.job}"
        ended = f"Exit status: {ran.exit_status}\n" if ran.exited else ""
        job = f"It goes on in the background as job {ran.job}.\n" if ran.job else ""
        text = f"I ran this command myself: {order.command}\n{ended}{job}{harmless(outcome.text)}"
        block = TerminalBlock(order.command, ran.output, ran.exit_status, duration=ran.duration)
        recorder.emit(ItemCompleted(item, "ok", (TextPart(text),), (block,), state))


async def _run(recorder: Recorder, services: Services, jobs: Jobs, order: RunShell, item: str) -> _Ran:
    if order.output is not None:
        return _Ran(order.output, order.exit_status, order.duration)
    spec = CommandSpec(order.command, services.workspace.cwd, services.workspace.environment)
    result = await jobs.run(spec, Foreground(item), _nothing_more, lambda text: _show(recorder, item, text))
    return _Ran(result.output, result.exit_status, result.duration, result.ending == "exited", result.job)


def _nothing_more(output: str, exit_status: int | None) -> str:
    """The user's own command runs in no sandbox: nothing is to be done when it ends."""
    del output, exit_status
    return ""


def _show(recorder: Recorder, item: str, text: str) -> None:
    if text:
        recorder.emit(ItemDelta(item, text, "output"))


class Dispatcher:
    """Carries out commands. Every method returns at once; what takes time becomes the session's work."""

    def __init__(
        self,
        services: Services,
        recorder: Recorder,
        requests: Requests,
        scheduler: Scheduler,
        keeper: ContextKeeper,
        compactions: Compactions,
        models: ModelChoice,
        results: Results,
        undo: FileUndo,
        jobs: JobWatch,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._requests = requests
        self._scheduler = scheduler
        self._keeper = keeper
        self._queue = MessageQueue(recorder)
        self._models = models
        self._results = results
        self._jobs = jobs
        self.work = Work(self._ended)
        self.closed = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            c.Submit: self._submit,
            c.Steer: self._steer,
            c.EditQueue: lambda command: self._queue.edit(command.id, command.text),
            c.Interrupt: lambda command: None if command.skip and models.skip() else self.work.interrupt(),
            c.CancelItem: self._cancel_item,
            c.Background: self._background,
            c.StopJob: lambda command: jobs.stop_soon(command.job),
            c.ReplyPermission: requests.reply,
            c.Answer: requests.answer,
            c.SetMode: self._set_mode,
            c.SetModel: self._set_model,
            c.SetEffort: lambda command: models.set_effort(command.effort),
            c.Rewind: self._rewind,
            c.RunShell: lambda command: self._when_idle(
                lambda _: self.work.begin(run_shell(self._recorder, self._services, self._results, jobs.jobs, command))
            ),
            c.Compact: self._compact,
            c.UndoCompaction: lambda _: self._when_idle(compactions.undo),
            c.UndoFiles: lambda command: self._when_idle(
                lambda _: self.work.begin(undo.undo(Target(command.scope, command.turn, command.name)))
            ),
            c.RedoFiles: lambda _: self._when_idle(lambda _: self.work.begin(undo.redo())),
            c.RedoCompaction: lambda _: self._when_idle(compactions.redo),
        }

    def dispatch(self, command: c.Command) -> None:
        """Carry out a command, or start to."""
        self._handlers[type(command)](command)

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        """A line for the user."""
        self._recorder.emit(Notice(text, level, "session", hint))

    def _submit(self, command: c.Submit) -> None:
        if self.work.busy:
            self._queue.add(command)
        elif self._models.client is None:
            self.notice(
                "No model is connected; your message was not sent.", "error", "Set a key or use /model; see /help."
            )
        else:
            self._begin_turn(command)

    def _steer(self, command: c.Steer) -> None:
        if self.work.busy:
            self._queue.add(command)
        else:
            self._submit(c.Submit(command.text, mentions=command.mentions))

    def _cancel_item(self, command: c.CancelItem) -> None:
        if not self._scheduler.cancel(command.item):
            self.notice("That call does not run any more.")

    def _background(self, command: c.Background) -> None:
        if not self._jobs.jobs.to_background(command.item):
            self.notice("Only a command that runs can go on in the background.")

    def _set_mode(self, command: c.SetMode) -> None:
        if command.mode != self._recorder.state.mode:
            self._recorder.emit(ModeChanged(command.mode, "chosen by the user"))

    def _set_model(self, command: c.SetModel) -> None:
        if self.work.busy:
            self.notice("A turn is running; the model can be changed when it has ended.", "warning")
            return
        trouble = self._models.choose(command.model)
        if trouble is not None:
            self.notice(trouble, "error")

    def _rewind(self, command: c.Rewind) -> None:
        if self.work.busy:
            self.notice("A turn is running; rewind when it has ended.", "warning")
        elif command.item not in {entry.id for entry in self._recorder.ledger.view}:
            self.notice(f"There is no message {command.item!r} in the conversation.", "warning")
        else:
            self._recorder.emit(Rewound(command.item, "chosen by the user"))
            self._models.measure()

    def _compact(self, command: c.Compact) -> None:
        client = self._models.client
        if client is None:
            self.notice("No model is connected, so nothing can be measured or summarised.", "warning")
        else:
            self._when_idle(lambda _: self.work.begin(self._keeper.compact_now(client, command)))

    def _when_idle(self, action: Callable[[ModelClient | None], object]) -> None:
        if self.work.busy:
            self.notice("A turn is running; try again when it has ended.", "warning")
        else:
            action(self._models.client)

    def _begin_turn(self, message: c.Submit | Queued) -> None:
        client = self._models.client
        assert client is not None
        self._recorder.turn += 1
        item = self._recorder.new_item("u")
        self._recorder.emit(TurnStarted(item))
        self._queue.say(item, message.text, message.images)
        turn = Turn(
            self._services,
            self._recorder,
            self._requests,
            self._scheduler,
            self._keeper,
            self._models,
            self._jobs,
            item,
            words_of(message),
        )
        if self._services.checkpoints is not None:
            self._services.checkpoints.start()
        self.work.begin(turn.run())

    def _ended(self, defect: BaseException | None) -> None:
        if defect is not None:
            self._services.report_defect(defect)
            self.notice(
                f"swecli failed internally: {type(defect).__name__}: {defect}",
                "error",
                "What was said is kept; you can go on. The details are in the log.",
            )
        # What waits goes on by itself only after work that ended well; otherwise the user decides.
        goes_on = not self.closed and not self.work.interrupted and self._recorder.state.outcome in ("done", "limit")
        if goes_on and self._models.client is not None:
            waiting = self._queue.take_first()
            if waiting is not None:
                self._begin_turn(waiting)


class LiveView:
    """Implements ``SessionView`` over the recorder's state."""

    def __init__(
        self,
        recorder: Recorder,
        services: Services,
        client: Callable[[], ModelClient | None],
        busy: Callable[[], bool],
        jobs: Jobs,
    ) -> None:
        self._recorder = recorder
        self._services = services
        self._client = client
        self._busy = busy
        self._jobs = jobs

    @property
    def session_id(self) -> str:
        return self._recorder.session

    @property
    def started_seq(self) -> int:
        return self._recorder.state.started_seq

    @property
    def cwd(self) -> Path:
        return self._services.workspace.cwd

    @property
    def roots(self) -> tuple[Path, ...]:
        return tuple(self._services.workspace.roots)

    @property
    def mode(self) -> Mode:
        return self._recorder.state.mode

    @property
    def model(self) -> ModelInfo | None:
        client = self._client()
        return client.info if client else None

    @property
    def effort(self) -> str | None:
        return self._recorder.state.effort

    @property
    def busy(self) -> bool:
        return self._busy()

    @property
    def budget(self) -> Budget | None:
        return self._recorder.state.budget

    @property
    def last_usage(self) -> Usage | None:
        return self._recorder.state.last_usage

    @property
    def totals(self) -> Totals:
        return self._recorder.state.totals

    @property
    def cache(self) -> CacheHistory:
        return self._recorder.cache

    @property
    def spending(self) -> Spending:
        return self._recorder.state.spending

    @property
    def queue(self) -> tuple[Queued, ...]:
        return self._recorder.state.queue

    @property
    def todos(self) -> tuple[Todo, ...]:
        return self._recorder.state.todos

    @property
    def permission(self) -> PermissionRequested | None:
        return next(iter(self._recorder.state.permissions.values()), None)

    @property
    def question(self) -> QuestionAsked | None:
        return next(iter(self._recorder.state.questions.values()), None)

    @property
    def sandbox(self) -> SandboxChanged | None:
        return self._recorder.state.sandbox

    @property
    def jobs(self) -> tuple[JobInfo, ...]:
        return self._jobs.all

    @property
    def messages(self) -> Sequence[Message]:
        return project(self._recorder.ledger)

    @property
    def conversation(self) -> Conversation:
        ledger = self._recorder.ledger
        shown = [ledger.entries[entry.id] for entry in ledger.view if entry.id in ledger.entries]
        summaries = sum(entry.kind == "summary" for entry in ledger.view)
        active = len(project(ledger))
        hidden = _messages(ledger.entries.values()) - _messages(shown)
        since = min((entry.created for entry in shown), default=None)
        age = None if since is None else max(0.0, self._services.clock() - since)
        return Conversation(active, active - summaries + len(hidden), summaries, age)

    @property
    def instructions(self) -> tuple[str, ...]:
        return tuple(self._services.instructions)


def _messages(entries: Iterable[Entry]) -> set[tuple[str, bool]]:
    """The messages that entries are in: results are one of their own."""
    return {(entry.message, entry.kind == "result") for entry in entries}


class Session:
    """One conversation in one workspace. Create it inside a running event loop; ``send`` commands; read
    ``view`` and ``subscribe`` for what happens. Implements ``SessionPort``."""

    def __init__(
        self, session_id: str, services: Services, make_log: LogFactory, history: Sequence[Event] = ()
    ) -> None:
        self._services = services
        self._recorder = Recorder(session_id, history, make_log, services.clock)
        requests = Requests(self._recorder)
        self._connection = Connection(services.make_client, services.side_models)
        self._results = Results(services, self._recorder, self._model)
        self._compactions = Compactions(services, self._recorder, self._connection)
        self._keeper = ContextKeeper(services, self._recorder, self._compactions, requests)
        self._models = ModelChoice(services, self._recorder, self._connection, self._compactions)
        self._sandbox = SandboxWatch(services, self._recorder)
        self._jobs = JobWatch(services, self._recorder)
        calls = ToolCalls(
            services, self._recorder, requests, self._results, self._sandbox, self._keeper, self._jobs.jobs
        )
        self._scheduler = Scheduler(calls)
        self._undo = FileUndo(services, self._recorder)
        self._dispatcher = Dispatcher(
            services,
            self._recorder,
            requests,
            self._scheduler,
            self._keeper,
            self._compactions,
            self._models,
            self._results,
            self._undo,
            self._jobs,
        )
        self._files = SessionFiles(self._undo, self._dispatcher.work)
        self._view = LiveView(
            self._recorder,
            services,
            lambda: self._connection.client,
            lambda: self._dispatcher.work.busy,
            self._jobs.jobs,
        )

    def _model(self) -> ModelInfo | None:
        client = self._connection.client
        return client.info if client is not None else None

    def _measured(self) -> ModelInfo | None:
        """The model at hand, with the window that its requests are measured against."""
        model, budget = self._model(), self._recorder.state.budget
        if model is None or budget is None or self._recorder.state.model != model.ref:
            return model
        return replace(model, window=budget.window, window_source=budget.window_source)

    @property
    def view(self) -> SessionView:
        return self._view

    @property
    def files(self) -> SessionFiles:
        return self._files

    def subscribe(self, *, replay: bool = False) -> AsyncIterator[Event]:
        """Events in order, none lost; with ``replay`` the stored facts first."""
        return self._recorder.subscribe(replay=replay)

    def start(self, model: str | None, environment: str) -> None:
        """Begin, or continue a session with history: what a crash left open is closed first.

        ``environment`` is what the model is told about date and place, once per session.
        """
        resumed = self._recorder.state.seq > 0
        for body in recover(self._recorder.ledger, self._recorder.state):
            self._recorder.emit(body)
        name = model or self._recorder.state.model
        trouble = self._models.connect(name) if name else None
        cwd, mode, version = str(self._services.workspace.cwd), self._services.policy.mode, self._services.version
        address = self._models.address
        self._recorder.emit(SessionStarted(cwd, name, mode, version, resumed, environment, address))
        if resumed:
            self._compactions.snapshots.resume()
        self._sandbox.tell()
        if self._services.sandbox_early:
            self._sandbox.start()
        if trouble is not None:
            self.notice(trouble, "error")
        elif name:
            self._models.start(name)

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        """A line for the user from outside of the engine (start-up, store)."""
        self._dispatcher.notice(text, level, hint)

    def send(self, command: Command) -> None:
        """Carry out a command, or start to. Called on the event loop; never blocks."""
        if self._dispatcher.closed:
            return
        if isinstance(command, Close):
            self._dispatcher.work.interrupt()
        else:
            self._dispatcher.dispatch(command)

    def plan_compaction(self) -> CompactionPlan | None:
        """What a compaction would do now; None without a model."""
        client = self._connection.client
        return self._compactions.plan(client) if client is not None else None

    def retention(self) -> Sequence[RuleReport]:
        """What the user's rules about the context did so far; empty without rules or a model."""
        client = self._connection.client
        return self._compactions.retention(client) if client is not None else ()

    async def run_tool(self, name: str, arguments: Mapping[str, object]) -> ToolRun:
        """Run one tool through the gate on behalf of a slash command."""
        if self._dispatcher.work.busy:
            return ToolRun("A turn is running; try again when it has ended.", is_error=True)
        result: list[ToolRun] = []
        before = len(self._recorder.ledger.changes)

        async def work() -> None:
            result.append(await run_tool(self._recorder, self._scheduler, name, arguments))

        task = self._dispatcher.work.begin(work())
        await asyncio.wait([task])
        for change in self._recorder.ledger.changes[before:]:
            if change.after is not None:  # what the user's own command wrote is theirs
                told = await asyncio.to_thread(self._services.keep_file, change.path, change.after)
                if told:
                    self.notice(told, "warning")
        return result[0] if result else ToolRun("interrupted", is_error=True)

    async def ask_model(self, system: str, prompt: str, *, max_output_tokens: int = 2000) -> str | None:
        """One question outside of the conversation; None (and a Notice) when it failed."""
        client = self._models.beside("small")
        if client is None:
            return None
        return await ask_model(self._recorder, self._services, client, system, prompt, max_output_tokens)

    async def examine(self, *, online: bool = False) -> Sequence[DisplayBlock]:
        """What works and what does not."""
        return await self._services.examine(self._measured(), online)

    async def models(self) -> Sequence[ModelOffer]:
        """Models to choose from."""
        model = self._measured()
        return [
            replace(offer, window=model.window) if model is not None and offer.ref == model.ref else offer
            for offer in await self._services.offers()
        ]

    async def job_output(self, job: str) -> str:
        """What a job wrote."""
        return await self._jobs.jobs.output(job)

    async def stop_job(self, job: str) -> JobInfo:
        """End a job."""
        return await self._jobs.jobs.stop(job)

    def report_defect(self, error: BaseException) -> None:
        """Write an internal failure of something beside the session to where its own go."""
        self._services.report_defect(error)

    async def close(self) -> None:
        """Interrupt what runs, store everything, release connections."""
        if self._dispatcher.closed:
            return
        self._dispatcher.closed = True
        await self._dispatcher.work.stop()
        await self._models.close()
        await self._sandbox.stop()
        await self._jobs.close()
        await asyncio.to_thread(self._services.end_processes)
        await self._undo.close()
        await asyncio.to_thread(self._services.sandbox.close)
        await self._compactions.snapshots.close(self._connection.client)
        await self._connection.close()
        await self._recorder.close()
