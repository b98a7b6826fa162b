"""The budgets of a run, from the settings and from what the sessions of all folders have spent today."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.features import Wiring

if TYPE_CHECKING:
    from swecli.core.config.settings import BudgetSettings
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.features.spending.companion import SpendingGate
    from swecli.features.spending.limits import Amount, Span, SpendingLimits, Spent


def feature(spending: SpendingLimits | None = None) -> Feature:
    """Without a budget nothing is watched."""
    from swecli.core.engine.feature import Feature
    from swecli.features.spending.companion import SpendingGate

    def companions(core: Core) -> Sequence[SpendingGate]:
        if spending is None or not spending.any:
            return ()
        services = core.services
        return (
            SpendingGate(
                spending, core.recorder, core.requests, core.connection, services.access.price, services.time.clock
            ),
        )

    return Feature(companions)


def spending_limits(settings: BudgetSettings, folders: Path) -> SpendingLimits:
    """``folders`` has the databases of all workspaces."""
    from swecli.features.spending.limits import Amount, SpendingLimits

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
    """Usage of the stored sessions of all folders between two times (Unix seconds), except one of them. Unreadable
    sessions count as nothing."""
    from swecli.core.sessions.database import DATABASE, changed_at, read_database
    from swecli.core.sessions.store import spent_in
    from swecli.features.spending.limits import Spent

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


WIRING = Wiring(
    lambda launch: feature(spending_limits(launch.loaded.settings.budget, launch.paths.data / "workspaces"))
)
