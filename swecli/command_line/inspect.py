"""Looking at a session or a request without sending anything."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from swecli.command_line.arguments import UsageError, folder_parser, working_directory
from swecli.command_line.standard_streams import complain, print_text
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.core.engine.session import Session


def print_request(options: LaunchOptions) -> int:
    from swecli.commands.registry import parse

    if parse(options.prompt) is not None:
        raise UsageError("--dry-run shows the request for a message; slash commands send none")
    document = asyncio.run(_requested(replace(options, look_only=True)))
    _report_left_out(options)
    return print_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


async def _requested(options: LaunchOptions) -> dict[str, Any]:
    from swecli.app import open_session
    from swecli.core.llm.dry_run import DryClient
    from swecli.core.protocol.commands import Submit
    from swecli.core.protocol.events import Notice, TurnEnded

    shown: list[dict[str, Any]] = []
    reason = "no request was made"
    session = await open_session(options, instead=lambda client: DryClient(client, shown.append))
    try:
        events = session.subscribe()
        session.send(Submit(options.prompt, mentions=options.mentions))
        async for event in events:
            if isinstance(event.body, Notice) and event.body.level != "info":
                complain(f"{event.body.level}: {event.body.text}")
            if isinstance(event.body, Notice) and event.body.level == "error" and not session.view.busy:
                reason = event.body.text
                break
            if isinstance(event.body, TurnEnded):
                reason = event.body.reason
                break
        connected = session.view.model is not None
    finally:
        await session.close()
    if not shown:
        raise StartError(f"Nothing would be sent: {reason}", ExitCode.FAILURE if connected else ExitCode.CONFIG)
    return shown[0]


def context(arguments: Sequence[str]) -> int:
    """``swecli context``: content of the context window, as text or JSON."""
    parser = folder_parser("swecli context", "Show what fills a session's context; sends nothing to a model.")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("-r", "--resume", metavar="ID", help="this session; default: a new one in this folder")
    parser.add_argument("-c", "--continue", dest="newest", action="store_true", help="continue the newest session")
    parser.add_argument("-m", "--model", metavar="PROVIDER/NAME", help="count as for this model")
    chosen = parser.parse_args(arguments)
    if chosen.resume is not None and (not chosen.resume or chosen.newest):
        raise UsageError("-r needs a session id and excludes -c")
    options = LaunchOptions(
        cwd=working_directory(chosen.cwd),
        headless=True,
        resume=chosen.resume,
        continue_newest=chosen.newest,
        model=chosen.model,
    )
    return _print(options, _context_json if chosen.json else _context_text)


def print_plan(options: LaunchOptions) -> int:
    return _print(options, _plan)


def _context_json(port: Session) -> str:
    from swecli.commands.context import context_document
    from swecli.core.protocol.codec import to_text

    return to_text(context_document(port))


def _context_text(port: Session) -> str:
    from swecli.commands.context import whole_text

    return whole_text(port)


def _plan(port: Session) -> str:
    from swecli.commands.compaction import plan_document
    from swecli.core.protocol.codec import to_text

    plan = port.plan_compaction()
    if plan is None:
        raise StartError("No model is selected, so swecli cannot count tokens; select one with -m", ExitCode.CONFIG)
    return to_text(plan_document(plan))


def _print(options: LaunchOptions, render: Callable[[Session], str]) -> int:
    text = asyncio.run(_look(replace(options, look_only=True), render))
    _report_left_out(options)
    return print_text(text + "\n")


def _report_left_out(options: LaunchOptions) -> None:
    """Report the MCP servers of a run, which looking does not start."""
    from swecli.assembly.services import launch_of
    from swecli.assembly.startup import startup_of
    from swecli.features.mcp.wiring import started_servers

    if names := started_servers(launch_of(options, startup_of(options, dict(os.environ)))):
        complain(f"warning: MCP servers are not started here; missing are the tools of {', '.join(names)}")


async def _look(options: LaunchOptions, render: Callable[[Session], str]) -> str:
    from swecli.app import open_session

    session = await open_session(options)
    try:
        return render(session)
    finally:
        await session.close()
