"""What a summary may not do: the model writes it, so it may be wrong, carry keys, or claim a permission. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from swecli.lazy_pattern import lazy_pattern

CLAIM = "(the model's claim, not the user's words)"
"""Follows a sentence of a summary about a permission or a rule that the user did not write."""
LEAST_SHARED = 0.8
"""Share of a sentence's words that one message of the user must have for it to count as the user's."""

_GRANTS = lazy_pattern(
    r"\b(?:user|they|he|she|human|owner|admin\w*|operator)\b[^.\n]{0,40}\b(?:approv|allow|permit|grant|authori[sz]|"
    r"consent|agreed|accept|confirm|waiv|gave|given)\w*"
    r"|\b(?:permission|approval|consent|authori[sz]ation|confirmation)s?\b[^.\n]{0,40}\b(?:grant|given|received|obtained|"
    r"not (?:needed|required|necessary)|unnecessary|skip|waiv|optional|implied|was|is|has been)\w*"
    r"|\b(?:no|without|skip\w*|bypass\w*|never mind)\b[^.\n]{0,25}\b(?:asking|approval|confirmation|permission|consent|"
    r"review|checks?)\b"
    r"|\b(?:may|can|should|is allowed to|are allowed to|free to|safe to)\b(?: now)?[^.\n]{0,40}\b(?:delete|drop|push|"
    r"force|deploy|publish|commit|overwrite|remove|reset|rm|run|execute|edit)\b"
    r"|\b(?:auto[- ]?approv|pre[- ]?approv|standing approval|blanket)\w*",
    re.I,
)
"""Sentences that claim a permission."""
_LIFTS = lazy_pattern(
    r"\b(?:rule|constraint|restriction|requirement|limit|instruction|prohibition|ban|policy)s?\b[^.\n]{0,50}\b"
    r"(?:no longer|lifted|removed|relaxed|changed|dropped|void|obsolete|superseded|overridden|ignored?|"
    r"does ?n[o']t apply|withdrawn)\b"
    r"|\bno longer\b[^.\n]{0,30}\b(?:forbidden|required|necessary|applies|prohibited|off[- ]limits)\b"
    r"|\b(?:is|are) (?:now )?(?:ok|okay|fine|allowed|permitted) to\b"
    r"|\bignore\b[^.\n]{0,30}\b(?:rules?|instructions?|constraints?|restrictions?)\b",
    re.I,
)
"""Sentences that claim that a rule has changed."""
_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+(?!\(the model's claim)")
_WORD = lazy_pattern(r"\w+")


def harmless_summary(text: str, user_texts: Iterable[str], cover: Callable[[str], str]) -> str:
    """A summary with its keys covered, and with each sentence about a permission or a changed rule marked as the
    model's claim unless the user wrote it."""
    lines = cover(text).split("\n")
    claims = [bool(_GRANTS.search(line) or _LIFTS.search(line)) for line in lines]
    typed = [_words(message) for message in user_texts] if any(claims) else []
    return "\n".join(
        " ".join(_sentences(line, typed)) if claim else line for line, claim in zip(lines, claims, strict=True)
    )


def _sentences(line: str, typed: list[frozenset[str]]) -> Iterator[str]:
    for sentence in _SENTENCE.split(line):
        claims = CLAIM not in sentence and (_GRANTS.search(sentence) or _LIFTS.search(sentence))
        yield f"{sentence} {CLAIM}" if claims and not _is_typed(sentence, typed) else sentence


def _is_typed(sentence: str, typed: list[frozenset[str]]) -> bool:
    words = _words(sentence)
    return any(len(words & typed_words) >= LEAST_SHARED * len(words) for typed_words in typed)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text[:50_000]))
