"""Whether a sentence is worth learning: it must say something about this project that is not obvious. Pure.

Two other implementations abandoned learned advice because it applied everywhere. The gate here rejects such advice: a
sentence must name something in this project, make a claim about it that could turn out false, not be visible at a
glance, and not be known already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from swecli.core.playbook.bullet import LONGEST
from swecli.core.playbook.claims import ungrounded
from swecli.core.playbook.likeness import alike, held_by, sentences, trigrams
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import printable_line

ALIKE: Final = 0.8
"""Share of common trigrams at which two sentences about the same commands and names count as equal."""
SHORTEST: Final = 12


class Verdict(Struct, frozen=True):
    """``reason`` is a clause if the sentence is refused; otherwise empty."""

    reason: str = ""

    @property
    def taken(self) -> bool:
        return not self.reason


class Known(Struct):
    """Known content: texts that the model sees anyway, and learned sentences. ``masked`` masks secrets."""

    texts: Sequence[str] = ()
    learned: Sequence[str] = ()
    masked: Callable[[str], str] = lambda text: text
    _grams: list[frozenset[str]] = field(default_factory=list[frozenset[str]])

    def grams(self) -> list[frozenset[str]]:
        """Trigrams of each sentence in the texts."""
        if not self._grams and self.texts:
            self._grams.extend(trigrams(sentence) for text in self.texts for sentence in sentences(text))
        return self._grams


def judge(content: str, known: Known | None = None, support: float = 0.0) -> Verdict:
    """Whether this sentence may be learned. ``support`` is the bonus from its evidence: ``claims.SAID``,
    ``claims.PROVEN``, or that of its cited events (``support.support``)."""
    known = known or Known()
    if len(content) < SHORTEST or len(content) > LONGEST:
        return Verdict(f"it has {len(content)} characters, not {SHORTEST} to {LONGEST}")
    if printable_line(content) != content:
        return Verdict("it is more than one line of plain text")
    if reason := unfit(content, known.masked):
        return Verdict(reason)
    if reason := ungrounded(content, support):
        return Verdict(reason)
    if _ONE_LOOK.search(content) and not _WHY.search(content):
        return Verdict("a look into the project tells the same")
    grams, codes = trigrams(content), set(_TICKED.findall(content))
    if any(
        alike(grams, trigrams(lesson)) >= ALIKE and codes == set(_TICKED.findall(lesson)) for lesson in known.learned
    ):
        return Verdict("another bullet says the same")
    if any(held_by(grams, sentence_grams) >= ALIKE for sentence_grams in known.grams()):
        return Verdict("the prompt, the instructions or the README say the same")
    return Verdict()


def unfit(content: str, masked: Callable[[str], str] = lambda text: text) -> str:
    """Why a text must not be shown to a model, from any source; empty if it may."""
    if masked(content) != content or _SECRET.search(content):
        return "it contains what looks like a secret"
    loosens = _LOOSENS.search(content)
    if _ORDERS.search(content) or (loosens is not None and not _NEVER.search(content[: loosens.start()])):
        return "it addresses the model instead of describing the project"
    return ""


_TICKED: Final = lazy_pattern(r"`([^`]+)`")
_SECRET: Final = lazy_pattern(
    r"(?i)\b(?:api[_-]?key|secret|token|passwd|password|bearer)\b\s*[=:]\s*\S{4,}|://[^/\s:@]+:[^/\s@]+@"
    r"|\b(?=[A-Za-z0-9+/_-]*\d)(?=[A-Za-z0-9+/_-]*[a-z])(?=[A-Za-z0-9+/_-]*[A-Z])[A-Za-z0-9+/_-]{32,}\b"
)
_ORDERS: Final = lazy_pattern(
    r"(?i)\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|above|prior|earlier|all|any|your"
    r"|system)\b.{0,30}"
    r"\b(?:instructions?|prompts?|rules?|messages?|directives?)\b|\bsystem prompt\b|\byou are (?:now|an?)\b"
    r"|\b(?:auto[- ]?approve|--yolo|jailbreak)\b|<\s*/?\s*(?:(?-i:[a-z][a-z_-]*|[A-Z_-]{2,})|system|user|assistant)\s*>"
)
_LOOSENS: Final = lazy_pattern(
    r"(?i)\b(?:without|skip|bypass|disable)\b.{0,20}\b(?:asking|approval|permission|confirmation|sandbox)\b"
)
_NEVER: Final = lazy_pattern(r"(?i)\b(?:never|not|don'?t|no)\b")
_ONE_LOOK: Final = lazy_pattern(
    r"(?i)^(?:the )?(?:file |class |function |method |module |constant |variable |type |project "
    r"|repo(?:sitory)? |code(?:base)? )?"
    r"[`'\"]?[\w./:-]*[`'\"]?(?:\(\))?,? (?:is|are|lives?|resides?) (?:defined |located |found |implemented "
    r"|declared |stored |written )?(?:in|at|under|inside)"
    r" (?:the )?(?:file |folder |directory |module )?[`'\"]?[\w./-]+[`'\"]?\.?$"
    r"|(?i:^(?:the )?(?:project|repo(?:sitory)?|code ?base|app(?:lication)?|package|folder"
    r"|directory)[^;:]{0,30}? (?:is written in|uses|contains?|has|includes?|consists? of"
    r"|depends on) [^;:]{0,60}\.?$)"
    r"|^[`'\"]?[\w./-]+[`'\"]? (?:exists|contains|holds|has(?! to\b)) (?:the )?[\w ,`./-]{0,50}\.?$"
)
_WHY: Final = lazy_pattern(
    r"(?i)\b(?:because|since|so that|otherwise|or else|must|never|not|only|fails?|breaks?|needs?)\b|;|:\s"
)
