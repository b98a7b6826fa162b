"""/usage: what this session has used."""

from __future__ import annotations

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.figures import dollars, labelled, number, percent
from swecli.core.engine.view import SessionPort, SessionView


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    return CommandResult.text(usage_text(port.view))


USAGE = SlashCommand("usage", "Tokens and cost of this session", _run, aliases=("cost", "stats"))


def usage_text(view: SessionView) -> str:
    """The report as plain text."""
    totals, last = view.totals, view.last_usage
    tools = ", ".join(f"{name} {count}" for name, count in sorted(totals.by_tool.items(), key=lambda pair: -pair[1]))
    share = totals.cache_read / totals.input_tokens if totals.input_tokens else None
    cache = last.cache_share if last else None
    return labelled(
        (
            ("Turns", number(totals.turns)),
            ("Model requests", number(totals.steps)),
            ("Tool calls", number(totals.tools) + (f" ({tools})" if tools else "")),
            ("Input tokens", number(totals.input_tokens)),
            (
                "  from the cache",
                f"{number(totals.cache_read)}" + (f" ({percent(share)})" if share is not None else ""),
            ),
            ("Output tokens", number(totals.output_tokens)),
            ("Cache share of the last request", percent(cache) if cache is not None else "?"),
            ("Cost", dollars(totals.cost)),
        )
    )
