"""What a session has used, by model and by turn, as a reduction of its events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation

from swecli.core.protocol.usage import Usage, added


@dataclass(frozen=True, slots=True)
class Tally:
    """A sum over responses. ``cost`` is US dollars, None as soon as one price is unknown: a partial sum would look
    like the whole. ``estimated``: a response broke off before its usage was told, so a part is a guess."""

    responses: int = 0
    usage: Usage = Usage()
    cost: Decimal | None = Decimal(0)
    estimated: bool = False

    def plus(self, usage: Usage | None, cost: str | None, estimated: bool = False) -> Tally:
        """With one more response."""
        total = replace(added(self.usage, usage), cost=None) if usage is not None else self.usage
        return Tally(self.responses + 1, total, _sum(self.cost, cost), self.estimated or estimated)


@dataclass(slots=True)
class Spending:
    """Tallies. ``by_model`` has ``provider/name``, ``by_turn`` the turn's number (0 outside of turns); both in the
    order of their first response."""

    total: Tally = Tally()
    by_model: dict[str, Tally] = field(default_factory=dict)
    by_turn: dict[int, Tally] = field(default_factory=dict)

    def add(self, model: str, turn: int, usage: Usage | None, cost: str | None, estimated: bool = False) -> None:
        """Take in one response."""
        self.total = self.total.plus(usage, cost, estimated)
        self.by_model[model] = self.by_model.get(model, Tally()).plus(usage, cost, estimated)
        self.by_turn[turn] = self.by_turn.get(turn, Tally()).plus(usage, cost, estimated)


def _sum(known: Decimal | None, cost: str | None) -> Decimal | None:
    try:
        return None if known is None or cost is None else known + Decimal(cost)
    except InvalidOperation:
        return None
