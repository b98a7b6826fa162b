"""awk programs that only print."""

from __future__ import annotations

import re

from swecli.core.permissions.shell.expand import Situation
from swecli.core.permissions.shell.places import check_content
from swecli.core.permissions.shell.syntax import UnprovenError

_EFFECT = re.compile(
    r"system|getline|close|fflush|ENVIRON|ARG[VC]|ARGIND|PROCINFO|SYMTAB|FUNCTAB|extension|load|include|eval|exec|@|\\\n|&\||\|&"
)
_REGULAR = re.compile(r"/(?:[^/\\\n\[]|\\[^\n]|\[\^?[^\]\[/\\\n]+\])*/")
_BEFORE_REGULAR = re.compile(r"(?:^|[(,{};!~&|\n])[ \t]*$")
_NO_OPERANDS = frozenset(
    (
        *("print", "printf", "return", "in", "else", "do", "while", "if", "for", "case", "default", "delete", "next"),
        *("exit", "length", "switch", "function", "func"),
    )
)
"""Words behind which a slash is not known to divide."""
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')


def check_awk(arguments: list[str], situation: Situation) -> None:
    """Raise unless awk only prints what may be read.

    Raises:
        UnprovenError: it may do more.
    """
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word in ("-F", "-v"):
            if not rest:
                raise UnprovenError(f"awk {word} lacks its value")
            value = rest.pop(0)
        elif word.startswith(("-F", "-v")):
            value = word[2:]
        else:
            raise UnprovenError(f"the option {word} of awk is not known to be harmless")
        if word.startswith("-v") and not re.fullmatch(
            r"[a-z_][A-Za-z0-9_]*=[^\n]*|[NOF]S=[^\n]*|[OR]+FS=[^\n]*", value
        ):
            raise UnprovenError(f"the awk variable {value} is not known to be harmless")
    if not rest or not program_is_harmless(rest[0]):
        raise UnprovenError("the awk program is not known to only print")
    for operand in rest[1:]:
        if re.match(r"[A-Za-z_]\w*=", operand):
            raise UnprovenError(f"awk takes {operand} as an assignment")
        check_content(operand, situation)


def program_is_harmless(program: str) -> bool:
    """Whether a program can neither start programs, write or read other files, nor see the environment."""
    if _EFFECT.search(program) or "\\" in re.sub(r"\\[^\n]", "", program):
        return False
    code = _without_strings(program)
    if "|" in code.replace("||", ""):
        return False
    return ">" not in code or _only_compares(code)


def _without_strings(program: str) -> str:
    """The program with its strings and regular expressions empty, where they can be told; else as it is."""
    code, at = "", 0
    while at < len(program):
        char = program[at]
        if char == "#":
            return program
        if char == '"' or (char == "/" and not _divides(code)):
            literal = (_STRING if char == '"' else _REGULAR).match(program, at)
            if literal is None or (char == "/" and not _BEFORE_REGULAR.search(code)):
                return program
            code, at = code + '""', literal.end()
        else:
            code, at = code + ("÷" if char == "/" else char), at + 1
    return program if "\\" in code else code


def _divides(code: str) -> bool:
    """Whether a slash behind this code divides: it does behind a name, a number or an index."""
    operand = re.search(r"(?:(?<![\w.])[\w.]+|\])[ \t]*$", code)
    return operand is not None and operand.group().strip() not in _NO_OPERANDS


def _only_compares(code: str) -> bool:
    """Whether each ``>`` compares: it does in parentheses and outside of actions, elsewhere it may name a file."""
    if any(char in code for char in "/#'\\") or '"' in code.replace('""', ""):
        return False
    braces = parentheses = 0
    for char in code:
        if char in "{}":
            if parentheses:
                return False
            braces += 1 if char == "{" else -1
        elif char in "()":
            parentheses += 1 if char == "(" else -1
        elif char == ">" and braces and not parentheses:
            return False
        if braces < 0 or parentheses < 0:
            return False
    return braces == 0 and parentheses == 0
