"""A session: one writer that takes commands, runs one piece of work at a time, and publishes events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from swecli.core.context_management.compaction.summary import Summary
from swecli.core.engine.building import session_parts
from swecli.core.engine.command_handlers import CommandHandlers
from swecli.core.engine.companion import Companions, EndReason
from swecli.core.engine.core import OwnSession
from swecli.core.engine.feature import Feature
from swecli.core.engine.inbox import Inbox
from swecli.core.engine.inner import Parent, ParentLimits, Relay
from swecli.core.engine.invoked import listed_commands
from swecli.core.engine.notes import add_note
from swecli.core.engine.offered_tools import SourceSize
from swecli.core.engine.own_companions import companions_of
from swecli.core.engine.recorder import LogFactory, Recorder
from swecli.core.engine.reductions import Before
from swecli.core.engine.services import Mentionable, PromptTemplate, Services
from swecli.core.engine.session_view import SessionView
from swecli.core.engine.snapshots import recover
from swecli.core.engine.transcripts import transcript_of
from swecli.core.engine.work import Work
from swecli.core.llm.types import AnswerFormat
from swecli.core.protocol.blocks import DisplayBlock, Todo
from swecli.core.protocol.commands import Command
from swecli.core.protocol.events import (
    MAIN,
    Event,
    Notice,
    NoticeLevel,
    SessionStarted,
    TodosChanged,
    UntrustedContent,
)
from swecli.own_files import REPLACED, replaced

if TYPE_CHECKING:
    from swecli.core.protocol.result import Kept


T = TypeVar("T")


class Session:
    """One conversation in one workspace. Create it inside a running event loop; ``send`` commands; read ``view`` and
    ``subscribe`` to events. ``files`` has its file changes with undo and redo, ``offers`` the models to choose from,
    ``prices`` what changes of the context would cost; ``questions`` asks a model beside the conversation,
    ``command_tools`` runs a tool for a slash command.

    What a part can do without the session is an attribute: ``begin`` (``Inbox.begin``), ``worked`` (``Work.settled``),
    ``companion`` and ``status`` (``Companions``), ``job_output`` and ``stop_job`` (``JobWatch``), ``plan`` (``Plans``),
    ``plan_compaction``, ``draft_compaction`` and ``retention`` (``CompactionPlans``), ``instruct`` and ``offer``
    (``OfferedTools``), ``cover`` (``Store``)."""

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
        self._counting: asyncio.Task[None] | None = None
        own = OwnSession(self._begin_inside, self.tell_model, self.follow_settings)
        parts = session_parts(services, recorder, self._work, self._companions, parent, own)
        self._core = core = parts.core
        self._requests, self._connection, self._context_parts = core.requests, core.connection, parts.context
        self._models, self._sandbox, self._modes = core.models, parts.sandbox, parts.modes
        self._notes, self._prompts, self._jobs = core.notes, core.prompts, parts.jobs
        self._offered, self._calls, self.plan = core.offered, parts.calls, parts.plans.newest
        self.command_tools, self.files = parts.command_tools, parts.files
        self.offers, self.questions, self.rewinds = parts.offers, core.questions, parts.rewinds
        self.inspection, self.prices, self.cover = parts.inspection, parts.prices, services.store.cover
        self.job_output, self.stop_job = parts.jobs.output, parts.jobs.stop
        plans = parts.context.plans
        self.plan_compaction, self.draft_compaction, self.retention = plans.plan, plans.draft, plans.retention
        self.tools, self.asker = services.toolset.tools, core.requests
        self.instruct, self.offer = core.offered.instruct, core.offered.offer
        self.companion, self.status = core.companions.find, core.companions.status
        self._inbox = Inbox(core, parts.plans, parts.modes)
        self.begin, self.worked = self._inbox.begin, core.work.settled
        self._handlers = CommandHandlers(parts, self._inbox).table
        self._closing = (
            parent.closing
            if parent is not None
            else (self.files.close, partial(asyncio.to_thread, services.workspace.sandbox.close))
        )
        services.settings.changed.append(self._follow)
        self.view = SessionView(core, self._work, self._jobs.jobs, parts.plans)
        self._companions.take(companions_of(parts, features, parent))
        for companion in self._companions.watching:
            recorder.watch(companion.watches, companion.watch)

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
        asked = self._services.permissions.policy.mode
        mode = self._modes.available(asked)
        address = self._models.address
        commands = listed_commands(self._services.extension_files)
        self._recorder.emit(SessionStarted(cwd, name, mode, version, resumed, environment, address, commands))
        self._offered.adopt()
        for extension in self._services.extensions:
            extension.start(self)
        if self._services.extensions:
            self._counting = asyncio.create_task(self._count_arriving(bool(self._services.toolset.tools.pending)))
        if resumed:
            self._offered.restore()
            self._context_parts.snapshots.resume()
            self._prompts.adopt()
            if (sent := self._recorder.cache.sent) is not None:
                self._services.toolset.context.resume_cache(sent, self._recorder.ledger, self._prompts.built_anew)
        self._companions.start(resumed=resumed)
        self._sandbox.publish()
        if self._services.workspace.sandbox_early or self._services.workspace.sandbox.has_leftovers():
            self._sandbox.start()
        if mode != asked:
            self._modes.refuse(asked)
        if trouble is not None:
            self.notice(trouble, "error")
        elif name:
            self._models.start(name)

    def extension(self, kind: type[T]) -> T | None:
        """The session's extension of this class, if any."""
        return next((one for one in self._services.extensions if isinstance(one, kind)), None)

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

    async def start_settled(self) -> None:
        """Wait briefly until the model's window and the sandbox are known; earlier statements about them may be
        wrong."""
        await asyncio.gather(self._models.asked(), self._sandbox.checked())

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
        if self._closed:
            return
        try:
            heard = self._companions.heard(command)
        except Exception as defect:  # noqa: BLE001 - a defect is reported, and the session acts on the command
            heard = False  # front-ends can do nothing about it
            self._tell_defect(defect)
        if not heard:
            self._handlers[type(command)](command)

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

    @property
    def answer(self) -> str:
        """The newest text of the model; empty if there is none."""
        said = (message.text for message in reversed(self.view.messages) if message.role == "assistant")
        return next((text.strip() for text in said if text.strip()), "")

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
        if not self._closed:
            self._inbox.go_on()

    # --- requests of slash commands ---------------------------------------------------------------------------

    async def draft_summary(self) -> Summary | None:
        """The model's summary, which changes nothing yet; its price is recorded. None without a model, or while a turn
        runs."""
        return None if self._work.busy else await self._context_parts.summaries.draft()

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
        self._services.toolset.adjust(now)
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

    def transcript(self) -> str:
        """Full text of the conversation with calls and results. Blocks on the disk."""
        return transcript_of(self._recorder.facts, MAIN) or ""

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
