"""`swecli acp`: swecli as the agent of an editor that speaks the Agent Client Protocol."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.command_line.arguments import UsageError, launch_options, main_parser
from swecli.command_line.standard_streams import complain, is_terminal
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions
from swecli.stopping import Stop

if TYPE_CHECKING:
    from swecli.acp.agent import Stored

LOGIN = "--login"


def acp(arguments: Sequence[str]) -> int:
    """Serve one editor on standard input and output. Takes the options of the main form that concern a session."""
    from swecli.command_line.dispatch import is_root

    if LOGIN in arguments:
        return _login()
    parser = main_parser()
    parser.prog = "swecli acp"
    parser.description = (
        "Serve an editor that speaks the Agent Client Protocol, on standard input and output. Add this to the editor's "
        "settings (docs/acp.md has them); --login stores an API key first."
    )
    parser.epilog = None
    options = launch_options(parser.parse_args(arguments), os.environ, is_root=is_root())
    _check(options)
    if is_terminal(sys.stdin):
        complain("swecli acp: waiting for an editor on standard input; docs/acp.md says how to set one up")
    stop = Stop()
    with stop.handled():
        import asyncio

        return int(asyncio.run(_serve(options, stop)))


def _check(options: LaunchOptions) -> None:
    if options.prompt:
        raise UsageError("swecli acp takes no message; the editor sends them")
    if options.headless or options.plain:
        raise UsageError("-p, --plain and the options of headless runs have no meaning for swecli acp")
    if options.resume or options.continue_newest or options.pick_session:
        raise UsageError("the editor chooses which session is continued: leave out -c and -r")


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
    from swecli.core.llm.providers import known_providers

    names = sorted(name for name, provider in known_providers().items() if provider.api_key_env)
    if not is_terminal(sys.stdin):
        raise UsageError("swecli acp --login asks for a provider and needs a terminal; see swecli login")
    sys.stdout.write(f"Providers: {', '.join(names)}\nProvider: ")
    sys.stdout.flush()
    name = sys.stdin.readline().strip()
    if not name:
        raise UsageError("no provider was named; nothing was stored")
    return login([name])
