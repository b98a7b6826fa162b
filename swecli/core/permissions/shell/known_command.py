"""One simple command, given by its arguments: whether it is known to only read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from swecli.core.permissions.shell.arguments import check_table
from swecli.core.permissions.shell.expand import Situation
from swecli.core.permissions.shell.programs import BUILTINS, MAY_BE_UNKNOWN, PROGRAMS, check_find
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.shell.tables import tables
from swecli.core.permissions.shell.wrapped import unwrap

_HARMLESS_VALUES = re.compile(r"[A-Za-z0-9_.@+-]*")
_HARMLESS_NAMES = re.compile(r"LC_[A-Z]+|LANG|NO_COLOR|TERM|COLUMNS|FORCE_COLOR|CLICOLOR")
_HARMLESS_EXACT = frozenset(
    (("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_PAGER", ""), ("PAGER", ""), ("GIT_OPTIONAL_LOCKS", "0"))
)
_GIT_GLOBAL = frozenset(("--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"))


def harmless_assignment(name: str, value: str) -> bool:
    """Whether setting this variable for a command changes nothing but how its output looks."""
    if (name, value) in _HARMLESS_EXACT:
        return True
    if name == "TZ":
        return re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*)*", value) is not None
    return bool(_HARMLESS_NAMES.fullmatch(name) and _HARMLESS_VALUES.fullmatch(value))


def check_command(arguments: Sequence[str | None], situation: Situation, *, external: bool = False) -> None:
    """Raise unless this command only reads. ``external``: another program starts it, not the shell.

    Raises:
        UnprovenError: it may do more.
    """
    name = arguments[0]
    if name is None or not name or "/" in name:
        raise UnprovenError(f"{name or 'a computed name'} is not the plain name of a known program")
    rest = list(arguments[1:])
    inner = unwrap(name, rest, harmless_assignment)
    known = tables()
    if inner is not None:
        check_program(name, situation)
        check_command(inner, situation, external=True)
        return
    if len(rest) == 1 and rest[0] is not None and name in known.versions.get(rest[0], ()):
        check_program(name, situation)
        table = known.commands.get(name)
        if table is not None and table.without_files:
            check_table(name, table, rest, situation)
        return
    if name == "git":
        _git(rest, situation)
        return
    table = known.commands.get(name)
    builtin = name in BUILTINS or (table is not None and table.builtin)
    if external or not builtin:
        check_program(name, situation)
    if name == "find":
        known_words = [argument for argument in rest if argument is not None]
        if len(known_words) != len(rest):
            raise UnprovenError("an argument of find is not known")
        for inner_words in check_find(known_words, situation):
            check_command(inner_words, situation, external=True)
        return
    if name in PROGRAMS and not (external and name == "[["):
        _special(name, rest, situation)
    elif table is not None:
        check_table(name, table, rest, situation)
    else:
        raise UnprovenError(f"{name} is not known to only read")


def _special(name: str, arguments: Sequence[str | None], situation: Situation) -> None:
    known = [argument for argument in arguments if argument is not None]
    if len(known) != len(arguments):
        allowed = MAY_BE_UNKNOWN.get(name)
        if allowed is None or not allowed(arguments):
            raise UnprovenError(f"an argument of {name} is not known")
        known = ["" if argument is None else argument for argument in arguments]
    PROGRAMS[name](known, situation)


def _git(arguments: list[str | None], situation: Situation) -> None:
    rest = list(arguments)
    while rest and rest[0] in _GIT_GLOBAL:
        rest.pop(0)
    if not rest or rest[0] is None or rest[0].startswith("-"):
        raise UnprovenError("this use of git is not understood")
    check_program("git", situation)
    if situation.cwds != (situation.start,):
        raise UnprovenError("git after cd may meet another repository's settings")
    problem = situation.facts.git_problem(situation.start, situation.roots)
    if problem is not None:
        raise UnprovenError(f"git may run a program here: {problem}")
    for count in (2, 1):
        words = rest[:count]
        if len(words) == count and None not in words:
            name = "git " + " ".join(str(word) for word in words)
            if name in PROGRAMS:
                _special(name, rest[count:], situation)
                return
            table = tables().commands.get(name)
            if table is not None:
                check_table(name, table, rest[count:], situation)
                return
    raise UnprovenError(f"git {rest[0]} is not known to only read")


def check_program(name: str, situation: Situation) -> None:
    """Raise unless the name means a program outside of the workspace, or none."""
    for cwd in situation.cwds or (situation.start,):
        problem = situation.facts.program_problem(name, cwd, situation.roots)
        if problem is not None:
            raise UnprovenError(problem)
