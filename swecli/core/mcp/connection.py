"""One MCP server: started, queried, called, watched, and restarted when it ends by itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.mcp.definitions import ServerDefinition, bound
from swecli.core.mcp.elicitation import elicit
from swecli.core.mcp.messages import CompletedStream, first_problem, wrong_answer
from swecli.core.mcp.stdio import StdioServer
from swecli.core.mcp.time_limits import TimeLimits
from swecli.core.ports import Asker
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.server_log import ServerLog

if TYPE_CHECKING:
    import httpx2
    import mcp_types
    from mcp import Client, MCPError
    from mcp.client._transport import TransportStreams
    from mcp.client.session import ClientRequestContext, IncomingMessage

    from swecli.core.mcp.servers import McpServers

State = Literal["waiting", "starting", "ready", "restarting", "failed", "off", "rejected", "needs login"]
"""``waiting``: for the user's approval; ``off``: switched off by the user."""

MOST_RESTARTS: Final = 5
"""Consecutive ends without a successful call after which a server is not restarted."""
BACKOFF: Final = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Delay in seconds before each consecutive start."""
MOST_PAGES: Final = 100
MOST_TOOLS: Final = 5_000
PONG: Final = 10.0
"""Seconds that a call waits for a program still busy with an abandoned call, before restarting it."""
MOST_MESSAGES: Final = 200
"""Log messages recorded per connection."""
RELIST: Final = 1.0
"""Least seconds from one listing to the next."""
LOGIN: Final = "it requires a login"
_UNREADY: Mapping[State, str] = MappingProxyType(
    {
        "failed": "it failed",
        "off": "it is switched off",
        "rejected": "it is not approved",
        "waiting": "it waits for the user's approval",
    }
)
_OLDER = (400, 404, 405)
"""HTTP statuses with which servers refuse streamable HTTP if they only know SSE."""
_SESSION = "mcp-session-id"
_NAMELESS = "Server returned an error response"
"""The SDK's words for any HTTP status without a message of the protocol."""
_CLOSED = ("Connection closed", "SSE stream")
"""Beginnings of the SDK's own words for a connection that ended; its code for that is also one of servers' errors."""

T = TypeVar("T")


class ServerError(Exception):
    """The server could not do it; the message is one sentence without the server's name."""


class LoginNeeded(ServerError):
    """The server requires a login."""


class SessionLost(ServerError):
    """The server refused a request unread because it no longer knows the session."""


class Offered(Struct, frozen=True):
    """Everything that a server declares."""

    tools: tuple[mcp_types.Tool, ...] = ()
    prompts: tuple[mcp_types.Prompt, ...] = ()
    resources: tuple[mcp_types.Resource, ...] = ()
    instructions: str = ""
    title: str = ""
    """Name and version of the program, as declared."""


class Place(Struct, frozen=True):
    """Where servers run: their environment, the variables that definitions may name, the working directory, and the
    workspace folders."""

    environment: Mapping[str, str]
    variables: Mapping[str, str]
    cwd: Path
    roots: tuple[Path, ...]
    version: str = ""
    """swecli's version, sent to the server."""

    def folder(self, definition: ServerDefinition) -> Path:
        """The server's working directory."""
        return self.cwd / Path(definition.cwd).expanduser()


