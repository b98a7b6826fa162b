"""A server started by swecli: bounded messages over standard input and output, stderr in a log.

Replaces the SDK's transport, which keeps a line of any length in memory and writes stderr to a file of any size.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swecli.core.mcp.messages import BadMessage, parts_of, read_answer
from swecli.core.uninterrupted import uninterrupted
from swecli.core.workspace.process_tree import MARK, end_group, new_mark
from swecli.core.workspace.server_log import ServerLog

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

LONGEST_LINE: Final = 32_000_000
"""Bytes of one message."""
GRACE: Final = 1.0
"""Seconds that a server has to end after its input closes, and again after SIGTERM."""
_CHUNK = 65_536


class StdioServer:
    """One run of a server. ``ended`` is set when its output ends, for any reason."""

    def __init__(self, words: Sequence[str], cwd: Path, environment: Mapping[str, str], log: ServerLog) -> None:
        self._words = tuple(words)
        self._cwd = cwd
        self._environment = dict(environment)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self.ended = asyncio.Event()
        self.trouble = ""
        """Why swecli ended it, as a clause."""
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = False

    @property
    def exit_status(self) -> int | None:
        return self._process.returncode if self._process is not None else None

    async def status(self) -> int | None:
        """The exit status after its output ended; None if it still runs without output."""
        if self._process is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), GRACE)
        return self.exit_status

    async def start(self) -> None:
        """Start the program, without the SDK, which may still be loading.

        Raises:
            OSError: it can't be started.
        """
        self._process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._cwd,
            env={**self._environment, MARK: new_mark(own=True)},
            start_new_session=True,
        )

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[TransportStreams]:
        """The message streams of a started program; the end of the block stops it."""
        import anyio
        from mcp.shared.message import SessionMessage

        process = self._process
        assert process is not None
        assert process.stderr is not None
        into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._tasks += [
            asyncio.create_task(self._receive(process, into)),
            asyncio.create_task(self._send(process, outgoing)),
            asyncio.create_task(self._log.follow(process.stderr)),
        ]
        try:
            yield read, write
        finally:
            await self.stop()
            for stream in (into, read, write, outgoing):
                stream.close()

    async def _receive(
        self, process: asyncio.subprocess.Process, into: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        assert process.stdout is not None
        pieces: list[bytes] = []
        size = 0
        try:
            while chunk := await process.stdout.read(_CHUNK):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    whole = b"".join((*pieces, line)).strip()
                    pieces, size = [], 0
                    if not whole:
                        continue
                    for message in self._messages(whole):
                        await into.send(SessionMessage(message))
                    await asyncio.sleep(0)
                pieces.append(rest)
                size += len(rest)
                if size > LONGEST_LINE:
                    self.trouble = f"it sent a message of more than {LONGEST_LINE // 1_000_000} MB"
                    break
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            self.ended.set()
            into.close()

    def _messages(self, line: bytes) -> Sequence[JSONRPCMessage]:
        """The messages of a line; other text goes to the log."""
        try:
            return (read_answer(line),)
        except BadMessage:
            within, around = parts_of(line)
        messages: list[JSONRPCMessage] = []
        for part in within:
            try:
                messages.append(read_answer(part))
            except BadMessage:
                around = f"{around} {part.decode('utf-8', 'replace')}"
        if around:
            self._log.stray(around[:200])
        return messages

    async def _send(
        self, process: asyncio.subprocess.Process, outgoing: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        import anyio

        assert process.stdin is not None
        try:
            async for message in outgoing:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(line.encode("utf-8", "replace") + b"\n")
                await process.stdin.drain()
        except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # the end of its output tells

    async def stop(self) -> None:
        """Stop the program if it runs; further calls do nothing."""
        if self._process is not None and not self._stopped:
            self._stopped = True
            await uninterrupted(self._end(self._process))

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Close its input, wait, then end its process group."""
        if process.stdin is not None:
            process.stdin.close()
        await end_group(process, GRACE, first=0.0 if self.trouble else None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in (process.stdout, process.stderr):  # a pipe is closed once it was read to its end
            if stream is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(_drained(stream), GRACE)


async def _drained(stream: asyncio.StreamReader) -> None:
    while await stream.read(_CHUNK):
        pass
