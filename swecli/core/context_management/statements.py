"""Statements of the conversation: sentences that say something definite, each with a weight. Pure.

A sentence weighs more if it decides, rejects or names a cause, and with each name and number in it; an announcement of
the next step, or a report that one is done, weighs less. Names and numbers count in any language. Of many statements
those weigh more whose words are in few others: a session's routine repeats its words, a fact brings its own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

LONGEST = 300
"""Characters of a statement."""
LEAST_WORDS = 3
MOST_READ = 20_000
"""Characters of a text to read."""
FINDING = 2
"""What a decision, a rejection or a cause weighs."""
MOST_NAMES = 2
RARE = 4.0
"""What a statement weighs more if no other one has any of its words."""
_PASSING = 2
"""What an announcement of the next step, or a report that one is done, takes away."""

_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+|\n+")
_FINDING = lazy_pattern(
    r"\b(?:because|root cause|caused by|(?:the|its) (?:cause|reason|culprit)|due to|turns? out|stems? from|comes? from|"
    r"the (?:real |actual )?(?:bug|problem|issue|error|failure|mistake) (?:is|was|lies)|fixed (?:it |this )?by|"
    r"decided|chose|chosen|going with|(?:will|'ll) (?:use|keep)|instead of|rather than|reject(?:ed|ing)?|ruled out|"
    r"rule out|dismissed|(?:does|did|will|would) ?n[o']t (?:work|help|suffice)|not an option|won't work|dead end|"
    r"therefore|confirmed|conclusion|it follows)\b",
    re.IGNORECASE,
)
_ANNOUNCEMENT = lazy_pattern(
    r"(?:(?:ok(?:ay)?|good|great|right|so|now|next|then|first)\b[ ,:;]*)*"
    r"(?:let(?:'?s| me| us)|i(?:'ll| will|'m going to| am going to)|we(?:'ll| will)|time to|on to"
    r"|(?:check|look|read|runn|search|open|updat|add|writ|verify|test|mov)ing)\b",
    re.IGNORECASE,
)
_DONE = lazy_pattern(
    r"(?:is|are|was|were|have been|has been)(?: now| all)? (?:done|finished|completed?|ready)\W*$", re.IGNORECASE
)
"""The end of a sentence that only reports that the work went on: the record has that."""
_NAME = lazy_pattern(
    r"`[^`\n]{2,60}`|[\w-]*\w(?:[/_]|\.[A-Za-z]|[a-z][A-Z]|-\d|::)[\w./:-]*|(?<=[\w,;] )[A-Z]\w+|\b[A-Z]{2,}\w*\b"
)
"""Code, a path, a compound word, a proper name within a sentence, an abbreviation."""
_NUMBER = lazy_pattern(r"(?<![\w.])\d[\d.,]*\w{0,3}\b")
_WORD = lazy_pattern(r"[\w'-]+")


class Statement(Struct, frozen=True):
    text: str
    weight: int


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a text, each on one line."""
    return (" ".join(sentence.split()) for sentence in _SENTENCE.split(text))


def statements(text: str, *, by_user: bool = False) -> tuple[Statement, ...]:
    """The statements of a text in order. A question makes none. What the user announces is a request or a decision, no
    step that passes."""
    result: list[Statement] = []
    for sentence in sentences(text[:MOST_READ]):
        clean = sentence.lstrip("#-*> ")
        if len(clean) <= LONGEST and not clean.endswith("?") and (weight := _weight(clean, by_user)) > 0:
            result.append(Statement(clean, weight))
    return tuple(result)


def _weight(sentence: str, by_user: bool) -> int:
    if len(_WORD.findall(sentence)) < LEAST_WORDS:
        return 0
    names = min(MOST_NAMES, len(_NAME.findall(sentence)))
    finding = FINDING if _FINDING.search(sentence) else 0
    passing = _PASSING if (_ANNOUNCEMENT.match(sentence) and not by_user) or _DONE.search(sentence) else 0
    return 1 + names + finding + (_NUMBER.search(sentence) is not None) - passing


def rarity(texts: Collection[str]) -> dict[str, float]:
    """What each of these statements weighs more for words that few of the others have, up to ``RARE``. Numbers count
    as none: a routine has another one each time."""
    words = {text: {word for word in _WORD.findall(text.casefold()) if not word.isdigit()} for text in texts}
    common = Counter(word for found in words.values() for word in found)
    most = math.log(len(words) + 1)
    return {
        text: RARE * sum(1 - math.log(common[word]) / most for word in found) / len(found) if found else 0.0
        for text, found in words.items()
    }


def closeness(terms: Iterable[str], text: str) -> float:
    """How many of the terms a text has: 1 for a word that begins with a term, less for a related word, such as another
    form of it."""
    words = {word.casefold() for word in _WORD.findall(text.replace("_", " ").replace(".", " "))}
    return sum(max((_related(term, word) for word in words if word[:4] == term[:4]), default=0.0) for term in terms)


def _related(term: str, word: str) -> float:
    """1 or less, of two words with the same beginning of four letters."""
    if word.startswith(term):
        return 1.0
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(term, word, strict=False)))
    return 0.6 if common >= 0.6 * min(len(term), len(word)) else 0.0
