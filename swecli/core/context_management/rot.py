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
    here = _Here.of(ledger, turn, rules)
    yield from _contradictions(here)
    yield from _undone(here)
    yield from _failures(here)
    yield from _readings(here)
    yield from _stale(here, sizes, effective)
    yield from _summaries(here)
    yield from _repeated(here)


class _Here(Struct, frozen=True):
    """The model's present view. ``free`` are entries without a choice of the user."""

    ledger: Ledger
    turn: int
    live: frozenset[str]
    free: frozenset[str]
    present: AbstractSet[str]
    demands: tuple[_Demand, ...]

    @classmethod
    def of(cls, ledger: Ledger, turn: int, rules: Sequence[RetentionSettings]) -> _Here:
        live = frozenset(one.id for one in ledger.view if one.kind == "live" and one.id in ledger.entries)
        by_hand = {one.id for one in ledger.view if one.rule == BY_HAND}
        free = live - kept_whole(ledger, ledger.view, rules) - ledger.pinned - by_hand
        return cls(ledger, turn, live, free, ledger.present_items(), tuple(_demands(ledger, live)))

    def turn_of(self, item: str) -> int:
        record, entry = self.ledger.items.get(item), self.ledger.entries.get(item)
        return record.turn if record is not None else entry.turn if entry is not None else self.turn

    def shown(self, item: str) -> str:
        """The entry with the content of a call or an attachment."""
        return item + RESULT if item + RESULT in self.ledger.entries else item


# --- the same file again ----------------------------------------------------------------------------------------


def _readings(here: _Here) -> Iterator[Rot]:
    """Files with unchanged text shown several times: copies contained whole in another entry can go; if all older ones
    have left the context, a text requested again and again should stay."""
    for path, touches in reversed(list(here.ledger.files.touches.items())[-CALLS:]):
        same = _same_readings([touch for touch in touches if touch.item in here.present])
        if len(same) < TIMES:
            continue
        name = PurePath(path).name
        reason = f"read {len(same)} times: {name}"
        shown = [(touch, here.shown(touch.item)) for touch in same]
        copies = tuple(entry for entry in _copies(shown, here.live) if entry in here.free)
        newest = shown[-1][1]
        if copies:
            yield Rot("reread", path, len(same), reason, "drop", copies, "cop{y}")
            continue
        lately = here.turn - here.turn_of(same[-TIMES].item) < WINDOW
        if lately and newest in here.free and sum(entry in here.live for _, entry in shown) == 1:
            yield Rot("reread", path, len(same), reason, "pin", (newest,), f"the text of {name}")


def _same_readings(touches: Sequence[Touch]) -> list[Touch]:
    """The readings since the file's newest change that overlap much with the newest of them."""
    run: list[Touch] = []
    for touch in reversed(touches):
        if not touch.is_read or touch.sha256 != touches[-1].sha256:
            break
        run.append(touch)
    return [touch for touch in reversed(run) if _overlap(touch, run[0])]


def _overlap(one: Touch, other: Touch) -> bool:
    common = min(one.last, other.last) - max(one.first, other.first) + 1
    return 2 * common >= min(one.last - one.first, other.last - other.first) + 1


def _copies(shown: Sequence[tuple[Touch, str]], live: frozenset[str]) -> list[str]:
    """Entries with lines contained in another one that stays; of equal ones the newest stays."""
    there = [(touch, entry) for touch, entry in shown if entry in live]
    there.reverse()
    by_size = sorted(there, key=lambda one: one[0].first - one[0].last)
    kept: list[Touch] = []
    copies: list[str] = []
    for touch, entry in by_size:
        if any(one.first <= touch.first and touch.last <= one.last for one in kept):
            copies.append(entry)
        else:
            kept.append(touch)
    return copies


# --- the same failure again -------------------------------------------------------------------------------------

