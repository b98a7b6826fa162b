"""Clearing: old tool results and the arguments of finished writes become stubs, in one batch.

Cheap (no model call) but it rewrites the provider's cache from the first stub on, so it is only worth it in
large batches. The newest part of the conversation is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swecli.core.context_management.compaction.sizes import EntrySizes
from swecli.core.context_management.compaction.stubs import arguments_of, arguments_stub, result_stub, target_of
from swecli.core.context_management.ledger import RESULT, Entry, Ledger
from swecli.core.protocol.events import ViewEntry
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart

KEPT_TOOLS = frozenset(("update_todos", "ask_user"))
"""What these returned is a decision of the user or the state of the work."""
WRITERS = frozenset(("write_file", "edit_file"))
LEAST = 150
"""Smaller entries are not worth a stub, in tokens."""


@dataclass(frozen=True, slots=True)
class Clearing:
    """A proposed batch. ``freed`` is tokens; ``rewritten`` the tokens after the first stub, which the provider
    has to read anew."""

    view: tuple[ViewEntry, ...]
    cleared: tuple[str, ...]
    freed: int
    rewritten: int

    def pays(self, least: int) -> bool:
        """Whether the batch is worth its cache rewrite while the cache is warm."""
        return self.freed >= least and self.freed * 2 >= self.rewritten


def clear(ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes, protected: int) -> Clearing:
    """Stub every old result and every old argument of a finished write; duplicates of reads first of all."""
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
        if known is not None and entry.kind == "live":
            if entry.id in duplicates:
                text = result_stub(known, ledger, size, f"the same text as in {duplicates[entry.id]}")
            elif old and size >= LEAST:
                text = _stub(known, ledger, size, failing)
        if text is None:
            result.append(entry)
            continue
        if not cleared:
            first_stub_after = after
        result.append(ViewEntry("stub", entry.id, text))
        cleared.append(entry.id)
        freed += size - sizes.text(text)
    return Clearing(tuple(result), tuple(cleared), max(0, freed), first_stub_after)


def _stub(entry: Entry, ledger: Ledger, size: int, failing: frozenset[str]) -> str | None:
    if entry.kind == "result" and entry.source not in KEPT_TOOLS and entry.id not in failing:
        return result_stub(entry, ledger, size)
    if entry.kind == "call" and entry.source in WRITERS and entry.item in ledger.items:
        return arguments_stub(entry, ledger, size)
    return None


def repeated_reads(ledger: Ledger, view: Sequence[ViewEntry]) -> Mapping[str, str]:
    """Results that the model reads again, word for word, further down: id -> id of the newer copy."""
    newest: dict[tuple[str, str, str], str] = {}
    older: dict[str, str] = {}
    for entry in reversed(view):
        known = ledger.entries.get(entry.id)
        if known is None or entry.kind != "live" or known.kind != "result":
            continue
        text = next((part.text for part in known.parts if isinstance(part, ToolResultPart)), "")
        call = ledger.items[known.item].call if known.item in ledger.items else None
        if call is None or len(text) < 4 * LEAST:
            continue
        key = (known.source, repr(sorted(arguments_of(call).items(), key=str)), text)
        if key in newest:
            older[entry.id] = newest[key]
        else:
            newest[key] = entry.id
    return older


def last_failures(ledger: Ledger) -> frozenset[str]:
    """Result ids of commands whose newest run failed: the model still works on these."""
    newest: dict[str, tuple[str, bool]] = {}
    for record in ledger.items.values():
        if record.kind == "tool" and record.name == "run_command" and isinstance(record.call, ToolCallPart):
            newest[target_of(record.call)] = (record.id + RESULT, bool(record.exit_status))
    return frozenset(result for result, failed in newest.values() if failed)
