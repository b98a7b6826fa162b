"""The budgets of the settings, and what was spent today in all folders."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path

from swecli.assembly.storage import DATABASE, changed_at, read_database
from swecli.core.config.settings import BudgetSettings
from swecli.core.engine.spending_limits import Amount, Span, SpendingLimits, Spent
from swecli.core.sessions.store import spent_in


def spending_limits(settings: BudgetSettings, folders: Path) -> SpendingLimits:
    """``folders`` has the databases of all workspaces."""
    given: tuple[tuple[Span, float | None, int | None], ...] = (
        ("turn", settings.turn, settings.turn_tokens),
        ("session", settings.session, settings.session_tokens),
        ("day", settings.day, settings.day_tokens),
    )
    amounts: dict[Span, Amount] = {
        span: Amount(Decimal(str(dollars)) if dollars is not None else None, tokens) for span, dollars, tokens in given
    }
    return SpendingLimits(amounts, partial(day_spent, folders))


def day_spent(folders: Path, start: float, end: float, without: str) -> Spent:
    """What the stored sessions of all folders used between two times (Unix seconds), without one of them. What can't be
    read counts as nothing."""
    dollars, tokens, unpriced = Decimal(0), 0, False
    try:
        paths = [path for folder in folders.iterdir() if changed_at(path := folder / DATABASE) >= start]
    except OSError:
        paths = []
    for path in paths:
        for used, cost in read_database(path, lambda connection: spent_in(connection, start, end, without), []):
            tokens += used
            try:
                dollars += Decimal(cost or 0)
            except InvalidOperation:
                cost = None
            unpriced = unpriced or cost is None
    return Spent(dollars, tokens, unpriced)
