"""Signals of a conversation worse than its size suggests: content read, tried, undone or said again and again, and old
unused content. Pure, equal for equal ledgers, and limited to the model's present view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from pathlib import PurePath
from typing import Literal

from msgspec import Struct

from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.compaction.clearing import KEPT_TOOLS, kept_whole, target_of
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.package import ANCHORS_LONGEST, SENTENCE
from swecli.core.context_management.ledger import RESULT, Entry, ItemRecord, Ledger, is_statement
from swecli.core.context_management.read_set import Touch
from swecli.core.context_management.work_log import error_lines
from swecli.core.protocol.commands import ApplyPlan, ChangeContext, Command, Rewind
from swecli.core.protocol.context_events import BY_HAND, ContextChange, RotKind
from swecli.core.protocol.events import ContextSuggested
from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.figures import cut_line
from swecli.lazy_pattern import lazy_pattern

TIMES = 3
"""Number of equal readings, failures, demands, or undone edits that makes a signal."""
WINDOW = 10
"""Turns within which an undone edit, or a reading of content outside the context, counts."""
STALE_TURNS = 6
"""Turns without any access after which content is old."""
STALE_SHARE = 0.4
"""Share of old unused content in the conversation's tokens above which it is a signal."""
STALE_LEAST = 2_000
"""Tokens below which it is none; a fiftieth of the effective window if that is more."""
SMALL = 100
"""Tokens of an output too small to be worth a change."""
DEPTH = 2
"""A summary of a summary."""
CALLS = 300
"""Newest calls and changes to examine, so that the cost does not grow with the session."""
MESSAGES = 60
"""Newest user messages to examine."""
LOOKED_AT = 4_000
"""Characters of a text to examine."""

Remedy = Literal["drop", "offload", "pin", "branch", "record"]
"""``branch``: back to before the entry, with a handoff; ``record``: the record replaces a summary."""


class Rot(Struct, frozen=True):
    """One signal. ``cause`` identifies its subject: the same cause is the same rot, which has worsened if ``count``
    (times, or tokens of old content) has grown. ``reason`` is a clause. The remedy applies to the entries of ``ids``;
    ``noun`` names them, with ``{s}`` or ``{y}`` as the plural ending."""

    kind: RotKind
    cause: str
    count: int
    reason: str
    remedy: Remedy
    ids: tuple[str, ...]
    noun: str


def signals(
    ledger: Ledger, turn: int, sizes: EntrySizes, effective: int, rules: Sequence[RetentionSettings] = ()
) -> Iterator[Rot]:
    """All signals, misleading content before merely large content. ``turn`` is the newest one, ``effective`` the tokens
    available to the model; entries kept by ``rules`` are never to be removed."""
    snapshot = _Snapshot.of(ledger, turn, rules)
    yield from _contradictions(snapshot)
    yield from _undone(snapshot)
    yield from _failures(snapshot)
    yield from _readings(snapshot)
    yield from _stale(snapshot, sizes, effective)
    yield from _summaries(snapshot)
    yield from _repeated(snapshot)


class _Snapshot(Struct, frozen=True):
    """The model's present view. ``free`` are entries without a choice of the user."""

    ledger: Ledger
    turn: int
    live: frozenset[str]
    free: frozenset[str]
    present: AbstractSet[str]
    demands: tuple[_Demand, ...]

    @classmethod
    def of(cls, ledger: Ledger, turn: int, rules: Sequence[RetentionSettings]) -> _Snapshot:
        live = frozenset(viewed.id for viewed in ledger.view if viewed.kind == "live" and viewed.id in ledger.entries)
        by_hand = {viewed.id for viewed in ledger.view if viewed.rule == BY_HAND}
        free = live - kept_whole(ledger, ledger.view, rules) - ledger.pinned - by_hand
        return cls(ledger, turn, live, free, ledger.present_items(), tuple(_demands(ledger, live)))

    def turn_of(self, item: str) -> int:
        record, entry = self.ledger.items.get(item), self.ledger.entries.get(item)
        return record.turn if record is not None else entry.turn if entry is not None else self.turn

    def shown(self, item: str) -> str:
        """The entry with the content of a call or an attachment."""
        return item + RESULT if item + RESULT in self.ledger.entries else item


# --- the same file again ----------------------------------------------------------------------------------------


