"""The subcommands. Each takes the arguments after its name and returns the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.block_text import block_lines
from swecli.command_line.arguments import Parser, working_directory
from swecli.command_line.printing import complain, input_lines, print_lines, print_text
from swecli.command_line.standard_input import is_terminal
from swecli.exit_codes import ExitCode
from swecli.headless.output import Output, OutputClosed, detach_stdout
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.tui.boot import Terminal


def demo(arguments: Sequence[str], terminal: Terminal | None = None) -> int:
    """``swecli demo``: the real program on the sample project, with the scripted model. ``terminal`` is given where
    it is taken already."""
    parser = Parser(
        prog="swecli demo", description="The program on a sample project with a scripted model: no key, no network."
    )
    parser.add_argument("-p", "--print", action="store_true", help="as text, as it is without a terminal")
    parser.add_argument("--plain", action="store_true", help="lines instead of a screen; you answer its questions")
    chosen = parser.parse_args(arguments)
    from swecli.command_line.dispatch import launch

    options = demo_options()
    if chosen.plain or os.environ.get("TERM", "").lower() == "dumb":
        options = replace(options, plain=True)
    elif terminal is None and (chosen.print or not (is_terminal(sys.stdin) and is_terminal(sys.stdout))):
        options = replace(options, headless=True, output_format="transcript", approve_all=True)
    return launch(options, terminal)


def demo_options() -> LaunchOptions:
    """How the demonstration is started, on a fresh copy of the sample project.

    Raises:
        StartError: there is no room for the copy.
    """
    from swecli import demo as bundled

    try:
        folder = bundled.prepare()
    except OSError as error:
        raise StartError(f"the sample project can't be copied to a temporary folder: {error}") from error
    return LaunchOptions(
        cwd=folder,
        prompt=bundled.PROMPT,
        script=bundled.SCRIPT,
        banner=bundled.banner(folder),
        store=False,
        mode="default",
        trust="session",
    )


def sessions(arguments: Sequence[str]) -> int:
    """``swecli sessions``: the stored sessions of a folder, the newest first."""
    parser = Parser(prog="swecli sessions", description="The stored sessions of this folder, the newest first.")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="of this folder instead")
    folder = working_directory(parser.parse_args(arguments).cwd)
    rows = _stored_sessions(folder)
    if not rows:
        complain(f"swecli: no sessions are stored for {folder}")
        return ExitCode.OK
    _table(("id", "last used", "turns", "model", "first message"), rows)
    return ExitCode.OK


def _stored_sessions(folder: Path) -> list[tuple[str, ...]]:
    from swecli.assembly.storage import DATABASE
    from swecli.core.config.paths import user_paths
    from swecli.core.sessions.database import open_database
    from swecli.core.sessions.store import SessionStore

    file = user_paths(os.environ).workspace_data(folder) / DATABASE
    if not file.exists():
        return []
    database = open_database(file)
    for problem in database.problems:
        complain(f"warning: {problem}")
    with closing(SessionStore(database)) as store:
        return [
            (session.id, _when(session.updated), str(session.turns), session.model, " ".join(session.title.split()))
            for session in store.list()
        ]


def debug(arguments: Sequence[str]) -> int:
    """``swecli debug decode|tool --batch``: JSON lines in, one JSON line out for each."""
    parser = Parser(prog="swecli debug", description="For bug reports and outside checks: JSON lines in and out.")
    parser.add_argument("what", choices=("decode", "tool"), help="decode recorded answers, or run single tool calls")
    parser.add_argument("--batch", action="store_true", required=True, help="read lines from standard input")
    what = parser.parse_args(arguments).what
    if what == "decode":
        from swecli.core.llm.debug_decode import decode_batch

        return print_lines(decode_batch(input_lines()))
    import asyncio

    return asyncio.run(_tool_batch())


async def _tool_batch() -> int:
    from swecli.app import tool_batch

    out = Output(sys.stdout)
    try:
        async for line in tool_batch(input_lines()):
            out.line(line)
    except OutputClosed:
        detach_stdout()
        return ExitCode.FAILURE
    return ExitCode.OK


def _when(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp).strftime("%Y-%m-%d %H:%M")


def _table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from swecli.core.protocol.blocks import TableBlock

    lines = block_lines(TableBlock(headers, tuple(rows)))
    print_text("\n".join(lines) + "\n")
