"""/usage: what this session has used."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.figures import aligned, dollars, labelled, number, percent
from swecli.core.engine.spending import Tally
from swecli.core.engine.view import SessionPort, SessionView

TURNS = 20
"""The newest ones that are listed."""


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    spending = port.view.spending
    turns = [(str(number) if number else "-", tally) for number, tally in spending.by_turn.items()]
    sections = (
        usage_text(port.view),
        _table("By model", "model", list(spending.by_model.items())),
        _table("By turn", "turn", turns[-TURNS:]),
    )
    return CommandResult.text("\n\n".join(filter(None, sections)))


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
            ("Cost", _cost(totals.cost, totals.estimated)),
        )
    )


def _table(title: str, name: str, rows: Sequence[tuple[str, Tally]]) -> str:
    """One line for each tally; nothing without any."""
    if not rows:
        return ""
    lines = [(name, "requests", "input", "cached", "output", "cost")]
    for label, tally in rows:
        usage = tally.usage
        share = usage.cache_share
        lines.append(
            (
                label,
                number(tally.responses),
                number(usage.input_total) if usage.input_total is not None else "?",
                percent(share) if share is not None else "?",
                number(usage.output_total) if usage.output_total is not None else "?",
                _cost(tally.cost, tally.estimated),
            )
        )
    return f"{title}\n{aligned(lines)}"


def _cost(cost: Decimal | None, estimated: bool) -> str:
    """``about`` where an answer broke off before its usage was told."""
    return f"about {dollars(cost)}" if estimated and cost is not None else dollars(cost)
