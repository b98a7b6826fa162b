"""Starting a server, sandboxed if possible."""

from __future__ import annotations

import asyncio
from pathlib import Path

from swecli.core.language_servers.definitions import Program, Surroundings
from swecli.core.language_servers.peer import Command, ServerEnded
from swecli.core.sandbox.launch import Launch, SandboxError
from swecli.core.sandbox.sandbox import Sandbox


async def start_command(program: Program, root: Path, around: Surroundings) -> Command:
    """The command to start a server.

    Raises:
        ServerEnded: it must not be started.
    """
    server = program.server
    launch = await _contained(root, around.sandbox) if server.sandboxed else None
    if launch is None and program.inside:
        raise ServerEnded(f"{program.path} is a file of the workspace and would run unsandboxed; install it elsewhere")
    if launch is None and server.sandboxed and around.contain:
        raise ServerEnded(f"the sandbox is {around.sandbox.state.text}")
    environment = {**around.environment, **(launch.environment if launch is not None else around.environment)}
    folder = environment.get("TMPDIR") or "/tmp"
    environment |= {name: value.replace("${TMPDIR}", folder) for name, value in server.env.items()}
    return Command((program.path, *server.command[1:]), root, environment, launch)


async def _contained(root: Path, sandbox: Sandbox) -> Launch | None:
    """The sandbox launch; None without a sandbox."""
    starting = asyncio.ensure_future(asyncio.to_thread(sandbox.begin_reader, root))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_abandon)
        raise
    except SandboxError:
        return None


def _abandon(starting: asyncio.Future[Launch]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().end()
