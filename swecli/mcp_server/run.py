"""The program behind ``swecli mcp serve``: one client on standard input and output, until it leaves.

In place of the SDK's own transport, whose reading thread no signal ends, and which holds a line of any length.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from swecli.exit_codes import ExitCode
from swecli.input_lines import InputLines
from swecli.launch import LaunchOptions
from swecli.mcp_server.server import ListSessions, OpenSession, TaskServer
from swecli.output import ROOM, Output, Writer, log_in_lines
from swecli.stopping import Stop

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

LONGEST_LINE: Final = 32 * 1024 * 1024
"""Bytes of one message; a longer one is answered with an error."""
LINGER: Final = 1.0
"""Seconds for which the end waits for somebody to read the rest of the output."""
CLOSE_SECONDS: Final = 6.0
"""Seconds that the sessions have to end."""
_REQUEST_ERROR: Final = '{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"%s"}}'


async def serve(
    options: LaunchOptions,
    open_session: OpenSession,
    stored: ListSessions,
    streams: tuple[BinaryIO, TextIO],
    stop: Stop,
) -> ExitCode:
    """Serve the client until its input ends or a signal comes; then close every session."""
    writer, errors = Writer(), Output(sys.stderr)
    log_in_lines(errors, "swecli mcp serve")

    def log(line: str) -> None:
        errors.note(f"swecli mcp serve: {line}")

    source, target = streams
    tasks = TaskServer(options, open_session, stored, log)
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
    """One JSON-RPC message a line. What is no message is answered here, so that nothing which a client writes ends the
    connection."""

    def __init__(self, source: BinaryIO, out: Output, writer: Writer, log: Callable[[str], None]) -> None:
        self._out = out
        self._writer = writer
        self._log = log
        self._lines = InputLines(source, LONGEST_LINE, log)

    def end(self) -> None:
        """Receive nothing more."""
        self._lines.end()

    async def receive(self, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Hand on messages until the input ends."""
        with into, suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            while (line := await self._lines.next()) is not None:
                try:
                    message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self._refuse(line)
                    continue
                await into.send(SessionMessage(message))

    def _refuse(self, line: bytes) -> None:
        if not line:
            self._log("a message of more than 32 MiB was not read")
            self._out.line(_REQUEST_ERROR % (mcp_types.INVALID_REQUEST, "the message is longer than 32 MiB"))
            return
        self._log(f"not a message: {line[:200].decode('utf-8', 'replace')}")
        self._out.line(_REQUEST_ERROR % (mcp_types.PARSE_ERROR, "the line is no JSON-RPC message"))

    async def send(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write messages until there are no more; slowly, where nobody reads."""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._out.line(text)
                if self._writer.waiting > ROOM and self._writer.failure is None:
                    await self._writer.settled(ROOM // 2)
