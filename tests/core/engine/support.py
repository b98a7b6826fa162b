"""A session with a scripted model, controllable tools and a log in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.engine.feature import Feature
from swecli.core.engine.model_access import ModelAccess, ModelCatalog
from swecli.core.engine.services import Permissions, Services, Store, Time, Toolset, Workspace
from swecli.core.engine.session import Session
from swecli.core.engine.settings import Adjustable, Settings
from swecli.core.llm.scripted import Script, ScriptedModel, parse_script
from swecli.core.llm.types import ModelRequest
from swecli.core.permissions.decide import decide
from swecli.core.permissions.types import Effects, Policy
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import Command, ReplyPermission, Submit
from swecli.core.protocol.events import MAIN, Body, CacheBreak, Event, PermissionRequested, TurnEnded, is_fact
from swecli.core.protocol.request_events import PermissionChoice
from swecli.core.tools.base import AnyTool, Params, Preview, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.registry import ToolRegistry
from swecli.features import FEATURES
from tests.support import waiting
from tests.support.frames import unframed
from tests.support.waiting import Condition


def notes_in(request: ModelRequest) -> str:
    """All notes of a request on a topic."""
    return "\n".join(message.text for message in request.messages if message.note)


def new_notes(request: ModelRequest) -> str:
    """The notes of a request behind the newest answer."""
    newest = next((at for at in range(len(request.messages), 0, -1) if request.messages[at - 1].role == "assistant"), 0)
    return "\n".join(message.text for message in request.messages[newest:] if message.note)


async def until(condition: Condition, what: str = "condition") -> None:
    """Wait for a condition without guessing a time."""
    await waiting.until(condition, lambda: what, between=0.001)


@dataclass
class Gates:
    """Lets a test hold tools and see what runs. ``log`` has (event, target) in order."""

    held: set[str] = field(default_factory=set)
    log: list[tuple[str, str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """Result texts by target, where they matter."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def started(self) -> list[str]:
        return [target for event, target in self.log if event == "start"]

    @property
    def ended(self) -> list[str]:
        return [target for event, target in self.log if event == "end"]

    def release(self, target: str) -> None:
        self.held.discard(target)
        self.changed.set()
        self.changed = asyncio.Event()

    async def through(self, target: str) -> None:
        self.log.append(("start", target))
        try:
            while target in self.held:
                await self.changed.wait()
        except asyncio.CancelledError:
            self.log.append(("cancel", target))
            raise
        self.log.append(("end", target))


class Target(Params):
    target: str


class _Gated(Tool[Target]):
    params: ClassVar[type[Params]] = Target

    def __init__(self, gates: Gates) -> None:
        self.gates = gates

    def title(self, params: Target, ctx: ToolContext) -> str:
        return params.target

    async def run(self, params: Target, ctx: ToolContext) -> ToolOutcome:
        await self.gates.through(params.target)
        if params.target == "broken":
            raise ToolError("it is broken")
        if params.target == "defect":
            raise KeyError("a defect of the tool")
        text = self.gates.outputs.get(params.target, f"{self.name} {params.target} done")
        return ToolOutcome(text, (TextBlock(params.target),), "done")


class Peek(_Gated):
    """Reads a path."""

    name = "read_file"
    verb = "Read"

    def effects(self, params: Target, ctx: ToolContext) -> Effects:
        return Effects(reads=(str(ctx.cwd / params.target),))


class Poke(_Gated):
    """Writes a path; its preview is bound to the content of ``gates.files``."""

    name = "write_file"
    verb = "Write"

    def effects(self, params: Target, ctx: ToolContext) -> Effects:
        return Effects(writes=(str(ctx.cwd / params.target),))

    async def preview(self, params: Target, ctx: ToolContext) -> Preview:
        content = self.gates.files.get(params.target, "")
        return Preview((TextBlock(f"was: {content}"),), content)


class Shell(_Gated):
    name = "run_command"
    verb = "Run"

    def effects(self, params: Target, ctx: ToolContext) -> Effects:
        return Effects(command=params.target)


