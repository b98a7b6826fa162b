"""One run of a language server: its process, and bounded JSON-RPC over its standard input and output.

All processes of a server end with the session: they share a process group and carry swecli's mark. Its stderr goes to a
log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from swecli.core.language_servers.protocol import (
    LONGEST_HEADER,
    Message,
    ProtocolError,
    content_length,
    framed,
    read_json,
    read_message,
)
from swecli.core.llm.json_values import as_object
from swecli.core.sandbox.launch import Launch
from swecli.core.uninterrupted import uninterrupted
from swecli.core.workspace.process_tree import MARK, end_group, new_mark
from swecli.core.workspace.server_log import ServerLog

GRACE: Final = 0.5
"""Seconds that a server has to end after the shutdown request, and again after SIGTERM."""
MOST_UNREAD: Final = 64_000_000
"""Maximum bytes of unread input of a server."""
MOST_JUNK: Final = 1_000_000
"""Maximum bytes that a server may print between messages."""
MOST_BAD: Final = 100
"""Unreadable messages after which a server is stopped."""
_METHOD_NOT_FOUND: Final = -32_601
_ENDED: Final = "it has ended"


class ServerEnded(Exception):
    """The server has ended or is about to; the message gives the reason as a clause."""


class Refused(Exception):
    """The server answered a request with an error. ``code`` is JSON-RPC's."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class UnknownMethod(Exception):
    """A request from the server that swecli does not support."""


class Command(Struct, frozen=True):
    """The program to start. ``launch`` is its sandbox, released with the server."""

    words: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    launch: Launch | None = None


