"""Budgets of money and tokens for a turn, a session and a day; the user is asked before a request exceeds one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Literal

from msgspec import Struct, field

from swecli.core.context_management.forecast import lowest_usage
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.state import Tally
from swecli.core.engine.work import enqueue
from swecli.core.ports import Asker
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import Notice, Option, Question
from swecli.core.protocol.messages import Usage

BUDGET_KIND = "budget"
"""Error kind of a turn that a budget ended."""
Span = Literal["turn", "session", "day"]
SPANS: tuple[Span, ...] = ("turn", "session", "day")
FRESH_SECONDS = 20.0
"""Seconds before the day's usage by other sessions is read again."""


class Amount(Struct, frozen=True):
    """US dollars and tokens; as a limit, None means unlimited."""

    dollars: Decimal | None = None
    tokens: int | None = None


class Spent(Struct, frozen=True):
    """Past or expected usage. ``unpriced``: the price of a part is unknown and not included in ``dollars``."""

    dollars: Decimal = Decimal(0)
    tokens: int = 0
    unpriced: bool = False

    @classmethod
    def of(cls, tally: Tally) -> Spent:
        usage = tally.usage
        return cls(tally.known, (usage.input_total or 0) + (usage.output_total or 0), tally.unpriced > 0)

    def plus(self, other: Spent) -> Spent:
        return Spent(self.dollars + other.dollars, self.tokens + other.tokens, self.unpriced or other.unpriced)

    def minus(self, other: Spent) -> Spent:
        return Spent(max(Decimal(0), self.dollars - other.dollars), max(0, self.tokens - other.tokens), self.unpriced)