class Connection:
    """A server of one session. ``close`` ends all tasks of the connection."""

    def __init__(
        self,
        definition: ServerDefinition,
        watcher: McpServers,
        place: Place,
        log: ServerLog,
    ) -> None:
        """``definition`` is the unexpanded definition."""
        self.definition = definition
        self.log = log
        self.state: State = "starting"
        self.reason = ""
        """Reason for the state as a clause; empty if obvious."""
        self.offered = Offered()
        self.calls = 0
        """Number of answered calls."""
        self._watcher = watcher
        self._place = place
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        """Set and replaced at each change of state."""
        self._stale = asyncio.Event()
        """Set when the server announces changed tools, prompts or resources."""
        self._resting = False
        """Whether a listing has just been made, so that the next one has to wait."""
        self._server: StdioServer | None = None
        self._lost = asyncio.Event()
        """Set when the connection to an address has to be made again."""
        self._lost_because = ""
        """Why, as a clause."""
        self._status = 0
        """HTTP status of the newest answer to a message."""
        self._in_session = False
        """Whether that message named a session."""
        self._reached = False
        """Whether the present connection became ready."""
        self._messages = 0
        self._worked = False
        self._running: dict[str, Asker] = {}
        """Running calls, the newest last; a question from the server belongs to one of them."""
        self._refused: dict[str, str] = {}
        self._limits = TimeLimits()
        self._doubt: tuple[StdioServer, asyncio.Task[None]] | None = None
        """The program with an abandoned request, and the ping that shows when it responds again."""

    @property
    def name(self) -> str:
        return self.definition.name

    # --- life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the server unless it runs."""
        if self._task is None or self._task.done():
            self._move("starting")
            self._task = asyncio.create_task(self._live(), name=f"mcp {self.name}")

    async def close(self, state: State = "off") -> None:
        """Stop the server; running calls fail."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._client = None
        self._trust()
        self._move(state)

    def hold(self, state: State, reason: str = "") -> None:
        """Record that the server must not run, and why."""
        self._move(state, reason)

    def _move(self, state: State, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._moved.set()
        self._moved = asyncio.Event()
        self._watcher.changed(self)

    async def moved(self) -> None:
        """Return at the next change of state."""
        await self._moved.wait()

    async def _live(self) -> None:
        """Reconnect until the limit of consecutive failures. A program that does not start is not tried again, nor an
        address that never answered."""
        number, known, ended = 0, False, True
        while number < MOST_RESTARTS:
            self._worked = self._reached = False
            await asyncio.sleep(BACKOFF[number])
            try:
                await self._run()
                reason, ended = self._why_ended(), True
            except (ServerError, OSError, ValueError) as error:
                reason, ended = str(error).rstrip(". "), self._reached
                away = known and self.definition.transport != "stdio"
                if isinstance(error, LoginNeeded) or not (ended or away):
                    self.log.line(f"not started: {error}")
                    self._move("needs login" if isinstance(error, LoginNeeded) else "failed", reason)
                    return
            known = known or self._reached
            self.log.line(reason)
            number = 0 if self._worked else number + 1
            self._move("restarting", reason)
        tried = "it ended" if ended else "swecli tried"
        self._move("failed", f"{self.reason}; {tried} {MOST_RESTARTS} times in a row")

    def _why_ended(self) -> str:
        server = self._server
        if server is None:
            return self._lost_because or "the connection ended"
        if server.trouble:
            return f"swecli stopped it: {server.trouble}"
        status = server.exit_status
        last = self.log.newest.strip().rpartition("\n")[2].strip()[:200]
        suffix = f" ({last})" if last and not last.startswith("[swecli]") else ""
        if status is not None and status < 0:  # as asyncio reports it
            return f"it was killed by signal {-status}{suffix}"
        return f"it ended{f' with exit status {status}' if status is not None else ''}{suffix}"

    async def _run(self) -> None:
        """One connection, from start to end. It begins with the handshake that all current servers know, because some
        hang when offered the newer one.

        Raises:
            ServerError: the connection failed.
        """
        definition = self.definition.expanded(self._place.variables)
        async with self._started(definition):  # a program starts while the SDK is loaded
            await asyncio.to_thread(import_module, "mcp")  # half a second, in which the screen must stay alive
            from mcp import MCPError
            from mcp_types import UNSUPPORTED_PROTOCOL_VERSION

            try:
                await self._run_with(definition, "legacy")
                return
            except ServerError as error:
                cause = error.__cause__
                if definition.transport == "http" and self._status in _OLDER and not self._reached:
                    await self._run_older(definition, error)
                    return
                if not (isinstance(cause, MCPError) and cause.code == UNSUPPORTED_PROTOCOL_VERSION):
                    raise
        async with self._started(definition):
            await self._run_with(definition, "auto")

    async def _run_older(self, definition: ServerDefinition, refused: ServerError) -> None:
        """One connection over SSE, to an address that refused streamable HTTP, as the protocol asks of clients.

        Raises:
            ServerError: ``refused``, if it does not speak SSE either; or the connection failed later.
        """
        self._status = 0
        try:
            await self._run_with(replace(definition, transport="sse"), "legacy")
        except (ServerError, OSError) as error:
            if self._reached or isinstance(error, LoginNeeded):
                raise
            raise refused from None

    @asynccontextmanager
    async def _started(self, definition: ServerDefinition) -> AsyncGenerator[None]:
        """Run the server's program, if it has one, for the duration of the block.

        Raises:
            ServerError: the program does not exist, or is not the one that the user approved.
            OSError: it can't be started.
        """
        if definition.transport != "stdio":
            yield
            return
        await self._unchanged()
        environment = {**self._place.environment, **definition.env}
        server = StdioServer(definition.words, self._place.folder(definition), environment, self.log)
        self._server = server
        try:
            await server.start()
        except FileNotFoundError as error:
            raise ServerError(f"{error.filename or definition.command} was not found") from error
        try:
            yield
        finally:
            await server.stop()

    async def _unchanged(self) -> None:
        """Check the programs of the workspace before each start, because the model may have written them.

        Raises:
            ServerError: one has changed.
        """
        if self.definition.asks:
            now = await asyncio.to_thread(bound, self.definition, self._place.cwd)
            if now.programs != self.definition.programs:
                names = dict.fromkeys(name for name, _ in set(now.programs) ^ set(self.definition.programs))
                raise ServerError(f"{', '.join(sorted(names))} has changed; a reconnect asks for your approval")

    async def _run_with(self, definition: ServerDefinition, mode: Literal["legacy", "auto"]) -> None:
        import httpx2
        import mcp_types
        from mcp import Client, MCPError

        _quiet()
        self._lost, self._lost_because = asyncio.Event(), ""
        timeout = self._watcher.start_limit(self)
        stack = contextlib.AsyncExitStack()
        try:
            async with stack:
                try:
                    async with asyncio.timeout(timeout):
                        client = Client(
                            self._streams(definition),
                            mode=mode,
                            cache=None,
                            client_info=mcp_types.Implementation(name="swecli", version=self._place.version),
                            list_roots_callback=self._list_roots,
                            logging_callback=self._logged,
                            message_handler=self._heard,
                            elicitation_callback=self._elicit,
                        )
                        await stack.enter_async_context(client)
                        self._client = client
                        await self._list(client)
                except TimeoutError:
                    raise ServerError(f"no answer within {timeout:g} s{self.wrote()}") from None
                except (MCPError, httpx2.HTTPError) as error:
                    raise await self._explained(error) from error
                self._reached = True
                self._move("ready")
                await self._follow(client)
        except BaseExceptionGroup as group:
            inner = _inner(group)
            if isinstance(inner, asyncio.CancelledError):
                raise inner from group
            raise await self._explained(inner) from inner
        finally:
            self._client = None

    async def _seen(self, response: httpx2.Response) -> None:
        """Record the status of an answer to a message, which the SDK does not report."""
        if response.request.method == "POST":
            self._status = response.status_code
            self._in_session = _SESSION in response.request.headers

    async def _explained(self, error: BaseException) -> ServerError | OSError:
        """The error as one that explains the server's problem."""
        import httpx2
        from mcp import MCPError
        from mcp.client.auth import OAuthFlowError
        from pydantic import ValidationError

        if isinstance(error, (ServerError, OSError)):
            return error
        if isinstance(error, ValidationError):
            return ServerError(wrong_answer(first_problem(error)))
        if isinstance(error, RuntimeError):  # of the SDK: an unknown version of the protocol, for example
            return ServerError(_one_line(error))
        if isinstance(error, MCPError):
            reason = await self._refusal(error)
            return LoginNeeded(LOGIN) if self._status == 401 else ServerError(reason)
        if isinstance(error, OAuthFlowError):
            return LoginNeeded(f"the login failed: {_one_line(error)}")
        if isinstance(error, httpx2.HTTPStatusError) and error.response.status_code == 401:
            return LoginNeeded(LOGIN)
        if isinstance(error, httpx2.HTTPError):
            return ServerError(f"{self.definition.line} did not answer: {_one_line(error)}")
        return ServerError(f"{type(error).__name__}: {_one_line(error)}")

    async def _refusal(self, error: MCPError) -> str:
        """Why the request was refused, as a clause."""
        if not self._ended_by(error):
            message = _said(error)
            if message == _NAMELESS and self._status:
                message = f"{self.definition.line} answered with HTTP status {self._status}"
            return f"{message}{self.wrote()}"
        if self._server is not None:
            await self._server.status()
        return self._why_ended()

    def _ended_by(self, error: MCPError) -> bool:
        """Whether the request failed because the connection ended."""
        from mcp_types import CONNECTION_CLOSED

        return error.code == CONNECTION_CLOSED and (self._is_over or _said(error).startswith(_CLOSED))

    def wrote(self) -> str:
        """What its program wrote last that is no message, as the end of a sentence; empty if nothing."""
        output = self.log.said[:300]
        return f"; it wrote: {output}" if output else ""

    @asynccontextmanager
    async def _streams(self, definition: ServerDefinition) -> AsyncGenerator[TransportStreams]:
        if self._server is not None:
            async with self._server.streams() as streams:
                yield streams
            return
        async with _http(definition, await self._watcher.authorisation(self), self._seen) as streams:
            yield streams

    async def _follow(self, client: Client) -> None:
        """List everything again whenever the server announces a change, until the connection ends.

        Raises:
            LoginNeeded: the server requires a new login.
        """
        ended = asyncio.ensure_future(self._over.wait())
        listening = asyncio.create_task(self._listen(client))
        try:
            while not ended.done():
                stale = asyncio.ensure_future(self._stale.wait())
                await asyncio.wait({stale, ended}, return_when=asyncio.FIRST_COMPLETED)
                stale.cancel()
                if not ended.done():
                    self._stale.clear()
                    self._resting = True
                    await self._relist(client)
                    await asyncio.wait({ended}, timeout=RELIST)  # some announce a change at each listing
                    self._resting = False
        finally:
            listening.cancel()
            ended.cancel()
        if self._lost_because == LOGIN:
            raise LoginNeeded(LOGIN)

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes: newer servers report them only to subscribers."""
        from mcp import MCPError
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        with contextlib.suppress(MCPError, TimeoutError, RuntimeError):
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as subscription:
                async for _ in subscription:
                    self._announced()

    def _announced(self) -> None:
        self._stale.set()
        if self.state == "ready" and not self._resting:
            self._watcher.stale(self)

    async def _relist(self, client: Client) -> None:
        from mcp import MCPError

        try:
            async with asyncio.timeout(self.definition.start_timeout):
                await self._list(client)
        except (MCPError, TimeoutError, ValueError) as error:
            self.log.line(f"could not be listed again: {_one_line(error) or 'no answer'}")
            self._watcher.unlisted(self)
        self._watcher.changed(self)

    async def _list(self, client: Client) -> None:
        has = client.server_capabilities
        info = client.server_info
        tools: list[mcp_types.Tool] = await _pages(client.list_tools, "tools") if has.tools else []
        prompts: list[mcp_types.Prompt] = await self._beside(client.list_prompts, "prompts") if has.prompts else []
        resources: list[mcp_types.Resource] = []
        if has.resources:
            resources = await self._beside(client.list_resources, "resources")
        self.offered = Offered(
            tools=_once(tools, lambda tool: tool.name),
            prompts=_once(prompts, lambda prompt: prompt.name),
            resources=_once(resources, lambda resource: str(resource.uri)),
            instructions=client.instructions or "",
            title=f"{info.title or info.name} {info.version}".strip() if info else "",
        )
        await self._watcher.arrived(self, self.offered)

    async def _beside(self, ask: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
        """Optional declarations besides tools; empty if the server fails to list them."""
        from mcp import MCPError
        from pydantic import ValidationError

        try:
            return await _pages(ask, field)
        except (MCPError, ValidationError) as error:
            why = first_problem(error) if isinstance(error, ValidationError) else _one_line(error)
            self.log.line(f"its {field} could not be listed: {why}")
            return []

    # --- asking -----------------------------------------------------------------------------------------------

    async def ready(self) -> Client:
        """The client, once the server is ready.

        Raises:
            ServerError: it is not ready and will not become so.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.definition.start_timeout
        while self._client is None or self.state != "ready" or self._is_over:
            if self.state in ("failed", "off", "rejected", "needs login", "waiting"):
                raise ServerError(self._unready)
            moved = self._moved
            try:
                await asyncio.wait_for(moved.wait(), max(0.0, until - loop.time()))
            except TimeoutError:
                raise ServerError(self._unready) from None
        return self._client

    @property
    def _unready(self) -> str:
        """Why it takes no requests, as a clause."""
        if self.state == "needs login":
            return self.reason or LOGIN
        clause = _UNREADY.get(self.state, f"it is {self.state}")
        return f"{clause}: {self.reason}" if self.reason else clause

    @property
    def _over(self) -> asyncio.Event:
        """Set when the program has ended, or the address must be connected again, while the connection still exists."""
        return self._server.ended if self._server is not None else self._lost

    @property
    def _is_over(self) -> bool:
        return self._over.is_set()

    def _suspect(self, client: Client) -> None:
        """Note an abandoned request: a single-threaded program may still be busy with it."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        server = self._server
        if server is None or self._client is not client or client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return  # at an address each request stands alone, and newer servers know no ping
        self._trust()
        self._doubt = (server, asyncio.create_task(_pong(client), name=f"mcp {self.name} ping"))

    def _trust(self) -> None:
        """Stop waiting for the program."""
        doubt, self._doubt = self._doubt, None
        if doubt is not None:
            doubt[1].cancel()

    async def _listening(self, tell: Callable[[str], None]) -> None:
        """Return once the program responds, or was stopped because it does not. It is never stopped while other
        requests run, because they would be lost."""
        if self._doubt is None:
            return
        server, pong = self._doubt
        ended = asyncio.ensure_future(server.ended.wait())
        try:
            done, _ = await asyncio.wait({pong, ended}, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                tell(f"{self.name} is still busy with an abandoned call; restarting it in {PONG:g} s\n")
                await asyncio.wait({pong, ended}, timeout=PONG, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if self._doubt != (server, pong):  # another call has settled it meanwhile
            return
        if not pong.done() and not server.ended.is_set():
            if self._limits:
                return
            server.trouble = "it did not answer after an abandoned call"
            self.log.line(server.trouble)
            tell(f"Restarting {self.name}: {server.trouble}\n")
            server.ended.set()
        self._trust()

    async def ask(
        self,
        work: Callable[[Client, Callable[[], None]], Awaitable[T]],
        *,
        tell: Callable[[str], None] = lambda text: None,
    ) -> T:
        """Run ``work`` with the client; its second argument is a function to call at each sign of progress. ``tell``
        receives what the call waits for.

        Raises:
            ServerError: the server is missing, ended, refused, or timed out.
        """
        await self._listening(tell)
        try:
            return await self._asked(work)
        except SessionLost as error:
            tell(f"{self.name}: {error}; connecting again\n")
            return await self._asked(work)

    async def _asked(self, work: Callable[[Client, Callable[[], None]], Awaitable[T]]) -> T:
        from mcp import MCPError
        from pydantic import ValidationError

        client, seconds = await self.ready(), self.definition.call_timeout
        try:
            async with self._limits.within(seconds) as alive:
                answer = await work(client, alive)
        except asyncio.CancelledError:
            self._suspect(client)
            raise
        except TimeoutError:
            self._suspect(client)
            raise ServerError(f"no answer within {seconds:g} s; the call was cancelled") from None
        except MCPError as error:
            raise await self._failure(client, error) from error
        except ValidationError as error:
            raise ServerError(wrong_answer(first_problem(error))) from error
        except (OSError, RuntimeError) as error:
            raise ServerError(_one_line(error)) from error
        self.calls += 1
        self._worked = True
        return answer

    async def _failure(self, client: Client, error: MCPError) -> ServerError:
        """What the refusal of a request means. A connection that no request can use any more is made again."""
        message = _said(error)
        if self._ended_by(error):
            if self._client is client and not self._is_over and message != _CLOSED[0]:  # only this answer was cut
                return ServerError("the connection ended before the answer, so its effect is unknown")
            reason = await self._refusal(error)
            after = "swecli restarts it" if self._server is not None else "swecli connects again"
            return ServerError(f"{reason} while the call ran, so its effect is unknown; {after}")
        if self._status == 401:
            self._leave(client, LOGIN)
            return LoginNeeded(LOGIN)
        if self._in_session and (self._status == 404 or (self._status == 400 and "session" in message.lower())):
            self._leave(client, "its session has expired")
            return SessionLost("its session has expired")
        return ServerError(message)

    def _leave(self, client: Client, reason: str) -> None:
        """End the connection to an address, unless a newer one has replaced it."""
        if self._server is None and self._client is client and not self._lost.is_set():
            self._lost_because = reason
            self._lost.set()

    @contextmanager
    def calling(self, item: str, asker: Asker) -> Generator[list[str]]:
        """Mark a call of this item as running. Yields a list that collects notes for the model."""
        notes: list[str] = []
        self._running[item] = asker
        try:
            yield notes
        finally:
            del self._running[item]
            if why := self._refused.pop(item, ""):
                notes.append(f"[The server asked the user for input: {why}.]")

    # --- what the server asks of us ---------------------------------------------------------------------------

    async def _list_roots(self, context: ClientRequestContext) -> mcp_types.ListRootsResult:
        import mcp_types
        from pydantic import FileUrl

        roots = [mcp_types.Root(uri=FileUrl(root.as_uri()), name=root.name) for root in self._place.roots]
        return mcp_types.ListRootsResult(roots=roots)

    async def _elicit(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        item, asker = next(reversed(self._running.items()), ("", self._watcher.asker))
        with self._limits.suspended():
            result, why = await elicit(params, self.name, item, asker)
        if why:
            self.log.line(f"asked for input: {why}")
            self._refused[item] = why
        return result

    async def _logged(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        self._messages += 1
        if self._messages <= MOST_MESSAGES:
            self.log.line(f"{params.level}: {str(params.data)[:2_000]}")
        elif self._messages == MOST_MESSAGES + 1:
            self.log.line("further messages are not logged")

    async def _heard(self, message: IncomingMessage) -> None:
        import mcp_types

        if isinstance(message, Exception):
            self.log.line(f"{type(message).__name__}: {_one_line(message)}")
        elif isinstance(
            message,
            mcp_types.ToolListChangedNotification
            | mcp_types.PromptListChangedNotification
            | mcp_types.ResourceListChangedNotification,
        ):
            self._announced()


def _quiet() -> None:
    """Silence the SDK's own log lines, which would overwrite the screen."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).propagate = False
        if not logging.getLogger(name).handlers:
            logging.getLogger(name).addHandler(logging.NullHandler())


