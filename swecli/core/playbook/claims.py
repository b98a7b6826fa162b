"""Whether a sentence makes a claim specific to this project, judged by its form. Pure.

Each trait of a sentence (a word, a pair of words, the form of a name, a kind of claim) has a weight, and the sum
decides. The weights are learned from labelled sentences: ``scripts/learn_weights.py`` writes ``weights_of_traits.txt``.
Names count only by their form, so the weights contain no project.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from swecli.core.playbook.specificity import (
    MILD,
    is_common,
    listed,
    strip_ends,
    weighed,
    weight_of_code,
    weight_of_piece,
)
from swecli.lazy_pattern import lazy_pattern

ENOUGH: Final = 0.8
"""Sum at which a sentence counts as specific. Advice by an unseen author reaches it in one of a hundred cases."""
SAID: Final = 0.9
"""Bonus for a sentence that the user wrote down."""
CORRECTED: Final = 3.1
"""Bonus for a sentence by which the user corrected something; wishes need less specificity."""

PROVEN: Final = math.inf
"""Bonus for a sentence that code derived from events."""

_TICKED: Final = lazy_pattern(r"`([^`]+)`")
_TOKEN: Final = lazy_pattern(r"`[^`]+`|[^\s`]+")
_NUMBER: Final = lazy_pattern(r"\d[\d.,]*%?")
_LIKE_CODE: Final = lazy_pattern(r"[/_.\d=@<>-]|[a-z][A-Z]|^[A-Z]{2,}")
_HYPHENED: Final = lazy_pattern(r"[A-Za-z]+-[a-z-]+")
_NAME: Final = "◇"

_KINDS: Final = {
    "fails": lazy_pattern(
        r"(?i)(?<!can )(?<!may )(?<!might )(?<!could )\b"
        r"(?:fails?|breaks?|broken|crash(?:es)?|hangs?|deadlocks?|blocks|throws|raises|refuse[sd]?|rejects?|rejected|undid"
        r"|drops|loses|lost|lacks?|miss(?:es|ing)|skip(?:s|ped)|ignore[sd]|no effect|vanish(?:es)?|leaves out"
        r"|times? out|exits with|killed|stale|wrong(?:ly)?|dead|fehlt|fehl|took|apply|forbidden)\b"
    ),
    "demands": lazy_pattern(
        r"(?i)\b(?:must|needs?|needed|requires?|required|unless|until|or|else|otherwise|without|before"
        r"|muss|müssen|brauch(?:t|en)|sonst|vor)\b"
    ),
    "contrasts": lazy_pattern(
        r"(?i)\b(?:not?|never|don'?t|only|instead|rather|but|except|while|plain|alone|nicht|statt|nur|kein\w*)\b|!="
    ),
    "follows": lazy_pattern(r"(?i)\b(?:because|since|as|so|therefore|where|which|such|denn|weil)\b|[;=]|:\s|->"),
    "states": lazy_pattern(
        r"(?i)\b(?:is|are|was) (?:\w+ )?\w+(?:ed|en|pt|lt|un|et|ut)\b"
        r"|\b(?:is|are) (?:in|on|at|from|called|what|the|how|a|an)\b"
        r"|\b(?:checks|compares|enforces|listens|lives?|reads|writes|returns|converts|maps|fakes|replaces|runs|has|have"
        r"|contains|keeps?|comes?|fetch(?:es)?|sind|läuft|ist)\b"
    ),
    "here": lazy_pattern(r"(?i)\b(?:here|locally|CI|nightly|the user|nutzer|our|this (?:repo\w*|project|machine))\b"),
    "opinion": lazy_pattern(
        r"(?i)\b(?:usual(?:ly)?|often|most(?:ly)?|common(?:ly)?|typical(?:ly)?|many|nearly|in general|by default|should"
        r"|may|might|probably|good|better|best|faster|easier|clean|clear|readable|maintainable|meaningful|careful(?:ly)?"
        r"|thoroughly|gracefully|properly|completely|correctly|in production|suspicious|helper functions|of thumb)\b"
        r"|\bmeans? that\b|\bnothing breaks\b"
    ),
    "purpose": lazy_pattern(
        r"(?i)(?:\bin order|,| so that| ◇|\w) to (?:see|find|get|avoid|make|show|list|run|check|verify"
        r"|build|fix|debug|test|learn|keep|catch|create|follow|look|stop|prevent|ensure|reach|undo|update|view|confirm"
        r"|understand|share|copy|free|clean|recover|remove|replace|add|inspect|measure|handle|sample|compare|release"
        r"|save|improve|reduce|speed)\b"
    ),
    "framework": lazy_pattern(r"^(?:In|With|For|Since|From) [A-Z][\w.+#]*(?: [\d.]+)?,"),
    "chore": lazy_pattern(
        r"(?i)^(?:\W*(?:always|please|first|make sure(?: to)?|be sure to|remember(?: to)?|you should|try to"
        r"|never forget to|(?:before|after|when|while|if) [^,]+,)\W+)*"
        r"(?:list|check|verify|ensure|confirm|read|re-?read|open|view|inspect|review|examine|understand|search|explore"
        r"|look|validate|test|back ?up|study|consult|see|find|browse|document|handle|be careful|take care|pay attention"
        r"|make a|add (?:type|tests?|comments?|doc)|write (?:unit )?(?:tests?|doc))\b"
        r"|^run ◇ (?:before|after|when)\b[^◇]*$"
    ),
    "placed": lazy_pattern(
        r"^(?!The )(?:(?:Always|Never|Please|Do not|Don't) )?\w+ (?:[\w-]+ ){1,5}(?:in|of|for|from|under|inside|within)"
        r" ◇(?=\W*$|[,;.] | (?:with|by|so|because|to|when|before|after|if)\b)"
    ),
}
"""Kinds of claims and of advice. A conditional statement ("when ...,") is not a claim about its condition."""
_ADVICE: Final = frozenset(("opinion", "purpose", "framework", "chore", "placed"))
_CONDITION: Final = lazy_pattern(r"(?i)^(?:if|when|whenever|before|after|once|wenn|bei|vor|nach)\b[^,]*,")
_BEGINS: Final = lazy_pattern(r"(?!◇|(?:The|A|An|All|Every|Each|No|CI|This|These|Its?|\w+s|User)\b)\w")
_FINITE: Final = lazy_pattern(
    r"^\w+(?: [\w-]+){0,3}(?: (?:in|of|for|from|under) ◇)? (?:is|are|was|must|needs?|has|have|can't|takes?)\b"
)


def specific_tokens(content: str) -> list[str]:
    """The parts of a sentence that are specific to this project."""
    return list(weighed(content))


def names_something(content: str) -> bool:
    """Whether a sentence names anything at all: a path, code, a symbol, a tool that projects choose."""
    named = (match[0] for match in _TOKEN.finditer(content))
    return _is_choice(content) or any(_LIKE_CODE.search(strip_ends(token)) or token[0] == "`" for token in named)


def ungrounded(content: str, support: float = 0.0) -> str:
    """Why a sentence is not specific to this project; empty if it is. ``support`` is the bonus from its evidence."""
    if claim(content) + support >= ENOUGH or _is_choice(content):
        return ""
    if not any(weight > MILD for weight in weighed(content).values()):
        return "it names nothing specific to this project: no path, command, symbol, version or error"
    return "it is general advice: it makes no claim that could prove false"


def claim(content: str) -> float:
    """How much a sentence looks like a claim about a project, as log odds."""
    weights = _weights()
    return weights[""] + sum(weights.get(trait, 0.0) for trait in traits(content))


def _is_choice(content: str) -> bool:
    """Whether the sentence chooses between two tools, which every project decides for itself."""
    tools = listed("tools_of_choice")
    pairs = ((match[1].casefold(), match[2].casefold()) for match in _CONTRAST.finditer(content))
    reasoned = _GIVEN.search(content) or _KINDS["opinion"].search(content)
    return not reasoned and any(first in tools and other in tools for first, other in pairs)


_CONTRAST: Final = lazy_pattern(
    r"(?i)\b([\w+@-]+)`?(?:, (?:and )?(?:not|never)|,? (?:instead of|rather than)(?=.*(?:\b(?:here|this|our)\b|/`)))"
    r" (?:with |use |the |using |by )?`?([\w+@-]+)"
)
_GIVEN: Final = lazy_pattern(r"(?i)\b(?:because|since|as|otherwise)\b|^an? ")


@cache
def _weights() -> dict[str, float]:
    """Weights by trait; the empty trait is the bias."""
    text = Path(__file__).with_name("weights_of_traits.txt").read_text(encoding="utf-8")
    lines = (line.split(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {trait: float(weight) for weight, trait in lines}


def traits(content: str) -> frozenset[str]:
    """The claims of a sentence, each by a short name."""
    words = list(_words(content))
    bare = [_NAME if word.startswith(_NAME) else word for word in words]
    claims = {f"word {word}" for word in words}
    claims.update(f"pair {word} {other}" for word, other in zip(("^", *bare), (*bare, "$"), strict=True))
    claims.add(f"first {bare[0] if bare else ''}")
    claims.add(f"names {min(4, bare.count(_NAME))}")
    claims.add(f"length {min(6, len(words) // 5)}")
    claims.add(f"weight {min(8, sum(weighed(content).values()))}")
    claims.update(f"kind {kind}" for kind in _kinds(content))
    return frozenset(claims)


def _words(content: str) -> Iterator[str]:
    """Lower-case words and marks of a sentence; names are replaced by their form."""
    for match in _TOKEN.finditer(content):
        token = match[0]
        if token.startswith("`") and len(token) > 1:
            code = token.strip("`")
            yield f"{_NAME}{'command' if ' ' in code else 'code'}{weight_of_code(code)}"
            continue
        word = strip_ends(token).lstrip("(\"'")
        if word:
            yield from _word(word)
        if token[-1] in ".,;:!?":
            yield token[-1]


def _word(word: str) -> Iterator[str]:
    weight = weight_of_piece(word)
    if weight:
        yield f"{_NAME}bare{weight}"
    elif _NUMBER.fullmatch(word):
        yield "#"
    elif _LIKE_CODE.search(word) and not _HYPHENED.fullmatch(word):
        yield f"{_NAME}bare0"
    else:
        if is_common(word) and len(word) > 2:
            yield "known-tool"
        yield word.casefold()


def _kinds(content: str) -> Iterator[str]:
    bare = _TICKED.sub(_NAME, content)
    fact = _CONDITION.sub("", bare)
    for kind, pattern in _KINDS.items():
        if pattern.search(bare if kind in _ADVICE else fact):
            yield kind
    if _BEGINS.match(bare) is not None and _FINITE.search(bare.partition(";")[0]) is None:
        yield "order"
