"""Commands about requests to the model: /wire and /cache."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, fixed_words
from swecli.core.context_management.cache import CachedRequest, CacheHistory, RecordedMiss, miss_cost
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.messages import Usage
from swecli.core.protocol.provider_reports import dropped_words
from swecli.export.destination import DestinationError, located
from swecli.figures import aligned, bar, cut, dollars, number, percent, plural
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.engine.session_view import SessionView

from swecli.commands.context import BAR_CELLS, PART_CELLS, prompt_text


async def _run_wire(session: Session, arguments: str) -> CommandResult:
    verb, _, rest = arguments.strip().partition(" ")
    if verb == "save":
        return await _save_wire(session, rest.strip())
    draft = arguments.strip()
    return CommandResult(screen="wire", argument=draft, instead=(TextBlock(wire_text(session, draft)),))


WIRE = SlashCommand(
    "wire",
    "Show the exact next request",
    _run_wire,
    arguments="[message | save [FILE]]",
    words=fixed_words(save="write the request to a file"),
    shows_tools=True,
    under="context",
)


def wire_text(session: Session, draft: str = "") -> str:
    """The sections of the next request with their tokens; marks differences from the previous one."""
    wire = session.inspection.wire(draft)
    if wire is None:
        return "No model is connected, so there is no request to show."
    marks = {"same": " ", "new": "+", "changed": "~", "gone": "-"}
    rows = [
        f"{marks[one.change]} {one.name:<14}  {one.tokens:>7,}  {'┃' if one.breakpoint else ' '} {one.about}".rstrip()
        for one in wire.sections
    ]
    head = f"The next request{with_message(draft)}: {wire.tokens:,} tokens, {len(wire.body.encode()):,} bytes"
    to = f" to {wire.url}" if wire.url else ", in swecli's own form: this model is not on a network"
    return session.inspection.masked("\n".join([f"{head}{to}", *rows]))


_MESSAGE = 40
"""Characters of a message to show."""


def with_message(draft: str) -> str:
    """That the next request is shown as if with this message."""
    line = safe_line(draft)
    return f" with the message “{cut(line, _MESSAGE)}”" if draft else ""


async def _save_wire(session: Session, name: str) -> CommandResult:
    try:
        place = await save_wire(session, str(located(name, session.view.cwd)) if name else "")
    except DestinationError as error:
        return CommandResult.text(str(error), "error")
    except OSError as error:
        return CommandResult.text(f"Could not save the request: {error}", "error")
    if place is None:
        return CommandResult.text("No model is connected, so there is no request to save.", "warning")
    return CommandResult.text(f"Saved to {place}, secrets masked.")


async def save_wire(session: Session, name: str = "", draft: str = "") -> Path | None:
    """Write the next request to a file of the working directory that only the user can read; None without a model.

    Raises:
        OSError: the file exists already, or can't be written.
    """
    wire = session.inspection.wire(draft)
    if wire is None:
        return None
    place = session.view.cwd / (name or f"swecli-wire-{session.view.session_id}-{session.view.totals.turns}.json")
    text = session.inspection.masked(wire.body) + "\n"

    def write() -> None:
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    await asyncio.to_thread(write)
    return place


SHOWN = 10
"""Requests and misses to list."""


async def _run_cache(session: Session, arguments: str) -> CommandResult:
    text = TextBlock(cache_text(session.view, arguments))
    return CommandResult(screen="cache", argument=arguments.strip(), instead=(text,))


CACHE = SlashCommand(
    "cache",
    "Show each request's cached part, and each miss with its cause",
    _run_cache,
    arguments="[words]",
    under="context",
)


def request_matches(request: CachedRequest, words: Iterable[str]) -> bool:
    """Whether all words, in lower case, are in a request's turn, model, misses or reports."""
    causes = " ".join(f"{miss.kind} {miss.cause} {miss.component}" for miss in request.misses)
    reports = " ".join((request.diagnosis, *map(dropped_words, request.dropped)))
    text = f"turn {request.turn} {request.model} {causes} {reports}".casefold()
    return all(word in text for word in words)


def cache_text(view: SessionView, words: str = "") -> str:
    """The prompt cache in numbers, with the newest requests, of those that match the words."""
    history, wanted = view.cache, words.casefold().split()
    reported = [request for request in history.requests if request.usage.cache_read is not None]
    if not reported:
        return no_cache_words(history)
    shown = [request for request in reported if request_matches(request, wanted)][-SHOWN:]
    matching = f" with “{safe_line(words)}”" if wanted else ""
    heading = f"Newest requests{matching} (prompt tokens, share read from the cache, cost):"
    if not shown:
        heading = f"No request matches “{safe_line(words)}”."
    newest = reported[-1].usage.cache_share or 0.0
    read = sum(request.usage.cache_read or 0 for request in reported)
    total = sum(request.usage.input_total or 0 for request in reported)
    lines = [
        f"Prompt cache: {percent(newest)} of the last request, {percent(read / total)} of the last"
        f" {plural(len(reported), 'request')} ({number(read)} of {plural(total, 'token')})",
        bar(newest, BAR_CELLS),
        heading,
        _timeline(shown, view.price),
        _misses(history.misses, history.totals.missed, () if wanted else _further(history, shown)),
        prompt_text(view.conversation),
    ]
    return "\n".join(line for line in lines if line)


def no_cache_words(history: CacheHistory) -> str:
    """Reason for an empty list, as a sentence."""
    if history.requests:
        return "The provider reports no cached tokens."
    return "The provider reports no token counts." if history.silent else "No answer yet."


def _timeline(requests: Sequence[CachedRequest], price: Callable[[str, Usage], str | None]) -> str:
    """One line for each request, with its misses below it."""
    rows = aligned(
        (
            f"turn {request.turn}, {_clock(request.at)}",
            number(request.usage.input_total or 0),
            percent(request.usage.cache_share or 0.0),
            bar(request.usage.cache_share or 0.0, PART_CELLS),
            recorded_dollars(request.cost),
        )
        for request in requests
    )
    lines: list[str] = []
    for request, row in zip(requests, rows.splitlines(), strict=True):
        lines.append(row)
        for miss in request.misses:
            extra = miss_cost(request, miss.tokens, price)
            cost = f", {dollars(extra)} more" if extra else ""
            lines.append(f"    missed: {miss.cause} ({plural(miss.tokens, 'token')} again{cost})")
        if request.diagnosis:
            lines.append(f"    the provider's diagnosis: {request.diagnosis}")
        lines += (f"    {dropped_words(entry)}" for entry in request.dropped)
    return "\n".join(lines)


def recorded_dollars(cost: str | None) -> str:
    """A cost in the form of the records; empty if it is unknown."""
    try:
        return "" if cost is None else dollars(Decimal(cost))
    except InvalidOperation:
        return ""


def _further(history: CacheHistory, shown: Sequence[CachedRequest]) -> Sequence[RecordedMiss]:
    """Misses that belong to none of the shown requests."""
    told = [miss for request in shown for miss in request.misses]
    return [miss for miss in history.misses if miss not in told]


def _misses(misses: Sequence[RecordedMiss], tokens: int, further: Sequence[RecordedMiss]) -> str:
    if not misses:
        return "No misses."
    count = plural(len(misses), "miss")
    head = f"{count}, {plural(tokens, 'token')} processed again{'; others:' if further else '.'}"
    rows = [f"  turn {miss.turn}, {_clock(miss.at)}  {number(miss.tokens)}  {miss.cause}" for miss in further[-SHOWN:]]
    return "\n".join([head, *rows])


def _clock(at: float) -> str:
    return time.strftime("%H:%M", time.localtime(at))
