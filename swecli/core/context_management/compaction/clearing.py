"""Clearing: replaces old results and call arguments by stubs, in batches, by the user's retention rules. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.ledger import RESULT, Entry, Ledger
from swecli.core.llm.foreign_calls import stored_arguments
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart

LINE = 120
"""Characters for the subject of a call."""
QUOTED = 60
"""Characters of a line or an argument to quote in a stub: long sessions have thousands of stubs."""
QUOTED_FROM = 300
"""Least tokens of a result to quote in its stub."""
NEWLINE = "\n"
TARGETS = ("path", "command", "pattern", "query", "url")
"""Arguments that show the subject of a call, in order of preference."""


def arguments_of(part: ToolCallPart) -> dict[str, Any]:
    """The call's arguments; empty if they are not a JSON object."""
    return stored_arguments(part.name, part.arguments)


def target_of(part: ToolCallPart) -> str:
    """The subject of a call, on one line."""
    return next(iter(_target(part).values()), "")


def result_stub(entry: Entry, tokens: int, reason: str = "cleared") -> str:
    """Size and how to get the result back, with the number of lines and both ends of a longer one. The call before it
    shows the subject."""
    result = next((part for part in entry.parts if isinstance(part, ToolResultPart)), None)
    if result is None or tokens < QUOTED_FROM:
        return f"[{reason}: {tokens:,} tokens; id {entry.id}]"
    text = result.text.strip()
    ends = f'"{_line(text.partition(NEWLINE)[0], QUOTED)}"'
    lines = text.count(NEWLINE) + 1
    if lines > 1:
        ends += f' … "{_line(text.rpartition(NEWLINE)[2], QUOTED)}"'
    return f"[{reason}: {tokens:,} tokens, {lines:,} lines; id {entry.id}: {ends}]"


def arguments_stub(entry: Entry, tokens: int) -> str:
    """JSON object with the subject in place of a finished call's arguments. Its result shows the rest."""
    call = next(part for part in entry.parts if isinstance(part, ToolCallPart))
    return json.dumps({**_target(call, QUOTED), "cleared": f"{tokens:,} tokens; id {entry.id}"}, ensure_ascii=False)


def _target(part: ToolCallPart, longest: int = LINE) -> dict[str, str]:
    """The argument with the subject of the call, on one line; empty without one."""
    arguments = arguments_of(part)
    name = next((name for name in TARGETS if isinstance(arguments.get(name), str)), None)
    return {name: _line(arguments[name], longest)} if name else {}


def _line(text: str, longest: int = LINE) -> str:
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


KEPT_TOOLS = frozenset(("update_todos", "ask_user", "memory"))
"""Tools with results that stay: decisions of the user, the state of the work, or memories."""
LEAST = 60
"""Least tokens of an entry worth a stub."""
SAVED = 0.4
"""Least saving of a stub, as a share of the original."""
COPIED = 600
"""Least characters of a text read again that counts as a copy."""
FAILING_KEPT = 6
"""Most failed commands to keep, the last ones: a session full of mistyped commands must not keep them all."""


class Clearing(Struct, frozen=True):
    """A proposed batch. ``freed`` is tokens; ``rewritten`` the remaining tokens from the first stub on, which the
    provider reads again uncached."""

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
    """Stub every old result and the old arguments of every finished call, repeated reads first. ``kept`` are ids that
    stay."""
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
                text = reference_to(known, ledger, size, failing)
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


def reference_to(entry: Entry, ledger: Ledger, size: int, failing: frozenset[str] = frozenset()) -> str | None:
    """The stub in place of an old result or of a finished call's arguments; None for what stays, as do the results of
    the last ``failing`` commands."""
    if entry.source in KEPT_TOOLS or entry.item + RESULT in failing:
        return None
    if entry.kind in ("result", "attachment"):
        return result_stub(entry, size)
    if entry.kind == "call" and entry.item in ledger.items:
        return arguments_stub(entry, size)
    return None


def repeated_reads(ledger: Ledger, view: Sequence[ViewEntry]) -> Mapping[str, str]:
    """Results repeated word for word by a later read: id -> id of the newer copy."""
    same: dict[tuple[str, str], list[Entry]] = {}
    for entry in view:
        known = ledger.entries.get(entry.id)
        if known is None or entry.kind != "live" or known.kind not in ("result", "attachment"):
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
    """Result ids of the last commands with a failed newest run: the model still works on these."""
    seen: set[str] = set()
    failures: list[str] = []
    for record in reversed(ledger.items.values()):
        if len(failures) == FAILING_KEPT:
            break
        if record.name != "run_command" or record.kind != "tool" or record.call is None:
            continue
        command = record.call.arguments
        if record.exit_status and command not in seen:
            failures.append(record.id + RESULT)
        seen.add(command)
    return frozenset(failures)


