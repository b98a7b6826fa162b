"""Ranked search over texts without an index: BM25 over overlapping windows. Pure.

Nothing is kept between two searches. Terms are looked for with ``str.find``, so that a search over some megabytes
takes tens of milliseconds and parts of identifiers, of paths and of languages without blanks are found as well.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WINDOW = 800
"""Characters that are scored together; windows begin every half of it."""
EXCERPT = 500
MOST_TERMS = 24
MOST_OCCURRENCES = 5_000
"""Of one term in one text; more tell nothing."""
_STRIDE = WINDOW // 2
_K1 = 1.2
_B = 0.5
_PHRASE = 1.5
"""What a document gains that has the query as it stands."""
_ABOUT = 0.5
"""What a term in the description is worth, as a share of its weight."""
_LEAST = 0.5
"""What a term is worth that is everywhere, and a window in which nothing stands together."""
_CLOSE = 80
"""Characters within which words belong together, about a sentence."""
_LOOKED_AT = 6
"""Windows of a document that are looked at closely."""
_TOKEN = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_STOP = re.compile(
    r"a|an|and|are|as|at|be|but|by|did|do|does|for|from|had|has|have|how|i|in|into|is|it|its|me|"
    r"my|of|on|or|our|that|the|their|them|then|there|this|to|was|we|were|what|when|where|which|who|why|will|with|you|your"
)
_ENDINGS = ("ing", "ed", "es", "s")


@dataclass(frozen=True, slots=True)
class Document:
    """``about`` is searched too, and shown."""

    id: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """``at`` is where in the text the best window begins."""

    document: Document
    score: float
    at: int


def terms_of(query: str) -> tuple[str, ...]:
    """What to look for: words without common ones and without endings, identifiers whole and in parts, pairs of
    characters of a language without blanks."""
    found: list[str] = []
    for token in _TOKEN.findall(query):
        if _CJK.search(token):
            found += [token[at : at + 2] for at in range(max(1, len(token) - 1))]
            continue
        found.append(_stem(token.lower()))
        parts = _PART.findall(token)
        if len(parts) > 1:
            found += [_stem(part.lower()) for part in parts]
    distinct = list(dict.fromkeys(found))
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
    found = [scan for document in documents if (scan := _scan(document, terms)).windows or scan.named]
    windows = sum(1 + max(0, len(document.text) - 1) // _STRIDE for document in documents)
    frequencies = Counter(term for scan in found for counts in scan.windows.values() for term in counts)
    rarity = {term: math.log(1 + (windows - frequencies[term] + 0.5) / (frequencies[term] + 0.5)) for term in terms}
    phrase = " ".join(query.casefold().split())
    ranked = [_ranked(scan, rarity, phrase) for scan in found]
    ranked.sort(key=lambda one: (-one.score, one.document.id))
    return ranked[:limit]


@dataclass(frozen=True, slots=True)
class _Scan:
    """Where the terms are in one document: places in order, occurrences by the window's first character, and the
    terms in the description."""

    document: Document
    places: list[tuple[int, str]]
    windows: dict[int, Counter[str]]
    named: frozenset[str]


def _scan(document: Document, terms: Sequence[str]) -> _Scan:
    lowered, about = _lowered(document.text), _lowered(document.about)
    places = sorted((at, term) for term in terms for at in _occurrences(document.text, lowered, term, MOST_OCCURRENCES))
    windows: dict[int, Counter[str]] = {}
    for at, term in places:
        first = at // _STRIDE * _STRIDE
        for start in (first - _STRIDE, first) if first else (first,):
            windows.setdefault(start, Counter())[term] += 1
    named = frozenset(term for term in terms if _occurrences(document.about, about, term, 1))
    return _Scan(document, places, windows, named)


def _ranked(scan: _Scan, rarity: Mapping[str, float], phrase: str) -> Ranked:
    """By the best of the windows with the highest sums: what stands close together is worth more than the same
    words strewn about."""
    document = scan.document
    named = sum(_ABOUT * (_LEAST + rarity[term]) for term in scan.named)
    sums = {at: _sum(counts, len(document.text), rarity) for at, counts in scan.windows.items()}
    best, place = 0.0, 0
    for at in sorted(sums, key=lambda start: (-sums[start], start))[:_LOOKED_AT]:
        within = scan.places[bisect_left(scan.places, (at, "")) : bisect_left(scan.places, (at + WINDOW, ""))]
        score = sums[at] * (_LEAST + _together(within, rarity))
        if score > best:
            best, place = score, at
    if len(rarity) > 1 and phrase in " ".join(document.text[place : place + 2 * WINDOW].casefold().split()):
        best *= _PHRASE
    return Ranked(document, best + named, place)


def _sum(counts: Mapping[str, int], length: int, rarity: Mapping[str, float]) -> float:
    norm = _K1 * (1 - _B + _B * min(WINDOW, length) / WINDOW)
    return sum(max(rarity[term], 0.01) * count * (_K1 + 1) / (count + norm) for term, count in counts.items())


def _together(places: Sequence[tuple[int, str]], rarity: Mapping[str, float]) -> float:
    """Share of the query, 0..1 by weight, in the stretch of ``_CLOSE`` characters that has most of it."""
    best = 0.0
    end = 0
    inside: Counter[str] = Counter()
    for start, term in places:
        while end < len(places) and places[end][0] < start + _CLOSE:
            inside[places[end][1]] += 1
            end += 1
        best = max(best, sum(_LEAST + rarity[one] for one, count in inside.items() if count))
        inside[term] -= 1
    return best / sum(_LEAST + weight for weight in rarity.values())


def _lowered(text: str) -> str:
    """Lower case of the same length: some characters would become two."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(one.lower()[:1] or one for one in text)


def _occurrences(text: str, lowered: str, term: str, most: int) -> list[int]:
    """Where the term is: words where a word or a part of an identifier begins, short words only whole, numbers not
    inside of others."""
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


def excerpt(text: str, at: int, query: str, size: int = EXCERPT) -> str:
    """About ``size`` characters of the window at ``at``, around what the query asks for, at line ends."""
    window = text[at : at + WINDOW]
    lowered = _lowered(window)
    places = sorted((place, term) for term in terms_of(query) for place in _occurrences(window, lowered, term, 20))

    def different(place: int) -> int:
        return len({term for other, term in places if place <= other < place + _CLOSE})

    begin = max((place for place, _ in places), key=different, default=0)
    start = max(0, at + begin - size // 4)
    line = text.rfind("\n", 0, start + 1) + 1
    if start - line <= size // 4:
        start = line
    end = min(len(text), start + size)
    edge = text.rfind("\n", start, end)
    if end < len(text) and edge > start + size // 2:
        end = edge
    return f"{'…' if start else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"
