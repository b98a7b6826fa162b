"""/cache: how much of the prompt comes from the provider's cache, and why it did not."""

from __future__ import annotations

import time
from collections.abc import Sequence

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.context import bar
from swecli.commands.figures import aligned, number, percent
from swecli.core.context_management.cache_history import CachedRequest, RecordedMiss
from swecli.core.engine.view import SessionPort, SessionView

SHOWN = 10
"""Requests and misses that are listed."""


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    return CommandResult.text(cache_text(port.view))


CACHE = SlashCommand("cache", "Share of the prompt from the provider's cache, and each miss", _run)


def cache_text(view: SessionView) -> str:
    """The report as plain text."""
    history = view.cache
    reported = [request for request in history.requests if request.usage.cache_read is not None]
    if not history.requests:
        return "No request has been answered yet."
    if not reported:
        return "The provider does not report what it takes from its cache."
    newest = reported[-1].usage.cache_share or 0.0
    read = sum(request.usage.cache_read or 0 for request in reported)
    total = sum(request.usage.input_total or 0 for request in reported)
    lines = [
        f"Prompt cache: {percent(newest)} of the last request, {percent(read / total)} of the last"
        f" {number(len(reported))} requests ({number(read)} of {number(total)} tokens)",
        bar(newest),
        "Newest requests (tokens of the prompt, from the cache, written to it):",
        _requests(reported[-SHOWN:]),
        _misses(history.misses, history.missed_tokens),
    ]
    return "\n".join(line for line in lines if line)


def _requests(requests: Sequence[CachedRequest]) -> str:
    return aligned(
        (
            f"turn {request.turn}, {_clock(request.at)}",
            number(request.usage.input_total or 0),
            percent(request.usage.cache_share or 0.0),
            number(request.usage.cache_write) if request.usage.cache_write is not None else "",
        )
        for request in requests
    )


def _misses(misses: Sequence[RecordedMiss], tokens: int) -> str:
    if not misses:
        return "No miss was noticed."
    head = f"{number(len(misses))} misses, {number(tokens)} tokens computed again; the newest:"
    rows = [f"  turn {miss.turn}, {_clock(miss.at)}  {number(miss.tokens)}  {miss.cause}" for miss in misses[-SHOWN:]]
    return "\n".join([head, *rows])


def _clock(at: float) -> str:
    return time.strftime("%H:%M", time.localtime(at))
