"""Opens the session of a run. Nothing else builds one for a front-end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from msgspec.structs import replace

from swecli.assembly.heap import give_back_free_blocks, give_back_large_blocks, uncollected
from swecli.assembly.session_parts import build_parts
from swecli.assembly.wrapped_clients import with_clients
from swecli.core.context_management.calibration import LearnedRatios
from swecli.core.context_management.counter import HybridCounter
from swecli.core.engine.session import Session
from swecli.core.llm.types import ModelClient
from swecli.core.ports import EditorFiles
from swecli.core.protocol.events import CHOICE
from swecli.core.protocol.messages import Usage
from swecli.launch import LaunchOptions

SHOWN_AFTER = 20.0
"""Seconds after which a continued session has been shown, and the memory for reading it is free again."""

Gate = Callable[[ModelClient, Callable[[str, Usage], str | None]], ModelClient]
"""Wraps a client; also gets the price of a model's answer by its usage, in US dollars as text."""


async def open_session(
    options: LaunchOptions,
    *,
    instead: Callable[[ModelClient], ModelClient] | None = None,
    gate: Gate | None = None,
    editor: EditorFiles | None = None,
) -> Session:
    """Open and start the session of the options. Closing it releases everything. ``instead`` replaces the model's
    client; then only a local server is asked about its model, and no file is copied. ``gate`` wraps each client, which
    it may hold up. ``editor`` has open files.

    Raises:
        StartError: it can't start; one line for the user.
    """
    give_back_large_blocks()
    parts = await asyncio.to_thread(build_parts, options)
    services, stored = parts.services, parts.stored
    if instead is not None:
        services = with_clients(services, instead, only_local=True)
        services = replace(services, workspace=replace(services.workspace, checkpoints=None))
    if gate is not None:
        price = services.access.price
        services = with_clients(services, lambda client: gate(client, price))
    if editor is not None:
        services = replace(services, workspace=replace(services.workspace, editor=editor))
    with uncollected():
        record = stored.session_id, services, stored.make_log, stored.history
        session = Session(*record, features=parts.features, before=stored.before)
    loop = asyncio.get_running_loop()

    def tell(text: str) -> None:
        """Show a line to the user from another thread; does nothing after the program's end."""
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(session.notice, text, "warning")

    if stored.history:
        stored.history, stored.before = (), None  # now in the session
        loop.call_later(SHOWN_AFTER, loop.run_in_executor, None, give_back_free_blocks)
    stored.tell = lambda text: session.notice(text, "error")
    if stored.log is not None:
        stored.log.tell = tell
    monitor = services.toolset.context.monitor
    for helper in (monitor.counter, monitor.ratios):
        if isinstance(helper, HybridCounter | LearnedRatios):
            helper.tell = tell
    if parts.dump is not None:
        parts.dump.tell = session.notice
    if services.workspace.checkpoints is not None:
        services.workspace.checkpoints.tell = lambda text: session.notice(text, "warning")
    session.start(parts.model, parts.environment)
    if parts.bundle is not None:
        parts.bundle.begin(session)
    for notice in parts.notices:
        session.notice(notice, "warning")
    for remark in parts.remarks:
        session.notice(remark, topic=CHOICE)
    return session
