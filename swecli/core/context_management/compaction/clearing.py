"""Clearing: old tool results and the arguments of finished calls become stubs, in one batch.

Cheap (no model call) but it rewrites the provider's cache from the first stub on, so it is only worth it in
large batches. The newest part of the conversation is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from swecli.core.context_management.compaction.sizes import EntrySizes
from swecli.core.context_management.compaction.stubs import arguments_of, arguments_stub, result_stub
from swecli.core.context_management.ledger import RESULT, Entry, Ledger
from swecli.core.protocol.events import ViewEntry
from swecli.core.protocol.messages import ToolResultPart

KEPT_TOOLS = frozenset(("update_todos", "ask_user"))
"""What these returned is a decision of the user or the state of the work."""
LEAST = 60
"""Smaller entries are not worth a stub, in tokens."""
SAVED = 0.4
"""What a stub has to save of what it stands for."""
COPIED = 600
"""Characters from which on a text that is read again counts as a copy."""
FAILING_KEPT = 6
"""Commands whose failure is kept, those that ran last: a session full of mistyped commands must not keep them all."""


@dataclass(frozen=True, slots=True)
class Clearing:
    """A proposed batch. ``freed`` is tokens; ``rewritten`` the tokens that are left from the first stub on, which the
    provider has to read anew."""

    view: tuple[ViewEntry, ...]
    cleared: tuple[str, ...]
    freed: int
    rewritten: int

    def pays(self, least: int) -> bool:
        """Whether the batch is worth its cache rewrite while the cache is warm."""
        return self.freed >= least and self.freed * 2 >= self.rewritten


def clear(
    ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes, protected: int, kept: Collection[str] = ()
) -> Clearing:
    """Stub every old result and the old arguments of every finished call; duplicates of reads first of all. ``kept``
    are ids that stay."""
    tokens = [sizes.viewed(entry, ledger) for entry in view]
    duplicates = repeated_reads(ledger, view)
    failing = last_failures(ledger)
    result: list[ViewEntry] = []
    cleared: list[str] = []
    freed = 0
    after = sum(tokens)
    first_stub_after = 0
    for entry, size in zip(view, tokens, strict=True):
        known = ledger.entries.get(entry.id)
        old = after - size >= protected
        after -= size
        text = None
        if known is not None and entry.kind == "live" and entry.id not in kept:
            if entry.id in duplicates:
                text = result_stub(known, size, f"the same as {duplicates[entry.id]}")
            elif old and size >= LEAST:
                text = _stub(known, ledger, size, failing)
        left = sizes.stub(text) if text is not None else size
        if text is None or left > size * (1 - SAVED):
            result.append(entry)
            continue
        if not cleared:
            first_stub_after = after + size
        result.append(ViewEntry("stub", entry.id, text))
        cleared.append(entry.id)
        freed += size - left
    return Clearing(tuple(result), tuple(cleared), max(0, freed), max(0, first_stub_after - freed))


def _stub(entry: Entry, ledger: Ledger, size: int, failing: frozenset[str]) -> str | None:
    if entry.source in KEPT_TOOLS or entry.item + RESULT in failing:
        return None
    if entry.kind == "result":
        return result_stub(entry, size)
    if entry.kind == "call" and entry.item in ledger.items:
        return arguments_stub(entry, size)
    return None


def repeated_reads(ledger: Ledger, view: Sequence[ViewEntry]) -> Mapping[str, str]:
    """Results that the model reads again, word for word, further down: id -> id of the newer copy."""
    same: dict[tuple[str, str], list[Entry]] = {}
    for entry in view:
        known = ledger.entries.get(entry.id)
        if known is None or entry.kind != "live" or known.kind != "result":
            continue
        text = next((part.text for part in known.parts if isinstance(part, ToolResultPart)), "")
        if len(text) >= COPIED:
            same.setdefault((known.source, text), []).append(known)
    older: dict[str, str] = {}
    for entries in same.values():
        newest: dict[str, str] = {}
        for known in reversed(entries if len(entries) > 1 else ()):
            record = ledger.items.get(known.item)
            if record is not None and record.call is not None:
                newer = newest.setdefault(repr(sorted(arguments_of(record.call).items(), key=str)), known.id)
                if newer != known.id:
                    older[known.id] = newer
    return older


def last_failures(ledger: Ledger) -> frozenset[str]:
    """Result ids of the last commands whose newest run failed: the model still works on these."""
    seen: set[str] = set()
    found: list[str] = []
    for record in reversed(ledger.items.values()):
        if len(found) == FAILING_KEPT:
            break
        if record.name != "run_command" or record.kind != "tool" or record.call is None:
            continue
        command = record.call.arguments
        if record.exit_status and command not in seen:
            found.append(record.id + RESULT)
        seen.add(command)
    return frozenset(found)
