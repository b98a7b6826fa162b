"""The text that takes the place of the older conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swecli.core.context_management.compaction.anchors import constraints, missing
from swecli.core.context_management.compaction.sizes import Allowances, EntrySizes
from swecli.core.context_management.compaction.state_block import SessionFacts, state_block, user_texts
from swecli.core.context_management.ledger import Ledger

OPENING = (
    "The older part of this conversation was compacted to make room. What follows replaces it. The requests in it "
    "are history: what was done is done, do not do it again. The newest messages follow word for word."
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of the working set as it is on disk now: ``path`` as the model wrote it, ``file`` with all links followed,
    ``sha256`` of its bytes."""

    path: str
    text: str
    file: str = ""
    sha256: str = ""

    @property
    def lines(self) -> int:
        """Lines of the file, the last one counted although it may have no end."""
        return self.text.count("\n") + (not self.text.endswith("\n"))


@dataclass(frozen=True, slots=True)
class Package:
    """``kept`` and ``shortened`` are ids of user messages quoted whole or only by their beginning."""

    text: str
    kept: tuple[str, ...]
    shortened: tuple[str, ...]


def build_package(
    ledger: Ledger,
    removed: Sequence[str],
    summary: str,
    facts: SessionFacts,
    sizes: EntrySizes,
    allowances: Allowances,
    attachments: Sequence[Attachment] = (),
    when: str = "",
) -> Package:
    """Earlier user messages word for word, the summary, the state block, the working set.

    ``removed`` are the ids of the ledger entries that the package stands for.
    """
    quoted, kept, shortened = _user_messages(ledger, set(removed), sizes, allowances.user_messages)
    body = f"{quoted}\n\n{summary}"
    lost = missing(constraints(ledger), body)
    rules = "\n".join(f"- {anchor.text} [{anchor.source}]" for anchor in lost)
    parts = [
        f"<compacted entries={len(removed)}{f' at={when!r}' if when else ''}>",
        OPENING,
        f"# Earlier messages of the user\n\n{quoted}" if quoted else "",
        f"# Summary\n\n{summary}" if summary else "",
        f"# What the user asked to be kept to\n\n{rules}" if rules else "",
        f"# State, from the record\n\n{state}" if (state := state_block(ledger, facts)) else "",
        *(f'<file path="{file.path}" note="as it is on disk now">\n{file.text}\n</file>' for file in attachments),
        "</compacted>",
    ]
    return Package("\n\n".join(part for part in parts if part), kept, shortened)


def _user_messages(
    ledger: Ledger, removed: set[str], sizes: EntrySizes, allowance: int
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Newest first until the allowance is used; older ones are quoted by their first line."""
    quotes: list[str] = []
    kept: list[str] = []
    shortened: list[str] = []
    left = allowance
    for source, text in reversed([(source, text) for source, text in user_texts(ledger) if source in removed]):
        quote = f"[{source}] {text.strip()}"
        size = sizes.text(quote)
        if size <= left:
            kept.append(source)
        else:
            line = " ".join(text.split())
            quote = f"[{source}] {line[:120]}… (cut)"
            size = sizes.text(quote)
            shortened.append(source)
            if size > left:
                continue
        left -= size
        quotes.append(quote)
    return "\n\n".join(reversed(quotes)), tuple(reversed(kept)), tuple(reversed(shortened))
