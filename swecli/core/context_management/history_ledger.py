"""A ledger over messages that did not come from a session, so that the same compaction works on them."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.context_management.history_bodies import bodies_of
from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.events import Event
from swecli.core.protocol.messages import Message


def ledger_of(messages: Sequence[Message]) -> Ledger:
    """The ledger that a session with these messages would have. Results without a call are left out."""
    ledger = Ledger()
    for seq, body in enumerate(bodies_of(messages), 1):
        ledger.apply(Event(seq, 0.0, "history", 1, body))
    return ledger