_NUMBERS = lazy_pattern(r"0x[0-9a-f]+|\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)
_HEADER = lazy_pattern(r"\Aexit status -?\d+ after .*$", re.MULTILINE)
_FAILURE_LINES = 12
"""Last lines of an output that identify it if none looks like an error."""


def _failures(here: _Here) -> Iterator[Rot]:
    """Commands that failed the same way each of the last times."""
    failed: dict[str, list[tuple[str, str]]] = {}
    records = [*islice(reversed(here.ledger.items.values()), CALLS)]
    for record in reversed(records):
        if record.name != "run_command" or record.id not in here.live or record.id + RESULT not in here.live:
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
        older = tuple(entry for entry, _ in runs[:-1] if entry in here.free)
        if len(runs) >= TIMES and older:
            reason = f"failed {len(runs)} times: `{_short(command)}`"
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


def _undone(here: _Here) -> Iterator[Rot]:
    """Files that edits returned to an earlier form, and the number of edits undone by that."""
    forms: dict[str, list[tuple[str | None, str]]] = {}
    void: dict[str, dict[str, None]] = {}
    for change in here.ledger.changes[-CALLS:]:
        if change.item not in here.present or here.turn - here.turn_of(change.item) >= WINDOW:
            continue
        before = forms.setdefault(change.path, [])
        before.append((change.before, change.item))
        found = next((n for n in range(len(before) - 1, -1, -1) if before[n][0] == change.after), None)
        if found is not None and change.before != change.after:
            void.setdefault(change.path, {}).update((item, None) for _, item in before[found:-1])
    for path, edits in void.items():
        start = _message_of(here, min(map(here.turn_of, edits)))
        if len(edits) >= TIMES and start is not None:
            reason = f"{len(edits)} edits undone: {PurePath(path).name}"
            yield Rot("reverted", path, len(edits), reason, "branch", (start.id,), f"turn {start.turn} with handoff")


def _message_of(here: _Here, turn: int) -> Entry | None:
    """The user's message at the beginning of a turn, while the model sees it."""
    entries = (here.ledger.entries[one.id] for one in here.ledger.view if one.id in here.live)
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
    spoken = (ledger.entries[one.id] for one in reversed(ledger.view) if one.id in live)
    said = [*islice((entry for entry in spoken if entry.kind == "user" and not _invoked(ledger, entry)), MESSAGES)]
    for entry in reversed(said):
        text = "".join(part.text for part in entry.parts if isinstance(part, TextPart))[:LOOKED_AT]
        sentences = [clean for one in SENTENCE.split(text) if (clean := " ".join(one.split()))]
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
    kept = (word for word in words if not _STOP_WORDS.fullmatch(word) and not _NUMBER.fullmatch(word))
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in kept)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one) and len(one & other) >= ALIKE * len(one | other)


def _oppose(one: _Demand, other: _Demand) -> bool:
    if one.wanted and one.unwanted and other.wanted and other.unwanted:
        return _alike(one.wanted, other.unwanted) and _alike(one.unwanted, other.wanted)
    if not (one.tells and other.tells):
        return False
    if _alike(one.wanted, other.unwanted) or _alike(one.unwanted, other.wanted):
        return True
    same = one.wanted == other.wanted and one.unwanted == other.unwanted
    return same and one.limits and other.limits and one.numbers != other.numbers


def _contradictions(here: _Here) -> Iterator[Rot]:
    """Demands overruled by a newer message. The older messages can go if they contain nothing else."""
    overruled: set[str] = set()
    for place in range(len(here.demands) - 1, 0, -1):
        newest = here.demands[place]
        older = [one for one in here.demands[:place] if one.entry.id != newest.entry.id and _oppose(one, newest)]
        if newest.entry.id in overruled or not older:
            continue
        names = tuple(dict.fromkeys(one.entry.id for one in older))
        overruled.update(names)
        if here.ledger.pinned & {*names, newest.entry.id}:
            continue
        first = older[0]
        # the first overruling of the first demand: repetitions stay the same contradiction
        other = next(one for one in here.demands if one.entry.turn >= first.entry.turn and _oppose(first, one))
        cause = f"{first.entry.id} {other.entry.id}"
        reason = f"turns {first.entry.turn} and {newest.entry.turn} contradict: “{_short(first.text)}”"
        if all(one.alone and one.entry.id in here.free for one in older):
            noun = "the older message" if len(names) == 1 else "older message{s}"
            yield Rot("contradiction", cause, 1, reason, "drop", names, noun)
        else:
            yield Rot("contradiction", cause, 1, reason, "pin", (newest.entry.id,), "the newer message")


