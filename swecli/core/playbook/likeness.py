"""Similarity of two texts, and the best of many for a query: trigrams and BM25, without a model. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from swecli.lazy_pattern import lazy_pattern

_WORD: Final = lazy_pattern(r"[A-Za-z0-9]+")
_CAMEL: Final = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")

STOP_WORDS: Final = frozenset(
    (
        *("a", "about", "after", "again", "all", "also", "always", "an", "and", "any", "are", "as", "at", "be"),
        *("because", "been", "before", "being", "but", "by", "can", "could", "did", "do", "does", "doing"),
        *("done", "don", "dont", "for", "from", "get", "give", "go", "had", "has", "have", "he", "help", "her"),
        *("here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "kindly", "let"),
        *("like", "make", "me", "more", "most", "my", "need", "needs", "new", "no", "not", "now", "of", "off"),
        *("ok", "on", "once", "one", "only", "or", "other", "our", "out", "over", "please", "should", "show"),
        *("so", "some", "still", "such", "sure", "t", "than", "thanks", "that", "the", "their", "them", "then"),
        *("there", "these", "they", "this", "to", "too", "try", "up", "us", "use", "used", "using", "very"),
        *("want", "was", "way", "we", "well", "were", "what", "when", "where", "which", "while", "who", "why"),
        *("will", "with", "work", "works", "would", "yes", "you", "your"),
    )
)


def words(text: str) -> list[str]:
    """Words of a text, with identifiers split, plurals unified, and stop words removed."""
    parts = [part.casefold() for part in _WORD.findall(_CAMEL.sub(" ", text))]
    return [_stem(word) for word in parts if word not in STOP_WORDS and len(word) > 1]


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def trigrams(text: str) -> frozenset[str]:
    padded = f"  {' '.join(text.casefold().split())} "
    return frozenset(padded[start : start + 3] for start in range(len(padded) - 2))


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of common trigrams, 0..1 (Dice)."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def held_by(inner: frozenset[str], outer: frozenset[str]) -> float:
    """Share of the first text's trigrams that the second contains, 0..1."""
    return len(inner & outer) / len(inner) if inner else 0.0


K1: Final = 1.2
B: Final = 0.5


def bm25(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """A score per document; 0 if it contains no word of the query."""
    counts = [Counter(document) for document in documents]
    usual = sum(map(len, documents)) / len(documents) if documents else 0.0
    holding = {word: sum(word in count for count in counts) for word in set(query)}
    rarity = {word: math.log(1 + (len(counts) - held + 0.5) / (held + 0.5)) for word, held in holding.items()}
    return [_score(rarity, count, len(document), usual) for count, document in zip(counts, documents, strict=True)]


def _score(rarity: dict[str, float], count: Counter[str], length: int, usual: float) -> float:
    total = 0.0
    for word, weight in rarity.items():
        times = count.get(word, 0)
        if times:
            total += weight * times * (K1 + 1) / (times + K1 * (1 - B + B * length / (usual or 1.0)))
    return total


def sentences(text: str) -> Iterable[str]:
    """Lines and sentences of a document that are long enough to carry information."""
    parts = (part.strip(" #*->`|\t") for part in re.split(r"\n+|(?<=[.!?])\s+", text))
    return [part for part in parts if 15 <= len(part) <= 400][:2_000]