KINDS = {"result": "result", "call": "arguments"}
"""Kinds of ledger entries that rules apply to, with their names in the settings."""


def matching(entry: Entry, ledger: Ledger, rules: Sequence[RetentionSettings]) -> RetentionSettings | None:
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
    if not any(rule.never_drop for rule in rules):
        return frozenset()
    known = (ledger.entries[entry.id] for entry in view if entry.id in ledger.entries)
    return frozenset(
        entry.id for entry in known if (rule := matching(entry, ledger, rules)) is not None and rule.never_drop
    )


def kept_whole(ledger: Ledger, view: Sequence[ViewEntry], rules: Sequence[RetentionSettings]) -> frozenset[str]:
    """Ids of entries that stay word for word in any case: kept by a rule or pinned by the user, with the other halves
    of their pairs."""
    return with_pairs(ledger, protected(ledger, view, rules) | ledger.pinned)


def with_pairs(ledger: Ledger, ids: Iterable[str]) -> frozenset[str]:
    """These entries with the other halves of their pairs of call and result."""
    items = {ledger.entries[name].item for name in ids if name in ledger.entries}
    return frozenset(name for item in items for name in (item, item + RESULT))


def tidy(
    ledger: Ledger,
    view: Sequence[ViewEntry],
    sizes: EntrySizes,
    rules: Sequence[RetentionSettings],
    newest: int,
    kept: Collection[str] = (),
) -> Clearing:
    """One batch of the rules, followed by clearing of everything old that no rule keeps; the ``newest`` tokens and the
    ``kept`` entries stay."""
    by_rules = retain(ledger, view, sizes, rules)
    cleared = clear(ledger, by_rules.view, sizes, newest, kept_whole(ledger, view, rules).union(kept))
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
    pinned = with_pairs(ledger, ledger.pinned)
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
                shown.kind == "live"
                and shown.id not in pinned
                and entry.turn < turn
                and _goes(entry, rule, size, newer[rule], turn, outdated)
            )
            newer[rule] += 1
            text = _text(entry, rule, size) if wanted else None
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
    """Whether to remove an entry of an earlier turn; ``newer`` counts later entries under the same rule."""
    if rule.keep_turns is not None:
        return turn - entry.turn >= rule.keep_turns
    if rule.keep_last is not None:
        return newer >= rule.keep_last
    if rule.until_file_changes:
        return entry.item in outdated
    most = rule.head_tail or rule.offload_over
    return most is not None and size > most


def _text(entry: Entry, rule: RetentionSettings, size: int) -> str:
    if entry.kind == "call":
        return arguments_stub(entry, size)
    if rule.head_tail is None:
        return result_stub(entry, size, f"by your rule “{rule}”")
    text = next((part.text for part in entry.parts if isinstance(part, ToolResultPart)), "")
    half = max(1, len(text) * rule.head_tail // max(1, size) // 2)
    omission = f"\n[… about {size - rule.head_tail:,} tokens left out by the rule “{rule}”; id {entry.id} …]\n"
    return text[:half] + omission + text[-half:]


class RuleReport(Struct, frozen=True):
    """Effect of a rule so far: entries removed, tokens saved, and removed entries that the model requested again. Many
    of those indicate a bad rule."""

    rule: str
    removed: int
    saved: int
    recalled: int


def report(ledger: Ledger, sizes: EntrySizes, rules: Sequence[RetentionSettings]) -> tuple[RuleReport, ...]:
    """One line for each rule, in the order of the settings."""
    recalled = _recalled(ledger)
    rows: list[RuleReport] = []
    for rule in rules:
        shortened = [entry for entry in ledger.view if entry.rule == str(rule) and entry.id in ledger.entries]
        saved = sum(sizes.entry(ledger.entries[entry.id]) - sizes.text(entry.text) for entry in shortened)
        again = sum(1 for entry in shortened if entry.id in recalled or ledger.entries[entry.id].item in recalled)
        rows.append(RuleReport(str(rule), len(shortened), max(0, saved), again))
    return tuple(rows)


def _recalled(ledger: Ledger) -> set[str]:
    """Ids that the model requested."""
    ids: set[str] = set()
    for record in ledger.items.values():
        if record.name == "recall" and record.status == "ok" and record.call is not None:
            ids.update(part.strip(" []") for part in str(arguments_of(record.call).get("id") or "").split(","))
    return ids
