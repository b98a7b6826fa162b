"""`swecli acp`: swecli as the agent of an editor that speaks the Agent Client Protocol."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.command_line.arguments import UsageError, editor_parser, launch_options
from swecli.command_line.standard_streams import complain, is_terminal
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions
from swecli.stopping import Stop

if TYPE_CHECKING:
    from swecli.acp.agent import Stored


def acp(arguments: Sequence[str]) -> int:
    """Serve one editor on standard input and output."""
    from swecli.command_line.dispatch import is_root

    chosen = editor_parser().parse_args(arguments)
    if chosen.login:
        return _login()
    options = launch_options(chosen, os.environ, is_root=is_root())
    if is_terminal(sys.stdin):
        complain("swecli acp: waiting for an editor on standard input; docs/acp.md says how to set one up")
    stop = Stop()
    with stop.handled():
        import asyncio

        return int(asyncio.run(_serve(options, stop)))


async def _serve(options: LaunchOptions, stop: Stop) -> ExitCode:
    from swecli.acp.run import serve, take_streams

    streams = take_streams()
    from swecli.app import open_session

    return await serve(
        options,
        lambda wanted, editor: open_session(wanted, editor=editor),
        lambda folder: stored_sessions(options, folder),
        streams,
        stop,
    )


def stored_sessions(options: LaunchOptions, folder: Path | None) -> list[Stored]:
    from swecli.acp.agent import Stored
    from swecli.assembly.storage import SessionList

    def no_opener(session_id: str) -> object:
        raise AssertionError(session_id)

    sessions = SessionList(replace(options, cwd=folder or options.cwd), dict(os.environ), no_opener)  # pyright: ignore[reportArgumentType] - the list only reads
    found = sessions.here() if folder is not None else sorted(sessions.read(), key=lambda one: -one.updated)
    return [Stored(each.id, each.title, each.folder, each.updated) for each in found if each.messages]


def _login() -> int:
    """Ask for a provider, then for its key."""
    from swecli.command_line.models import login
    from swecli.core.llm.providers import known_providers, needs_key

    names = sorted(name for name, provider in known_providers().items() if needs_key(provider, provider.base_url))
    if not is_terminal(sys.stdin):
        raise UsageError("swecli acp --login asks for a provider and needs a terminal; see swecli login")
    sys.stdout.write(f"Providers: {', '.join(names)}\nProvider: ")
    sys.stdout.flush()
    name = sys.stdin.readline().strip()
    if not name:
        raise UsageError("no provider was named; nothing was stored")
    return login([name])
