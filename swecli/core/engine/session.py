"""The session actor: takes commands, owns the running work, and lets nothing else write its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.context_management.compaction.retention import RuleReport
from swecli.core.engine.compactions import Compactions
from swecli.core.engine.connection import Connection
from swecli.core.engine.context_keeper import ContextKeeper
from swecli.core.engine.dispatch import Dispatcher
from swecli.core.engine.file_undo import FileUndo
from swecli.core.engine.job_watch import JobWatch
from swecli.core.engine.live_view import LiveView
from swecli.core.engine.model_choice import ModelChoice
from swecli.core.engine.recorder import LogFactory, Recorder
from swecli.core.engine.recovery import recover
from swecli.core.engine.requests import Requests
from swecli.core.engine.results import Results
from swecli.core.engine.sandbox_watch import SandboxWatch
from swecli.core.engine.scheduler import Scheduler
from swecli.core.engine.services import Services
from swecli.core.engine.session_files import SessionFiles
from swecli.core.engine.side_work import ask_model, run_tool
from swecli.core.engine.tool_call import ToolCalls
from swecli.core.engine.view import SessionView, ToolRun
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.commands import Close, Command
from swecli.core.protocol.events import Event, NoticeLevel, SessionStarted
from swecli.core.workspace.jobs import JobInfo


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

        async def work() -> None:
            result.append(await run_tool(self._recorder, self._scheduler, name, arguments))

        task = self._dispatcher.work.begin(work())
        await asyncio.wait([task])
        return result[0] if result else ToolRun("interrupted", is_error=True)

    async def ask_model(self, system: str, prompt: str, *, max_output_tokens: int = 2000) -> str | None:
        """One question outside of the conversation; None (and a Notice) when it failed."""
        client = self._models.beside("small")
        if client is None:
            return None
        return await ask_model(self._recorder, self._services, client, system, prompt, max_output_tokens)

    async def examine(self, *, online: bool = False) -> Sequence[DisplayBlock]:
        """What works and what does not."""
        model = self._model()
        return await self._services.examine(model.ref if model is not None else None, online)

    async def models(self) -> Sequence[ModelOffer]:
        """Models to choose from."""
        return await self._services.offers()

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