class Crossing(Struct, frozen=True):
    """A limit that is reached, or that the next request would exceed. ``reason`` is a clause; ``limit`` and ``needed``
    are US dollars or tokens, ``needed`` the limit required for that request; None if unknown."""

    span: Span
    unit: Literal["dollars", "tokens"]
    limit: Decimal
    needed: Decimal | None
    reason: str

    @property
    def setting(self) -> str:
        return f"budget.{self.span}{'_tokens' if self.unit == 'tokens' else ''}"

    @property
    def raised(self) -> Decimal:
        """The smallest multiple of the limit that allows the request."""
        if self.needed is None:
            return self.limit
        return self.limit * (self.needed // self.limit + 1)


def crossing(limits: Mapping[Span, Amount], spent: Mapping[Span, Spent], following: Spent) -> Crossing | None:
    """The first limit that blocks a request with the minimum cost ``following``; None if none does."""
    for span in SPANS:
        limit, used = limits.get(span, Amount()), spent.get(span, Spent())
        found = _of_tokens(span, limit.tokens, used, following) or _of_money(span, limit.dollars, used, following)
        if found is not None:
            return found
    return None


def _of_tokens(span: Span, limit: int | None, used: Spent, following: Spent) -> Crossing | None:
    if limit is None or (used.tokens < limit and used.tokens + following.tokens <= limit):
        return None
    words = f"{used.tokens:,} of the {limit:,} tokens of {_named(span)} are used"
    return _found(span, "tokens", Decimal(limit), Decimal(used.tokens), Decimal(following.tokens), words)


def _of_money(span: Span, limit: Decimal | None, used: Spent, following: Spent) -> Crossing | None:
    if limit is None:
        return None
    if used.unpriced or following.unpriced:
        reason = f"swecli cannot enforce the budget of {shown(limit)} for {_named(span)} because a price is unknown"
        return Crossing(span, "dollars", limit, None, reason)
    if used.dollars < limit and used.dollars + following.dollars <= limit:
        return None
    words = f"{shown(used.dollars)} of the {shown(limit)} of {_named(span)} are spent"
    return _found(span, "dollars", limit, used.dollars, following.dollars, words)


def _found(
    span: Span, unit: Literal["dollars", "tokens"], limit: Decimal, used: Decimal, following: Decimal, words: str
) -> Crossing:
    if used < limit:
        least = shown(following) if unit == "dollars" else f"about {following:,} tokens"
        words = f"{words}, and the next request takes at least {least}"
    return Crossing(span, unit, limit, used + following, words)


def _named(span: Span) -> str:
    return {"turn": "this turn", "session": "this session", "day": "today"}[span]


def shown(dollars: Decimal) -> str:
    """Dollars with as many digits as a small amount needs."""
    return f"${dollars:.2f}" if dollars >= Decimal("0.10") or not dollars else f"${dollars:.4f}"


# --- the day ------------------------------------------------------------------------------------------------------

DaySpent = Callable[[float, float, str], Spent]
"""Usage by stored sessions of all folders between two times (Unix seconds), except one session."""


def day_of(now: float) -> tuple[float, float]:
    """Start and end of the local day of ``now``, in Unix seconds."""
    start = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    return start.timestamp(), (start + timedelta(days=1)).timestamp()


class DayAccount:
    """Usage by all sessions today. ``stored`` may block on the disk and is called in a thread."""

    def __init__(self, stored: DaySpent, session: str, before: Spent) -> None:
        """``before`` is this session's usage when it began or was resumed."""
        self._stored = stored
        self._session = session
        self._base = before
        self._own = Spent()
        """Today's usage by this session before it was resumed."""
        self._others = Spent()
        self._day: tuple[float, float] | None = None
        self._looked = 0.0

    async def spent(self, now: float, total: Spent) -> Spent:
        """Today's sum; ``total`` is that of this session from its beginning on, and is stored by now."""
        day = day_of(now)
        if day != self._day:
            if self._day is None:
                everything = await asyncio.to_thread(self._stored, *day, "")
                self._others = await asyncio.to_thread(self._stored, *day, self._session)
                self._own = everything.minus(self._others).minus(total.minus(self._base))
            else:
                self._base, self._own = total, Spent()
                self._others = await asyncio.to_thread(self._stored, *day, self._session)
            self._day, self._looked = day, now
        elif not 0 <= now - self._looked < FRESH_SECONDS:
            self._others, self._looked = await asyncio.to_thread(self._stored, *day, self._session), now
        since = total.minus(self._base)
        # Another session's unknown price does not restrict this one.
        return Spent(
            self._others.dollars + self._own.dollars + since.dollars,
            self._others.tokens + self._own.tokens + since.tokens,
            since.unpriced,
        )


# --- the gate -----------------------------------------------------------------------------------------------------

ONCE = "Continue once"
RAISE = "Raise"
STOP = "Stop"
Verdict = Literal["go", "stopped by the user", "no user"]


def nothing_stored(start: float, end: float, without: str) -> Spent:
    return Spent()


class SpendingLimits(Struct, frozen=True):
    """Configured budgets, and the source of the day's usage."""

    amounts: Mapping[Span, Amount] = field(default_factory=dict[Span, Amount])
    stored: DaySpent = nothing_stored

    @property
    def any(self) -> bool:
        return any(amount != Amount() for amount in self.amounts.values())


class SpendingGate:
    """Checks the budgets before each request of a session. ``reason`` says why the newest was not sent."""

    def __init__(
        self, limits: SpendingLimits, recorder: Recorder, asker: Asker, price: Callable[[str, Usage], str | None]
    ) -> None:
        self._limits: dict[Span, Amount] = dict(limits.amounts)
        self._watches = limits.any
        self._recorder = recorder
        self._asker = asker
        self._price = price
        self._day = DayAccount(limits.stored, recorder.session, Spent.of(recorder.state.spending.total))
        self._accepted: set[tuple[Span, str]] = set()
        """Money limits that the user chose to ignore because a price is unknown."""
        self.reason = ""

    async def check(self, budget: Budget, model: str, now: float) -> Verdict:
        """Whether a request of this size may be sent to a model (``provider/name``); asks if a budget blocks it."""
        if not self._watches:
            return "go"
        while True:
            found = await self._crossing(self._following(budget, model, now), now)
            if found is None:
                return "go"
            self.reason = found.reason
            verdict = await self._ask(found)
            if verdict is not None:
                return verdict

    async def reached(self, now: float) -> str:
        """An exhausted budget, for callers that can't ask; empty if there is none."""
        found = await self._crossing(Spent(), now) if self._watches else None
        return "" if found is None else found.reason

    def _following(self, budget: Budget, model: str, now: float) -> Spent:
        usage = lowest_usage(self._recorder.trend, budget.used, now)
        cost = self._price(model, usage)
        try:
            return Spent(Decimal(cost or 0), budget.used, cost is None)
        except InvalidOperation:
            return Spent(Decimal(0), budget.used, True)

    async def _crossing(self, following: Spent, now: float) -> Crossing | None:
        daily = self._limits.get("day", Amount()) != Amount()
        if daily:  # the day's usage is read from the disk
            await self._recorder.log.barrier()
        spending = self._recorder.state.spending
        total = Spent.of(spending.total)
        spent: dict[Span, Spent] = {
            "turn": Spent.of(spending.by_turn.get(self._recorder.turn, Tally())),
            "session": total,
        }
        if daily:
            spent["day"] = await self._day.spent(now, total)
        limits: dict[Span, Amount] = {span: self._open(span, amount) for span, amount in self._limits.items()}
        return crossing(limits, spent, following)

    def _open(self, span: Span, amount: Amount) -> Amount:
        return Amount(None, amount.tokens) if (span, "dollars") in self._accepted else amount

    def _keep(self, words: str) -> None:
        """Queue the text that the user wrote in place of a choice. It is meant for the model but approves no cost, so
        the user decides whether to send it."""
        if words and words != STOP:
            enqueue(self._recorder, Submit(words))
            text = "The turn stops at the budget. Your text was not sent; it waits as your next message."
            self._recorder.emit(Notice(text, "info", "budget"))

    async def _ask(self, found: Crossing) -> Verdict | None:
        """The user's decision; None if the limit has changed and the check has to be repeated."""
        unknown = found.needed is None
        raised = shown(found.raised) if found.unit == "dollars" else f"{found.raised:,.0f} tokens"
        options = (
            Option(STOP, "end the turn; the conversation and all changes are kept"),
            Option(ONCE, "send this request, and ask again before the next"),
            Option("Continue without this budget", f"until the session ends; {found.setting} is unchanged")
            if unknown
            else Option(f"{RAISE} to {raised}", f"for this session; {found.setting} is unchanged"),
        )
        text = f"{found.reason[0].upper()}{found.reason[1:]}."
        answers = await self._asker.ask("", (Question(f"{text} Continue?", options, header="Budget"),))
        if answers is None:
            return "no user"
        chosen = " ".join(answers[0]).strip() if answers and answers[0] else STOP
        if chosen == ONCE:
            return "go"
        if chosen != options[2].label:
            self._keep(chosen)
            return "stopped by the user"
        if unknown:
            self._accepted.add((found.span, "dollars"))
        else:
            amount = self._limits[found.span]
            dollars = found.raised if found.unit == "dollars" else amount.dollars
            tokens = int(found.raised) if found.unit == "tokens" else amount.tokens
            self._limits[found.span] = Amount(dollars, tokens)
        return None
