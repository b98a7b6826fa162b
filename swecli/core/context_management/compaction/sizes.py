"""Sizes of ledger entries in tokens of the model at hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from swecli.core.context_management.ledger import Entry, Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import ViewEntry
from swecli.core.protocol.messages import Message, Role

CHARACTERS_PER_TOKEN = 3.2
"""Of a stub, which has many digits and marks."""


class EntrySizes:
    """Estimates, each made once and scaled by what is known of the model's tokenizer."""

    def __init__(self, monitor: TokenMonitor, info: ModelInfo) -> None:
        self._monitor = monitor
        self._ratio = monitor.ratio(info)
        self._known = monitor.part_counts

    def entry(self, entry: Entry) -> int:
        """Tokens of a live entry."""
        known = self._known.get(entry.id)
        if known is None or known[0] is not entry.body:
            tokens = self._monitor.count_once(Message(_role(entry), entry.parts, entry.id))
            known = self._known[entry.id] = (entry.body, tokens)
        return round(known[1] * self._ratio)

    def text(self, text: str) -> int:
        """Tokens of a text that is not in the ledger."""
        return round(self._monitor.count_tokens(text) * self._ratio)

    def stub(self, text: str) -> int:
        """Tokens of a stub, about: a pass makes thousands, and looks at most of them only to decide against it."""
        return round(len(text) / CHARACTERS_PER_TOKEN * self._ratio)

    def viewed(self, entry: ViewEntry, ledger: Ledger) -> int:
        """Tokens of one entry as the view shows it."""
        known = ledger.entries.get(entry.id)
        if entry.kind == "live" and known is not None:
            return self.entry(known)
        return self.text(entry.text)

    def view(self, view: Iterable[ViewEntry], ledger: Ledger) -> int:
        """Tokens of a whole view."""
        return sum(self.viewed(entry, ledger) for entry in view)


def _role(entry: Entry) -> Role:
    match entry.kind:
        case "user":
            return "user"
        case "result":
            return "tool"
        case _:
            return "assistant"


@dataclass(frozen=True, slots=True)
class Allowances:
    """How much of each thing survives, in tokens: the smaller of an absolute figure and a share of the
    effective window, so that small windows keep their proportions."""

    user_messages: int
    tail: int
    attached: int
    summary: int
    protected: int
    """Newest part that clearing leaves alone."""
    worthwhile: int
    """Least that a clearing pass must free to pay for rewriting the provider's cache."""

    @classmethod
    def of(cls, effective: int) -> Allowances:
        """For an effective window of so many tokens."""

        def smaller(absolute: int, share: float) -> int:
            return max(1, min(absolute, int(effective * share)))

        return cls(
            user_messages=smaller(20_000, 0.08),
            tail=smaller(20_000, 0.08),
            attached=smaller(8_000, 0.03),
            summary=smaller(8_000, 0.04),
            protected=smaller(40_000, 0.20),
            worthwhile=smaller(20_000, 0.10),
        )
