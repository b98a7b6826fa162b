"""Opening a session for the front-end that was chosen."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from swecli.core.engine.view import SessionPort
from swecli.launch import LaunchOptions, StartError


def run_headless(options: LaunchOptions) -> int:
    """The one-shot: a session, its events as text or JSON, and an exit status."""
    return asyncio.run(_headless(options))


async def _headless(options: LaunchOptions) -> int:
    from swecli.app import open_session
    from swecli.headless.front_end import run

    return await run(await open_session(options), options)


def run_interactive(options: LaunchOptions) -> int:
    """The interface in the terminal."""
    from swecli.tui.launch import run

    async def open_one(wanted: LaunchOptions) -> SessionPort:
        from swecli.app import open_session
        from swecli.tui.link import SessionNotOpened

        try:
            session = await open_session(wanted)
        except StartError as error:
            raise SessionNotOpened(str(error), int(error.exit_code)) from error
        if wanted.banner:
            session.notice(wanted.banner)
        return session

    fresh = replace(options, prompt="", resume=None, continue_newest=False)
    return run(lambda: open_one(options), first_prompt=options.prompt or None, new_session=lambda: open_one(fresh))
