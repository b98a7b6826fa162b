"""Conditions: what ``[[ … ]]`` compares, and whether that of a loop fails at last."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence

from swecli.core.permissions.shell.expand import Situation, check_name, is_number, is_sum
from swecli.core.permissions.shell.programs import TEST_FILE, TEST_TEXT
from swecli.core.permissions.shell.syntax import Script, Simple, UnprovenError, While, Word, simple_commands
from swecli.core.permissions.shell.values import Variables, text_of
from swecli.lazy_pattern import lazy_pattern

_TEXTS = ("=", "==", "!=", "=~")
_NUMBERS = ("-eq", "-ne", "-lt", "-le", "-gt", "-ge")


def check_condition(words: Sequence[Word], arguments: Sequence[str | None], situation: Situation) -> None:
    """Raise ``UnprovenError`` unless ``[[ … ]]``, of one test, only compares texts or numbers or looks at files;
    arithmetic with a text can run commands."""
    inner, test = list(arguments[1:-1]), list(words[1:-1])
    while inner[:1] == ["!"]:
        inner, test = inner[1:], test[1:]
    match inner:
        case [_]:
            return
        case [_, str(sign), _] if sign in _TEXTS:
            return
        case [str(left), "-nt" | "-ot" | "-ef", str(right)]:
            check_name(left, situation)
            check_name(right, situation)
        case [_, str(sign), _] if sign in _NUMBERS and len(test) == 3:
            if not all(_holds_number(word, situation) for word in (test[0], test[2])):
                raise UnprovenError("[[ ]] may do arithmetic with a text")
        case [str(sign), _] if sign in TEST_TEXT:
            return
        case [str(sign), str(name)] if sign in TEST_FILE:
            check_name(name, situation)
        case _:
            raise UnprovenError("this [[ ]] is not understood")


def _holds_number(word: Word, situation: Situation) -> bool:
    if word.literal is not None:
        return is_number(word.literal)
    pieces = [segment for segment in word.segments if segment.kind != "text" or segment.text]
    return len(pieces) == 1 and is_sum(pieces[0], situation)


MOST_ROUNDS = 1_000
"""Rounds of a loop that counts."""
_COMPARISON = lazy_pattern(r"\s*\$?([A-Za-z_]\w*)\s*(<=?|>=?)\s*(-?[0-9]{1,6})\s*")
_STEP = lazy_pattern(r"\s*\$?([A-Za-z_]\w*)\s*([+-])\s*(?:([1-9][0-9]{0,5})|\(\s*([1-9][0-9]{0,5})\s*\))\s*")
_COMPARES: Mapping[str, Callable[[int, int], bool]] = {
    **dict.fromkeys(("<", "-lt"), operator.lt),
    **dict.fromkeys(("<=", "-le"), operator.le),
    **dict.fromkeys((">", "-gt"), operator.gt),
    **dict.fromkeys((">=", "-ge"), operator.ge),
}


def ends(loop: While, variables: Variables) -> bool:
    """Whether a loop surely ends soon: it compares a counter with a number, and each round moves the counter."""
    compared = _compared(loop.condition)
    if compared is None:
        return False
    name, sign, bound = compared
    start = text_of(variables.get(name))
    steps = [_step(simple, name) for simple in _each_round(loop)]
    moves = [step for step in steps if step]
    if start is None or re.fullmatch("-?[0-9]{1,6}", start) is None or len(moves) != 1:
        return False
    if _sets(loop, name) != 1 or (loop.step is None and _skips(loop)):
        return False
    now = int(start)
    for _ in range(MOST_ROUNDS + 1):
        if _COMPARES[sign](now, bound) == loop.until:
            return True
        now += moves[0]
    return False


def _compared(condition: Script) -> tuple[str, str, int] | None:
    """The counter, the sign and the number of a condition that is nothing but their comparison."""
    simples = list(simple_commands(condition))
    if len(condition.items) != 1 or len(condition.items[0].items) != 1 or len(simples) != 1:
        return None
    words = list(simples[0].words)
    if len(words) == 2 and words[0].literal == ":" and [segment.kind for segment in words[1].segments] == ["number"]:
        found = _COMPARISON.fullmatch(words[1].segments[0].text)
        return None if found is None else (found[1], found[2], int(found[3]))
    if words[0].literal in ("[", "[["):
        words.pop()
    if words[0].literal not in ("[", "[[", "test") or len(words) != 4:
        return None
    pieces = [segment for segment in words[1].segments if segment.kind != "text" or segment.text]
    sign, number = words[2].literal or "", words[3].literal or ""
    if len(pieces) != 1 or pieces[0].kind != "variable" or pieces[0].change or sign not in _COMPARES:
        return None
    if not sign.startswith("-") or re.fullmatch("-?[0-9]{1,6}", number) is None:
        return None
    return pieces[0].text, sign, int(number)


def _each_round(loop: While) -> list[Simple]:
    """The simple commands that run in every round."""
    if loop.step is not None:
        return [loop.step]
    lists = [item.items for item in loop.body.items if len(item.items) == 1]
    commands = [pipeline.commands for ((_, pipeline),) in lists if len(pipeline.commands) == 1]
    return [command for (command,) in commands if isinstance(command, Simple)]


def _step(simple: Simple, name: str) -> int:
    """By how much a command moves the counter; 0 if it does not."""
    if simple.words:
        return 0
    for target, word in simple.assignments:
        if target == name and [segment.kind for segment in word.segments] == ["number"]:
            found = _STEP.fullmatch(word.segments[0].text)
            if found is not None and found[1] == name:
                return int(found[3] or found[4]) * (1 if found[2] == "+" else -1)
    return 0


def _sets(loop: While, name: str) -> int:
    scripts = [*simple_commands(loop.body), *([loop.step] if loop.step is not None else [])]
    return sum(target == name for simple in scripts for target, _ in simple.assignments)


def _skips(loop: While) -> bool:
    """Whether a round may end before its last command."""
    return any(simple.words and simple.words[0].literal == "continue" for simple in simple_commands(loop.body))
