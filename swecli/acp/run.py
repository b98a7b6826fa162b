"""The program behind ``swecli acp``: one client on standard input and output, until it leaves."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from typing import BinaryIO, TextIO

from acp.agent.connection import AgentSideConnection

from swecli.acp.agent import ListSessions, OpenSession, SwecliAgent
from swecli.acp.transport import StdioTransport
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions
from swecli.output import Output, Writer
from swecli.stopping import Stop

LINGER = 1.0
"""Seconds for which the end waits for somebody to read the rest of the output."""


def take_streams() -> tuple[BinaryIO, TextIO]:
    """Standard input and output for the protocol alone: what else the process reads there is empty, and what it writes
    goes to standard error."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return open(source, "rb"), open(target, "w", encoding="utf-8", newline="")


async def serve(
    options: LaunchOptions,
    open_session: OpenSession,
    stored: ListSessions,
    streams: tuple[BinaryIO, TextIO],
    stop: Stop,
) -> ExitCode:
    """Serve the client until its input ends or a signal comes; then close every session."""
    writer, errors = Writer(), Output(sys.stderr)
    _quiet_library(errors)

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


def _quiet_library(errors: Output) -> None:
    """What the SDK logs is one line on standard error; tracebacks are of no use to the user of an editor."""

    class OneLine(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            detail = f": {type(error).__name__}: {error}" if error is not None else ""
            errors.note(f"swecli acp: {record.getMessage()}{detail}"[:500])

    logging.getLogger().handlers[:] = [OneLine(level=logging.WARNING)]