class MemoryLog:
    """An event log that keeps facts in a list and publishes at once, on the next turn of the event loop."""

    def __init__(self, facts: list[Event], publish: Callable[[Sequence[Event]], None]) -> None:
        self.facts = facts
        self._publish = publish

    def append(self, event: Event) -> None:
        if is_fact(event.body):
            self.facts.append(event)
        asyncio.get_running_loop().call_soon(self._publish, (event,))

    async def barrier(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        await asyncio.sleep(0)


def call(tool: str, target: str) -> str:
    """A scripted call in the script format."""
    return f'{{ tool = "{tool}", arguments = {{ target = "{target}" }} }}'


@dataclass
class Bench:
    """What a test holds."""

    session: Session
    model: ScriptedModel
    gates: Gates
    facts: list[Event]
    events: list[Event] = field(default_factory=list)
    allow_all: bool = False
    """Answer every permission request with yes as it comes."""
    _sorted: int = 0
    _by_kind: dict[type[Any], list[Any]] = field(default_factory=dict)

    def bodies(self, kind: type[Any]) -> list[Any]:
        """The bodies of one kind. Each event is sorted once, because conditions ask again and again."""
        for event in self.events[self._sorted :]:
            self._by_kind.setdefault(type(event.body), []).append(event.body)
        self._sorted = len(self.events)
        return list(self._by_kind.get(kind, ()))

    def send(self, command: Command) -> None:
        self.session.send(command)

    async def say(self, text: str) -> TurnEnded:
        """Submit and wait for the end of the turn."""
        turn = self.session.view.totals.turns + 1
        self.send(Submit(text))

        def ends() -> list[TurnEnded]:
            return [e.body for e in self.events if (e.turn, e.agent) == (turn, MAIN) and isinstance(e.body, TurnEnded)]

        await until(lambda: not self.session.view.busy and bool(ends()), "end of turn")
        return ends()[-1]

    async def idle(self) -> None:
        """Wait until nothing runs and every fact has arrived here: events arrive some steps of the loop later."""
        await until(lambda: not self.session.view.busy and self.events[-1].seq >= self.facts[-1].seq, "end of all work")

    async def asked(self, number: int = 1) -> PermissionRequested:
        """Wait for the n-th permission request."""
        await until(lambda: len(self.bodies(PermissionRequested)) >= number, f"request {number}")
        return self.bodies(PermissionRequested)[number - 1]

    def allow(self, request: PermissionRequested, choice: PermissionChoice = "once", note: str = "") -> None:
        self.send(ReplyPermission(request.request, choice, note))

    def tool_texts(self) -> dict[str, str]:
        """Result texts of the newest request, by call id, those from outside without their frames."""
        return {
            result.call_id: unframed(result.text)
            for message in self.session.view.messages
            for result in message.tool_results
        }


def make_services(model: ScriptedModel, tools: Sequence[AnyTool], cwd: Path, **changes: Any) -> Services:
    registry = ToolRegistry(tools)

    def chosen(kind: type[Struct]) -> dict[str, Any]:
        return {name: changes.pop(name) for name in kind.__struct_fields__ if name in changes}

    files = changes.get("extension_files")
    if files is not None:
        changes.setdefault("readable", lambda: files.readable)
    place = {"cwd": cwd, "roots": (cwd,), "environment": {"PATH": "/usr/bin:/bin"}}
    services = Services(
        workspace=Workspace(**{**place, **chosen(Workspace)}),
        toolset=Toolset(**{"tools": registry, "context": ContextManager(registry.schemas()), **chosen(Toolset)}),
        access=ModelAccess(**{"make_client": lambda _name: model, **chosen(ModelAccess)}),
        catalog=ModelCatalog(**chosen(ModelCatalog)),
        permissions=Permissions(**{"decide": decide, "policy": Policy(mode="default"), **chosen(Permissions)}),
        time=Time(**{"sleep": lambda _seconds: asyncio.sleep(0), **chosen(Time)}),
        store=Store(**{"version": "test", **chosen(Store)}),
        settings=Settings(Adjustable(**chosen(Adjustable)), **chosen(Settings)),
    )
    return replace(services, **changes)


def make_features(changes: dict[str, Any]) -> Sequence[Feature]:
    """The features whose wiring has a function ``feature``, each made from those of the changes that concern it; these
    are taken out."""
    made: list[Feature] = []
    for name in FEATURES:
        feature = getattr(import_module(f"swecli.features.{name}.wiring"), "feature", None)
        if feature is not None:
            words = [word for word in signature(feature).parameters if word in changes]
            made.append(feature(**{word: changes.pop(word) for word in words}))
    return made


@asynccontextmanager
async def bench(
    script: str,
    cwd: Path,
    *,
    history: Sequence[Event] = (),
    tools: Sequence[AnyTool] = (),
    name: str = "scripted/test",
    session_id: str = "s",
    make_model: Callable[[Script], ScriptedModel] = ScriptedModel,
    **changes: Any,
) -> AsyncIterator[Bench]:
    """A running session over the script's steps; ``name`` is the model that it begins with."""
    gates = Gates()
    model = make_model(parse_script(script))
    everything = [Peek(gates), Poke(gates), Shell(gates), *tools]
    facts = list(history)
    features = make_features(changes)
    services = make_services(model, everything, cwd, **changes)
    session = Session(session_id, services, lambda publish: MemoryLog(facts, publish), history, features=features)
    made = Bench(session, model, gates, facts)
    subscription = session.subscribe()

    async def follow() -> None:
        async for event in subscription:
            made.events.append(event)
            if made.allow_all and isinstance(event.body, PermissionRequested):
                made.allow(event.body)

    follower = asyncio.create_task(follow())
    session.start(name, "Date: 2026-01-01")
    try:
        yield made
    finally:
        await session.close()
        await asyncio.wait_for(follower, waiting.PATIENCE)
    broken = [body.cause for body in made.bodies(CacheBreak) if body.kind == "defect"]
    assert not broken, "a request did not begin with the one before"


def kinds(events: Sequence[Event]) -> list[str]:
    """Types of bodies, for short assertions."""
    return [type(event.body).__name__ for event in events]


def bodies_of(events: Sequence[Event], kind: type[Body]) -> list[Body]:
    return [event.body for event in events if isinstance(event.body, kind)]
