"""`swecli mcp serve`: swecli as a server for one client on standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from swecli.command_line.arguments import is_root, launch_options, server_parser
from swecli.command_line.standard_streams import complain, is_terminal, take_streams
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from swecli.stopping import Stop, run_until_stopped


def serve(arguments: Sequence[str]) -> int:
    """`swecli mcp serve`: serve one client on standard input and output."""
    options = launch_options(server_parser().parse_args(arguments), os.environ, is_root=is_root())
    if is_terminal(sys.stdin):
        complain("swecli mcp serve: waiting for an MCP client on standard input; docs/mcp.md says how to set one up")
    return int(run_until_stopped(lambda stop: _serve(options, stop)))


async def _serve(options: LaunchOptions, stop: Stop) -> ExitCode:
    streams = take_streams()
    from swecli.app import open_session
    from swecli.assembly.checkpoints import settle_files
    from swecli.assembly.startup import startup_of
    from swecli.mcp_server.server import serve as served

    with suppress(StartError):  # each task reports it
        for line in settle_files(options, startup_of(options, dict(os.environ))):
            complain(f"swecli mcp serve: {line}")
    return await served(options, open_session, streams, stop)
