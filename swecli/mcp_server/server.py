"""swecli as an MCP server: its tools, running tasks, open sessions, and the program for one client."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

import anyio
import mcp_types
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from msgspec.structs import replace
from pydantic import ValidationError

from swecli import __version__
from swecli.assembly.session_list import continuable
from swecli.core.mcp.messages import BadMessage, read_answer
from swecli.core.protocol.events import PermissionRequested
from swecli.core.protocol.turns import Request
from swecli.core.tools.bounding import bound_result
from swecli.core.workspace.text_file import usable_folder
from swecli.exit_codes import ExitCode
from swecli.input_lines import InputLines
from swecli.launch import LaunchOptions, StartError
from swecli.mcp_server.tasks import (
    IN_BACKGROUND,
    LONGEST,
    NO_FORMS,
    TOO_LONG,
    UNANSWERED,
    Task,
    permission_form,
    permission_message,
    permission_reply,
    question_answers,
    question_form,
    question_message,
)
from swecli.mcp_server.tools import (
    CANCEL_TASK,
    INSTRUCTIONS,
    LIST_SESSIONS,
    READ_RESULT,
    RUN_TASK,
    BadArguments,
    Report,
    Wish,
    allowed_mode,
    definitions,
    folder_of,
    report_document,
    report_text,
    seconds_of,
    session_of,
    wish_of,
)
from swecli.output import ROOM, Output, Writer, log_in_lines, safe
from swecli.safe_text import safe_line
from swecli.stopping import Stop

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from swecli.core.engine.session import Session

Context = ServerRequestContext[Any, Any]
MOST_OPEN: Final = 8
"""Most sessions open at once. One more closes the one idle longest, which reopens on its next request."""
MOST_LISTED: Final = 100
MOST_TRANSCRIPT: Final = 1_000_000
"""Bytes of a transcript; a longer one is reduced to its beginning and end."""
ANSWER_SECONDS: Final = 900.0
"""Seconds that a question handed to the client waits for its answer."""
SCHEME: Final = "swecli://session/"


OpenSession = Callable[[LaunchOptions], Awaitable["Session"]]


class TaskServer:
    """Serves one client. ``options`` are those of the start: tasks may work in their folders."""

    def __init__(
        self,
        options: LaunchOptions,
        open_session: OpenSession,
        log: Callable[[str], None],
    ) -> None:
        self._options = options
        self._open_session = open_session
        self._log = log
        self._tasks: dict[str, Task] = {}
        """By id, the most recently used last."""
        self._opening = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    def server(self) -> Server[Any]:
        """The SDK's server with these methods as handlers."""
        return Server(
            "swecli",
            version=__version__,
            title="swecli",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )

    async def close(self) -> None:
        """End all tasks and close all sessions."""
        self._closed = True
        async with self._opening:
            tasks = list(self._tasks.values())
            self._tasks.clear()
        results = await asyncio.gather(*(each.close() for each in tasks), return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                self._log(f"could not close a session: {result}")
        if self._ending:
            await asyncio.wait(self._ending)

    # --- tools ------------------------------------------------------------------------------------------------

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(each) for each in definitions()])

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        arguments: Mapping[str, Any] = params.arguments or {}
        try:
            match params.name:
                case "run_task" if params.request_state is not None:
                    return await self._answered(context, params)
                case "run_task":
                    return await self._run(context, wish_of(arguments))
                case "read_result":
                    return _result(await self._result_of(session_of(arguments, "wait"), seconds_of(arguments)))
                case "cancel_task":
                    stopped = await self._cancel(session_of(arguments))
                    return _result(stopped, is_error=False)
                case "list_sessions":
                    return await self._sessions(folder_of(arguments))
                case name:
                    known = ", ".join((RUN_TASK, READ_RESULT, CANCEL_TASK, LIST_SESSIONS))
                    raise MCPError(types.INVALID_PARAMS, f"unknown tool {safe_line(name[:80])!r}; tools: {known}")
        except (BadArguments, StartError) as error:
            return types.CallToolResult(content=[types.TextContent(text=safe(str(error)))], is_error=True)

    async def _run(self, context: Context, wish: Wish) -> types.CallToolResult | types.InputRequiredResult:
        unasked = IN_BACKGROUND if wish.background else "" if _can_ask(context) else NO_FORMS
        task = await self._task_for(wish, asked=not unasked)
        task.unasked = unasked
        task.begin(wish.prompt, allowed_mode(wish.mode, task.mode))
        self._log(f"session {task.id} runs{' in the background' if wish.background else ''}")
        if wish.background:
            return _result(task.report)
        return await self._attend(context, task)

    async def _attend(self, context: Context, task: Task) -> types.CallToolResult | types.InputRequiredResult:
        """Wait for the end of a task; meanwhile report progress to the client, and let it ask its user. If the client
        cancels, the task is stopped."""
        finished = asyncio.ensure_future(task.finished())
        try:
            while not finished.done():
                await self._progress(context, task)
                request = next(iter(task.open.values()), None)
                if request is None:
                    moved = asyncio.ensure_future(task.moved())
                    await asyncio.wait((finished, moved), return_when=asyncio.FIRST_COMPLETED)
                    moved.cancel()
                elif not context.session.can_send_request:
                    return self._handed_over(task)
                else:
                    await self._ask(context, task, request)
            await self._progress(context, task)
        except asyncio.CancelledError:
            self._stop(task)
            raise
        finally:
            finished.cancel()
        return _result(task.report)

    async def _progress(self, context: Context, task: Task) -> None:
        """Report each activity once, also after the client repeated the call with an answer."""
        while task.untold:
            number, activity = task.untold.popleft()
            await context.session.report_progress(float(number), None, activity)

    def _stop(self, task: Task) -> None:
        self._log(f"session {task.id} cancelled")
        self._beside(task.stop())

    async def _result_of(self, session: str, wait: float) -> Report:
        task = self._tasks.get(session)
        if task is not None:
            finished = asyncio.ensure_future(task.finished())
            try:
                await asyncio.wait((finished,), timeout=wait)
            finally:
                finished.cancel()
            return task.report
        looked = await self._looked_at(session)
        try:
            return Report(session, "idle", looked.answer)
        finally:
            await looked.close()

    async def _cancel(self, session: str) -> Report:
        task = self._tasks.get(session)
        if task is None:
            raise BadArguments(f"No task of session {safe_line(session[:80])!r} is running here; nothing was stopped.")
        await task.stop()
        return task.report

    async def _sessions(self, folder: str) -> types.CallToolResult:
        path = self._folder(folder)
        stored = await asyncio.to_thread(continuable, self._options, path)
        states = {task.id: task.report.state for task in self._tasks.values() if task.session.view.cwd == path}
        entries = [
            {
                "session": session.id,
                "title": safe(session.title)[:200],
                "updated": datetime.fromtimestamp(session.updated, UTC).isoformat(timespec="seconds"),
                "state": states.pop(session.id, "idle"),
            }
            for session in stored[:MOST_LISTED]
        ]
        entries[:0] = [{"session": id, "title": "", "updated": "", "state": state} for id, state in states.items()]
        lines = [f"{entry['session']}  {entry['state']}  {entry['updated']}  {entry['title']}" for entry in entries]
        text = "\n".join(lines) or f"No sessions are stored for {path}."
        return types.CallToolResult(
            content=[types.TextContent(text=safe(text))], structured_content={"folder": str(path), "sessions": entries}
        )

    # --- questions --------------------------------------------------------------------------------------------

    async def _ask(self, context: Context, task: Task, request: Request) -> None:
        """Let the client ask its user, unless the question is settled before."""
        message, schema = _form(request)
        if len(message) > LONGEST:
            task.refuse(request, TOO_LONG)
            await task.settled(request.request)
            return
        settled = asyncio.ensure_future(task.settled(request.request))
        answer = asyncio.ensure_future(
            context.session.elicit_form(message, schema, related_request_id=context.request_id)
        )
        try:
            await asyncio.wait((settled, answer), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                return
            try:
                self._take(task, request, answer.result())
            except (MCPError, ValidationError) as error:
                why = f"The client could not ask its user: {safe_line(str(error))[:200]}"
                self._log(f"session {task.id}: {why}")
                task.refuse(request, why)
            await settled
        finally:
            settled.cancel()
            answer.cancel()

    def _take(self, task: Task, request: Request, result: types.ElicitResult) -> None:
        if isinstance(request, PermissionRequested):
            task.session.send(permission_reply(request, result.action, result.content))
        else:
            task.session.send(question_answers(request, result.action, result.content))

    def _handed_over(self, task: Task) -> types.CallToolResult | types.InputRequiredResult:
        """The open questions as the result of the call: the client repeats the call with the answers."""
        requests: dict[str, Any] = {}
        for key, request in tuple(task.open.items()):
            message, schema = _form(request)
            if len(message) > LONGEST:
                task.refuse(request, TOO_LONG)
                continue
            requests[key] = types.ElicitRequest(
                params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
            )
        asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._unanswered, task, tuple(requests))
        return types.InputRequiredResult(input_requests=requests or None, request_state=task.id)

    def _unanswered(self, task: Task, keys: Sequence[str]) -> None:
        for key in keys:
            if key in task.open:
                task.refuse(task.open[key], UNANSWERED)

    async def _answered(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Apply the answers of a repeated call."""
        task = self._tasks.get(params.request_state or "")
        if task is None or task.unasked:
            raise MCPError(types.INVALID_PARAMS, "the request state does not belong to a waiting task")
        for key, result in (params.input_responses or {}).items():
            request = task.open.get(key)
            if request is not None and isinstance(result, types.ElicitResult):
                self._take(task, request, result)
                await task.settled(key)
        return await self._attend(context, task)

    # --- sessions ---------------------------------------------------------------------------------------------

    def _folder(self, name: str) -> Path:
        """A folder where tasks may work.

        Raises:
            BadArguments: it is not a folder, or lies outside.
        """
        if not name:
            return self._options.cwd
        try:
            folder = usable_folder(name, self._options.cwd)
        except (ValueError, OSError) as error:
            raise BadArguments(f"cwd {safe_line(name[:200])}: {error}") from None
        if not any(folder.is_relative_to(root) for root in (self._options.cwd, *self._options.add_dirs)):
            raise BadArguments(
                f"cwd {safe_line(name[:200])} is outside {self._options.cwd}, where this server may work; its "
                "user can start it elsewhere (-C) or add a folder (--add-dir)."
            )
        return folder

    async def _task_for(self, wish: Wish, *, asked: bool) -> Task:
        """The task of a wish, before its start. ``asked``: whether the user can be asked.

        Raises:
            BadArguments: it can't be carried out.
            StartError: there is no such session, or none can start.
        """
        folder = self._folder(wish.cwd)
        async with self._opening:
            known = self._tasks.get(wish.session)
            if known is not None:
                return self._idle(known, folder if wish.cwd else None)
            await self._make_room()
            options = replace(
                self._options,
                cwd=folder,
                resume=wish.session or None,
                headless=True,
                input_format="stream-json" if asked else "text",
            )
            if self._closed:
                raise BadArguments("The server is stopping; nothing was started.")
            session = await self._opened(options)
            task = Task(session)
            try:
                allowed_mode(wish.mode, task.mode)
                if session.view.model is None:
                    raise BadArguments(
                        "No model is connected, so nothing was started. The user of this server must set a key "
                        "(OPENAI_API_KEY, ANTHROPIC_API_KEY, …) for it, or store one with `swecli login "
                        "PROVIDER`."
                    )
            except BadArguments:
                await task.close()
                raise
            self._tasks[task.id] = task
            return task

    async def _opened(self, options: LaunchOptions) -> Session:
        """Open the session of the options. If the client cancels meanwhile, it is closed as soon as it is open."""
        opening = asyncio.ensure_future(self._open_session(options))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._beside(_closed_when_open(opening))
            raise

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run clean-up work that the cancelled caller can't wait for."""
        ending = asyncio.create_task(work)
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _idle(self, task: Task, folder: Path | None) -> Task:
        if task.working:
            raise BadArguments(f"Session {task.id} is already running; wait for it with {READ_RESULT}.")
        if folder is not None and folder != task.session.view.cwd:
            raise BadArguments(f"Session {task.id} works in {task.session.view.cwd}; leave out cwd.")
        self._tasks[task.id] = self._tasks.pop(task.id)
        return task

    async def _make_room(self) -> None:
        while len(self._tasks) >= MOST_OPEN:
            idle = next((each for each in self._tasks.values() if not each.working), None)
            if idle is None:
                raise BadArguments(f"{MOST_OPEN} tasks are running; wait for one of them.")
            del self._tasks[idle.id]
            await idle.close()

    async def _looked_at(self, session: str) -> Session:
        """A stored session, to look at only. The caller closes it.

        Raises:
            BadArguments: it belongs to no folder where tasks may work.
        """
        for folder in (self._options.cwd, *self._options.add_dirs):
            stored = await asyncio.to_thread(continuable, self._options, folder)
            match = next((candidate for candidate in stored if candidate.id == session), None)
            if match is not None:
                path = self._folder(match.folder)
                return await self._open_session(replace(self._options, cwd=path, resume=session, look_only=True))
        raise BadArguments(f"Unknown session {safe_line(session[:80])!r}; {LIST_SESSIONS} lists the ids.")

    # --- resources --------------------------------------------------------------------------------------------

    async def _list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        stored = await asyncio.to_thread(continuable, self._options, self._options.cwd)
        titles = {session.id: safe(session.title)[:100] for session in stored[:MOST_LISTED]}
        titles |= {task.id: "" for task in self._tasks.values() if task.id not in titles}
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=f"{SCHEME}{id}", name=id, title=title or id, mime_type="text/plain")
                for id, title in titles.items()
            ]
        )

    async def _list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=f"{SCHEME}{{session}}",
            name="transcript",
            title="Transcript of a session",
            description="Every message, tool call and result of a session",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        if not uri.startswith(SCHEME):
            raise MCPError(types.INVALID_PARAMS, f"unknown resource {safe_line(uri[:200])}")
        session = uri.removeprefix(SCHEME)
        task = self._tasks.get(session)
        try:
            looked = task.session if task is not None else await self._looked_at(session)
        except (BadArguments, StartError) as error:
            raise MCPError(types.INVALID_PARAMS, safe(str(error))) from None
        try:
            text = await asyncio.to_thread(looked.transcript)
        finally:
            if task is None:
                await looked.close()
        shown = bound_result(_shown(text), MOST_TRANSCRIPT, MOST_TRANSCRIPT)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=shown)]
        )


