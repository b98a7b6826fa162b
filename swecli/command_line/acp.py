"""`swecli acp`: swecli as the agent of an editor that speaks the Agent Client Protocol."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from swecli.command_line.arguments import UsageError, editor_parser, is_root, launch_options
from swecli.command_line.standard_streams import complain, is_terminal, take_streams
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions
from swecli.stopping import Stop, run_until_stopped


def acp(arguments: Sequence[str]) -> int:
    """Serve one editor on standard input and output."""
    chosen = editor_parser().parse_args(arguments)
    if chosen.login:
        return _login()
    if find_spec("acp") is None:
        raise UsageError(
            "The package agent-client-protocol is missing, which has no release for Python 3.15; "
            "install swecli with Python 3.11 to 3.14 to use it in an editor"
        )
    options = launch_options(chosen, os.environ, is_root=is_root())
    if is_terminal(sys.stdin):
        complain("swecli acp: waiting for an editor on standard input; docs/acp.md says how to set one up")
    return int(run_until_stopped(lambda stop: _serve(options, stop)))


async def _serve(options: LaunchOptions, stop: Stop) -> ExitCode:
    streams = take_streams()
    from swecli.acp.agent import serve
    from swecli.app import open_session

    return await serve(options, lambda wanted, editor: open_session(wanted, editor=editor), streams, stop)


def _login() -> int:
    """Ask for a provider, then for its key."""
    from swecli.command_line.models import login
    from swecli.core.llm.providers import known_providers, needs_key

    names = sorted(name for name, provider in known_providers().items() if needs_key(provider, provider.base_url))
    if not is_terminal(sys.stdin):
        raise UsageError("swecli acp --login needs a terminal to ask for a provider; or use: swecli login PROVIDER")
    sys.stdout.write(f"Providers: {', '.join(names)}\nProvider: ")
    sys.stdout.flush()
    name = sys.stdin.readline().strip()
    if not name:
        raise UsageError("No provider was chosen; nothing was stored")
    return login([name])
