"""Looking at a session without continuing it: its context, and what a compaction would do. Nothing is changed, no model
is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from swecli.command_line.arguments import Parser, UsageError, working_directory
from swecli.command_line.printing import print_text
from swecli.core.engine.view import SessionPort
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError


def context(arguments: Sequence[str]) -> int:
    """``swecli context``: what fills the context window, as text or JSON."""
    parser = Parser(prog="swecli context", description="What fills the context of a session; asks no model.")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("-r", "--resume", metavar="ID", help="of this session; else of a new one in this folder")
    parser.add_argument("-c", "--continue", dest="newest", action="store_true", help="of the newest session")
    parser.add_argument("-m", "--model", metavar="PROVIDER/NAME", help="as this model would count it")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="in this folder")
    chosen = parser.parse_args(arguments)
    if chosen.resume is not None and (not chosen.resume or chosen.newest):
        raise UsageError("-r needs the id of a session, and does not go with -c")
    options = LaunchOptions(
        cwd=working_directory(chosen.cwd),
        headless=True,
        resume=chosen.resume,
        continue_newest=chosen.newest,
        model=chosen.model,
    )
    return _print(options, _context_json if chosen.json else _context_text)


def print_plan(options: LaunchOptions) -> int:
    """``--compact-dry-run``: the plan of a compaction as JSON."""
    return _print(options, _plan)


def _context_json(port: SessionPort) -> str:
    from swecli.commands.documents import context_document
    from swecli.core.protocol.codec import to_text

    return to_text(context_document(port))


def _context_text(port: SessionPort) -> str:
    from swecli.commands.context import context_text, rules_text

    return "\n".join(filter(None, (context_text(port.view), rules_text(port.retention()))))


def _plan(port: SessionPort) -> str:
    from swecli.commands.documents import plan_document
    from swecli.core.protocol.codec import to_text

    plan = port.plan_compaction()
    if plan is None:
        raise StartError("no model is configured, so nothing can be measured; -m names one", ExitCode.CONFIG)
    return to_text(plan_document(plan))


def _print(options: LaunchOptions, render: Callable[[SessionPort], str]) -> int:
    text = asyncio.run(_look(replace(options, look_only=True), render))
    return print_text(text + "\n")


async def _look(options: LaunchOptions, render: Callable[[SessionPort], str]) -> str:
    from swecli.app import open_session

    session = await open_session(options)
    try:
        return render(session)
    finally:
        await session.close()
