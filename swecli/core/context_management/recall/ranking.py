"""Ranked search over texts without an index: BM25 over overlapping windows. Pure.

Nothing is kept between two searches. Terms are looked for with ``str.find``, so that a search over some megabytes
takes tens of milliseconds and parts of identifiers, of paths and of languages without blanks are found as well.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
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
"""What a term in the description counts, as occurrences in each window."""
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
    frequencies: Counter[str] = Counter()
    windows = 0
    found: list[tuple[Document, dict[int, dict[str, float]]]] = []
    for document in documents:
        scored = _windows(document, terms)
        windows += 1 + max(0, len(document.text) - 1) // _STRIDE
        for counts in scored.values():
            frequencies.update(counts.keys())
        if scored:
            found.append((document, scored))
    phrase = " ".join(query.casefold().split())
    ranked: list[Ranked] = []
    for document, scored in found:
        scores = {at: _score(counts, document, frequencies, windows) for at, counts in scored.items()}
        at = min(scores, key=lambda start: (-scores[start], start))
        quoted = len(terms) > 1 and phrase in " ".join(document.text[at : at + 2 * WINDOW].casefold().split())
        ranked.append(Ranked(document, scores[at] * (_PHRASE if quoted else 1.0), at))
    ranked.sort(key=lambda one: (-one.score, one.document.id))
    return ranked[:limit]


def _windows(document: Document, terms: Sequence[str]) -> dict[int, dict[str, float]]:
    """Occurrences of each term by window, for windows that have any; by the window's first character."""
    text, about = _lowered(document.text), document.about.lower()
    scored: dict[int, dict[str, float]] = {}
    named = [term for term in terms if _occurrences(about, term, 1)]
    for term in terms:
        for at in _occurrences(text, term, MOST_OCCURRENCES):
            first = at // _STRIDE * _STRIDE
            for start in (first - _STRIDE, first) if first else (first,):
                counts = scored.setdefault(start, {})
                counts[term] = counts.get(term, 0.0) + 1.0
    if named and not scored:
        scored[0] = {}
    for counts in scored.values():
        for term in named:
            counts[term] = counts.get(term, 0.0) + _ABOUT
    return scored


def _lowered(text: str) -> str:
    """Lower case of the same length: some characters would become two."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(one.lower()[:1] or one for one in text)


def _occurrences(text: str, term: str, most: int) -> list[int]:
    """Where the term is. Short words and numbers must stand alone, longer words may be part of another."""
    places: list[int] = []
    number, short = term.isdigit(), len(term) <= 3 and term.isascii()
    at = text.find(term)
    while at >= 0 and len(places) < most:
        before = text[at - 1] if at else " "
        after = text[at + len(term)] if at + len(term) < len(text) else " "
        joined = (before.isdigit() or after.isdigit()) if number else short and (before.isalnum() or after.isalnum())
        if not joined:
            places.append(at)
        at = text.find(term, at + len(term))
    return places


def _score(counts: dict[str, float], document: Document, frequencies: Counter[str], windows: int) -> float:
    length = min(WINDOW, len(document.text)) / WINDOW
    total = 0.0
    for term, count in counts.items():
        rare = math.log(1 + (windows - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        total += max(rare, 0.01) * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length))
    return total


def excerpt(text: str, at: int, query: str, size: int = EXCERPT) -> str:
    """About ``size`` characters of the window at ``at``, around what the query asks for, at line ends."""
    window = _lowered(text[at : at + WINDOW])
    places = sorted(place for term in terms_of(query) for place in _occurrences(window, term, 20))
    if places:  # the stretch with the most occurrences
        begin = max(places, key=lambda place: sum(place <= other < place + size * 2 // 3 for other in places))
    else:
        begin = 0
    start = max(0, at + begin - size // 4)
    line = text.rfind("\n", 0, start + 1) + 1
    if start - line <= size // 4:
        start = line
    end = min(len(text), start + size)
    edge = text.rfind("\n", start, end)
    if end < len(text) and edge > start + size // 2:
        end = edge
    return f"{'…' if start else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"
