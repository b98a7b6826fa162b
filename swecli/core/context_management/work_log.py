"""Digest of a conversation's calls: files, checks, decisions.

Code writes both the state block of a compaction and the session notes from it, so they always agree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from itertools import islice

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.context_management.compaction.clearing import arguments_of, target_of
from swecli.core.context_management.ledger import Entry, ItemRecord, Ledger
from swecli.core.context_management.statements import rarity, sentences, statements
from swecli.core.protocol.events import FileChanged
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.lazy_pattern import lazy_pattern

CHECKS = lazy_pattern(
    r"\b(pytest|unittest|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|gradlew?|mvn|ninja|make|cmake|tsc|ruff|"
    r"mypy|pyright|basedpyright|eslint|clippy)\b|\b(npm|pnpm|yarn|bun|deno|cargo|go|swift|dotnet|bundle|mix|zig)\b.*"
    r"\b(test|build|check|vet|lint|run)\b|\btest[\w-]*\.\w+\b|\b(run_)?tests?\b"
)
"""Commands that test or build something, recognised by their words."""
COMMANDS = 6
ERROR_LINES = 12
KEPT = 40
"""Newest requests and decisions of the user, and operations on a file, to remember."""
LONGEST_LINE = 160
"""Characters of a statement in one line."""
REPEATED = 8
"""Newest items with the same decision or command to remember."""
_VERBS = {"read_file": "read", "write_file": "written", "edit_file": "edited"}
_ERROR = lazy_pattern(
    r"\b(error|failed|failure|exception|traceback|assert\w*|panic\w*|fatal|undefined|cannot"
    r"|not found|no such|no rule)\b",
    re.I,
)
_POINTS_ELSEWHERE = lazy_pattern(r"\b(?:complete|full|debug|detailed) logs?\b|^for (?:more|further|full) \w+", re.I)
_DECIDED = lazy_pattern(
    r"\b(?:decided|decision|agreed|settled on|(?:we|i)(?: have|'ve)? (?:chose|chosen|picked)|opted for)\b", re.I
)
"""Words of a sentence that states a decision."""
_CHOICE = lazy_pattern(
    r"\b(?:let'?s|we(?:'ll| will)?|i(?:'ll| will)?) (?:use|go with|take|keep|switch to|stay with|stick (?:with|to))\b"
    r"|\bgo with\b|\b(?:use|take) [^.]{1,60} instead of\b",
    re.I,
)
"""Words of a choice, which is a decision if the message is about more than that; alone, it is the request itself."""
_CONSTRAINT = lazy_pattern(r"\b(?:never|always|must(?: not|n'?t)?|don'?t|do not|should(?:n'?t)?|only)\b", re.I)
"""A rule for the work: the playbook and memories have those."""
FINDINGS = 160
"""Statements of the model to remember: those that weigh most, of equal ones the newest."""
MORE_FINDINGS = 40
"""More of them before some are forgotten."""
_NOT_STARTED = (126, 127)
"""Exit statuses of a missing or non-executable command: it has checked nothing."""


class TouchedFile(Struct, frozen=True):
    """One file read or changed. ``digest`` is the start of the SHA-256 after swecli's last change; ``reads`` counts how
    often it was read, as far as the log remembers."""

    path: str
    operations: tuple[str, ...]
    digest: str = ""
    reads: int = 0


class Said(Struct, frozen=True):
    """A statement or decision of the user at ``at`` (Unix seconds), in these items."""

    text: str
    at: float
    items: tuple[str, ...] = ()

    def holds(self, left: Collection[str]) -> bool:
        """Whether the conversation still has it; ``left`` are the items that a rewind removed."""
        return not self.items or any(item not in left for item in self.items)


class Finding(Struct, frozen=True):
    """What the model stated in this item, and how definite that is."""

    text: str
    weight: int
    item: str


def weightiest(findings: Collection[Finding]) -> list[Finding]:
    """The most definite first, of equal ones the newest; ``findings`` are in order."""
    rare = rarity([finding.text for finding in findings])
    newest_first = list(findings)[::-1]
    return sorted(newest_first, key=lambda finding: -finding.weight - rare[finding.text])


class ModifiedFile(Struct, frozen=True):
    """``made``: the session created it; ``gone``: it no longer exists. ``turn`` is that of the newest change."""

    made: bool
    gone: bool
    turn: int


class WorkLog(Struct):
    """Incremental reduction of a ledger, so that a step of a long session costs only its new entries. Its answers leave
    out ``left``, the items that a rewind removed from the conversation."""

    requests: dict[int, Said] = field(default_factory=dict[int, Said])
    """The user's requests, by turn."""
    choices: dict[str, Said] = field(default_factory=dict[str, Said])
    """Sentences of the user that state a decision."""
    findings: dict[str, Finding] = field(default_factory=dict[str, "Finding"])
    """Statements of the model, the newest last."""
    modified: dict[str, ModifiedFile] = field(default_factory=dict[str, ModifiedFile])
    """By absolute path, the newest last."""
    decided: list[Said] = field(default_factory=list[Said])
    """The user's answers, and comments on rejected calls."""
    _operations: dict[str, list[tuple[str, str]]] = field(default_factory=dict[str, list[tuple[str, str]]])
    """What was done to each file, with the item, the newest last."""
    _checks: dict[str, list[ItemRecord]] = field(default_factory=dict[str, list[ItemRecord]])
    """The runs of each command, the newest last."""
    first_turn: int | None = None
    """The turn in which the work began; None before any work worth a note."""
    last_turn: int | None = None
    _digests: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    _seen: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def of(cls, ledger: Ledger) -> WorkLog:
        """Log of a whole ledger."""
        log = cls()
        log.absorb(ledger)
        return log

    def copy(self) -> WorkLog:
        """A log that goes on from here by itself."""
        return WorkLog(
            dict(self.requests),
            dict(self.choices),
            dict(self.findings),
            dict(self.modified),
            list(self.decided),
            dict(self._operations),
            dict(self._checks),
            self.first_turn,
            self.last_turn,
            dict(self._digests),
            self._seen,
        )

    def absorb(self, ledger: Ledger) -> bool:
        """Add new entries. Whether there were any."""
        entries, items, changes = self._seen
        for entry in islice(ledger.entries.values(), entries, None):
            if entry.kind == "user":
                record = ledger.items.get(entry.item)
                self._hear(entry, record.title if record is not None else "")
            elif entry.kind == "text":
                self._find(entry)
        for record in islice(ledger.items.values(), items, None):
            if record.kind == "tool" and (call := record.call) is not None:
                self._take(record, call)
        for change in ledger.changes[changes:]:
            record = ledger.items.get(change.item)
            self._change(change, record.turn if record is not None else 0)
        seen, self._seen = self._seen, (len(ledger.entries), len(ledger.items), len(ledger.changes))
        return seen != self._seen

    def _hear(self, entry: Entry, typed: str) -> None:
        """Add a user message. ``typed`` is the user's own input if a command made the message from it: its other words
        are not theirs."""
        text = typed or "".join(part.text for part in entry.parts if isinstance(part, TextPart))
        self.requests.setdefault(entry.turn, Said(text[: 2 * LONGEST_LINE], entry.created, (entry.item,)))
        for turn in [turn for turn in self.requests if turn != self.first_turn][:-KEPT]:
            del self.requests[turn]
        for clean in sentences(text[:4_000]):
            if clean and len(clean) <= LONGEST_LINE and _states_decision(clean, whole=clean == " ".join(text.split())):
                known = self.choices.get(clean, Said(clean, entry.created))
                self.choices[clean] = replace(known, items=(*known.items, entry.item)[-REPEATED:])
        for choice in list(self.choices)[:-KEPT]:
            del self.choices[choice]

    def _find(self, entry: Entry) -> None:
        for told in statements("".join(part.text for part in entry.parts if isinstance(part, TextPart))):
            self.findings.pop(told.text, None)
            self.findings[told.text] = Finding(told.text, told.weight, entry.item)
        if len(self.findings) > FINDINGS + MORE_FINDINGS:
            kept = {finding.text for finding in weightiest(self.findings.values())[:FINDINGS]}
            self.findings = {text: finding for text, finding in self.findings.items() if text in kept}

    def _take(self, record: ItemRecord, call: ToolCallPart) -> None:
        arguments = arguments_of(call)
        verb, path, command = _VERBS.get(record.name), arguments.get("path"), arguments.get("command")
        if verb is not None and isinstance(path, str) and record.status == "ok":
            known = self._operations.pop(path, [])
            self._operations[path] = [*known, (verb, record.id)][-KEPT:]
        ran = record.name == "run_command" and record.exit_status not in _NOT_STARTED
        if ran and isinstance(command, str) and CHECKS.search(command):
            self._checks[command] = [*self._checks.pop(command, []), record][-REPEATED:]
            self._worked(record.turn)
        if record.name == "ask_user" and record.status == "ok":
            self._decide(record, " ".join(result_text(record).split())[:400])
        elif record.status == "rejected" and "The user says:" in (text := result_text(record)):
            about = f"{record.name} {target_of(call)}"
            self._decide(record, f"{about}: {text.split('The user says:', 1)[1].strip()[:300]}")

    def _worked(self, turn: int) -> None:
        self.first_turn = turn if self.first_turn is None else self.first_turn
        self.last_turn = turn

    def _decide(self, record: ItemRecord, text: str) -> None:
        self.decided.append(Said(text, record.at, (record.id,)))
        self._worked(record.turn)

    def _change(self, change: FileChanged, turn: int) -> None:
        self._digests.pop(change.path, None)
        self._digests[change.path] = change.after
        known = self.modified.pop(change.path, None)
        made = known.made if known is not None else change.before is None
        self.modified[change.path] = ModifiedFile(made, change.after is None, turn)
        self._worked(turn)

    def files(self, left: Collection[str] = ()) -> list[TouchedFile]:
        """Every file read or changed by a file tool, under the model's name for it, the most recent last."""
        done = {
            path: [verb for verb, item in operations if item not in left]
            for path, operations in self._operations.items()
        }
        digests: dict[str, list[tuple[str, str]]] = {}
        for full, after in self._digests.items():
            if after:
                digests.setdefault(os.path.basename(full), []).append((full, after[:12]))
        return [
            TouchedFile(
                path,
                tuple(reversed(dict.fromkeys(reversed(verbs)))),
                next((after for full, after in digests.get(os.path.basename(path), ()) if _same(full, path)), ""),
                verbs.count("read"),
            )
            for path, verbs in done.items()
            if verbs
        ]

    def checks(self, left: Collection[str] = ()) -> list[tuple[str, ItemRecord]]:
        """The newest run of each test or build command, the most recent last."""
        newest = (
            (command, next((run for run in reversed(runs) if run.id not in left), None))
            for command, runs in self._checks.items()
        )
        return [(command, record) for command, record in newest if record is not None][-COMMANDS:]

    def passed(self, left: Collection[str] = ()) -> list[str]:
        """The test and build commands that have succeeded, the most recent last."""
        return [
            command
            for command, runs in self._checks.items()
            if any(run.exit_status == 0 and run.id not in left for run in runs)
        ][-COMMANDS:]

    def open_errors(self, left: Collection[str] = ()) -> list[str]:
        """Error lines of the failing checks."""
        lines: list[str] = []
        for command, record in reversed(self.checks(left)):
            if record.exit_status:
                lines += [f"`{command}`: {line}" for line in error_lines(result_text(record))]
        return lines[:ERROR_LINES]

    def decisions(self, left: Collection[str] = ()) -> list[str]:
        """The user's answers and comments."""
        return [statement.text for statement in self.decided if statement.holds(left)]


