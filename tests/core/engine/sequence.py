"""The order of what a session does, written down: the steps of its parts, its events, and the bytes of its requests.

``WATCHED`` names the methods. They follow the code when it moves; what is written down stays, unless the behaviour
changes. Texts of prompts and tools are not part of it: it names the beginning of a request only where that changes.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import count, takewhile
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.engine import session, turn
from swecli.core.engine.changed_files import ChangedFiles
from swecli.core.engine.compaction_triggers import CompactionTriggers
from swecli.core.engine.companion import Companion, Joined
from swecli.core.engine.consent import Consents, SandboxWatch
from swecli.core.engine.files import SessionFiles
from swecli.core.engine.inner import Relay
from swecli.core.engine.instruction_news import InstructionNews
from swecli.core.engine.invoked import Invoking
from swecli.core.engine.jobs import JobWatch
from swecli.core.engine.meter import Meter
from swecli.core.engine.model_access import Connection
from swecli.core.engine.model_call import Answer, Asking, StepAccount
from swecli.core.engine.models import ModelChoice
from swecli.core.engine.offered_tools import OfferedTools
from swecli.core.engine.plan import Plans
from swecli.core.engine.prepared_call import PreparedCall
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.repeats import RepeatGuard
from swecli.core.engine.results import Results, SeenFiles
from swecli.core.engine.snapshots import SessionSnapshots
from swecli.core.engine.tool_calls import EffectLocks, Scheduler, ToolCalls
from swecli.core.engine.work import Work
from swecli.core.llm.scripted import ScriptedModel
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.events import DELTAS, MAIN, Body, HooksRunning, ItemCheckpointed
from swecli.core.protocol.messages import Message, ToolCallPart
from swecli.features import FEATURES
from swecli.features.extensions.companion import ExtensionNews
from swecli.features.hooks.companion import SessionHooks
from swecli.features.memory.companion import SessionMemory
from swecli.features.playbook.companion import SessionPlaybook
from swecli.features.retrieval.companion import PromptRetrieval
from swecli.features.subagents.companion import Subagents
from tests.core.engine.support import MemoryLog

FOLDER = Path(__file__).parent / "sequences"
REGENERATE = "UPDATE_GOLDENS=1 .venv/bin/pytest tests/core/engine/test_sequence.py"
MOST_SHOWN = 40
"""Most lines of a difference that are shown, and most characters of a message."""
Condition = Callable[..., object]


def _always(*_arguments: object) -> bool:
    return True


def _told(hooks: SessionHooks) -> object:
    return hooks._contexts  # pyright: ignore[reportPrivateUsage]


def _is_models(hooks: SessionHooks, call: PreparedCall) -> bool:
    return hooks._is_models(call)  # pyright: ignore[reportPrivateUsage]


def _keeps(memory: SessionMemory) -> bool:
    return memory._keeps  # pyright: ignore[reportPrivateUsage]


def _is_first(_companion: Companion, message: Joined) -> bool:
    return message.first


def _any(_self: object, words: Sequence[str], *_arguments: object) -> bool:
    return bool(words)


WATCHED: Sequence[tuple[str, Any, str, Condition]] = (
    # the session
    ("recover", session, "recover", _always),
    ("connection: connect", Connection, "connect", _always),
    ("subagents: close the interrupted", Subagents, "start", _always),
    ("tools: adopt", OfferedTools, "adopt", _always),
    ("snapshots: resume", SessionSnapshots, "resume", _always),
    ("context: resume the cache", ContextManager, "resume_cache", _always),
    ("memory: start", SessionMemory, "start", _always),
    ("sandbox: publish", SandboxWatch, "publish", _always),
    ("models: start", ModelChoice, "start", _always),
    ("hooks: start", SessionHooks, "start", _always),
    ("work: stop", Work, "stop", _always),
    ("subagents: close", Work, "end_beside", _always),
    ("hooks: end", SessionHooks, "close", _always),
    ("playbook: close", SessionPlaybook, "close", _always),
    ("models: close", ModelChoice, "close", _always),
    ("sandbox: stop", SandboxWatch, "stop", _always),
    ("jobs: close", JobWatch, "end", _always),
    ("files: close", SessionFiles, "close", _always),
    ("snapshots: close", SessionSnapshots, "close", _always),
    ("connection: close", Connection, "close", _always),
    ("recorder: close", Recorder, "close", _always),
    # the beginning of a turn, and steering
    ("models: begin the turn", ModelChoice, "begin_turn", _always),
    ("extension news: look", ExtensionNews, "joined", _is_first),
    ("models: lend", ModelChoice, "lend", _always),
    ("command: expand", Invoking, "send", _always),
    ("hooks: begin the turn", SessionHooks, "_begin_turn", _always),
    ("hooks: screen the message", SessionHooks, "_submit", _always),
    ("models: ready", ModelChoice, "ready", _always),
    ("tools: wait for mentions", OfferedTools, "arrived", _any),
    ("playbook: begin the turn", SessionPlaybook, "joined", _is_first),
    ("playbook: tell", SessionPlaybook, "_tell", _always),
    ("retrieval: add", PromptRetrieval, "joined", _always),
    ("repeats: the user spoke", RepeatGuard, "joined", lambda _guard, message: not message.first),
    # each step
    ("hooks: add texts", SessionHooks, "before_request", _told),
    ("caps: check", turn, "cap_reached", _always),
    ("instructions: look", InstructionNews, "before_request", _always),
    ("tools: settle", OfferedTools, "settle", _always),
    ("context: settle", ContextManager, "settle", _always),
    ("changed files: check", ChangedFiles, "before_request", _always),
    ("jobs: tell", JobWatch, "before_request", _always),
    ("request: build", ContextManager, "prepare", _always),
    ("budget of the parent", "swecli.features.spending.companion:SpendingGate", "agent_blocked", _always),
    ("budget: check", "swecli.features.spending.companion:SpendingGate", "check_request", _always),
    ("compactions: before the request", CompactionTriggers, "before_request", _always),
    ("repeats: compacted", RepeatGuard, "before_request", _always),
    ("account: begin", StepAccount, "begin", _always),
    ("model: ask", Asking, "ask", _always),
    ("model: wait", Asking, "wait", _always),
    ("models: learn", ModelChoice, "learn", _always),
    ("compactions: after an overflow", CompactionTriggers, "after_overflow", _always),
    ("models: fall back", ModelChoice, "fall_back", _always),
    ("models: note the failure", ModelChoice, "note_failure", _always),
    ("cache: report a miss", Meter, "report_cache_miss", _always),
    ("tools: called", OfferedTools, "called", _always),
    ("calls: run", Scheduler, "run", lambda _scheduler, calls: bool(calls)),
    ("playbook: settle", SessionPlaybook, "_settle", _always),
    ("account: end", StepAccount, "end", _always),
    ("memory: keep", SessionMemory, "_keep", _keeps),
    ("repeats: check", RepeatGuard, "after_step", _always),
    ("subagents: settled", Work, "beside_settled", _always),
    ("hooks: stop", SessionHooks, "stay", _always),
    # the end of a turn
    ("plans: propose", Plans, "end_turn", lambda _plans, end: end.outcome == "done"),
    (
        "sentinel: look",
        "swecli.features.sentinel.companion:Sentinel",
        "end_turn",
        lambda _sentinel, end: end.outcome in ("done", "limit"),
    ),
    ("hooks: the turn ended", SessionHooks, "_begin_waiting", _always),
    # a call
    ("call: prepare", ToolCalls, "prepare", _always),
    ("subagents: expect", Subagents, "expect", _always),
    ("hooks: before the call", SessionHooks, "before_call", _is_models),
    ("consent: obtain", Consents, "obtain", _always),
    ("hooks: before the question", SessionHooks, "before_asking", _always),
    ("consent: stands", Consents, "stands", _always),
    ("locks: hold", EffectLocks, "hold", _always),
    ("consent: holds", Consents, "holds", _always),
    ("hooks: after the call", SessionHooks, "_after_tool", _always),
    ("consent: outside", Consents, "outside", _always),
    ("results: admit", Results, "admit", _always),
    ("playbook: add to the failure", SessionPlaybook, "on_failure", _always),
    ("files: record", SeenFiles, "record", _always),
    ("subagents: work", Subagents, "work", _always),
    ("log: barrier", MemoryLog, "barrier", _always),
)


def _owner(named: Any) -> Any:
    """The class or module of a watched method; of a deleted feature, which is named as text, None."""
    if not isinstance(named, str):
        return named
    module, _, name = named.partition(":")
    package = module.rpartition(".")[0]
    return getattr(import_module(module), name) if find_spec(package) and find_spec(module) else None


_OF_CODE = ("code: expect", "code: find errors")
GONE = frozenset(
    (
        *(label for label, named, _, _ in WATCHED if _owner(named) is None),
        *(() if "language_servers" in FEATURES else _OF_CODE),
    )
)
"""The steps of deleted features, which nothing takes."""


class Order:
    """What happened, line by line. ``stops_at`` is the number of the awaited step at which ``interrupt`` is called,
    and which then waits to be cancelled."""

    def __init__(self, folder: Path, stops_at: int = 0) -> None:
        self.lines: list[str] = []
        self._folder = str(folder)
        self._stops_at = stops_at
        self._awaited = count(1)
        self.interrupt: Callable[[], None] | None = None
        self.stopped_at, self.stopped_line = "", 0
        self._sent: dict[str, ModelRequest] = {}
        """The newest request of each model."""

    def note(self, line: str) -> None:
        self.lines.append(line)

    def event(self, body: Body, agent: str = MAIN) -> None:
        """Write down an event, but for what depends on the pace of the machine."""
        paced = isinstance(body, (*DELTAS, HooksRunning))
        text = isinstance(body, ItemCheckpointed) and not isinstance(body.part, ToolCallPart)
        if not (paced or text):
            item = getattr(body, "item", "")
            self.note("  ".join(filter(None, ("", agent, " ".join(filter(None, (type(body).__name__, item)))))))

    def request(self, model: ScriptedModel, request: ModelRequest) -> None:
        """Write down what a request has behind the one before, message by message with its bytes."""
        before = self._sent.get(model.info.ref)
        self._sent[model.info.ref] = request
        pairs = zip(before.messages, request.messages, strict=False) if before is not None else ()
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        kept = f", {same} of {len(before.messages)} as before" if before is not None else ""
        self.note(f"> request to {model.info.ref}: {len(request.messages)} messages{kept}")
        if before is not None and (before.system, before.tools) != (request.system, request.tools):
            self.note(">   another beginning")
        for message in request.messages[same:]:
            self.note(f">   {self._shown(message)}")

    def _shown(self, message: Message) -> str:
        data = msgspec.json.encode(msgspec.structs.replace(message, response=None)).decode()
        data = data.replace(self._folder, "FOLDER")
        text = " ".join(message.text.replace(self._folder, "FOLDER").split())
        if not text:
            text = ", ".join(
                [
                    *(f"{call.name} {call.arguments}" for call in message.tool_calls),
                    *(f"{result.name}: {' '.join(result.text.split())}" for result in message.tool_results),
                ]
            )
        text = text.replace(self._folder, "FOLDER")
        shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
        note = f" ({message.note})" if message.note else ""
        return f"{message.role}{note}, {len(data.encode()):,} bytes {crc32(data.encode()):08x}: {shown}"

    async def step(self, label: str) -> None:
        """Interrupt the session at the wanted awaited step; the others go on."""
        if self.interrupt is not None and next(self._awaited) == self._stops_at:
            self.stopped_at, self.stopped_line = label, len(self.lines)
            self.interrupt()
            await asyncio.Event().wait()

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def turns(self) -> str:
        """Without the beginning and the end of the session, which are the same everywhere."""
        begin = next(at for at, line in enumerate(self.lines) if line.startswith("«"))
        end = len(self.lines) - self.lines[::-1].index("work: stop") - 1
        return "\n".join(self.lines[begin:end]) + "\n"


@contextmanager
def watched(folder: Path, monkeypatch: pytest.MonkeyPatch, stops_at: int = 0) -> Iterator[Order]:
    """Write down what the sessions do that begin meanwhile."""
    order = Order(folder, stops_at)
    with monkeypatch.context() as patch:
        for label, named, name, condition in WATCHED:
            owner = _owner(named)
            if owner is not None:
                patch.setattr(owner, name, _wrapped(order, label, getattr(owner, name), condition))
        patch.setattr(Recorder, "emit", _emitting(order, Recorder.emit))
        patch.setattr(Recorder, "relay", _relaying(order, Recorder.relay))
        patch.setattr(ScriptedModel, "stream", _asking(order, ScriptedModel.stream))
        patch.setattr(Answer, "_checkpoint", lambda _answer: None)  # by the pace of the stream
        yield order


def _wrapped(order: Order, label: str, method: Callable[..., Any], condition: Condition) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        async def awaited(*arguments: Any, **named: Any) -> Any:
            if condition(*arguments):
                order.note(label)
                await order.step(label)
            return await method(*arguments, **named)

        return awaited

    def called(*arguments: Any, **named: Any) -> Any:
        if condition(*arguments):
            order.note(label)
        return method(*arguments, **named)

    return called


def _emitting(order: Order, emit: Callable[..., Any]) -> Callable[..., Any]:
    def emitting(recorder: Recorder, body: Body) -> Any:
        if not isinstance(recorder.log, Relay):  # which records it in the session around
            order.event(body)
        return emit(recorder, body)

    return emitting


def _relaying(order: Order, relay: Callable[..., Any]) -> Callable[..., Any]:
    def relaying(recorder: Recorder, body: Body, agent: str, turn: int) -> Any:
        order.event(body, agent)
        return relay(recorder, body, agent, turn)

    return relaying


def _asking(order: Order, stream: Callable[..., Any]) -> Callable[..., Any]:
    def asking(model: ScriptedModel, request: ModelRequest) -> Any:
        order.request(model, request)
        return stream(model, request)

    return asking


def _without(labels: Collection[str], text: str) -> str:
    """What is written down, without these steps."""
    if not labels:
        return text
    kept: list[str] = []
    for line in text.splitlines():
        stopped_at, arrow, after = line.partition(" -> ")
        if stopped_at not in labels:
            steps = (step for step in after.split("; ") if step not in labels)
            kept.append(f"{stopped_at}{arrow}{'; '.join(steps)}")
    return "\n".join(kept) + "\n"


def check(name: str, text: str) -> None:
    """Compare with what is written down under this name.

    Raises:
        AssertionError: it differs; with the beginning of the difference, and how to write it down anew.
    """
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDENS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    known = _without(GONE, path.read_text(encoding="utf-8")) if path.exists() else ""
    if text == known:
        return
    lines = list(difflib.unified_diff(known.splitlines(), text.splitlines(), "before", "now", lineterm="", n=1))[2:]
    more = [f"… {len(lines) - MOST_SHOWN} more lines"] if len(lines) > MOST_SHOWN else []
    shown = "\n".join([*lines[:MOST_SHOWN], *more])
    pytest.fail(
        f"The sequence {name!r} has changed:\n{shown}\n\nIf that is wanted, write it down anew and read the "
        f"difference:\n  {REGENERATE}",
        pytrace=False,
    )
