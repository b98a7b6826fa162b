"""The gate before each request: the user is asked before one exceeds a budget."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.context_management.forecast import lowest_usage
from swecli.core.engine.companion import BUDGET_KIND, CallCompanion, TurnStopped
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.state import Tally
from swecli.core.engine.work import enqueue
from swecli.core.ports import Asker
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import Notice
from swecli.core.protocol.messages import Usage
from swecli.core.protocol.request_events import Option, Question
from swecli.features.spending.limits import (
    Amount,
    Crossing,
    DayAccount,
    Span,
    SpendingLimits,
    Spent,
    crossing,
    shown,
)

ONCE = "Continue once"
RAISE = "Raise"
STOP = "Stop"


class SpendingGate(CallCompanion):
    """Stops before a request of a session that exceeds a budget, unless the user allows it."""

    def __init__(
        self,
        limits: SpendingLimits,
        recorder: Recorder,
        asker: Asker,
        connection: Connection,
        price: Callable[[str, Usage], str | None],
        clock: Callable[[], float],
    ) -> None:
        """``price`` is that of a response, ``clock`` in Unix seconds."""
        self._limits: dict[Span, Amount] = dict(limits.amounts)
        self._recorder = recorder
        self._asker = asker
        self._connection = connection
        self._price = price
        self._clock = clock
        self._day = DayAccount(limits.stored, recorder.session, Spent.of(recorder.state.spending.total))
        self._accepted: set[tuple[Span, str]] = set()
        """Money limits that the user chose to ignore because a price is unknown."""

    async def check_request(self, prepared: PreparedRequest) -> None:
        client = self._connection.client
        if client is None:
            return
        now, allowed = self._clock(), False
        while not allowed:
            exceeded = await self._crossing(self._following(prepared.budget, client.info.ref, now), now)
            allowed = exceeded is None or await self._is_allowed(exceeded)

    async def agent_blocked(self) -> str:
        """An exhausted budget: a subagent can't ask."""
        reached = await self._crossing(Spent(), self._clock())
        return "" if reached is None else reached.reason

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
        limits: dict[Span, Amount] = {
            span: Amount(None, amount.tokens) if (span, "dollars") in self._accepted else amount
            for span, amount in self._limits.items()
        }
        return crossing(limits, spent, following)

    def _keep(self, words: str) -> None:
        """Queue the text that the user wrote in place of a choice. It is meant for the model but approves no cost, so
        the user decides whether to send it."""
        if words and words != STOP:
            enqueue(self._recorder, Submit(words))
            text = "The turn stops at the budget. Your text was not sent; it waits as your next message."
            self._recorder.emit(Notice(text, "info", "budget"))

    async def _is_allowed(self, exceeded: Crossing) -> bool:
        """Ask the user. False if the limit has changed, so that the check has to be repeated."""
        unknown = exceeded.needed is None
        raised = shown(exceeded.raised) if exceeded.unit == "dollars" else f"{exceeded.raised:,.0f} tokens"
        options = (
            Option(STOP, "end the turn; the conversation and all changes are kept"),
            Option(ONCE, "send this request, and ask again before the next"),
            Option("Continue without this budget", f"until the session ends; {exceeded.setting} is unchanged")
            if unknown
            else Option(f"{RAISE} to {raised}", f"for this session; {exceeded.setting} is unchanged"),
        )
        text = f"{exceeded.reason[0].upper()}{exceeded.reason[1:]}."
        answers = await self._asker.ask("", (Question(f"{text} Continue?", options, header="Budget"),))
        if answers is None:
            raise TurnStopped("limit", f"stopped before exceeding a budget: {exceeded.reason}", BUDGET_KIND)
        chosen = " ".join(answers[0]).strip() if answers and answers[0] else STOP
        if chosen == ONCE:
            return True
        if chosen != options[2].label:
            self._keep(chosen)
            raise TurnStopped("interrupted", f"stopped at a budget: {exceeded.reason}", BUDGET_KIND)
        if unknown:
            self._accepted.add((exceeded.span, "dollars"))
        else:
            amount = self._limits[exceeded.span]
            dollars = exceeded.raised if exceeded.unit == "dollars" else amount.dollars
            tokens = int(exceeded.raised) if exceeded.unit == "tokens" else amount.tokens
            self._limits[exceeded.span] = Amount(dollars, tokens)
        return False
