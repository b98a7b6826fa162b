"""The agent's side of the protocol: its methods, the open sessions, and the program for one client."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, get_args

from acp import RequestError
from acp.agent.connection import AgentSideConnection
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    AuthMethodAgent,
    ClientCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    TerminalAuthMethod,
)
from msgspec.structs import replace

from swecli import __version__
from swecli.acp.conversation import (
    AUTH_REQUIRED,
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Conversation,
    Editor,
    no_model,
    why_no_model,
)
from swecli.acp.files import ClientFiles
from swecli.acp.options import MODE, BadChoice, modes
from swecli.acp.prompts import BadPrompt, read_prompt
from swecli.acp.servers import definitions_of
from swecli.acp.transport import DELETE, StdioTransport
from swecli.acp.words import clean, one_line
from swecli.assembly.session_list import continuable, delete_session
from swecli.commands.registry import COMMANDS, commands_of
from swecli.core.config.paths import user_paths
from swecli.core.ports import EditorFiles
from swecli.core.protocol.events import Mode
from swecli.core.sessions.store import SessionError
from swecli.core.workspace.text_file import usable_folder
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from swecli.output import Output, Writer, log_in_lines
from swecli.stopping import Stop

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

PROTOCOL = 1
NOT_FOUND = -32002
MOST_OPEN = 16
"""Most sessions open at once. One more closes the one idle longest, which reopens on its next request."""
PAGE = 50
LOGIN = "--login"


OpenSession = Callable[[LaunchOptions, EditorFiles | None], Awaitable["Session"]]


class SwecliAgent:
    """Implements the SDK's ``Agent``. ``options`` are those of the start; each session has its own folder."""

    def __init__(
        self,
        options: LaunchOptions,
        open_session: OpenSession,
        log: Callable[[str], None],
        withdraw: Callable[[], None],
    ) -> None:
        self._options = options
        self._open_session = open_session
        self._log = log
        self._withdraw = withdraw
        self._client: Client | None = None
        self._capabilities = ClientCapabilities()
        self._open: dict[str, Conversation] = {}
        """By id, the most recently used last."""
        self._parked: dict[str, LaunchOptions] = {}
        """Options to reopen sessions closed for others."""
        self._launched: dict[str, LaunchOptions] = {}
        self._opening = asyncio.Lock()
        self._returning = asyncio.Lock()
        """A stored session is opened by one request at a time: two records of it would overwrite each other."""

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def close(self) -> None:
        """End all turns and close all sessions."""
        conversations = list(self._open.values())
        self._open.clear()
        results = await asyncio.gather(*(each.close() for each in conversations), return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                self._log(f"could not close a session: {result}")

    # --- setup ---

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        self._capabilities = client_capabilities or ClientCapabilities()
        name = f"{client_info.name} {client_info.version}" if client_info is not None else "an unnamed client"
        self._log(f"connected: {one_line(name)}, protocol {protocol_version}")
        methods: list[Any] = [
            AuthMethodAgent(
                id="key",
                name="API key",
                description="Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY for this agent, or run "
                "`swecli login PROVIDER` in a terminal. Local servers need none.",
            )
        ]
        auth = self._capabilities.auth
        if auth is not None and auth.terminal:
            methods.append(
                TerminalAuthMethod(
                    id="login",
                    type="terminal",
                    name="Log in from the terminal",
                    description="Asks for a provider and its key, and stores the key.",
                    args=[LOGIN],
                )
            )
        return InitializeResponse(
            protocol_version=PROTOCOL,
            agent_info=Implementation(name="swecli", title="swecli", version=__version__),
            agent_capabilities=AgentCapabilities(
                load_session=self._options.store,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities() if self._options.store else None,
                    resume=SessionResumeCapabilities() if self._options.store else None,
                    close=SessionCloseCapabilities(),
                    fork=SessionForkCapabilities() if self._options.store else None,
                    delete=SessionDeleteCapabilities() if self._options.store else None,
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
            auth_methods=methods,
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Check that a model is available.

        Raises:
            RequestError: there is no such method, or no model.
        """
        if method_id != "key":
            raise RequestError(INVALID_PARAMS, f"unknown authentication method {one_line(method_id)!r}")
        session = await self._started(replace(self._options, store=False))
        connected = session.view.model is not None
        why = "" if connected else await why_no_model(session)
        await session.close()
        if not connected:
            raise no_model(why)
        return AuthenticateResponse()

    # --- sessions ---

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **_: Any,
    ) -> NewSessionResponse:
        options = self._launch(cwd, additional_directories)
        conversation = await self._begin(options, mcp_servers, replay=False)
        if conversation.session.view.model is None:
            why = await why_no_model(conversation.session)
            await self._drop(conversation.id)
            raise no_model(why)
        return NewSessionResponse(
            session_id=conversation.id,
            modes=modes(conversation.session.view.mode),
            config_options=await conversation.choices.options(),
        )

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        conversation = await self._again(cwd, session_id, mcp_servers, additional_directories, replay=True)
        return LoadSessionResponse(
            modes=modes(conversation.session.view.mode), config_options=await conversation.choices.options()
        )

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        conversation = await self._again(cwd, session_id, mcp_servers, additional_directories, replay=False)
        return ResumeSessionResponse(
            modes=modes(conversation.session.view.mode), config_options=await conversation.choices.options()
        )

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        **_: Any,
    ) -> ForkSessionResponse:
        if not self._options.store:
            raise RequestError(INVALID_REQUEST, "sessions are not stored here, so none can be forked")
        known = self._open.get(session_id)
        if known is not None and known.busy:
            raise RequestError(INVALID_REQUEST, "a prompt is running in this session; cancel it first")
        options = replace(self._launch(cwd, additional_directories, session_id), fork=True)
        conversation = await self._begin(options, mcp_servers, replay=False)
        await conversation.caught_up()
        return ForkSessionResponse(
            session_id=conversation.id,
            modes=modes(conversation.session.view.mode),
            config_options=await conversation.choices.options(),
        )

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        if cursor is not None and not cursor.isdecimal():
            raise RequestError(INVALID_PARAMS, "the cursor was not issued by this agent")
        folder = self._folder(cwd) if cwd is not None else None
        first = int(cursor or 0)
        stored = await asyncio.to_thread(continuable, self._options, folder)
        sessions = [
            SessionInfo(
                session_id=each.id,
                cwd=each.folder,
                title=clean(each.title)[:200] or None,
                updated_at=datetime.fromtimestamp(each.updated, UTC).isoformat(),
            )
            for each in stored[first : first + PAGE]
        ]
        more = first + PAGE < len(stored)
        return ListSessionsResponse(sessions=sessions, next_cursor=str(first + PAGE) if more else None)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        if session_id in self._open:  # a turn must not delay its own end
            self._open[session_id].cancel()
        async with self._returning:
            self._parked.pop(session_id, None)
            if session_id in self._open:
                await self._drop(session_id)
        return CloseSessionResponse()

    async def delete_session(self, session_id: str) -> None:
        """Close it, and delete its stored data.

        Raises:
            RequestError: it can't be deleted.
        """
        if not self._options.store:
            raise RequestError(INVALID_REQUEST, "sessions are not stored here, so none can be deleted")
        await self.close_session(session_id)
        try:
            for trouble in await asyncio.to_thread(delete_session, user_paths(os.environ), session_id) or ():
                self._log(trouble)
        except SessionError as error:
            raise RequestError(INVALID_REQUEST, str(error)) from None

    # --- in a session ---

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        conversation = self._open.get(session_id) or await self._session(session_id)
        self._open[session_id] = self._open.pop(session_id)  # used last
        model = conversation.session.view.model
        try:
            slash = prompt and getattr(prompt[0], "text", "").lstrip().startswith("/")
            known = commands_of(conversation.session) if slash else COMMANDS
            parsed = read_prompt(prompt, images=model.images if model is not None else None, commands=known)
        except BadPrompt as error:
            raise RequestError(INVALID_PARAMS, str(error)) from None
        return await conversation.prompt(parsed)

    async def cancel(self, session_id: str, **_: Any) -> None:
        conversation = self._open.get(session_id)
        if conversation is not None:
            conversation.cancel()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        conversation = await self._session(session_id)
        if mode_id not in get_args(Mode):
            raise RequestError(
                INVALID_PARAMS, f"unknown mode {one_line(mode_id)!r}; modes: {', '.join(get_args(Mode))}"
            )
        conversation.choices.set(MODE, mode_id)
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        conversation = await self._session(session_id)
        try:
            conversation.choices.set(config_id, str(value))
        except BadChoice as error:
            raise RequestError(INVALID_PARAMS, str(error)) from None
        return SetSessionConfigOptionResponse(config_options=[*await conversation.choices.options()])

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == DELETE:  # ``transport`` adds this route, which the SDK lacks
            session = params.get("sessionId")
            if not isinstance(session, str):
                raise RequestError(INVALID_PARAMS, "sessionId must be a string")
            await self.delete_session(session)
            return {}
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self._log(f"notification ignored: _{one_line(method)}")

    # --- opening and closing ---

    def _launch(self, cwd: str, more: Sequence[str] | None, resume: str | None = None) -> LaunchOptions:
        if resume == "":
            raise _unknown(resume)
        folders = tuple(self._folder(each) for each in more or ())
        return replace(
            self._options, cwd=self._folder(cwd), add_dirs=(*self._options.add_dirs, *folders), resume=resume
        )

    def _folder(self, name: str) -> Path:
        if not name.startswith("/"):
            raise RequestError(INVALID_PARAMS, f"{one_line(name)} is not an absolute path")
        try:
            return usable_folder(name, Path("/"))
        except (ValueError, OSError) as error:
            raise RequestError(INVALID_PARAMS, f"{one_line(name)}: {error}") from None

    async def _again(
        self, cwd: str, session_id: str, servers: list[Any] | None, more: list[str] | None, *, replay: bool
    ) -> Conversation:
        options = self._launch(cwd, more, session_id)
        async with self._returning:
            known = self._open.get(session_id)
            if known is not None:
                if known.busy:
                    raise RequestError(INVALID_REQUEST, "a prompt is running in this session; cancel it first")
                await self._drop(session_id)
            self._parked.pop(session_id, None)
            conversation = await self._begin(options, servers, replay=replay)
            if conversation.id != session_id:  # the beginning of an id, or a name: the client knows it by neither
                await self._drop(conversation.id)
                raise _unknown(session_id)
            await conversation.caught_up()
            return conversation

    async def _begin(
        self, options: LaunchOptions, servers: list[Any] | None, *, replay: bool, known: bool = False
    ) -> Conversation:
        """Open a session. ``known``: the client has its id already."""
        remarks: tuple[str, ...] = ()
        if servers:
            given, remarks = definitions_of(servers)
            options = replace(options, servers=given)
        async with self._opening:
            await self._make_room()
            assert self._client is not None
            files = ClientFiles(self._client, self._capabilities, self._log)
            session = await self._started(options, files if files.offered else None)
        files.session = session.view.session_id
        for remark in remarks:
            self._log(remark)
        editor = Editor(self._client, self._capabilities, self._withdraw, self._log)
        conversation = Conversation(session, editor, replay=replay, remarks=remarks)
        self._open[conversation.id] = conversation
        self._launched[conversation.id] = replace(options, resume=conversation.id, continue_newest=False, fork=False)
        task = asyncio.current_task()
        if known or task is None:
            self._introduce(conversation)
        else:  # the answer with its id must be sent first, by this task
            task.add_done_callback(lambda _: self._introduce(conversation))
        return conversation

    def _introduce(self, conversation: Conversation) -> None:
        """Send the client the facts about a session whose id it knows."""
        if self._open.get(conversation.id) is conversation:
            conversation.known()

    async def _started(self, options: LaunchOptions, files: EditorFiles | None = None) -> Session:
        try:
            return await self._open_session(options, files)
        except StartError as error:
            code = INTERNAL
            if error.exit_code is ExitCode.AUTH:
                code = AUTH_REQUIRED
            elif options.resume is not None and error.exit_code is ExitCode.BAD_INPUT:
                code = NOT_FOUND
            raise RequestError(code, str(error)) from None

    async def _session(self, session_id: str) -> Conversation:
        """The open session of this id; reopens one that was closed for others.

        Raises:
            RequestError: there is none.
        """
        if session_id in self._open:
            return self._open[session_id]
        async with self._returning:
            if session_id in self._open:
                return self._open[session_id]
            if session_id in self._parked:
                return await self._reopened(session_id)
        raise _unknown(session_id)

    async def _reopened(self, session_id: str) -> Conversation:
        options = self._parked.pop(session_id)
        try:
            conversation = await self._begin(options, None, replay=False, known=True)
        except RequestError:
            self._parked[session_id] = options
            raise
        await conversation.caught_up()
        return conversation

    async def _make_room(self) -> None:
        while len(self._open) >= MOST_OPEN:
            idle = next((each for each in self._open.values() if not each.busy), None)
            if idle is None or not self._options.store:
                raise RequestError(INVALID_REQUEST, f"{MOST_OPEN} sessions are open; close one first")
            self._parked[idle.id] = self._launched[idle.id]
            await self._drop(idle.id)

    async def _drop(self, session_id: str) -> None:
        conversation = self._open.pop(session_id)
        self._launched.pop(session_id, None)
        await conversation.close()


def _unknown(session_id: str) -> RequestError:
    return RequestError(NOT_FOUND, f"there is no session {one_line(session_id)!r} here; load it first")


# The program behind ``swecli acp``: serves one client on standard input and output.


LINGER = 1.0
"""Seconds to wait at the end for the reader of the remaining output."""


async def serve(
    options: LaunchOptions,
    open_session: OpenSession,
    streams: tuple[BinaryIO, TextIO],
    stop: Stop,
) -> ExitCode:
    """Serve the client until its input ends or a signal arrives; then close every session."""
    writer, errors = Writer(), Output(sys.stderr)
    log_in_lines(errors, "swecli acp")

    def log(line: str) -> None:
        errors.note(f"swecli acp: {line}")

    source, target = streams
    transport = StdioTransport(source, Output(target, writer), writer, log)
    agent = SwecliAgent(options, open_session, log, transport.withdraw)
    with stop.calling(transport.end):
        connection = AgentSideConnection(agent, transport, listening=False, use_unstable_protocol=True)
        try:
            await connection.listen()
        finally:
            await agent.close()
            await connection.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(writer.settled(), LINGER)
    return stop.code or ExitCode.OK
