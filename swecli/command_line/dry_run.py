"""``--dry-run``: the request that a message would lead to, as JSON. No connection is opened, nothing is stored."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from swecli.command_line.arguments import UsageError
from swecli.command_line.printing import complain, print_text
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError


def print_request(options: LaunchOptions) -> int:
    """Print the first request that the options' message would lead to."""
    from swecli.headless.slash import meaning

    if meaning(options.prompt) is not None:
        raise UsageError("--dry-run shows what a message sends; a slash command is no message")
    document = asyncio.run(_requested(replace(options, look_only=True)))
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
        session.send(Submit(options.prompt))
        async for event in events:
            if isinstance(event.body, Notice) and event.body.level != "info":
                complain(f"{event.body.level}: {event.body.text}")
            if isinstance(event.body, Notice) and event.body.level == "error" and not session.view.busy:
                reason = event.body.text
                break
            if isinstance(event.body, TurnEnded):
                reason = event.body.reason
                break
    finally:
        await session.close()
    if not shown:
        raise StartError(f"nothing would be sent: {reason}", ExitCode.FAILURE)
    return shown[0]
