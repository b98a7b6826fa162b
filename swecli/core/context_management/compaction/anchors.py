"""What a summary must not lose: found in the record by code, checked in the summary, added where missing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from swecli.core.context_management.compaction.state_block import user_texts
from swecli.core.context_management.ledger import Ledger

CONSTRAINT = re.compile(
    r"\b(never|always|must(?:n't| not)?|don'?t|do not|only|without|instead of|prefer|avoid|make sure|keep|no longer)\b",
    re.I,
)
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
LONGEST = 300
"""Characters of one constraint."""
MOST = 40


@dataclass(frozen=True, slots=True)
class Anchor:
    """One thing to keep, with the ledger id it comes from."""

    text: str
    source: str


def constraints(ledger: Ledger) -> list[Anchor]:
    """Sentences of the user that forbid, demand or prefer something; newest kept when there are many."""
    found: dict[str, Anchor] = {}
    for source, text in user_texts(ledger):
        for sentence in SENTENCE.split(text):
            clean = " ".join(sentence.split())
            if clean and len(clean) <= LONGEST and CONSTRAINT.search(clean):
                found[clean.casefold()] = Anchor(clean, source)
    return list(found.values())[-MOST:]


def missing(anchors: list[Anchor], text: str) -> list[Anchor]:
    """Anchors whose words are not in the text, whatever its line breaks and case."""
    present = " ".join(text.casefold().split())
    return [anchor for anchor in anchors if anchor.text.casefold() not in present]