async def _closed_when_open(opening: asyncio.Future[Session]) -> None:
    with suppress(StartError):
        await (await opening).close()


def _form(request: Request) -> tuple[str, dict[str, Any]]:
    if isinstance(request, PermissionRequested):
        return permission_message(request), permission_form(request)
    return question_message(request), question_form(request)


def _can_ask(context: Context) -> bool:
    """Whether the client shows forms to its user."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _shown(text: str) -> str:
    """Text for people without escape sequences; control characters become visible stand-ins."""
    return "\t".join(safe(part) for part in text.split("\t"))


def _result(report: Report, *, is_error: bool | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=_shown(report_text(report)))],
        structured_content=report_document(report),
        is_error=report.failed if is_error is None else is_error,
    )


# The program behind ``swecli mcp serve``: serves one client on standard input and output.
#
# Replaces the SDK's own transport: no signal ends its reading thread, and it buffers lines of any length.


LONGEST_LINE: Final = 32 * 1024 * 1024
"""Bytes of one message; a longer one is answered with an error."""
LINGER: Final = 1.0
"""Seconds to wait at the end for the reader of the remaining output."""
CLOSE_SECONDS: Final = 6.0
"""Seconds for the sessions to close."""


async def serve(
    options: LaunchOptions,
    open_session: OpenSession,
    streams: tuple[BinaryIO, TextIO],
    stop: Stop,
) -> ExitCode:
    """Serve the client until its input ends or a signal arrives; then close every session."""
    writer, errors = Writer(), Output(sys.stderr)
    log_in_lines(errors, "swecli mcp serve")

    def log(line: str) -> None:
        errors.note(f"swecli mcp serve: {line}")

    source, target = streams
    tasks = TaskServer(options, open_session, log)
    server = tasks.server()
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    wire = Wire(source, Output(target, writer), writer, log)
    writer.changed = wire.end
    with stop.calling(wire.end):
        receiving = asyncio.create_task(wire.receive(incoming))
        sending = asyncio.create_task(wire.send(outgoing))
        try:
            await server.run(read, write, server.create_initialization_options())
        finally:
            receiving.cancel()
            with suppress(TimeoutError):
                await asyncio.wait_for(tasks.close(), CLOSE_SECONDS)
            await asyncio.gather(receiving, sending, return_exceptions=True)
            with suppress(TimeoutError):
                await asyncio.wait_for(writer.settled(), LINGER)
            for stream in (incoming, read, write, outgoing):
                stream.close()
    return stop.code or ExitCode.OK


class Wire:
    """One JSON-RPC message per line. Other input is answered here, so that nothing a client writes ends the
    connection."""

    def __init__(self, source: BinaryIO, out: Output, writer: Writer, log: Callable[[str], None]) -> None:
        self._out = out
        self._writer = writer
        self._log = log
        self._lines = InputLines(source, LONGEST_LINE, log)

    def end(self) -> None:
        """Stop receiving."""
        self._lines.end()

    async def receive(self, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass on messages until the input ends."""
        with into, suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            while (line := await self._lines.next()) is not None:
                try:
                    message = read_answer(line)
                except BadMessage as error:
                    self._refuse(line, None if error.answers else error.id)
                    continue
                await into.send(SessionMessage(message))

    def _refuse(self, line: bytes, request: str | int | None) -> None:
        if not line:
            self._log("ignored a message of more than 32 MiB")
            self._error(None, mcp_types.INVALID_REQUEST, "the message is longer than 32 MiB")
            return
        self._log(f"not a message: {line[:200].decode('utf-8', 'replace')}")
        code = mcp_types.PARSE_ERROR if request is None else mcp_types.INVALID_REQUEST
        self._error(request, code, "the line is not a JSON-RPC message")

    def _error(self, request: str | int | None, code: int, text: str) -> None:
        error = {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": text}}
        self._out.line(json.dumps(error, ensure_ascii=False))

    async def send(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write messages until there are no more; waits if the client reads slowly."""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._out.line(text)
                if self._writer.waiting > ROOM and self._writer.failure is None:
                    await self._writer.settled(ROOM // 2)
