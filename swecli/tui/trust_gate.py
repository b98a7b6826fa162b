"""What the interface needs to ask whether a workspace is trusted, before anything of it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

TrustChoice = Literal["trust", "session", "decline", "later"]
"""``later`` counts as no for this run and asks again at the next start."""


@dataclass(frozen=True, slots=True)
class TrustQuestion:
    """``folder`` is what trust would be about, ``names`` what would be read of it. Both may hold anything."""

    folder: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrustItem:
    """A single setting of the project that needs consent of its own; ``digest`` names exactly this value."""

    key: str
    value: str
    origin: str
    digest: str


class TrustGate(Protocol):
    """The question and its consequences. Every method may read files and is called in a thread."""

    def question(self) -> TrustQuestion | None:
        """None where there is nothing to ask."""
        ...

    def answer(self, choice: TrustChoice) -> str:
        """Take the answer. Returns a sentence for the user if something went wrong, else nothing."""
        ...

    def items(self) -> Sequence[TrustItem]:
        """What the settings of a trusted project want beyond tightening."""
        ...

    def accept(self, items: Sequence[TrustItem]) -> str:
        """Consent to these. Returns as ``answer``."""
        ...
