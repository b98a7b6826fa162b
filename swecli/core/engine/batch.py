"""Tool calls without a session: one JSON line in, one JSON line out, through the same gate."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from msgspec import Struct

from swecli.core.engine.companion import Companions, Step
from swecli.core.engine.consent import Consents, Requests, SandboxWatch
from swecli.core.engine.decisions import Decisions
from swecli.core.engine.feature import Feature
from swecli.core.engine.model_access import Connection
from swecli.core.engine.model_call import Call
from swecli.core.engine.notes import Notes
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.repeats import RepeatGuard
from swecli.core.engine.results import Results
from swecli.core.engine.services import Services
from swecli.core.engine.tool_calls import Scheduler, ToolCalls
from swecli.core.protocol.commands import Answer, ReplyPermission
from swecli.core.protocol.events import (
    Event,
    FileChanged,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    Mode,
    PermissionRequested,
    QuestionAsked,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart

MakeServices = Callable[[Path, Mode], tuple[Services, Sequence[Feature]]]
"""Factory of services for a working directory and a mode."""


class BadLine(ValueError):
    """A line that is not a valid request; the message says what is wrong."""


class _Answering:
    """Log that stores nothing and answers every question as the line specifies."""

    def __init__(self, approve: bool, publish: Callable[[Sequence[Event]], None]) -> None:
        self.approve = approve
        self.events: list[Event] = []
        self.requests: Requests | None = None
        self._publish = publish

    def append(self, event: Event) -> None:
        self.events.append(event)
        match event.body:
            case PermissionRequested(request=request):
                asyncio.get_running_loop().call_soon(self._reply, request)
            case QuestionAsked(request=request):
                asyncio.get_running_loop().call_soon(self._dismiss, request)
            case _:
                pass

    def _reply(self, request: str) -> None:
        if self.requests is not None:
            self.requests.reply(ReplyPermission(request, "once" if self.approve else "reject"))

    def _dismiss(self, request: str) -> None:
        if self.requests is not None:
            self.requests.answer(Answer(request, ()))

    async def barrier(self) -> None:
        return None

    async def close(self) -> None:
        return None


async def run_lines(lines: Iterable[str], make_services: MakeServices) -> AsyncIterator[str]:
    """Run each line ``{id, name, arguments, cwd, mode, approve}`` and yield its result as a line of JSON."""
    for line in lines:
        if line.strip():
            yield json.dumps(await _run_line(line, make_services), ensure_ascii=True)


async def _run_line(line: str, make_services: MakeServices) -> dict[str, Any]:
    identifier: object = None
    try:
        data = _object(line)
        identifier = data.get("id")
        return {"id": identifier, **await _run(_request(data), make_services)}
    except BadLine as error:
        return {"id": identifier, "status": "error", "is_error": True, "text": str(error), "bad_line": True}
    except Exception as error:  # noqa: BLE001 - a defect in one line is reported in its result and ends no other
        text = f"internal failure: {type(error).__name__}: {error}"
        return {"id": identifier, "status": "error", "is_error": True, "text": text, "defect": True}


def _object(line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadLine("not a JSON object")
    return cast("dict[str, Any]", data)


class _Request(Struct, frozen=True):
    name: str
    arguments: str
    cwd: Path
    mode: Mode
    approve: bool


def _request(data: dict[str, Any]) -> _Request:
    name, arguments, mode = data.get("name"), data.get("arguments", {}), data.get("mode") or "default"
    cwd = Path(os.path.expanduser(str(data.get("cwd") or ".")))
    if not isinstance(name, str):
        raise BadLine("name: the tool's name is missing")
    if mode not in get_args(Mode):
        raise BadLine(f"mode: {mode!r} is not one of {', '.join(get_args(Mode))}")
    if not os.path.isdir(cwd):
        raise BadLine(f"cwd: {cwd} is not a directory")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return _Request(name, raw, cwd.resolve(), mode, bool(data.get("approve")))


async def _run(request: _Request, make_services: MakeServices) -> dict[str, Any]:
    services, features = make_services(request.cwd, request.mode)
    logs: list[_Answering] = []

    def make_log(publish: Callable[[Sequence[Event]], None]) -> _Answering:
        logs.append(_Answering(request.approve, publish))
        return logs[0]

    recorder = Recorder("batch", (), make_log, services.time.clock)
    recorder.state.mode = request.mode
    requests = logs[0].requests = Requests(recorder)
    context, settings, workspace = services.toolset.context, services.settings, services.workspace
    results = Results(context, settings, None, recorder, Connection(services.access.make_client))
    companions = [
        part for feature in features for part in feature.alone(workspace, services.permissions.policy, recorder)
    ]
    decisions = Decisions(services.permissions, workspace, settings, recorder.state)
    sandbox = SandboxWatch(workspace, services.permissions, settings, recorder)
    consents = Consents(decisions, services.permissions, workspace, recorder, requests, sandbox, Companions(companions))
    calls = ToolCalls(services.toolset.tools, workspace, services.time.monotonic, consents, results, recorder)
    item, part = "t1", ToolCallPart("call_1", request.name, request.arguments)
    recorder.emit(ItemStarted(item, "tool", request.name))
    recorder.emit(ItemCheckpointed(item, part))
    try:
        await Scheduler(calls).run([Call(item, part)])
        await RepeatGuard(recorder, services.toolset.tools, requests, Notes(recorder)).after_step(
            Step([Call(item, part)])
        )
    finally:
        await asyncio.to_thread(services.workspace.sandbox.close)
    return _result(logs[0].events)


def _result(events: Sequence[Event]) -> dict[str, Any]:
    bodies = [event.body for event in events]
    ended = next(body for body in bodies if isinstance(body, ItemCompleted))
    asked = next((body for body in bodies if isinstance(body, PermissionRequested)), None)
    result = next(part for part in ended.parts if isinstance(part, ToolResultPart))
    return {
        "status": ended.status,
        "is_error": result.is_error,
        "text": result.text,
        "detail": ended.detail,
        "asked": asked is not None,
        "reason": asked.reason if asked else "",
        "rule": asked.rule if asked else None,
        "executed": any(isinstance(body, ItemCheckpointed) and body.running for body in bodies),
        "images": [{"media_type": image.media_type, "name": image.name} for image in result.images],
        "changed": [
            {"path": body.path, "before": body.before, "after": body.after}
            for body in bodies
            if isinstance(body, FileChanged)
        ],
    }
