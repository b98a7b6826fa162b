"""From a text to the files it names, the files it is about, and a few lines that point to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Final

from msgspec import Struct

from swecli.core.retrieval.index import Definition, Field, Index
from swecli.core.retrieval.named import Files, Named
from swecli.core.retrieval.ranking import (
    STEMMED_TASK_WORDS,
    Corpus,
    Query,
    Words,
    query_of,
    scored,
    telling,
)
from swecli.core.retrieval.terms import identifiers, terms_of
from swecli.safe_text import printable_name

MOST_POINTERS: Final = 10
MOST_TOKENS: Final = 300
KEPT: Final = 50
"""Ranked places to keep."""
FLOOR: Final = 7.0
"""Least evidence for a pointer: the sum of the rarities of the words in a file, each the natural logarithm of one over
the share of files that have it."""
FLOOR_OF_FEW: Final = 8.0
"""The same for a text of at most ``FEW`` words without names as in code: two words are more likely there by chance than
as a subject."""
FEW: Final = 4
_COMMON_RARITY: Final = 1.0
"""Words of at most this rarity, which more than a third of the files have, do not count."""
_LEAST_SHARE_OF_BEST: Final = 0.35
"""Least score of a pointer, relative to the best file."""
_UNSURE: Final = 0.5
_CALLER_WEIGHT: Final = 0.7
"""Weight of a frame relative to the one that it called."""
_FIELDS: Final[tuple[Field, ...]] = ("b", "s", "p")
_CHARACTERS_PER_TOKEN: Final = 3.0
"""Least characters of paths and names per token."""


class Ranked(Struct, frozen=True):
    path: str
    score: float
    symbol: str = ""
    line: int = 0

    def __str__(self) -> str:
        path = printable_name(self.path)
        location = f"{path}:{self.line}" if self.line else path
        return f"{location} {self.symbol}".rstrip()


class Retrieval(Struct, frozen=True):
    """``named`` are files that the text names. ``ranked`` are the files that it is about, the likeliest first;
    ``evidence`` is the weight of its words for the likeliest; ``pointers`` are the ranked files worth showing."""

    named: tuple[Named, ...] = ()
    ranked: tuple[Ranked, ...] = ()
    pointers: tuple[Ranked, ...] = ()
    evidence: float = 0.0

    @property
    def mentioned_paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.named if file.sure)

    @property
    def tokens(self) -> int:
        """Upper estimate of the pointers' tokens."""
        return sum(_cost(pointer) for pointer in self.pointers)


def _cost(pointer: Ranked) -> int:
    return round(len(str(pointer)) / _CHARACTERS_PER_TOKEN) + 1


def retrieve(corpus: Corpus | Index, text: str, files: Files | None = None) -> Retrieval:
    """Files that a text names and is about. Takes milliseconds."""
    corpus = Corpus(corpus) if isinstance(corpus, Index) else corpus
    named = tuple((files or Files(path for _, path in corpus.paths())).named_by(text))
    numbers = {path: number for number, path in corpus.paths()} if named else {}
    query = telling(corpus, query_of(text))
    worth = {numbers[path]: much for path, much in _worth(named) if path in numbers}
    if not query.terms and not worth:
        return Retrieval(named)
    words = Words(corpus, query)
    total = scored(corpus, query, words, worth)
    likely = nlargest(2 * KEPT, total, key=total.__getitem__)
    best = sorted(likely, key=lambda number: (-total[number], corpus.path(number)))[:KEPT]
    evidence = max((_evidence(words, query, number) for number in best[:3]), default=0.0)
    ranked = [_placed(corpus, words, query, number, total[number], position) for position, number in enumerate(best)]
    sure = {file.path for file in named if file.sure}
    floor = FLOOR_OF_FEW if query.words <= FEW and not query.names else FLOOR
    return Retrieval(named, tuple(ranked), tuple(_pointers(ranked, evidence, floor, sure)), evidence)


def _worth(named: Sequence[Named]) -> Iterator[tuple[str, float]]:
    """Weight of each named file; of uncertain frames the last ones, close to the failure, count most."""
    frames = [file.path for file in named if file.frame and not file.sure]
    for file in named:
        if file.sure or not file.frame:
            yield file.path, 1.0 if file.sure else _UNSURE
    for position, path in enumerate(reversed(frames)):
        yield path, _UNSURE * _CALLER_WEIGHT**position


def _pointers(ranked: Sequence[Ranked], evidence: float, floor: float, sure: Iterable[str]) -> list[Ranked]:
    """Ranked files worth showing: above the floor, close to the best, and not attached anyway."""
    if evidence < floor or not ranked:
        return []
    pointers: list[Ranked] = []
    left = MOST_TOKENS - 40  # for the surrounding words
    for file in ranked[:MOST_POINTERS]:
        if file.path in sure or file.score < _LEAST_SHARE_OF_BEST * ranked[0].score:
            continue
        left -= _cost(file)
        if left < 0:
            break
        pointers.append(file)
    return pointers


def _evidence(words: Words, query: Query, number: int) -> float:
    """Weight of the words that a file has: rare ones count much, common ones nothing. Names written as in code may be
    rare in programs alone; any other word must be so everywhere."""
    total = 0.0
    named = {term for name in query.names for term in terms_of(name)}
    for term in query.terms.keys() - STEMMED_TASK_WORDS:
        fields: list[Field] = [where for where in _FIELDS if number in words.holders(where, term)]
        told = [words.rarity_in_all(where, term) for where in fields]
        if term in named:
            told = list(map(max, told, [words.rarity(where, term) for where in fields]))
        if told and min(told) > _COMMON_RARITY:
            total += min(told)
    return total


def _placed(corpus: Corpus, words: Words, query: Query, number: int, score: float, position: int) -> Ranked:
    """A file with its best matching definition; only for files that may be shown."""
    name, line = "", 0
    if position < MOST_POINTERS:
        name, line = _best_definition(corpus.definitions(number), words, query)
    return Ranked(corpus.path(number), round(score, 4), name, line)


def _best_definition(defined: Sequence[Definition], words: Words, query: Query) -> tuple[str, int]:
    """The definition with the name closest to the query; empty without any match."""
    rarity: Mapping[str, float] = {term: words.rarity("s", term) * weight for term, weight in query.terms.items()}
    best, chosen = 0.0, ("", 0)
    for name, line in defined:
        terms = {term for word in identifiers(name) for term in terms_of(word)}
        score = sum(rarity.get(term, 0.0) for term in terms) / (1 + 0.15 * len(terms))
        score += 4.0 if name in query.names else 0.0
        if score > best:
            best, chosen = score, (name, line)
    return chosen
