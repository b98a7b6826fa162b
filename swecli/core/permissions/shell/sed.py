"""sed scripts that only print."""

from __future__ import annotations

import re

from swecli.core.permissions.shell.expand import Situation
from swecli.core.permissions.shell.places import check_content
from swecli.core.permissions.shell.syntax import UnprovenError

_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n\[]|\\[^\n]|\[\^?(?:[^\]/\\\n]|\\[a-z])+\])*/I?)"
_PREFIX = re.compile(rf"\s*(?:{_ADDRESS}\s*(?:,\s*(?:[+~]?\d+|{_ADDRESS})\s*)?)?!?\s*")
_COMMAND = re.compile(r"[pPdDnNgGhHxlz=qQ]\s*\d*")
_TEXT_COMMAND = re.compile(r"[aic][ \t]*[^\s\\\n][^\\\n]*")
_PART = r"(?:(?!{d})[^\\\n\[]|\\[^\n]|\[\^?(?:(?!{d})[^\]\\\n]|\\[a-z])+\])*"
_TEXT = r"(?:(?!{d})[^\\\n]|\\[^\n])*"


def check_sed(arguments: list[str], situation: Situation) -> None:
    """Raise unless sed only prints what may be read.

    Raises:
        UnprovenError: it may do more.
    """
    scripts: list[str] = []
    operands: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-n", "-E", "-r", "-s", "-u", "-z", "--quiet", "--silent", "--regexp-extended", "--posix"):
            continue
        if word in ("--separate", "--unbuffered", "--null-data", "--sandbox", "-nE", "-nr", "-En", "-rn"):
            continue
        if word in ("-e", "--expression", "-ne", "-Ene", "-nEe"):
            if not rest:
                raise UnprovenError("sed lacks a script")
            scripts.append(rest.pop(0))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word == "--":
            operands += rest
            break
        elif word != "-" and word.startswith("-"):
            raise UnprovenError(f"the option {word} of sed is not known to be harmless")
        else:
            operands.append(word)
    if not scripts:
        if not operands:
            raise UnprovenError("sed lacks a script")
        scripts.append(operands.pop(0))
    if not all(script_is_harmless(script) for script in scripts):
        raise UnprovenError("the sed script is not known to only print")
    for operand in operands:
        check_content(operand, situation)


def script_is_harmless(script: str) -> bool:
    """Whether a script only has addresses, blocks, prints, deletes, hold-space commands, texts, y and s without w and
    e."""
    at = depth = 0
    while True:
        prefix = _PREFIX.match(script, at)
        at = prefix.end() if prefix else at
        if at >= len(script):
            return depth == 0
        letter = script[at]
        if letter == "{":
            depth, at = depth + 1, at + 1
            continue
        if letter == "}" and depth:
            depth, at = depth - 1, at + 1
        elif letter == ";":
            at += 1
            continue
        elif letter in "aic":
            # Its text goes up to the end, so nothing behind it is a command.
            return depth == 0 and _TEXT_COMMAND.fullmatch(script, at) is not None
        else:
            match = _substitution(script, at) if letter in "sy" else _COMMAND.match(script, at)
            if match is None:
                return False
            at = match.end()
        if at >= len(script) or (script[at] == "}" and depth):
            continue
        if script[at] != ";":
            return False
        at += 1


def _substitution(script: str, at: int) -> re.Match[str] | None:
    delimiter = script[at + 1 : at + 2]
    if not delimiter or delimiter.isalnum() or delimiter in "\\\n []-^$.*+?(){}":
        return None
    quoted = re.escape(delimiter)
    part, text = _PART.replace("{d}", quoted), _TEXT.replace("{d}", quoted)
    return re.compile(rf"{part}{quoted}{text}{quoted}[gpiI0-9]*\s*").match(script, at + 2)
