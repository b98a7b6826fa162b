"""The program behind ``swecli acp``: one client on standard input and output, until it leaves."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import BinaryIO, TextIO

from acp.agent.connection import AgentSideConnection

from swecli.acp.agent import OpenSession, StoredSessions, SwecliAgent
from swecli.acp.transport import StdioTransport
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions
from swecli.output import Output, Writer, log_in_lines
from swecli.stopping import Stop

LINGER = 1.0
"""Seconds for which the end waits for somebody to read the rest of the output."""


async def serve(
    options: LaunchOptions,
    open_session: OpenSession,
    stored: StoredSessions,
    streams: tuple[BinaryIO, TextIO],
    stop: Stop,
) -> ExitCode:
    """Serve the client until its input ends or a signal comes; then close every session."""
    writer, errors = Writer(), Output(sys.stderr)
    log_in_lines(errors, "swecli acp")

    def log(line: str) -> None:
        errors.note(f"swecli acp: {line}")

    source, target = streams
    transport = StdioTransport(source, Output(target, writer), writer, log)
    agent = SwecliAgent(options, open_session, stored, log, transport.withdraw)
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
