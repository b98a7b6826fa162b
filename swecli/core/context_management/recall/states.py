"""Which entries the model no longer sees, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from swecli.core.context_management.ledger import Ledger
from swecli.core.protocol.events import ViewEntry

Gone = Literal["cleared", "summarised", "dropped"]


def gone(ledger: Ledger, view: Sequence[ViewEntry]) -> dict[str, Gone]:
    """Every entry that is not in the view as it was said: replaced by a stub, part of a summary, or left out."""
    live = {entry.id for entry in view if entry.kind == "live"}
    cleared = {entry.id for entry in view if entry.kind == "stub"}
    summarised = {source for entry in view for source in entry.sources}
    states: dict[str, Gone] = {}
    for entry in list(ledger.entries):
        if entry not in live:
            states[entry] = "cleared" if entry in cleared else "summarised" if entry in summarised else "dropped"
    return states
