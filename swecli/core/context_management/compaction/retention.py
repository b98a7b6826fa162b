"""The user's own rules about what leaves the context first and what stays. Pure.

A pass is one batch, so that it breaks the provider's cache once at the most. The current turn is never touched, and
what a pass has taken away it finds as a stub the next time: passing twice changes nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from swecli.core.config.context_settings import RetentionSettings
from swecli.core.context_management.compaction.clearing import Clearing, clear
from swecli.core.context_management.compaction.sizes import EntrySizes
from swecli.core.context_management.compaction.stubs import arguments_of, arguments_stub, result_stub, target_of
from swecli.core.context_management.ledger import RESULT, Entry, Ledger
from swecli.core.protocol.events import ViewEntry
from swecli.core.protocol.messages import ToolResultPart

KINDS = {"result": "result", "call": "arguments"}
"""Kinds of ledger entries that rules are about, and what the settings call them."""


def matching(entry: Entry, ledger: Ledger, rules: Sequence[RetentionSettings]) -> RetentionSettings | None:
    """The first rule that is about this entry."""
    kind = KINDS.get(entry.kind)
    record = ledger.items.get(entry.item)
    if kind is None or record is None or record.call is None:
        return None
    target = target_of(record.call)
    return next(
        (
            rule
            for rule in rules
            if rule.kind == kind and fnmatchcase(entry.source, rule.tool) and fnmatchcase(target, rule.path)
        ),
        None,
    )


def protected(ledger: Ledger, view: Sequence[ViewEntry], rules: Sequence[RetentionSettings]) -> frozenset[str]:
    """Ids of entries that a rule keeps from being cleared."""
    if not any(rule.never_drop for rule in rules):
        return frozenset()
    known = (ledger.entries[entry.id] for entry in view if entry.id in ledger.entries)
    return frozenset(
        entry.id for entry in known if (rule := matching(entry, ledger, rules)) is not None and rule.never_drop
    )


def kept_whole(ledger: Ledger, view: Sequence[ViewEntry], rules: Sequence[RetentionSettings]) -> frozenset[str]:
    """Ids of entries that stay word for word whatever else goes: those that a rule never drops, and for each result its
    call, for each call its result."""
    items = {ledger.entries[one].item for one in protected(ledger, view, rules)}
    return frozenset(name for item in items for name in (item, item + RESULT))


def tidy(
    ledger: Ledger,
    view: Sequence[ViewEntry],
    sizes: EntrySizes,
    rules: Sequence[RetentionSettings],
    newest: int,
) -> Clearing:
    """One batch of the rules, and then of clearing everything old that no rule keeps; the ``newest`` tokens stay."""
    by_rules = retain(ledger, view, sizes, rules)
    cleared = clear(ledger, by_rules.view, sizes, newest, protected(ledger, view, rules))
    return Clearing(
        cleared.view,
        (*by_rules.cleared, *cleared.cleared),
        by_rules.freed + cleared.freed,
        max(by_rules.rewritten - cleared.freed, cleared.rewritten),
    )


def retain(
    ledger: Ledger, view: Sequence[ViewEntry], sizes: EntrySizes, rules: Sequence[RetentionSettings]
) -> Clearing:
    """The view after one pass of the rules."""
    if not rules or not ledger.entries:
        return Clearing(tuple(view), (), 0, 0)
    turn = next(reversed(ledger.entries.values())).turn
    outdated = ledger.files.outdated()
    newer: Counter[RetentionSettings] = Counter()
    result: list[ViewEntry] = []
    cleared: list[str] = []
    freed = after = rewritten = 0
    for shown in reversed(view):
        entry, size = ledger.entries.get(shown.id), sizes.viewed(shown, ledger)
        rule = matching(entry, ledger, rules) if entry is not None else None
        text = None
        if entry is not None and rule is not None:
            wanted = (
                shown.kind == "live" and entry.turn < turn and _goes(entry, rule, size, newer[rule], turn, outdated)
            )
            newer[rule] += 1
            text = _text(entry, rule, size, sizes) if wanted else None
        left = sizes.text(text) if text is not None else size
        if text is None or rule is None or left >= size:
            result.append(shown)
            after += size
            continue
        result.append(ViewEntry("stub", shown.id, text, rule=str(rule)))
        cleared.append(shown.id)
        freed += size - left
        after += left
        rewritten = after
    return Clearing(tuple(reversed(result)), tuple(reversed(cleared)), freed, rewritten)


def _goes(entry: Entry, rule: RetentionSettings, size: int, newer: int, turn: int, outdated: frozenset[str]) -> bool:
    """Whether an entry of an earlier turn is to go; ``newer`` counts the entries after it that the rule is about."""
    if rule.keep_turns is not None:
        return turn - entry.turn >= rule.keep_turns
    if rule.keep_last is not None:
        return newer >= rule.keep_last
    if rule.until_file_changes:
        return entry.item in outdated
    most = rule.head_tail or rule.offload_over
    return most is not None and size > most


def _text(entry: Entry, rule: RetentionSettings, size: int, sizes: EntrySizes) -> str:
    if entry.kind == "call":
        return arguments_stub(entry, size)
    if rule.head_tail is None:
        return result_stub(entry, size, f"by your rule “{rule}”")
    text = next((part.text for part in entry.parts if isinstance(part, ToolResultPart)), "")
    half = max(1, len(text) * rule.head_tail // max(1, size) // 2)
    gone = f"\n[… about {size - rule.head_tail:,} tokens left out by the rule “{rule}”; id {entry.id} …]\n"
    return text[:half] + gone + text[-half:]


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What a rule did, as far as it is in force: entries that it took away, tokens that it saved, and how many of these
    entries the model asked for again. Many of those mean that the rule is a bad one."""

    rule: str
    removed: int
    saved: int
    recalled: int


def report(ledger: Ledger, sizes: EntrySizes, rules: Sequence[RetentionSettings]) -> tuple[RuleReport, ...]:
    """One line for each rule, in the order of the settings."""
    recalled = _recalled(ledger)
    rows: list[RuleReport] = []
    for rule in rules:
        gone = [entry for entry in ledger.view if entry.rule == str(rule) and entry.id in ledger.entries]
        saved = sum(sizes.entry(ledger.entries[entry.id]) - sizes.text(entry.text) for entry in gone)
        again = sum(1 for entry in gone if entry.id in recalled or ledger.entries[entry.id].item in recalled)
        rows.append(RuleReport(str(rule), len(gone), max(0, saved), again))
    return tuple(rows)


def _recalled(ledger: Ledger) -> set[str]:
    """Ids that the model asked for."""
    found: set[str] = set()
    for record in ledger.items.values():
        if record.name == "recall" and record.status == "ok" and record.call is not None:
            found.update(part.strip(" []") for part in str(arguments_of(record.call).get("id") or "").split(","))
    return found
