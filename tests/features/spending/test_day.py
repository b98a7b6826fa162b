"""What was spent today, from the databases of all folders."""

from __future__ import annotations

import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path

from swecli.core.config.settings import BudgetSettings
from swecli.core.protocol.events import Body, Event, SideAnswered, StepEnded
from swecli.core.protocol.messages import Usage
from swecli.core.sessions.database import open_database
from swecli.core.sessions.store import SessionStore
from swecli.features.spending.limits import Amount
from swecli.features.spending.wiring import day_spent, spending_limits

USED = Usage(input_total=100, output_total=10)


def stored(folder: Path, *bodies: tuple[float, Body]) -> str:
    """A session in the database of a folder; gives its id back."""
    with closing(SessionStore(open_database(folder / "sessions.db"))) as store:
        session = store.create("/w", "p/m", "0").id
        store.append([Event(n + 1, at, session, 1, body) for n, (at, body) in enumerate(bodies)])
        return session


def test_responses_of_the_day_count_wherever_they_were_made(tmp_path: Path) -> None:
    now = time.time()
    start, end = now - 3_600, now + 3_600
    first = stored(tmp_path / "a", (now, StepEnded(1, USED, "0.25")), (now - 90_000, StepEnded(2, USED, "9")))
    stored(tmp_path / "b", (now, SideAnswered("question", "p/m", USED, "0.5")), (now + 9_000, StepEnded(3, USED, "7")))
    both = day_spent(tmp_path, start, end, "")
    assert (both.dollars, both.tokens, both.unpriced) == (Decimal("0.75"), 220, False)
    assert day_spent(tmp_path, start, end, first).dollars == Decimal("0.5")
    stored(tmp_path / "c", (now, StepEnded(1, USED, None)), (now, StepEnded(2, None, "0")))
    assert day_spent(tmp_path, start, end, "").unpriced


def test_what_a_fork_took_over_was_paid_for_once(tmp_path: Path) -> None:
    now = time.time()
    start, end = now - 3_600, now + 3_600
    first = stored(tmp_path / "a", (now, StepEnded(1, USED, "0.25")), (now, StepEnded(2, USED, "0.25")))
    with closing(SessionStore(open_database(tmp_path / "a" / "sessions.db"))) as store:
        fork = store.fork(first, "0").id
        store.append([Event(3, now, fork, 2, StepEnded(3, USED, "1"))])
    assert day_spent(tmp_path, start, end, "").dollars == Decimal("1.5")
    assert day_spent(tmp_path, start, end, first).dollars == Decimal("1.5")
    assert day_spent(tmp_path, start, end, fork).dollars == Decimal("0.5")


def test_what_cannot_be_read_counts_as_nothing(tmp_path: Path) -> None:
    assert day_spent(tmp_path / "none", 0, 9e9, "").tokens == 0
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "sessions.db").write_bytes(b"no database" * 100)
    (tmp_path / "file").write_text("x")
    assert day_spent(tmp_path, 0, 9e9, "").tokens == 0


def test_budgets_of_the_settings(tmp_path: Path) -> None:
    limits = spending_limits(BudgetSettings(turn=0.1, day_tokens=5), tmp_path)
    assert limits.amounts == {"turn": Amount(Decimal("0.1")), "session": Amount(), "day": Amount(None, 5)}
    assert limits.any
    assert not spending_limits(BudgetSettings(), tmp_path).any
