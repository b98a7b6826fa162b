"""Search over content that left the context, and the way from an id to its text."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappush, heappushpop
from itertools import islice
from typing import Literal

from msgspec import Struct

from swecli.core.context_management.compaction.clearing import target_of
from swecli.core.context_management.ledger import RESULT, Entry, Ledger
from swecli.core.context_management.statements import closeness, rarity, statements
from swecli.core.ports import BlobError, BlobStore, TranscriptHit
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import (
    DocumentPart,
    ImagePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from swecli.lazy_pattern import lazy_pattern

WINDOW = 800
"""Characters scored together; windows overlap by half."""
EXCERPT = 500
MOST_TERMS = 24
MOST_OCCURRENCES = 5_000
"""Most occurrences of one term to use in one text."""
_STRIDE = WINDOW // 2
_K1 = 1.2
_B = 0.5
_PHRASE_FACTOR = 1.5
"""Factor for a document that contains the query verbatim."""
_DESCRIPTION_WEIGHT = 0.5
"""Weight of a term in the description, relative to its weight in the text."""
_LEAST_WEIGHT = 0.5
"""Least weight of a term however common, and of a window with scattered terms."""
_MOST_WEIGHT = _LEAST_WEIGHT + 1.001
"""More than the most weight of a window, whatever is rounded."""
_PROXIMITY = 80
"""Distance in characters within which words belong together, about a sentence."""
_EXAMINED_WINDOWS = 6
"""Windows of a document to examine closely."""
_TOKEN = lazy_pattern(r"\w+")
_PART = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_CJK = lazy_pattern("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_STOP = lazy_pattern(
    r"a|an|and|are|as|at|be|but|by|did|do|does|for|from|had|has|have|how|i|in|into|is|it|its|me|"
    r"my|of|on|or|our|that|the|their|them|then|there|this|to|was|we|were|what|when|where|which|who|why|will|with|you|your"
)
_ENDINGS = ("ing", "ies", "ed", "es", "s")


class Document(Struct, frozen=True):
    """``about`` is searched, too, and shown."""

    id: str
    about: str
    text: str


class Ranked(Struct, frozen=True):
    """``at`` is the offset of the best window, ``share`` of how much of the query, 0 to 1, it has the words."""

    document: Document
    score: float
    at: int
    share: float = 0.0


def terms_of(query: str) -> tuple[str, ...]:
    """Search terms: words without stop words and endings, identifiers whole and in parts, pairs of characters of a
    language without blanks."""
    terms: list[str] = []
    for token in _TOKEN.findall(query):
        if _CJK.search(token):
            terms += [token[at : at + 2] for at in range(max(1, len(token) - 1))]
            continue
        terms.append(_stem(token.lower()))
        parts = _PART.findall(token)
        if len(parts) > 1:
            terms += [_stem(part.lower()) for part in parts]
    distinct = list(dict.fromkeys(terms))
    telling = [term for term in distinct if not _STOP.fullmatch(term)]
    return tuple((telling or distinct)[:MOST_TERMS])


def _stem(word: str) -> str:
    if word.isascii() and word.isalpha():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 4:
                return word[: -len(ending)]
    return word


def rank(documents: Sequence[Document], query: str, limit: int) -> list[Ranked]:
    """The best documents, best first, each by its best window."""
    terms = terms_of(query)
    scans = [scan for document in documents if (scan := _scan(document, terms)).windows or scan.named]
    windows = sum(1 + max(0, len(document.text) - 1) // _STRIDE for document in documents)
    frequencies = Counter(term for scan in scans for counts in scan.windows.values() for term in counts)
    rarity = {term: math.log(1 + (windows - frequencies[term] + 0.5) / (frequencies[term] + 0.5)) for term in terms}
    phrase = " ".join(query.casefold().split())
    weighed = [_weighed(scan, rarity) for scan in scans]
    weighed.sort(key=lambda candidate: -candidate.bound)
    ranked: list[Ranked] = []
    best: list[float] = []
    for candidate in weighed:
        if best and len(best) >= limit and candidate.bound < best[0]:
            break  # nor can any of the others be among the best
        ranked.append(_ranked(candidate, rarity, phrase))
        (heappush if len(best) < limit else heappushpop)(best, ranked[-1].score)
    ranked.sort(key=lambda hit: (-hit.score, hit.document.id))
    return ranked[:limit]


class _Scan(Struct, frozen=True):
    """Occurrences of the terms in one document: places in order, counts by the window's first character, and the terms
    in the description."""

    document: Document
    places: list[tuple[int, str]]
    windows: dict[int, dict[str, int]]
    named: frozenset[str]


def _scan(document: Document, terms: Sequence[str]) -> _Scan:
    lowered, about = _lowered(document.text), _lowered(document.about)
    places = sorted((at, term) for term in terms for at in _occurrences(document.text, lowered, term, MOST_OCCURRENCES))
    windows: dict[int, dict[str, int]] = {}
    for at, term in places:
        first = at // _STRIDE * _STRIDE
        for start in (first - _STRIDE, first) if first else (first,):
            counts = windows.get(start)
            if counts is None:
                counts = windows[start] = {}
            counts[term] = counts.get(term, 0) + 1
    named = frozenset(term for term in terms if term in about and _occurrences(document.about, about, term, 1))
    return _Scan(document, places, windows, named)


class _Weighed(Struct, frozen=True):
    """Sums of the windows of one document by their first character, weight of its description, and a score that it
    cannot exceed."""

    scan: _Scan
    sums: dict[int, float]
    named: float
    bound: float


def _weighed(scan: _Scan, rarity: Mapping[str, float]) -> _Weighed:
    named = sum(_DESCRIPTION_WEIGHT * (_LEAST_WEIGHT + rarity[term]) for term in scan.named)
    sums = {at: _sum(counts, len(scan.document.text), rarity) for at, counts in scan.windows.items()}
    return _Weighed(scan, sums, named, max(sums.values(), default=0.0) * _MOST_WEIGHT * _PHRASE_FACTOR + named)


def _ranked(weighed: _Weighed, rarity: Mapping[str, float], phrase: str) -> Ranked:
    """Score the windows with the highest sums: terms close together count more than scattered ones."""
    scan, sums, document = weighed.scan, weighed.sums, weighed.scan.document
    best, best_at = 0.0, 0
    for at in sorted(sums, key=lambda start: (-sums[start], start))[:_EXAMINED_WINDOWS]:
        if sums[at] * _MOST_WEIGHT < best:
            break  # nor can any of the others be better
        within = scan.places[bisect_left(scan.places, (at, "")) : bisect_left(scan.places, (at + WINDOW, ""))]
        score = sums[at] * (_LEAST_WEIGHT + _together(within, rarity))
        if score > best:
            best, best_at = score, at
    if len(rarity) > 1 and phrase in " ".join(document.text[best_at : best_at + 2 * WINDOW].casefold().split()):
        best *= _PHRASE_FACTOR
    present = scan.windows.get(best_at, {}).keys() | scan.named
    whole = sum(_LEAST_WEIGHT + weight for weight in rarity.values())
    share = sum(_LEAST_WEIGHT + rarity[term] for term in present) / whole
    return Ranked(document, best + weighed.named, best_at, share)


def _sum(counts: Mapping[str, int], length: int, rarity: Mapping[str, float]) -> float:
    norm = _K1 * (1 - _B + _B * min(WINDOW, length) / WINDOW)
    return sum(max(rarity[term], 0.01) * count * (_K1 + 1) / (count + norm) for term, count in counts.items())


def _together(places: Sequence[tuple[int, str]], rarity: Mapping[str, float]) -> float:
    """Largest share of the query, 0 to 1 by weight, within ``_PROXIMITY`` characters."""
    best = 0.0
    end = 0
    inside: Counter[str] = Counter()
    grown = False
    for start, term in places:
        while end < len(places) and places[end][0] < start + _PROXIMITY:
            grown = grown or not inside[places[end][1]]
            inside[places[end][1]] += 1
            end += 1
        if grown:  # with no other term the share is not larger than before
            best = max(best, sum(_LEAST_WEIGHT + rarity[other] for other, count in inside.items() if count))
            grown = False
        inside[term] -= 1
    return best / sum(_LEAST_WEIGHT + weight for weight in rarity.values())


def _lowered(text: str) -> str:
    """Lower case of the same length: some characters would become two."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(character.lower()[:1] or character for character in text)


