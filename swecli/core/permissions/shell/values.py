"""Texts of variables and substitutions that are known before a command runs: cut names, sums, ranges of numbers, names
that another command lists, and what git answers to a question about revisions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

MAX_VALUES = 60


class Listed(Struct, frozen=True):
    """Each of the names that a command prints, one a line. ``words`` are those of the command, None where unknown;
    ``cwds`` the folders where it may run."""

    words: tuple[str | None, ...]
    cwds: tuple[str, ...]


class Number(Struct, frozen=True):
    """A whole number that is not known."""


class Array(Struct, frozen=True):
    """The elements of an array, None where unknown."""

    elements: tuple[str | None, ...]


Value = str | Listed | Number | Array | None
"""None is an unknown text."""
Variables = Mapping[str, Value]
"""By name."""


def text_of(value: Value) -> str | None:
    return value if isinstance(value, str) else None


# --- ${name…} ------------------------------------------------------------------------------------------------------


def changed(value: str | None, change: str) -> str | None:
    """What ``${name…}`` makes of a variable's value; ``:-`` of a value that is unknown stays unknown."""
    if value is None or not change:
        return value
    if change == "#":
        return str(len(value))
    if change in _IN_CAPITALS:
        return _IN_CAPITALS[change](value)
    if change[0] not in "%#" and not change.startswith(":-"):
        return None
    if change.startswith(":-"):
        return value or change[2:]
    operator = change[: 2 if change[1:2] == change[0] else 1]
    pattern = re.compile("".join(_PATTERN.get(char, re.escape(char)) for char in change[len(operator) :]), re.DOTALL)
    cuts = range(len(value) + 1)
    if operator.startswith("#"):
        at = next((cut for cut in (cuts if operator == "#" else reversed(cuts)) if pattern.fullmatch(value[:cut])), 0)
        return value[at:]
    ends = reversed(cuts) if operator == "%" else cuts
    return value[: next((cut for cut in ends if pattern.fullmatch(value[cut:])), len(value))]


_IN_CAPITALS: Mapping[str, Callable[[str], str]] = {"^^": str.upper, ",,": str.lower}
_PATTERN = {"*": ".*", "?": "."}


# --- $(( … )) ------------------------------------------------------------------------------------------------------

_TOKEN = lazy_pattern(r"\s*(?:(\d+)|\$?([A-Za-z_]\w*)|([-+*/%()]))\s*")
_WHOLE_NUMBER = lazy_pattern(r"-?(?:0|[1-9][0-9]{0,8})")


def sum_of(expression: str, variables: Variables) -> str | None:
    """The value of an expression of small whole numbers, ``+ - * / %`` and parentheses; None if it is another or not
    known."""
    tokens: list[str] = []
    at = 0
    while at < len(expression):
        token = _TOKEN.match(expression, at)
        if token is None:
            return None
        number, name, sign = token.groups()
        value = text_of(variables.get(name)) if name else number or sign
        if value is None or not (sign or _WHOLE_NUMBER.fullmatch(value)):
            return None
        tokens.append(value)
        at = token.end()
    try:
        found = _added(tokens)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return str(found) if not tokens and abs(found) < 10**9 else None


def _added(tokens: list[str]) -> int:
    found = _multiplied(tokens)
    while tokens and tokens[0] in "+-":
        sign = tokens.pop(0)
        other = _multiplied(tokens)
        found = found + other if sign == "+" else found - other
    return found


def _multiplied(tokens: list[str]) -> int:
    found = _single(tokens)
    while tokens and tokens[0] in "*/%":
        sign = tokens.pop(0)
        other = _single(tokens)
        if sign == "*":
            found *= other
        else:  # the shell rounds towards zero
            quotient = abs(found) // abs(other) * (1 if (found < 0) == (other < 0) else -1)
            found = quotient if sign == "/" else found - other * quotient
    return found


def _single(tokens: list[str]) -> int:
    token = tokens.pop(0)
    if token == "-":
        return -_single(tokens)
    if token != "(":
        return int(token)
    found = _added(tokens)
    if tokens.pop(0) != ")":
        raise ValueError(token)
    return found


# --- $( … ) --------------------------------------------------------------------------------------------------------

_ASKS_GIT = frozenset(("branch", "describe", "merge-base", "rev-list", "rev-parse", "symbolic-ref"))
"""Subcommands of git whose answers are revisions, branches and folders."""


def range_of(words: Sequence[str | None]) -> list[str] | None:
    """The numbers that ``seq`` prints; None if they are too many or its words are others."""
    if words[:1] != ["seq"] or not 1 < len(words) <= 4:
        return None
    numbers = [int(word) for word in words[1:] if word is not None and _WHOLE_NUMBER.fullmatch(word)]
    if len(numbers) != len(words) - 1:
        return None
    first, step, last = (1, 1, *numbers)[-3:] if len(numbers) == 1 else (numbers[0], 1, numbers[1])
    if len(numbers) == 3:
        first, step, last = numbers
    if not step:
        return None
    values = range(first, last + (1 if step > 0 else -1), step)
    return [str(number) for number in values] if 0 < len(values) <= MAX_VALUES else None


def is_question_to_git(words: Sequence[str | None]) -> bool:
    if words[:1] != ["git"] or len(words) < 2 or None in words:
        return False
    return words[1] in _ASKS_GIT or (words[1] == "log" and _lists_revisions([word for word in words[2:] if word]))


def _lists_revisions(options: Sequence[str]) -> bool:
    """Whether ``git log`` with these options only prints the names of a few revisions."""
    few = any(re.fullmatch(r"-[0-9]{1,2}|-n[0-9]{1,2}|--max-count=[0-9]{1,2}", option) for option in options)
    few |= any(before == "-n" and re.fullmatch("[0-9]{1,2}", option) for before, option in pairwise(options))
    formats = [option for option in options if option.startswith(("--format", "--pretty"))]
    return few and len(formats) == 1 and re.fullmatch(r"--(?:format|pretty)=(?:format:)?%[hH]", formats[0]) is not None


def cut_name(words: Sequence[str | None]) -> str | None:
    """What ``basename NAME [ENDING]`` and ``dirname NAME`` print; None if it is not known."""
    known = [word for word in words if word]
    if len(known) != len(words) or any(word.startswith("-") for word in known):
        return None
    match known:
        case ["dirname", name]:
            stem = name.rstrip("/")
            return (stem.rpartition("/")[0].rstrip("/") or "/") if "/" in stem else ("." if stem else "/")
        case ["basename", name]:
            return name.rstrip("/").rpartition("/")[2] or "/"
        case ["basename", name, ending]:
            base = name.rstrip("/").rpartition("/")[2] or "/"
            return base.removesuffix(ending) if base != ending else base
        case _:
            return None