class Peer:
    """The server process. ``on_notification`` and ``on_request`` receive its own messages; the latter returns the
    answer or raises ``UnknownMethod``."""

    def __init__(
        self,
        log: ServerLog,
        on_notification: Callable[[str, msgspec.Raw], None],
        on_request: Callable[[str, msgspec.Raw], Any],
    ) -> None:
        self._log = log
        self._on_notification = on_notification
        self._on_request = on_request
        self._process: asyncio.subprocess.Process | None = None
        self._launch: Launch | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._next = 1
        self._stopping: asyncio.Task[None] | None = None
        self.ended = asyncio.Event()
        self.trouble = ""
        """Why the server ended, as a clause."""

    @property
    def is_asked(self) -> bool:
        """Whether the server has not answered a request yet."""
        return bool(self._waiting)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def start(self, command: Command) -> None:
        """Start the server, which owns the launch from now on, also if it does not start.

        Raises:
            ServerEnded: it can't be started.
        """
        launch = command.launch
        prefix, inherited = (launch.prefix, launch.inherited) if launch is not None else ((), ())
        added = dict(launch.environment) if launch is not None else {}
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *prefix,
                *command.words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=command.cwd,
                env={**command.environment, **added, MARK: new_mark(own=True)},
                start_new_session=True,
                pass_fds=inherited,
                limit=1_000_000,
            )
        except BaseException as error:
            self.ended.set()
            if launch is not None:
                await uninterrupted(asyncio.to_thread(launch.end))
            if isinstance(error, OSError | ValueError):
                raise ServerEnded(f"it cannot start: {error}") from error
            raise
        self._launch = launch
        assert process.stderr is not None
        following = asyncio.create_task(self._log.follow(process.stderr))
        self._tasks = [asyncio.create_task(self._receive(process)), following]

    # --- out --------------------------------------------------------------------------------------------------

    async def request(self, method: str, params: Any, timeout: float) -> msgspec.Raw:
        """The result of a request. After ``timeout`` seconds, or if the caller is cancelled, the request is cancelled
        too.

        Raises:
            ServerEnded: the server has ended.
            Refused: it answered with an error.
            TimeoutError: it did not answer in time.
        """
        number, self._next = self._next, self._next + 1
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": number, "method": method, "params": params})
        except ServerEnded:  # a program's input may close before its output, which tells why it ended
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), min(timeout, 3 * GRACE))
            raise ServerEnded(self.trouble or _ENDED) from None
        self._waiting[number] = answer
        try:
            return await asyncio.wait_for(answer, timeout)
        except (TimeoutError, asyncio.CancelledError):
            with contextlib.suppress(ServerEnded):
                self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            self._waiting.pop(number, None)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification.

        Raises:
            ServerEnded: the server has ended.
        """
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None or self.ended.is_set() or process.stdin.is_closing():
            raise ServerEnded(self.trouble or _ENDED)
        process.stdin.write(framed(message))
        if process.stdin.transport.get_write_buffer_size() > MOST_UNREAD:
            self._fail(f"it left {MOST_UNREAD // 1_000_000} MB unread")

    # --- in ---------------------------------------------------------------------------------------------------

    async def _receive(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        bad = 0
        try:
            while (length := await self._header(process.stdout)) is not None:
                body = await process.stdout.readexactly(length)
                try:
                    self._take(read_message(body))
                except ProtocolError as error:
                    bad += 1
                    self._log.line(f"{error}: {body[:200].decode('utf-8', 'replace')}")
                    if bad >= MOST_BAD:
                        raise
                await asyncio.sleep(0)  # however much it says, others have their turn
        except asyncio.IncompleteReadError:
            self._fail("it ended in the middle of a message")
        except ProtocolError as error:
            self._fail(str(error))
        except OSError as error:
            self._fail(f"cannot read its output: {error.strerror or error}")
        self._fail(await self._reason(process))

    async def _reason(self, process: asyncio.subprocess.Process) -> str:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE)
        await asyncio.wait(self._tasks[1:], timeout=GRACE)  # its last words
        last = self._log.newest.strip().rpartition("\n")[2].strip()
        suffix = f": {last[:200]}" if last and not last.startswith("[swecli]") else ""
        status = process.returncode
        if status is None:
            return f"it closed its output{suffix}"
        return f"it ended with {f'signal {-status}' if status < 0 else f'status {status}'}{suffix}"

    async def _header(self, stream: asyncio.StreamReader) -> int | None:
        """The length of the next message; None at the end. Other output is skipped, because programs print to it by
        mistake.

        Raises:
            ProtocolError: there is too much other output, or the length is invalid.
        """
        junk = 0
        length: int | None = None
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # longer than any header
                line = b"?" * LONGEST_HEADER
            if not line:
                return None
            declared = content_length(line)
            if declared is not None:
                length = declared
            elif not line.strip():
                if length is not None:
                    return length
            elif length is None or b":" not in line:
                length = None
                junk += len(line)
                self._log.line(f"not a message: {line[:200].decode('utf-8', 'replace').strip()}")
                if junk > MOST_JUNK:
                    raise ProtocolError("it writes something other than messages")
                await asyncio.sleep(0)

    def _take(self, message: Message) -> None:
        if message.method is not None and message.id is not None:
            self._answer(message)
        elif message.method is not None:
            self._on_notification(message.method, message.params)
        elif isinstance(message.id, int) and (waiting := self._waiting.get(message.id)) and not waiting.done():
            error = read_json(message.error)
            if error is None:
                waiting.set_result(message.result)
            else:
                code = as_object(error).get("code")
                text = str(as_object(error).get("message", "no reason given"))[:300]
                waiting.set_exception(Refused(text, code if isinstance(code, int) else 0))

    def _answer(self, message: Message) -> None:
        assert message.method is not None
        try:
            answer = {"result": self._on_request(message.method, message.params)}
        except UnknownMethod:
            answer = {"error": {"code": _METHOD_NOT_FOUND, "message": f"swecli does not answer {message.method}"}}
        with contextlib.suppress(ServerEnded):
            self._send({"id": message.id, **answer})

    # --- the end ----------------------------------------------------------------------------------------------

    def _fail(self, reason: str) -> None:
        """Give up on the server: fail all waiting requests and end its processes."""
        self.trouble = self.trouble or reason
        self.ended.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ServerEnded(self.trouble))
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(polite=False))

    async def close(self, why: str) -> None:
        """Ask the server to end, then end its remaining processes. Completes even if the caller is cancelled."""
        if self._process is None:
            return
        if self._stopping is None:
            self.trouble = why
            self._stopping = asyncio.create_task(self._stop(polite=True))
        await uninterrupted(self._stopping)

    async def _stop(self, *, polite: bool) -> None:
        process = self._process
        assert process is not None
        if polite and not self.ended.is_set():
            with contextlib.suppress(ServerEnded, Refused, TimeoutError):
                await self.request("shutdown", None, GRACE)
                self.notify("exit", None)
        self.ended.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ServerEnded(self.trouble))
        if process.stdin is not None:
            process.stdin.close()
        await end_group(process, GRACE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._launch is not None:
            await asyncio.to_thread(self._launch.end)


def beside(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> asyncio.Task[None]:
    """A background task that ``tasks`` references while it runs."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task