def _states_decision(sentence: str, *, whole: bool) -> bool:
    """Whether a sentence of the user states a decision; ``whole``: it is the whole message."""
    if sentence.endswith("?") or _CONSTRAINT.search(sentence):
        return False
    return bool(_DECIDED.search(sentence) or (not whole and _CHOICE.search(sentence)))


def _same(full: str, path: str) -> bool:
    return full == path or full.endswith(f"/{path.removeprefix('./')}")


def result_text(record: ItemRecord) -> str:
    return next((part.text for part in record.parts if isinstance(part, ToolResultPart)), "")


def error_lines(text: str, limit: int = 6) -> list[str]:
    """The last lines that look like errors, shortened; without lines that only point elsewhere."""
    lines = (" ".join(line.split())[:200] for line in text.splitlines() if _ERROR.search(line))
    return [line for line in lines if not _POINTS_ELSEWHERE.search(line)][-limit:]


def user_texts(ledger: Ledger) -> list[tuple[str, str]]:
    """Ledger id and text of every user message except dropped and rewound ones, oldest first."""
    return list(newest_user_texts(ledger))[::-1]


def newest_user_texts(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """The same, newest first: whoever needs some of them does not read all of a long session."""
    left = ledger.left
    for entry in reversed(ledger.entries.values()):
        if entry.kind == "user" and entry.id not in ledger.dropped and entry.item not in left:
            yield entry.id, "".join(part.text for part in entry.parts if isinstance(part, TextPart))
