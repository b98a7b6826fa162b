"""Lines that begin with ``!``: the user's own shell commands."""

from __future__ import annotations

import os
from collections.abc import Collection

from swecli.core.protocol.commands import RunShell
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_controller import SessionController
from swecli.tui.submission import Shell


def shell_words(draft: str) -> str:
    """What happens to a draft that is a shell command."""
    if draft.startswith("!!"):
        return "runs in your shell with the whole terminal; the model sees the output"
    return "runs in your shell; the model sees the output · !! gets the whole terminal"


async def run_shell(screen: MainScreen, session: SessionController, shell: Shell, keys: Collection[str]) -> None:
    """Run the user's command in the session, or in their terminal if it needs one; there without the variables
    ``keys``."""
    from swecli.tui.external import NoTerminal, run_in_terminal, terminal_environment
    from swecli.tui.terminal_programs import needs_terminal

    command, view = shell.command, session.view
    sent = RunShell(command)
    if view is not None and (shell.in_terminal or needs_terminal(command, os.environ)):
        try:
            ran = await run_in_terminal(screen.app, command, view.cwd, terminal_environment(os.environ, keys))
            sent = RunShell(command, ran.output, ran.exit_status, ran.duration)
        except NoTerminal:
            pass
    session.send(sent)
