"""The command /usage, and the price of a model that the user sets with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.state import Spending, Tally
from swecli.core.llm.catalog import SEARCH_PRICES
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.events import MAIN, Price
from swecli.figures import dollars, labelled, number, percent
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.engine.session_view import SessionView


TURNS = 20
"""Newest turns to list."""
PRICE_FORM = "INPUT OUTPUT [CACHED], in dollars per million tokens"
_RATE = lazy_pattern(r"\$?(\d{1,6}(?:\.\d{1,9})?|\.\d{1,9})\$?")


def price_of(text: str) -> Price | None:
    """A typed price: two or three numbers, with or without separators; None for anything else."""
    words = [word for word in re.split(r"[\s,/;]+", text.strip()) if word]
    rates = [found[1] for word in words if (found := _RATE.fullmatch(word)) is not None]
    return Price(*rates) if len(rates) == len(words) and len(rates) in (2, 3) else None


async def _run_price(session: Session, words: str) -> CommandResult:
    first, _, rest = words.partition(" ")
    model = session.view.model
    ref = first if "/" in first and price_of(first) is None else model.ref if model is not None else ""
    price = price_of(rest if ref == first else words)
    if not ref:
        return CommandResult.text("No model is connected; name one: /usage price PROVIDER/NAME 3 15 0.3", "error")
    if not words:
        example = TextBlock(f"A price is {PRICE_FORM}, for example /usage price 3 15 0.3", "error")
        return CommandResult(screen="price", argument=ref, instead=(example,))
    if price is None:
        return CommandResult.text(f"A price is {PRICE_FORM}, for example /usage price 3 15 0.3", "error")
    try:
        where = await session.offers.set_price(ref, price)
    except ValueError as error:
        return CommandResult.text(str(error), "error")
    cached = f", cached ${price.cached}" if price.cached is not None else ""
    spent = session.view.spending.by_model.get(ref)
    so_far = f" This session's cost with it so far: {dollars(spent.cost)}." if spent is not None else ""
    return CommandResult.text(
        f"Price of {ref}: input ${price.input}, output ${price.output}{cached} per million tokens, written to"
        f" models.price in {where}.{so_far}"
    )


def _unpriced_text(models: Sequence[str]) -> str:
    """How to set the unknown prices, by command and by setting; empty if all are known."""
    if not models:
        return ""
    form = f'[models.price] "{models[0]}" = {{ input = 3, output = 15, cache_read = 0.3 }}'
    return (
        f"Price of {', '.join(models)} unknown. /usage price 3 15 0.3 sets input, output and cached input in dollars"
        f" per million tokens; in your settings: {form}"
    )


async def _run_usage(session: Session, arguments: str) -> CommandResult:
    first, _, rest = arguments.partition(" ")
    if first == "price":
        return await _run_price(session, rest.strip())
    if arguments:
        return CommandResult.text(f"/usage shows the usage; /usage price sets a price: {PRICE_FORM}.", "error")
    unpriced = session.offers.unpriced
    spending = session.view.spending
    turns = [(str(number) if number else "-", tally) for number, tally in spending.by_turn.items()]
    tables = (
        _table("By model", "model", list(spending.by_model.items())),
        _table("By agent", "agent", _by_agent(session.view)),
        _table("By turn", "turn", turns[-TURNS:]),
    )
    blocks = (TextBlock(usage_text(session.view)), *(table for table in tables if table.rows))
    return CommandResult((*blocks, TextBlock(_unpriced_text(unpriced), "dim")) if unpriced else blocks)


def _by_agent(view: SessionView) -> list[tuple[str, Tally]]:
    """Usage of the main agent and each subagent; empty without subagents."""
    tallies = view.spending.by_agent
    if not view.agents:
        return []
    agents = [(f"{one.id} ({one.started.profile})", tallies[one.id]) for one in view.agents if one.id in tallies]
    return [(MAIN, tallies.get(MAIN, Tally())), *agents[-TURNS:]]


USAGE = SlashCommand(
    "usage",
    "Show tokens and cost of this session; set a price",
    _run_usage,
    aliases=("cost", "stats"),
    arguments="[price INPUT OUTPUT [CACHED]]",
    under="status",
)


def usage_text(view: SessionView) -> str:
    totals, last = view.totals, view.last_usage
    tools = ", ".join(f"{name} {count}" for name, count in sorted(totals.by_tool.items(), key=lambda pair: -pair[1]))
    silent = bool(totals.input_tokens) and not totals.cache_read and view.spending.total.usage.cache_read is None
    share = totals.cache_read / totals.input_tokens if totals.input_tokens and not silent else None
    cache = last.cache_share if last else None
    told = bool(totals.input_tokens or totals.output_tokens or not totals.steps)

    def known(count: int) -> str:
        return f"{'about ' if totals.estimated else ''}{number(count)}" if told else "?"

    return labelled(
        (
            ("Turns", number(totals.turns)),
            # Requests outside turns, such as of /init, are no steps.
            ("Model requests", number(max(totals.steps, view.spending.total.responses))),
            ("Tool calls", number(totals.tools) + (f" ({tools})" if tools else "")),
            ("Input tokens", known(totals.input_tokens)),
            (
                "  cached",
                "?" if silent else known(totals.cache_read) + (f" ({percent(share)})" if share is not None else ""),
            ),
            ("Output tokens", known(totals.output_tokens)),
            *([("Web searches", _searches(view.spending))] if view.spending.total.usage.web_searches else []),
            ("Cache share of the last request", percent(cache) if cache is not None else "?"),
            ("Cost", _cost(totals.cost, totals.estimated) if totals.steps else "no request yet"),
        )
    )


def _searches(spending: Spending) -> str:
    """Number and cost of the providers' web searches."""
    counts = {model: tally.usage.web_searches or 0 for model, tally in spending.by_model.items()}
    prices = [SEARCH_PRICES.get(model.partition("/")[0]) for model, count in counts.items() if count]
    total = number(sum(counts.values()))
    if None in prices:
        return total
    pairs = zip(prices, filter(None, counts.values()), strict=True)
    cost = sum((price * count for price, count in pairs if price is not None), Decimal(0))
    return f"{total} ({dollars(cost)}, part of the cost)"


def _table(title: str, name: str, rows: Sequence[tuple[str, Tally]]) -> TableBlock:
    lines: list[tuple[str, ...]] = []
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
    return TableBlock((name, "requests", "input", "cached", "output", "cost"), tuple(lines), title, figures=True)


def _cost(cost: Decimal | None, estimated: bool) -> str:
    """``about`` if an answer broke off before it reported its usage."""
    return f"about {dollars(cost)}" if estimated and cost is not None else dollars(cost)