def _occurrences(text: str, lowered: str, term: str, most: int) -> list[int]:
    """Offsets of the term: at the beginning of a word or of a part of an identifier; short words only whole, numbers
    not inside others."""
    places: list[int] = []
    word, number, short = term.isascii() and term[:1].isalpha(), term.isdigit(), len(term) <= 3 and term.isascii()
    at = lowered.find(term)
    while at >= 0 and len(places) < most:
        before = lowered[at - 1] if at else " "
        after = lowered[at + len(term)] if at + len(term) < len(lowered) else " "
        if number:
            joined = before.isdigit() or after.isdigit()
        else:
            inside = word and before.isalpha() and not text[at].isupper()
            joined = inside or (short and (before.isalnum() or after.isalnum()))
        if not joined:
            places.append(at)
        at = lowered.find(term, at + len(term))
    return places


def excerpt(text: str, at: int, query: str) -> str:
    """About ``EXCERPT`` characters of the window at ``at``, around the matches of the query, cut at line ends."""
    window = text[at : at + WINDOW]
    lowered = _lowered(window)
    places = sorted((offset, term) for term in terms_of(query) for offset in _occurrences(window, lowered, term, 20))

    def different(offset: int) -> int:
        return len({term for other, term in places if offset <= other < offset + _PROXIMITY})

    begin = max((offset for offset, _ in places), key=different, default=0)
    start = max(0, at + begin - EXCERPT // 4)
    line = text.rfind("\n", 0, start + 1) + 1
    if start - line <= EXCERPT // 4:
        start = line
    end = min(len(text), start + EXCERPT)
    edge = text.rfind("\n", start, end)
    if end < len(text) and edge > start + EXCERPT // 2:
        end = edge
    return f"{'…' if start else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"


Gone = Literal["cleared", "summarised", "dropped"]


def gone(ledger: Ledger, view: Sequence[ViewEntry]) -> dict[str, Gone]:
    """Every entry that is not in the view in its original form: replaced by a stub, part of a summary, or left out."""
    live = {entry.id for entry in view if entry.kind == "live"}
    cleared = {entry.id for entry in view if entry.kind == "stub"}
    summarised = {source for entry in view for source in entry.sources}
    states: dict[str, Gone] = {}
    for entry in list(ledger.entries):
        if entry not in live:
            states[entry] = "cleared" if entry in cleared else "summarised" if entry in summarised else "dropped"
    return states


_RANGE = lazy_pattern(r"\s*(\S+?)\s*[-–—]\s*(\S+)\s*")
_MAX_STORED = 4_000_000
"""Characters of one stored result to search; read_result searches all of it."""
STORED = ("result", "user", "attachment")
"""Kinds of entries that may have stored texts."""
NAMED = 5
"""Limit of names of results that could not be searched."""
SURE = 0.8
"""Share of a query from which on its best match is taken for the answer."""
MOST_SPOKEN = 500
"""Newest messages whose statements are compared with a query."""
MOST_STATED = 6_000
"""Characters of the statements to show."""
USERS = 2
"""What a statement of the user weighs more than one of the model."""
SHORT_CALL = 240
"""Characters up to which a call is found only through its result, which names the call's subject."""


class Recall:
    """Reads the ledger and the stored results of one session; implements ``TranscriptSearch``.

    Nothing is copied or indexed; searches read the record itself. Safe to call from a thread while the ledger grows.
    """

    def __init__(
        self,
        ledger: Ledger,
        blobs: BlobStore | None = None,
        transcript: Callable[[str], str | None] = lambda agent: None,
    ) -> None:
        """``transcript`` returns a subagent's transcript by its id; None for an unknown id."""
        self._ledger = ledger
        self._blobs = blobs
        self._transcript = transcript

    def search(self, query: str, limit: int) -> list[TranscriptHit]:
        """Entries outside the context that match the words, best first. If stored results could not be searched, the
        last hit names them and the reason."""
        unread: dict[str, str] = {}
        ranked = rank(list(self._documents(unread)), query, limit)
        hits = [
            TranscriptHit(hit.document.id, excerpt(hit.document.text, hit.at, query), hit.score, hit.document.about)
            for hit in ranked
        ]
        if max((hit.share for hit in ranked), default=0.0) < SURE and (stated := self._statements(query)) is not None:
            hits.append(stated)
        return [*hits, _not_searched(unread)] if unread else hits

    def _statements(self, query: str) -> TranscriptHit | None:
        """What the user and the model stated in messages that left the context, the most related and definite first:
        the reader may know by meaning what no word finds."""
        ledger = self._ledger
        removed = gone(ledger, ledger.view).keys() - ledger.rewound
        newest = (ledger.entries[name] for name in reversed(list(ledger.entries)) if name in removed)
        terms = terms_of(query)
        told: dict[str, tuple[float, float, str]] = {}
        for entry in islice((candidate for candidate in newest if candidate.kind in ("user", "text")), MOST_SPOKEN):
            by_user = entry.kind == "user"
            for statement in statements(_text_of(entry.parts), by_user=by_user):
                weight = statement.weight + (USERS if by_user else 0)
                told.setdefault(statement.text, (closeness(terms, statement.text), weight, entry.id))
        rare = rarity(told.keys())
        lines: list[str] = []
        room = MOST_STATED
        for text, (_, _, name) in sorted(told.items(), key=lambda pair: (-pair[1][0], -pair[1][1] - rare[pair[0]])):
            lines.append(f"[{name}] {text}")
            room -= len(lines[-1])
            if room < 0:
                break
        if not lines:
            return None
        first = lines[0][1:].partition("]")[0]
        return TranscriptHit(first, "\n".join(lines), 0.0, "and more: no entry has all of these words. Stated earlier:")

    def text(self, reference: str) -> str | None:
        """The text behind an id: of an entry, an item, a message, a summary, a stored result. Several ids with commas,
        or a range, give one text after the other.

        Raises:
            BlobError: a stored result is damaged or can't be read.
        """
        wanted = reference.strip().strip("[]")
        single = self._single(wanted)
        if single is not None:
            return single
        texts: list[str] = []
        for part in wanted.split(","):
            entries = self._range(part)
            if entries is not None:
                texts += [f"[{entry.id}] {self._about(entry)}\n{self._entry_text(entry)}" for entry in entries]
            else:
                text = self._single(part.strip())
                if text is None:
                    return None
                texts.append(f"[{part.strip()}]\n{text}")
        return "\n\n".join(texts)

    # --- documents --------------------------------------------------------------------------------------------

    def _documents(self, unread: dict[str, str]) -> Iterable[Document]:
        """All searchable documents, without what the user took back by a rewind; adds unreadable stored results and the
        reasons to ``unread``."""
        ledger = self._ledger
        states = gone(ledger, ledger.view)
        stored = dict(ledger.stored)
        for entry in list(ledger.entries.values()):
            if entry.id in ledger.rewound:
                continue
            state = states.get(entry.id)
            ref = stored.get(entry.item) if entry.kind in STORED else None
            whole = self._stored_text(ref, unread)
            if ref is not None and whole is not None:
                about = f"{self._about(entry)}, stored{f', {state}' if state else ''} ({entry.id})"
                yield Document(ref, about, whole[:_MAX_STORED])
            elif state is not None:
                text = _text_of(entry.parts)
                if text.strip() and not (entry.kind == "call" and len(text) <= SHORT_CALL):
                    yield Document(entry.id, f"{self._about(entry)}, {state}", text)

    def _stored_text(self, ref: str | None, unread: dict[str, str]) -> str | None:
        """The stored text; None if there is none or it can't be read: a search continues without it."""
        if ref is None or self._blobs is None:
            return None
        try:
            raw = self._blobs.get(ref)
        except BlobError as error:
            unread[ref] = str(error)
            return None
        return raw.decode("utf-8", "replace") if raw is not None else None

    def _about(self, entry: Entry) -> str:
        call = self._ledger.items[entry.item].call if entry.item in self._ledger.items else None
        target = f" {target_of(call) or call.arguments[:120]}" if call is not None else ""
        match entry.kind:
            case "user":
                name = "the user's command" if entry.source == "shell" else "user"
            case "note":
                name = "a note of swecli"
            case "attachment":
                name = f"attached by the user:{target}"
            case "text":
                name = "assistant"
            case "result":
                name = f"result of {entry.source}{target}"
            case "call":
                name = f"call of {entry.source}{target}"
            case _:
                name = entry.kind
        return f"{name}, turn {entry.turn}"

    # --- ids --------------------------------------------------------------------------------------------------

    def _single(self, reference: str) -> str | None:
        ledger = self._ledger
        entry = ledger.entries.get(reference)
        if entry is not None:
            result = ledger.entries.get(reference + RESULT) if entry.kind == "call" else None
            text = self._entry_text(entry)
            return f"{text}\n\n[{result.id}]\n{self._entry_text(result)}" if result is not None else text
        of_message = [member for member in list(ledger.entries.values()) if member.message == reference]
        if of_message:
            return "\n\n".join(
                f"[{member.id}] {self._about(member)}\n{self._entry_text(member)}" for member in of_message
            )
        summary = next((viewed for viewed in ledger.view if viewed.id == reference and viewed.text), None)
        if summary is not None:
            return summary.text
        if (transcript := self._transcript(reference)) is not None:
            return transcript
        raw = self._blobs.get(reference) if self._blobs is not None and reference.startswith("r") else None
        return raw.decode("utf-8", "replace") if raw is not None else None

    def _range(self, text: str) -> list[Entry] | None:
        """The entries from one id to another in chronological order."""
        match = _RANGE.fullmatch(text)
        if match is None:
            return None
        entries = list(self._ledger.entries.values())
        first = next((n for n, entry in enumerate(entries) if match[1] in (entry.id, entry.item, entry.message)), None)
        last = [n for n, entry in enumerate(entries) if match[2] in (entry.id, entry.item, entry.message)]
        return entries[first : last[-1] + 1] if first is not None and last else None

    def _entry_text(self, entry: Entry) -> str:
        """The whole original text: a stored result in place of its reference.

        Raises:
            BlobError: it was stored and is damaged or can't be read.
        """
        ref = self._ledger.stored.get(entry.item) if entry.kind in STORED else None
        raw = self._blobs.get(ref) if ref is not None and self._blobs is not None else None
        return raw.decode("utf-8", "replace") if raw is not None else _text_of(entry.parts)


def _not_searched(unread: Mapping[str, str]) -> TranscriptHit:
    refs = list(unread)
    names = ", ".join(refs[:NAMED]) + (f" and {len(refs) - NAMED:,} more" if len(refs) > NAMED else "")
    what = "A stored result" if len(refs) == 1 else f"{len(refs):,} stored results"
    return TranscriptHit(refs[0], unread[refs[0]], 0.0, f"{what} could not be searched: {names}")


def _text_of(parts: Sequence[Part]) -> str:
    texts: list[str] = []
    for part in parts:
        match part:
            case TextPart(text=text) | ReasoningPart(text=text):
                texts.append(text)
            case ToolResultPart(images=images):
                texts.append(
                    part.whole_text + "".join(f"\n[image {image.name or image.media_type}]" for image in images)
                )
            case ToolCallPart(name=name, arguments=arguments):
                texts.append(f"{name} {arguments}")
            case DocumentPart(text=text):
                texts.append(text)
            case ImagePart(name=name, media_type=media):
                texts.append(f"[image {name or media}]")
            case _:
                pass
    return "\n".join(texts)


__all__ = ["Recall"]