def _readings(snapshot: _Snapshot) -> Iterator[Rot]:
    """Files with unchanged text shown several times: copies contained whole in another entry can go; if all older ones
    have left the context, a text requested again and again should stay."""
    for path, touches in reversed(list(snapshot.ledger.files.touches.items())[-CALLS:]):
        same = _same_readings([touch for touch in touches if touch.item in snapshot.present])
        if len(same) < TIMES:
            continue
        name = PurePath(path).name
        reason = f"read {len(same)} times: {name}"
        shown = [(touch, snapshot.shown(touch.item)) for touch in same]
        copies = tuple(entry for entry in _copies(shown, snapshot.live) if entry in snapshot.free)
        newest = shown[-1][1]
        if copies:
            yield Rot("reread", path, len(same), reason, "drop", copies, "cop{y}")
            continue
        lately = snapshot.turn - snapshot.turn_of(same[-TIMES].item) < WINDOW
        if lately and newest in snapshot.free and sum(entry in snapshot.live for _, entry in shown) == 1:
            yield Rot("reread", path, len(same), reason, "pin", (newest,), f"the text of {name}")


def _same_readings(touches: Sequence[Touch]) -> list[Touch]:
    """The readings since the file's newest change that overlap much with the newest of them."""
    run: list[Touch] = []
    for touch in reversed(touches):
        if not touch.is_read or touch.sha256 != touches[-1].sha256:
            break
        run.append(touch)
    return [touch for touch in reversed(run) if _overlap(touch, run[0])]


def _overlap(touch: Touch, other: Touch) -> bool:
    common = min(touch.last, other.last) - max(touch.first, other.first) + 1
    return 2 * common >= min(touch.last - touch.first, other.last - other.first) + 1


def _copies(shown: Sequence[tuple[Touch, str]], live: frozenset[str]) -> list[str]:
    """Entries with lines contained in another one that stays; of equal ones the newest stays."""
    there = [(touch, entry) for touch, entry in shown if entry in live]
    there.reverse()
    by_size = sorted(there, key=lambda pair: pair[0].first - pair[0].last)
    staying: list[Touch] = []
    copies: list[str] = []
    for touch, entry in by_size:
        if any(other.first <= touch.first and touch.last <= other.last for other in staying):
            copies.append(entry)
        else:
            staying.append(touch)
    return copies


# --- the same failure again -------------------------------------------------------------------------------------

