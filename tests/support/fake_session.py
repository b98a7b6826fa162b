"""A session without an engine: it plays prepared event bodies and keeps the commands that it got."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from swecli.core.context_management.cache import CacheHistory
from swecli.core.context_management.compaction.clearing import RuleReport
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.context_management.edits import Effect
from swecli.core.context_management.rule_files import RuleFile
from swecli.core.engine.rewind import RewindPoint
from swecli.core.engine.session_view import Conversation
from swecli.core.engine.state import Spending, Totals
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.commands import Answer, Command, Interrupt, ReplyPermission, Submit
from swecli.core.protocol.events import (
    Body,
    Event,
    FilesRestored,
    Notice,
    NoticeLevel,
    PermissionRequested,
    PermissionResolved,
    Price,
    QuestionAnswered,
    QuestionAsked,
    SessionStarted,
    TurnEnded,
    TurnStarted,
    begins_turn,
)
from swecli.core.protocol.messages import ImagePart
from swecli.core.tools.registry import ToolRegistry
from swecli.core.workspace.jobs import JobInfo, JobsError
from tests.support.fake_files import FakeFiles


class WaitForInterrupt:
    """In a turn: nothing happens until the turn is interrupted."""


WAIT_FOR_INTERRUPT: Final = WaitForInterrupt()
Turn = Sequence[Body | WaitForInterrupt]


@dataclass
class FakeView:
    """Just the values that front-ends without a screen look up."""

    session_id: str = "fake"
    started_seq: int = 1
    newest_seq: int = 0
    published_seq: int = 0
    cwd: Path = Path("/proj")
    roots: tuple[Path, ...] = (Path("/proj"),)
    mode: str = "default"
    refused_modes: dict[str, str] = field(default_factory=dict)
    """Modes that are not available, and why."""
    yolo: bool = False
    ratio: float = 1.0
    model: ModelInfo | None = field(default_factory=lambda: ModelInfo("fake", "model"))
    effort: str | None = None
    replaced: str = ""
    own_effort: str | None = None
    busy: bool = False
    budget: Any = None
    last_usage: Any = None
    totals: Totals = field(default_factory=Totals)
    spending: Spending = field(default_factory=Spending)
    cache: CacheHistory = field(default_factory=CacheHistory)
    queue: tuple[Any, ...] = ()
    todos: tuple[Any, ...] = ()
    scratchpad: str = ""
    watches_instructions: bool = True
    no_instructions: str = ""
    safe_mode: bool = False
    permission: Any = None
    question: Any = None
    sandbox: Any = None
    rules: tuple[Any, ...] = ()
    jobs: tuple[JobInfo, ...] = ()
    agents: tuple[Any, ...] = ()
    messages: tuple[Any, ...] = ()
    conversation: Conversation = field(default_factory=Conversation)
    instructions: tuple[str, ...] = ()
    rule_files: tuple[RuleFile, ...] = ()
    extension_files: None = None
    plan: Any = None
    foreseen: Any = None
    suggestion: Any = None
    planned_model: str = ""

    def mode_refusal(self, mode: str) -> str:
        return self.refused_modes.get(mode, "")

    def forecast(self, text: str, images: int = 0, attached: int = 0) -> Any:
        return self.foreseen


class FakeRewinds:
    """Messages to go back to, with what a preview of each says."""

    def __init__(self) -> None:
        self.listed: tuple[RewindPoint, ...] = ()
        self.files = FilesRestored("undo")
        self.undoable = True
        self.images: tuple[ImagePart, ...] = ()

    def images_of(self, item: str) -> tuple[ImagePart, ...]:
        return self.images

    async def points(self) -> Sequence[RewindPoint]:
        return self.listed

    async def preview(self, item: str) -> FilesRestored:
        return self.files


class FakeOffers:
    """Models to choose from. ``open`` are addresses that answer; ``prices`` were set."""

    def __init__(self) -> None:
        self.listed: tuple[ModelOffer, ...] = ()
        self.unlisted: tuple[str, ...] = ()
        self.omitted = 0
        self.open: tuple[str, ...] = ()
        self.unpriced: tuple[str, ...] = ()
        self.prices: dict[str, Price] = {}

    async def find(self) -> Sequence[ModelOffer]:
        return self.listed

    async def nearby(self) -> Sequence[str]:
        return self.open

    async def set_price(self, model: str, price: Price) -> str:
        self.prices[model] = price
        return "/home/me/config.toml"


class FakeQuestions:
    """``answer`` is what the model says (None: it failed)."""

    def __init__(self, answer: str | None = None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def ask(self, system: str, prompt: str, *, max_output_tokens: int = 2000) -> str | None:
        self.asked.append((system, prompt))
        return self.answer


class FakePrices:
    """Prices of changes: all the same ``effect``; None if they are unknown."""

    def __init__(self) -> None:
        self.effect: Effect | None = None

    def of(self, *which: object) -> Effect | None:
        return self.effect

    changes = rewind = rewind_undo = undo = redo = clearing = switch = view = of


class FakeSession:
    """A ``Session``. Each Submit plays the next of ``turns`` (TurnStarted comes by itself, as does
    TurnEnded where a turn is interrupted or has none). Permission requests and questions wait for their reply.
    ``history`` are bodies of earlier runs."""

    def __init__(self, *turns: Turn, history: Sequence[Body] = (), model: bool = True) -> None:
        self._turns = list(turns)
        self._queue: list[Submit] = []
        self._seq = 0
        self._turn = 0
        self.mentionables: tuple[Any, ...] = ()
        self._past: list[Event] = []
        self._subscribers: list[asyncio.Queue[Event | None]] = []
        self._task: asyncio.Task[None] | None = None
        self._begun = False
        self._replies: dict[str, asyncio.Future[Command]] = {}
        self.commands: list[Command] = []
        self.offers = FakeOffers()
        self.questions: Any = FakeQuestions()
        self.files = FakeFiles()
        self.companions: dict[type[Any], Any] = {}
        self.rewinds = FakeRewinds()
        self.prices = FakePrices()
        self.job_outputs: dict[str, str] = {}
        self.stopped: list[str] = []
        self.prompts: tuple[object, ...] = ()
        self.extended = False
        self.closed = False
        self.kept = "all"
        self.called = ""
        self.defects: list[BaseException] = []
        self._state = FakeView()
        if not model:
            self._state.model = None
        for body in history:
            self.emit(body)
        self._state.started_seq = self._seq + 1
        self.emit(SessionStarted("/proj", "fake/model", "default", "0"))

    @property
    def view(self) -> Any:
        return self._state

    def companion(self, kind: type[Any]) -> Any:
        return self.companions.get(kind)

    def emit(self, body: Body) -> None:
        """Publish an event."""
        self._seq += 1
        event = Event(self._seq, 1700000000.0 + self._seq, "fake", self._turn, body)
        self._past.append(event)
        self._state.newest_seq = self._state.published_seq = self._seq
        for queue in self._subscribers:
            queue.put_nowait(event)

    def require_answers(self, schema: Mapping[str, Any] | None, *, last: bool = False) -> None:
        """Its answers are written already."""

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        self.emit(Notice(text, level, "session", hint))

    @property
    def tools(self) -> ToolRegistry:
        return ToolRegistry(())

    async def extensions_settled(self) -> None:
        """None are expected."""

    def status(self) -> Sequence[tuple[str, str]]:
        return ()

    async def start_settled(self) -> None:
        """Nothing is asked about."""

    def send(self, command: Command) -> None:
        self.commands.append(command)
        if isinstance(command, Submit):
            self._submit(command)
        elif isinstance(command, Interrupt) and self._task is not None:
            self._interrupt(self._task)
        elif isinstance(command, ReplyPermission | Answer):
            future = self._replies.get(command.request)
            if future is not None and not future.done():
                future.set_result(command)

    async def subscribe(self, *, replay: bool = False, turns: int | None = None) -> AsyncIterator[Event]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        begins = [at for at, event in enumerate(self._past) if begins_turn(event)]
        first = begins[-turns] if turns is not None and len(begins) > turns else 0
        for event in self._past[first:] if replay else ():
            queue.put_nowait(event)
        self._subscribers.append(queue)
        while (event := await queue.get()) is not None:
            yield event

    async def name(self) -> str:
        return self.called

    async def rename(self, name: str) -> str:
        self.called = name
        return name

    async def worked(self) -> None:
        """Nothing is done beside turns."""
        while self._state.busy and self._task is not None:
            await asyncio.wait((self._task,))

    def plan_compaction(self) -> CompactionPlan | None:
        return None

    def retention(self) -> Sequence[RuleReport]:
        return ()

    async def examine(self, *, online: bool = False) -> Sequence[DisplayBlock]:
        return (TextBlock("asked" if online else "not asked"),)

    async def job_output(self, job: str) -> str:
        self._job(job)
        return self.job_outputs.get(job, "")

    async def stop_job(self, job: str) -> JobInfo:
        self.stopped.append(job)
        stopped = replace(self._job(job), status="killed", ended=self._job(job).started + 60)
        self._state.jobs = tuple(stopped if each.id == job else each for each in self._state.jobs)
        return stopped

    def _job(self, name: str) -> JobInfo:
        for job in self._state.jobs:
            if job.id == name:
                return job
        raise JobsError(f"Unknown job {name!r}.")

    def report_defect(self, error: BaseException) -> None:
        self.defects.append(error)

    async def close(self, reason: str = "other") -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.closed = True
        for queue in self._subscribers:
            queue.put_nowait(None)

    def _interrupt(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        if not self._begun:  # a task that is cancelled before its first step runs nothing, not even its end
            self._begun, self._state.busy = True, False
            self.emit(TurnEnded("interrupted"))

    def _submit(self, command: Submit) -> None:
        if self._state.model is None:
            self.emit(Notice("No model is connected; your message was not sent.", "error", "session", "Set a key."))
        elif self._state.busy:
            self._queue.append(command)
        else:
            self._state.busy = True
            self._turn += 1
            self.emit(TurnStarted(f"u{self._turn}"))
            self._begun = False
            self._task = asyncio.create_task(self._play(self._turns.pop(0)))

    async def _play(self, turn: Turn) -> None:
        ended = False
        self._begun = True
        try:
            for body in turn:
                await asyncio.sleep(0)
                if isinstance(body, WaitForInterrupt):
                    await asyncio.Event().wait()
                    continue
                reply = asyncio.get_running_loop().create_future()
                if isinstance(body, PermissionRequested | QuestionAsked):
                    self._replies[body.request] = reply
                self.emit(body)
                if isinstance(body, PermissionRequested):
                    answer = await reply
                    self.emit(PermissionResolved(body.request, answer.choice, note=answer.note))
                elif isinstance(body, QuestionAsked):
                    self.emit(QuestionAnswered(body.request, (await reply).answers))
                ended = ended or isinstance(body, TurnEnded)
            if not ended:
                self.emit(TurnEnded("done"))
        except asyncio.CancelledError:
            self.emit(TurnEnded("interrupted"))
        finally:
            await asyncio.sleep(0)
            self._state.busy = False
            if self._queue and not self.closed:
                self._submit(self._queue.pop(0))
