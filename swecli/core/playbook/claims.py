"""Whether a sentence claims something of what it names that holds in this project and not everywhere. Pure.

Told by the form of a sentence: what it names that is of this project (``specificity``), how many kinds of claims it
makes that may turn out false, and what speaks for advice, such as an order whose only tie to a file is that it is to be
done there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from swecli.core.playbook.likeness import words
from swecli.core.playbook.specificity import HARD, MILD, is_common, listed, weighed

_TICKED: Final = re.compile(r"`([^`]+)`")
_BARE: Final = re.compile(r"`[^`]+`|\S*[/_]\S*")
_ENOUGH: Final = 4
"""What names and claims have to weigh together: a path and one claim, two symbols and one, a symbol that fails."""
_MOST_MILD: Final = 3
_NAMED: Final = 2
"""What names have to weigh by themselves."""

_LOCAL: Final = re.compile(
    r"^`[^`]+`(?:[^`;:]* and `[^`]+`)*[^`;:]* fails? here\b[^`]*`[^`]+`"
    r"|^Run `[^`]+` rather than `[^`]+`: the user|^`[^`]+` takes about \d+ s here\b"
    r"|^Edits of `[^`]+` did not apply \d+ times|^The user took back a change of `|^`[^`]+` took \d+ reads of `"
    r"|^A search for `[^`]+` finds nothing; its code is in `|^`[^`]+` checks `.*: it failed before"
    r"|^`[^`]+` (?:needs|requires|must (?:be )?(?:run|called|started) with"
    r"|(?:builds|runs|works|starts|passes) only with) `(?:-[^`]{4,}|[A-Z][A-Z0-9_]+=[^`]+)`"
    r"|\bflag `-[^`]+` is (?:needed|required) (?:for|by|with) `[^`]+`"
)
"""What happened here: a way that failed and one that worked, what has to be added, what edits and searches came to.
All that is named may be common, but not that it is so."""
_WAY: Final = re.compile(
    r"^`[^`]+` fails(?: \([^`]*\)[^`]*|[;,:] [^`]{0,30})`[^`]+`|(?i:^(?:always )?(?:use|run) `[^\s`]+ [^`]+` here\b)"
)
"""The same, or a whole command as the way that it is done here, where some part must not be common."""
_SAME: Final = re.compile(r"^`([^\s`]+) [^`]+`[^;:]*[;:] use `\1 [^`]+`\W*$")
"""A command, what is wrong with it, and the same with something else."""
_FAILS: Final = re.compile(
    r"(?i)(?<!can )(?<!may )(?<!might )(?<!could )\b"
    r"(?:fails?|breaks?|broken|crash(?:es)?|hangs?|deadlocks?|blocks|throws|raises|refuse[sd]?|rejects?|rejected"
    r"|drops|loses|lost|lacks?|miss(?:es|ing)|skip(?:s|ped)|ignore[sd]|no effect|vanish(?:es)?|leaves out|times? out"
    r"|exits with|killed|stale|wrong(?:ly)?|dead|fehlt|fehl|took|apply|forbidden)\b"
)
_CLAIMS: Final = (
    re.compile(
        r"(?i)\b(?:must|needs?|needed|requires?|required|unless|until|or|else|otherwise|without|before"
        r"|muss|müssen|brauch(?:t|en)|sonst|vor)\b"
    ),
    re.compile(
        r"(?i)\b(?:not?|never|don'?t|only|instead|rather|but|except|while|plain|alone|nicht|statt|nur|kein\w*)\b|!="
    ),
    re.compile(r"(?i)\b(?:because|since|as|so|therefore|where|which|such|denn|weil)\b|[;=]|:\s|->"),
    re.compile(
        r"(?i)\b(?:is|are|was) (?:\w+ )?\w+(?:ed|en|pt|lt|un|et|ut)\b"
        r"|\b(?:is|are) (?:in|on|at|from|called|what|the|how|a|an)\b"
        r"|\b(?:checks|compares|enforces|listens|lives?|reads|writes|returns|converts|maps|fakes|replaces|runs|has|have"
        r"|contains|keeps?|comes?|fetch(?:es)?|sind|läuft|ist)\b"
    ),
    re.compile(r"(?i)\b(?:here|locally|CI|nightly|the user|nutzer|our|this (?:repo\w*|project|machine))\b"),
)
"""Kinds of claims that may turn out false: a demand, another way that is not it, a consequence, a state, whose."""
_TIP: Final = re.compile(
    r"(?i)^(?:(?:always|please|never|do not|don't|you can|consider|remember to|make sure to|be sure to|immer)\W+)*"
    r"(?:use|prefer|avoid|try|wrap|override|derive|return|declare)\b|[;,] (?:so )?use ◇[^◇]*$"
)
_CHORE: Final = re.compile(
    r"(?i)^(?:\W*(?:always|please|first|make sure(?: to)?|be sure to|remember(?: to)?|you should|try to|never forget to"
    r"|(?:before|after|when|while|if) [^,]+,)\W+)*"
    r"(?:list|check|verify|ensure|confirm|read|re-?read|open|view|inspect|review|examine|understand|search|explore|look"
    r"|validate|test|back ?up|study|consult|see|find|browse|document|handle|be careful|take care|pay attention|make a"
    r"|add (?:type|tests?|comments?|doc)|write (?:unit )?(?:tests?|doc))\b"
    r"|^run ◇ (?:before|after|when)\b[^◇]*$"
)
_AGAINST: Final = (
    re.compile(
        r"(?i)\b(?:usual(?:ly)?|often|most(?:ly)?|common(?:ly)?|typical(?:ly)?|many|nearly|in general|by default|should"
        r"|may|might|probably|good|better|best|faster|easier|clean|clear|readable|maintainable|meaningful|careful(?:ly)?"
        r"|thoroughly|gracefully|properly|completely|correctly|in production|suspicious|helper functions|of thumb)\b"
        r"|\bmeans? that\b|\bnothing breaks\b"
    ),
    re.compile(
        r"(?i)(?:\bin order|,| so that| ◇|\w) to (?:see|find|get|avoid|make|show|list|run|check|verify"
        r"|build|fix|debug|test|learn|keep|catch|create|follow|look|stop|prevent|ensure|reach|undo|update|view|confirm"
        r"|understand|share|copy|free|clean|recover|remove|replace|add|inspect|measure|handle|sample|compare|release|save|improve|reduce|speed)\b"
    ),
    re.compile(r"^(?:In|With|For|Since|From) [A-Z][\w.+#]*(?: [\d.]+)?,"),
)
"""What speaks for advice that holds everywhere: an opinion, a purpose as in a manual, a language or a framework as its
scope."""
_FILE: Final = re.compile(r"[\w@.-]+[/.][\w*-][\w/.*-]*")
"""A name of a file or folder, whatever it weighs."""
_DOES: Final = re.compile(
    r"(?:The (?:\w+ ){0,3})?◇ (?!contains|holds|shows|lists|explains|exports)"
    r"(?:(?:also|only|still|always|silently|\w+ly) )?\w+[^su\W]s\b"
)
"""What is named does something, whatever it is."""
_KIND: Final = re.compile(r"(?:The \w+|[A-Z]\w+s (?:in|of)) ◇ (?:is|are|exists?|has|have)\b")
"""What is named, or a part of it, is of some kind."""
_PLACED: Final = re.compile(
    r"^(?!The )(?:(?:Always|Never|Please|Do not|Don't) )?\w+ (?:[\w-]+ ){1,5}(?:in|of|for|from|under|inside|within) ◇"
    r"(?=\W*$|[,;.] | (?:with|by|so|because|to|when|before|after|if)\b)"
)
"""An order whose only tie to what is named is that it is to be done there."""
_ORDER: Final = re.compile(
    r"(?i)^(?:(?:always|please|first) )?(?:use|run|try|prefer|call|build with|start with) ◇[^◇;]*$"
)
_CONDITION: Final = re.compile(r"(?i)^(?:if|when|whenever|before|after|once|wenn|bei|vor|nach)\b[^,]*,")
_CONTRAST: Final = re.compile(
    r"(?i)\b([\w+@-]+)`?(?:, (?:and )?(?:not|never)|,? (?:instead of|rather than)(?=.*(?:\b(?:here|this|our)\b|/`)))"
    r" (?:with |use |the |using |by )?`?([\w+@-]+)"
)
_GIVEN: Final = re.compile(r"(?i)\b(?:because|since|as|otherwise)\b|^an? ")


def specific_tokens(content: str) -> list[str]:
    """The parts of a sentence that are of this project."""
    return list(weighed(content))


def ungrounded(content: str) -> str:
    """Why a sentence says nothing that holds in this project and not everywhere; empty where it does.

    It has to name something of this project, and to claim something about it that may turn out false. What is said of
    common tools alone counts only as a choice between two of them, or as what failed here and what worked.
    """
    if _LOCAL.search(content) or _is_choice(content):
        return ""
    weights = weighed(content)
    if weights and (_WAY.search(content) or _SAME.search(content)):
        return ""
    named = sum(weight for weight in weights.values() if weight > MILD)
    named += min(_MOST_MILD, sum(weight for weight in weights.values() if weight == MILD))
    if named < _NAMED:
        return "it names nothing of this project: no path, command, symbol, version or error that is not common"
    alone = _is_alone(content, weights)
    claimed = _claimed(content, hard=HARD in weights.values(), several=not alone and any(map(_FILE.fullmatch, weights)))
    claimed -= 2 * (alone and _is_order(_TICKED.sub("◇", content)))
    if _holds_for_any(content, weights) or named + claimed < _ENOUGH + alone:
        return "it is advice that holds everywhere: it claims nothing of what it names that may turn out false"
    return ""


def _holds_for_any(content: str, weights: Mapping[str, int]) -> bool:
    """Whether a sentence would be as true of any other thing than the one that it names."""
    names = _apart(token for token, weight in weights.items() if weight > MILD)
    bare = _TICKED.sub("◇", content)
    if len(names) > 1 or len(weights) > 2 or _OF_IT.search(bare) or any(one[:1].isdigit() for one in names):
        return False
    if _STATED.match(bare) and len(_apart(_TICKED.findall(content))) > 1:
        return False
    return _roots(_BARE.sub(" ", content)) - _roots(" ".join(names)) <= _roots(" ".join(listed("words_of_work")))


def _apart(names: Iterable[str]) -> list[str]:
    """Names without those that are part of another."""
    known = list(names)
    return [one for one in known if not any(one != other and _is_part(one, other) for other in known)]


def _is_part(name: str, other: str) -> bool:
    at = other.find(name)
    return at >= 0 and not (at and (other[at - 1].isalnum() or other[at - 1] in "._-"))


_STATED: Final = re.compile(r"(?:The (?:\w+ ){0,3})?◇(?:,[^,]*,)? (?!is an?\b)")
"""What is named is said to do or be something; it is not told what to do with it."""

_OF_IT: Final = re.compile(
    r"\b(?:needs?|requires?|carry|set) ◇|◇ (?:(?:is|are) (?:how|what)|here)\b|\b(?:or|else|otherwise),? ◇"
    r"|◇ for ◇|\b(?:not|instead of|rather than) ◇"
)
"""A name that is itself what is claimed."""


def _roots(text: str) -> set[str]:
    return {_INFLECTED.sub("", word) for word in words(text)}


_INFLECTED: Final = re.compile(r"(?:ing|ed|es|e|s|y)$")


def _claimed(content: str, *, hard: bool, several: bool) -> int:
    """What is claimed in a sentence, without what it names; less than nothing for advice."""
    bare = _TICKED.sub("◇", content)
    fact = _CONDITION.sub("", bare)
    fails = 2 * bool(_FAILS.search(fact))
    claims = sum(bool(kind.search(fact)) for kind in _CLAIMS)
    codes = _TICKED.findall(content)
    manual = len(codes) == 1 and " " in codes[0].strip() and _is_usual_command(codes[0])
    does = (hard or several) and not manual and bool(_DOES.match(fact))
    claims += not does and bool(_KIND.match(fact))
    claims += does + ((hard or does) and fact.count("◇") > 1)
    against = sum(bool(kind.search(bare)) for kind in _AGAINST)
    against += bool(_CHORE.search(bare)) + bool(_PLACED.match(bare)) + _runs_only(content, bare)
    against += not hard and not fails and bool(_TIP.search(bare))
    return fails + claims - 2 * against


def _is_alone(content: str, weights: Mapping[str, int]) -> bool:
    """Whether a path is all that a sentence has of this project, and so may have been put into one about any."""
    names = _apart(weights)
    codes = _apart(_TICKED.findall(content))
    if codes and codes[0] not in weights and _USES.match(content):
        codes = codes[1:]  # what is to be run is any project's
    is_path = len(names) == 1 and weights[names[0]] == HARD and _FILE.fullmatch(names[0]) is not None
    return is_path and len(codes) < 2 and not _WANTED.search(content)


_USES: Final = re.compile(r"(?:Run|Use) `")
_WANTED: Final = re.compile(r"(?i)\bthe user (?:said|wants)\b")


def _is_order(bare: str) -> bool:
    """Whether a sentence begins as an order or with a habit, and says nothing of what is."""
    return _BEGINS.match(bare) is not None and _FINITE.search(bare.partition(";")[0]) is None


_BEGINS: Final = re.compile(r"(?!◇|(?:The|A|An|All|Every|Each|No|CI|This|These|Its?|\w+s|User)\b)\w")
_FINITE: Final = re.compile(
    r"^\w+(?: [\w-]+){0,3}(?: (?:in|of|for|from|under) ◇)? (?:is|are|was|must|needs?|has|have|can't|takes?)\b"
)


def _runs_only(content: str, bare: str) -> bool:
    """Whether all that is said is to run a common program on something, as one does everywhere."""
    return bool(_ORDER.match(bare)) and any(map(_is_usual_command, _TICKED.findall(content)))


def _is_usual_command(code: str) -> bool:
    return is_common(code.partition(" ")[0])


def _is_choice(content: str) -> bool:
    """Whether one of two tools is wanted here: a choice that every project makes for itself."""
    tools = listed("tools_of_choice")
    pairs = ((match[1].casefold(), match[2].casefold()) for match in _CONTRAST.finditer(content))
    reasoned = _GIVEN.search(content) or _AGAINST[0].search(content)
    return not reasoned and any(one in tools and other in tools for one, other in pairs)