_NUMBERS = lazy_pattern(r"0x[0-9a-f]+|\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)
_HEADER = lazy_pattern(r"\Aexit status -?\d+ after .*$", re.MULTILINE)
_FAILURE_LINES = 12
"""Last lines of an output that identify it if none looks like an error."""


def _failures(snapshot: _Snapshot) -> Iterator[Rot]:
    """Commands that failed the same way each of the last times."""
    failed: dict[str, list[tuple[str, str]]] = {}
    records = [*islice(reversed(snapshot.ledger.items.values()), CALLS)]
    for record in reversed(records):
        if record.name != "run_command" or record.id not in snapshot.live or record.id + RESULT not in snapshot.live:
            continue
        command = " ".join(target_of(call).split()) if (call := record.call) is not None else ""
        failure = _failure(record)
        if failure is None:
            failed.pop(command, None)
            continue
        runs = failed.setdefault(command, [])
        if runs and runs[-1][1] != failure:
            runs.clear()
        if failure:
            runs.append((record.id + RESULT, failure))
    for command, runs in failed.items():
        older = tuple(entry for entry, _ in runs[:-1] if entry in snapshot.free)
        if len(runs) >= TIMES and older:
            reason = f"failed {len(runs)} times: `{cut_line(command, SHORT)}`"
            yield Rot("failing", command, len(runs), reason, "drop", older, "older run{s}")


def _failure(record: ItemRecord) -> str | None:
    """Key of a command's failure; empty without output, None without a failure."""
    if record.exit_status == 0 or (record.exit_status is None and record.status == "ok"):
        return None
    text = next((part.text for part in record.parts if isinstance(part, ToolResultPart)), "")
    body = _HEADER.sub("", text).strip()
    lines = error_lines(body) or [" ".join(line.split()) for line in body.splitlines()[-_FAILURE_LINES:]]
    return _NUMBERS.sub("#", f"{record.exit_status}\n" + "\n".join(lines)) if body else ""


# --- edits that are undone again --------------------------------------------------------------------------------


def _undone(snapshot: _Snapshot) -> Iterator[Rot]:
    """Files that edits returned to an earlier form, and the number of edits undone by that."""
    forms: dict[str, list[tuple[str | None, str]]] = {}
    void: dict[str, dict[str, None]] = {}
    for change in snapshot.ledger.changes[-CALLS:]:
        if change.item not in snapshot.present or snapshot.turn - snapshot.turn_of(change.item) >= WINDOW:
            continue
        before = forms.setdefault(change.path, [])
        before.append((change.before, change.item))
        earlier = next((n for n in range(len(before) - 1, -1, -1) if before[n][0] == change.after), None)
        if earlier is not None and change.before != change.after:
            void.setdefault(change.path, {}).update((item, None) for _, item in before[earlier:-1])
    for path, edits in void.items():
        start = _message_of(snapshot, min(map(snapshot.turn_of, edits)))
        if len(edits) >= TIMES and start is not None:
            reason = f"{len(edits)} edits undone: {PurePath(path).name}"
            yield Rot("reverted", path, len(edits), reason, "branch", (start.id,), f"turn {start.turn} with handoff")


def _message_of(snapshot: _Snapshot, turn: int) -> Entry | None:
    """The user's message at the beginning of a turn, while the model sees it."""
    entries = (snapshot.ledger.entries[viewed.id] for viewed in snapshot.ledger.view if viewed.id in snapshot.live)
    return next((entry for entry in entries if entry.kind == "user" and entry.turn == turn), None)


# --- demands of the user ----------------------------------------------------------------------------------------

_NEGATIVE = lazy_pattern(r"\b(never|must(?:n't| not)|don'?t|do not|avoid|no longer|should(?:n't| not))\b", re.I)
_POSITIVE = lazy_pattern(
    r"\b(always|must|only|prefer|from now on|make sure|everywhere|should)\b|^(?:please )?use\b", re.I
)
_STRICT = lazy_pattern(r"\b(never|always|from now on)\b", re.I)
_INSTEAD = lazy_pattern(r"^(.*?)(?:,? not |\binstead of\b|\b(?:over|rather than)\b)(.*)$", re.I | re.DOTALL)
_LIMIT = lazy_pattern(r"\b(at most|at least|max(?:imum)?|min(?:imum)?|up to|no more than|no less than|limit)\b", re.I)
_WORD = lazy_pattern(r"[\w.+#/'-]*\w")
_NUMBER = lazy_pattern(r"\d[\d.,_]*")
_STOP_WORDS = lazy_pattern(
    r"a|an|and|any|are|as|at|be|but|by|do|does|for|from|have|here|i|if|in|into|is|it|its|me|my|now|of|on|or|our"
    r"|out|please|so|that|the|their|them|then|there|these|they|this|those|to|too|under|us|use|used|using|want|we"
    r"|when|with|you|your|never|always|must|mustn't|not|don't|dont|avoid|no|longer|only|prefer|make|sure|everywhere"
    r"|should|shouldn't|instead|rather|than|over|actually|ever|again|really|all|every"
)
"""Words without information about the subject of a demand."""
ALIKE = 0.75
"""Share of common words from which on two demands have the same subject."""


class _Demand(Struct, frozen=True):
    """A sentence of the user about how to work. ``wanted`` and ``unwanted`` are its significant words."""

    entry: Entry
    text: str
    wanted: frozenset[str]
    unwanted: frozenset[str]
    numbers: tuple[str, ...]
    limits: bool
    alone: bool
    """Whether it is the whole message."""

    @property
    def words(self) -> frozenset[str]:
        return self.wanted | self.unwanted

    @property
    def tells(self) -> bool:
        """Whether its subject is clear: one word is enough only for a permanent demand."""
        return len(self.words) > 1 or _STRICT.search(self.text) is not None


def _demands(ledger: Ledger, live: frozenset[str]) -> Iterator[_Demand]:
    spoken = (ledger.entries[viewed.id] for viewed in reversed(ledger.view) if viewed.id in live)
    messages = [*islice((entry for entry in spoken if entry.kind == "user" and not _invoked(ledger, entry)), MESSAGES)]
    for entry in reversed(messages):
        text = "".join(part.text for part in entry.parts if isinstance(part, TextPart))[:LOOKED_AT]
        sentences = [clean for piece in SENTENCE.split(text) if (clean := " ".join(piece.split()))]
        for sentence in sentences:
            if len(sentence) <= ANCHORS_LONGEST and not sentence.endswith("?"):
                demand = _demand(entry, sentence, alone=len(sentences) == 1)
                if demand is not None:
                    yield demand


def _invoked(ledger: Ledger, entry: Entry) -> bool:
    """Whether a command or skill produced the message: its template is not the user's words."""
    record = ledger.items.get(entry.item)
    return record is not None and record.name == "command"


def _demand(entry: Entry, sentence: str, *, alone: bool) -> _Demand | None:
    negative, positive = _NEGATIVE.search(sentence), _POSITIVE.search(sentence)
    if not negative and not positive:
        return None
    numbers = tuple(_NUMBER.findall(sentence))
    limits = _LIMIT.search(sentence) is not None
    halves = None if negative else _INSTEAD.match(sentence)
    if halves is not None:
        wanted, unwanted = _telling(halves[1]), _telling(halves[2])
    else:
        wanted, unwanted = frozenset[str](), _telling(sentence)
        if not negative:
            wanted, unwanted = unwanted, wanted
    return _Demand(entry, sentence, wanted, unwanted, numbers, limits, alone) if wanted or unwanted else None


def _telling(text: str) -> frozenset[str]:
    words = (word.casefold() for word in _WORD.findall(text.replace("’", "'")))
    significant = (word for word in words if not _STOP_WORDS.fullmatch(word) and not _NUMBER.fullmatch(word))
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in significant)