@asynccontextmanager
async def _http(
    definition: ServerDefinition, auth: httpx2.Auth | None, seen: Callable[[httpx2.Response], Awaitable[None]]
) -> AsyncGenerator[TransportStreams]:
    from mcp.shared._httpx_utils import create_mcp_http_client

    streams: AbstractAsyncContextManager[Any]
    if definition.transport == "sse":
        from mcp.client.sse import sse_client

        streams = sse_client(definition.url, headers=dict(definition.headers), timeout=30.0, auth=auth)
        async with streams as (received, sent):
            yield CompletedStream(received), sent
        return
    from mcp.client.streamable_http import streamable_http_client

    async with (
        create_mcp_http_client(headers=dict(definition.headers), auth=auth) as client,
        streamable_http_client(definition.url, http_client=client) as (received, sent),
    ):
        client.event_hooks = {"response": [seen]}
        yield CompletedStream(received), sent


async def _pong(client: Client) -> None:
    """Return when the server answers anything, even that it does not know pings, or when the connection ends."""
    import anyio
    from mcp import MCPError

    with contextlib.suppress(MCPError, OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        await client.session.send_ping()


async def _pages(ask: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    """All pages of a list, up to one that was there before. Some servers end theirs with an empty cursor."""
    items: list[Any] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        page = await ask(cursor=cursor)
        items += getattr(page, field)
        cursor = page.next_cursor
        if not cursor or cursor in seen or len(items) >= MOST_TOOLS:
            break
        seen.add(cursor)
    return items[:MOST_TOOLS]


def _once(items: Iterable[T], name: Callable[[T], str]) -> tuple[T, ...]:
    """The first of each name: a server can't be asked for the others."""
    first: dict[str, T] = {}
    for item in items:
        first.setdefault(name(item), item)
    return tuple(first.values())


def _inner(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The single relevant error of a group."""
    inner = group.exceptions[0]
    return _inner(cast("BaseExceptionGroup[BaseException]", inner)) if isinstance(inner, BaseExceptionGroup) else inner


def _one_line(error: BaseException) -> str:
    return " ".join(as_read(str(error)).split())[:500]


def _said(error: MCPError) -> str:
    return _one_line(error) or f"error {error.code} without a message"