def _repeated(here: _Here) -> Iterator[Rot]:
    """Demands repeated by the user."""
    seen: set[str] = set()
    for demand in here.demands:
        same = [one for one in here.demands if _says_the_same(demand, one)]
        said = dict.fromkeys(one.entry.id for one in same)
        if demand.text in seen or len(said) < TIMES:
            continue
        seen.update(one.text for one in same)
        newest = same[-1]
        if any(one.entry.turn > newest.entry.turn and _oppose(newest, one) for one in here.demands):
            continue  # overruled since
        if not here.ledger.pinned & said.keys() and newest.entry.id in here.free:
            reason = f"said {len(said)} times: “{_short(demand.text)}”"
            cause = " ".join(sorted(demand.words))
            yield Rot("repeated", cause, len(said), reason, "pin", (newest.entry.id,), "it")


def _says_the_same(one: _Demand, other: _Demand) -> bool:
    if one.numbers != other.numbers or not (one.tells and other.tells):
        return False
    kinds = (bool(one.wanted), bool(one.unwanted)) == (bool(other.wanted), bool(other.unwanted))
    return kinds and _alike(one.words, other.words)


# --- old unused results -----------------------------------------------------------------------------------------


def _stale(here: _Here, sizes: EntrySizes, effective: int) -> Iterator[Rot]:
    """Results of earlier turns without any access since."""
    ledger, since = here.ledger, here.turn - STALE_TURNS
    if since < 1:
        return
    total = 0
    candidates: list[tuple[Entry, int]] = []
    for one in ledger.view:
        entry = ledger.entries.get(one.id)
        size = sizes.entry(entry) if entry is not None and one.kind == "live" else sizes.stub(one.text)
        total += size
        if entry is None or size < SMALL or one.id not in here.free or entry.turn > since:
            continue
        if entry.kind in ("result", "attachment") and entry.source not in KEPT_TOOLS:
            candidates.append((entry, size))

    def few(tokens: int) -> bool:
        return tokens <= STALE_SHARE * total or tokens < max(STALE_LEAST, effective // 50)

    if not candidates or few(sum(size for _, size in candidates)):  # most views have little that is old
        return
    recent = _recent_names(here, since)
    unused = [(entry.id, size) for entry, size in candidates if not recent & _names(_about(ledger, entry))]
    old, found = sum(size for _, size in unused), [name for name, _ in unused]
    if not found or few(old):
        return
    reason = f"{old / total:.0%} is old and unused"
    yield Rot("stale", "", old, reason, "offload", tuple(found), "stale output{s}")


def _recent_names(here: _Here, since: int) -> set[str]:
    """Names mentioned after that turn, in texts and in calls."""
    found: set[str] = set()
    for one in reversed(here.ledger.view):
        entry = here.ledger.entries.get(one.id)
        if entry is not None and entry.turn <= since:
            break
        if entry is not None and one.kind == "live" and entry.kind != "result" and not is_statement(entry):
            found |= _names(" ".join(_said(part)[:LOOKED_AT] for part in entry.parts))
    return found


def _about(ledger: Ledger, entry: Entry) -> str:
    """The path, command or pattern that led to a result."""
    record = ledger.items.get(entry.item)
    call = record.call if record is not None else None
    return target_of(call) if call is not None else entry.source


_COMPOUND = lazy_pattern(r"[./_]|[a-z][A-Z]")


def _names(text: str) -> set[str]:
    """Words of a text that may be names: paths with their file names, and compound words."""
    found = {word for word in set(_WORD.findall(text)) if len(word) > 3 and _COMPOUND.search(word)}
    return found | {word.rpartition("/")[2] for word in found if "/" in word}


def _said(part: object) -> str:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text):
            return text
        case ToolCallPart(arguments=arguments):
            return arguments
        case _:
            return ""


# --- summaries --------------------------------------------------------------------------------------------------


def _summaries(here: _Here) -> Iterator[Rot]:
    """Summaries that a model wrote of another model's summary."""
    for one in here.ledger.view:
        depth = here.ledger.depths.get(one.id, 0) if one.kind == "summary" else 0
        if depth >= DEPTH:
            reason = f"summaries of summaries, {depth} deep"
            yield Rot("summaries", "summary", depth, reason, "record", (one.id,), "the summary")


SHORT = 40
"""Characters of a quotation in a reason."""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


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