def _alike(words: frozenset[str], other: frozenset[str]) -> bool:
    return bool(words) and len(words & other) >= ALIKE * len(words | other)


def _oppose(demand: _Demand, other: _Demand) -> bool:
    if demand.wanted and demand.unwanted and other.wanted and other.unwanted:
        return _alike(demand.wanted, other.unwanted) and _alike(demand.unwanted, other.wanted)
    if not (demand.tells and other.tells):
        return False
    if _alike(demand.wanted, other.unwanted) or _alike(demand.unwanted, other.wanted):
        return True
    same = demand.wanted == other.wanted and demand.unwanted == other.unwanted
    return same and demand.limits and other.limits and demand.numbers != other.numbers


def _contradictions(snapshot: _Snapshot) -> Iterator[Rot]:
    """Demands overruled by a newer message. The older messages can go if they contain nothing else."""
    overruled: set[str] = set()
    for index in range(len(snapshot.demands) - 1, 0, -1):
        newest = snapshot.demands[index]
        older = [
            demand
            for demand in snapshot.demands[:index]
            if demand.entry.id != newest.entry.id and _oppose(demand, newest)
        ]
        if newest.entry.id in overruled or not older:
            continue
        names = tuple(dict.fromkeys(demand.entry.id for demand in older))
        overruled.update(names)
        if snapshot.ledger.pinned & {*names, newest.entry.id}:
            continue
        first = older[0]
        # the first overruling of the first demand: repetitions stay the same contradiction
        other = next(
            demand for demand in snapshot.demands if demand.entry.turn >= first.entry.turn and _oppose(first, demand)
        )
        cause = f"{first.entry.id} {other.entry.id}"
        reason = f"turns {first.entry.turn} and {newest.entry.turn} contradict: “{cut_line(first.text, SHORT)}”"
        if all(demand.alone and demand.entry.id in snapshot.free for demand in older):
            noun = "the older message" if len(names) == 1 else "older message{s}"
            yield Rot("contradiction", cause, 1, reason, "drop", names, noun)
        else:
            yield Rot("contradiction", cause, 1, reason, "pin", (newest.entry.id,), "the newer message")


def _repeated(snapshot: _Snapshot) -> Iterator[Rot]:
    """Demands repeated by the user."""
    seen: set[str] = set()
    for demand in snapshot.demands:
        same = [other for other in snapshot.demands if _says_the_same(demand, other)]
        entries = dict.fromkeys(other.entry.id for other in same)
        if demand.text in seen or len(entries) < TIMES:
            continue
        seen.update(other.text for other in same)
        newest = same[-1]
        if any(other.entry.turn > newest.entry.turn and _oppose(newest, other) for other in snapshot.demands):
            continue  # overruled since
        if not snapshot.ledger.pinned & entries.keys() and newest.entry.id in snapshot.free:
            reason = f"said {len(entries)} times: “{cut_line(demand.text, SHORT)}”"
            cause = " ".join(sorted(demand.words))
            yield Rot("repeated", cause, len(entries), reason, "pin", (newest.entry.id,), "it")


def _says_the_same(demand: _Demand, other: _Demand) -> bool:
    if demand.numbers != other.numbers or not (demand.tells and other.tells):
        return False
    kinds = (bool(demand.wanted), bool(demand.unwanted)) == (bool(other.wanted), bool(other.unwanted))
    return kinds and _alike(demand.words, other.words)


# --- old unused results -----------------------------------------------------------------------------------------


def _stale(snapshot: _Snapshot, sizes: EntrySizes, effective: int) -> Iterator[Rot]:
    """Results of earlier turns without any access since."""
    ledger, since = snapshot.ledger, snapshot.turn - STALE_TURNS
    if since < 1:
        return
    total = 0
    candidates: list[tuple[Entry, int]] = []
    for viewed in ledger.view:
        entry = ledger.entries.get(viewed.id)
        size = sizes.entry(entry) if entry is not None and viewed.kind == "live" else sizes.stub(viewed.text)
        total += size
        if entry is None or size < SMALL or viewed.id not in snapshot.free or entry.turn > since:
            continue
        if entry.kind in ("result", "attachment") and entry.source not in KEPT_TOOLS:
            candidates.append((entry, size))

    def few(tokens: int) -> bool:
        return tokens <= STALE_SHARE * total or tokens < max(STALE_LEAST, effective // 50)

    if not candidates or few(sum(size for _, size in candidates)):  # most views have little that is old
        return
    recent = _recent_names(snapshot, since)
    unused = [(entry.id, size) for entry, size in candidates if not recent & _names(_about(ledger, entry))]
    old, names = sum(size for _, size in unused), [name for name, _ in unused]
    if not names or few(old):
        return
    reason = f"{old / total:.0%} is old and unused"
    yield Rot("stale", "", old, reason, "offload", tuple(names), "stale output{s}")


def _recent_names(snapshot: _Snapshot, since: int) -> set[str]:
    """Names mentioned after that turn, in texts and in calls."""
    names: set[str] = set()
    for viewed in reversed(snapshot.ledger.view):
        entry = snapshot.ledger.entries.get(viewed.id)
        if entry is not None and entry.turn <= since:
            break
        if entry is not None and viewed.kind == "live" and entry.kind != "result" and not is_statement(entry):
            names |= _names(" ".join(_said(part)[:LOOKED_AT] for part in entry.parts))
    return names


def _about(ledger: Ledger, entry: Entry) -> str:
    """The path, command or pattern that led to a result."""
    record = ledger.items.get(entry.item)
    call = record.call if record is not None else None
    return target_of(call) if call is not None else entry.source


_COMPOUND = lazy_pattern(r"[./_]|[a-z][A-Z]")


def _names(text: str) -> set[str]:
    """Words of a text that may be names: paths with their file names, and compound words."""
    names = {word for word in set(_WORD.findall(text)) if len(word) > 3 and _COMPOUND.search(word)}
    return names | {word.rpartition("/")[2] for word in names if "/" in word}


def _said(part: object) -> str:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text):
            return text
        case ToolCallPart(arguments=arguments):
            return arguments
        case _:
            return ""


# --- summaries --------------------------------------------------------------------------------------------------


def _summaries(snapshot: _Snapshot) -> Iterator[Rot]:
    """Summaries that a model wrote of another model's summary."""
    for viewed in snapshot.ledger.view:
        depth = snapshot.ledger.depths.get(viewed.id, 0) if viewed.kind == "summary" else 0
        if depth >= DEPTH:
            reason = f"summaries of summaries, {depth} deep"
            yield Rot("summaries", "summary", depth, reason, "record", (viewed.id,), "the summary")


SHORT = 40
"""Characters of a quotation in a reason."""


def command_of(suggestion: ContextSuggested) -> Command:
    """Command that carries out a suggestion."""
    if suggestion.branch:
        return Rewind(suggestion.branch, handoff=True)
    if suggestion.summaries:
        return ApplyPlan(suggestion.summaries, summary="")
    return ChangeContext(suggestion.changes)


def undo_of(suggestion: ContextSuggested) -> ChangeContext | None:
    """Command that reverts the changes of single items; None if the suggestion has none."""
    back = tuple(
        ContextChange("unpin" if change.action == "pin" else "restore", change.id) for change in suggestion.changes
    )
    return ChangeContext(back) if back else None
