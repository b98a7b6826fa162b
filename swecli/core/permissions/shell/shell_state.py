"""What commands change of the shell that runs them: its directory and its variables."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from swecli.core.permissions.paths import inside
from swecli.core.permissions.shell.expand import (
    NOWHERE_ELSE,
    Situation,
    absolute,
    check_name,
    expand,
    is_number,
    prints_number,
)
from swecli.core.permissions.shell.syntax import Script, Simple, UnprovenError, Word, loop_variables, simple_commands
from swecli.core.permissions.shell.tables import is_plain_variable, tables
from swecli.core.permissions.shell.values import Number
from swecli.lazy_pattern import lazy_pattern

_HARMLESS_VALUES = lazy_pattern(r"[A-Za-z0-9_.@+-]*")
_HARMLESS_NAMES = lazy_pattern(r"LC_[A-Z]+|LANG|NO_COLOR|TERM|COLUMNS|FORCE_COLOR|CLICOLOR")
_HARMLESS_EXACT = frozenset(
    (("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_PAGER", ""), ("PAGER", ""), ("GIT_OPTIONAL_LOCKS", "0"))
)
_SETTINGS = lazy_pattern(
    r"CI|DEBUG|VERBOSE|LOG_?LEVEL|NODE_ENV|RAILS_ENV|RACK_ENV|APP_ENV|MIX_ENV|FLASK_ENV|FLASK_DEBUG|RUST_LOG|RUST_BACKTRACE"
    r"|CARGO_TERM_COLOR|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|PYTHONUTF8|PYTHONIOENCODING"
    r"|PYTHONWARNINGS|HYPOTHESIS_PROFILE|UPDATE_SNAPSHOTS?|UPDATE_GOLDENS|PORT|TEST_ENV"
)
"""Variables that a rule about the command need not mention: programs look at their values, but never run or load
them."""


def harmless_assignment(name: str, value: str) -> bool:
    """Whether setting this variable for a command only changes how its output looks."""
    if (name, value) in _HARMLESS_EXACT:
        return True
    if name == "TZ":
        return re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*)*", value) is not None
    return bool(_HARMLESS_NAMES.fullmatch(name) and _HARMLESS_VALUES.fullmatch(value))


def only_settings(name: str, value: str, situation: Situation) -> bool:
    """Whether a rule about a command still applies with this variable set: a plain setting, or a workspace folder for
    Python to search for modules, which it does anyway."""
    if name == "PYTHONPATH":
        places = [path for entry in value.split(":") if entry for path in absolute(entry, situation)]
        return bool(places) and all(inside(situation.facts.resolve(path), situation.roots) for path in places)
    return bool(_SETTINGS.fullmatch(name) and _HARMLESS_VALUES.fullmatch(value))


def check_assignments(node: Simple, situation: Situation) -> str:
    """The objection to the variables set for a command, if a rule about it can lift that; else empty.

    Raises:
        UnprovenError: no rule can.
    """
    objection = ""
    for name, word in node.assignments:
        values = expand(word, situation)
        value = values[0] if len(values) == 1 else None
        if value is not None and harmless_assignment(name, value):
            continue
        if name == "IFS" and node.words[0].literal == "read":
            continue  # it only says where the line is split
        objection = f"setting {name} may change what the command does"
        if value is None or not only_settings(name, value, situation):
            raise UnprovenError(objection)
    return objection


def changed_directory(arguments: Sequence[str | None], situation: Situation) -> Situation:
    """The situation after ``cd``.

    Raises:
        UnprovenError: the shell may end up somewhere else than its argument says.
    """
    rest = [argument for argument in arguments if argument not in ("--", "-P", "-L")]
    if len(rest) != 1:
        raise UnprovenError("the target of cd is uncertain")
    problem = situation.facts.shell_problem(situation.start, moving=True)
    if problem is not None:
        raise UnprovenError(problem)
    if rest[0] == "-" and arguments == ["-"]:
        return _moved_back(situation)
    return moved(rest[0], situation, "cd")


def _moved_back(situation: Situation) -> Situation:
    """The situation after ``cd -``, which stays where no ``cd`` came before: the shell starts without ``OLDPWD``."""
    known = any(before for _, before in situation.left) and {cwd for cwd, _ in situation.left} == set(situation.cwds)
    if not known or situation.edited:
        raise UnprovenError("the target of cd is uncertain")
    left = {(before, cwd) if before else (cwd, "") for cwd, before in situation.left}
    return replace(situation, cwds=tuple(sorted({cwd for cwd, _ in left})), left=frozenset(left))


def joined(situation: Situation, possible: Iterable[Situation]) -> Situation:
    """The situation, in any directory of the possible ones; unknown if one of these is."""
    states = list(possible)
    if any(not state.cwds for state in states):
        return replace(situation, cwds=(), left=NOWHERE_ELSE)
    cwds = {cwd for state in states for cwd in state.cwds}
    known = all(state.left for state in states)
    left = frozenset(pair for state in states for pair in state.left) if known else NOWHERE_ELSE
    return replace(situation, cwds=tuple(sorted(cwds)), left=left)


def moved(target: str | None, situation: Situation, how: str) -> Situation:
    """The situation after a change to a directory.

    Raises:
        UnprovenError: it may be another one than its name says.
    """
    if not target or target.startswith(("-", "+")):
        raise UnprovenError(f"the target of {how} is uncertain")
    check_name(target, situation)
    # The shell keeps a directory's name as given, the kernel does not: they agree only without links.
    places: list[str] = []
    for path in absolute(target, situation):
        resolved = situation.facts.resolve(path)
        if posixpath.normpath(path) != resolved:
            raise UnprovenError(f"{how} {target} follows a link")
        if situation.facts.kind(resolved) not in ("directory", "missing"):
            raise UnprovenError(f"{target} is not a directory")
        places.append(resolved)
    left = frozenset((place, cwd) for place in places for cwd in situation.cwds)
    if not target.startswith("/"):
        left = frozenset(zip(places, situation.cwds, strict=True))
    return replace(situation, cwds=tuple(sorted(set(places))), left=left)


def read_into(arguments: Sequence[str | None], situation: Situation) -> Situation:
    """The situation after ``read -r name …``, which sets plain variables to unknown values.

    Raises:
        UnprovenError: it may set another one.
    """
    names = read_names(arguments)
    if names is None or not all(name == "_" or is_plain_variable(name) for name in names):
        raise UnprovenError("read may set a variable that changes what follows")
    return replace(situation, variables={**situation.variables, **dict.fromkeys(names)})


def read_names(arguments: Sequence[str | None]) -> list[str] | None:
    """The variables that ``read`` sets; None if that is not known."""
    rest = list(arguments)
    while rest and rest[0] is not None and rest[0].startswith("-"):
        option = rest.pop(0) or ""
        if option in ("-d", "-n", "-N", "-t", "-rd", "-rn", "-rN", "-rt"):
            if not rest or rest.pop(0) is None:
                return None
        elif option != "-r" and not re.fullmatch(r"-r?[nNt][0-9]+", option):
            return None
    names = [name for name in rest if name is not None]
    return names if len(names) == len(rest) else None


def without(names: Iterable[str], situation: Situation) -> Situation:
    """The situation, with the values of these variables unknown."""
    return replace(situation, variables={**situation.variables, **dict.fromkeys(names)})


def assigned(script: Script, situation: Situation) -> set[str]:
    """The variables that a script may set by any of its commands, a rule's included."""
    names = loop_variables(script)
    for simple in simple_commands(script):
        names |= {name for name, _ in simple.assignments}
        words = tuple(word.literal for word in simple.words)
        if words[:1] == ("read",):
            names |= set(read_names(words[1:]) or ())
        elif may_set_any(words):
            names |= set(situation.variables)
    return names


def before_rounds(scripts: Iterable[Script], situation: Situation) -> Situation:
    """The situation at the start of any round of a loop that runs these scripts: what they set is unknown, of a counter
    at least that it is a number."""
    scripts = list(scripts)
    names = {name for script in scripts for name in assigned(script, situation)}
    counters = {
        name
        for name in names
        if is_number(situation.variables.get(name)) and all(_only_numbers(name, script) for script in scripts)
    }
    values = {name: Number() if name in counters else None for name in names}
    return replace(situation, variables={**situation.variables, **values})


def _only_numbers(name: str, script: Script) -> bool:
    """Whether all that a script may assign to a variable is a number, as its words show."""
    if name in loop_variables(script):
        return False
    for simple in simple_commands(script):
        words = tuple(word.literal for word in simple.words)
        if may_set_any(words) and (words[0] != "read" or name in (read_names(words[1:]) or (name,))):
            return False
        if any(target == name and not _is_sum(value) for target, value in simple.assignments):
            return False
    return True


def _is_sum(word: Word) -> bool:
    if len(word.segments) != 1:
        return False
    segment = word.segments[0]
    digits = segment.kind == "text" and re.fullmatch("[0-9]+", segment.text) is not None
    return digits or segment.kind == "number" or (segment.kind == "commands" and prints_number(segment.script))


def alters(words: Sequence[str | None], situation: Situation) -> str:
    """A variable that these words of a builtin set and that may change what later commands do; empty if none."""
    if words[0] not in ("declare", "export", "local", "readonly", "typeset"):
        return ""
    for word in words[1:]:
        if word is None:
            return "a variable"
        name, equals, value = word.partition("=")
        harmless = is_plain_variable(name) or harmless_assignment(name, value) or only_settings(name, value, situation)
        if equals and not harmless:
            return name
    return ""


def may_set_any(words: Sequence[str | None]) -> bool:
    """Whether a command may set variables of this shell if a rule lets it run without a proof."""
    match words:
        case ["command", "-v" | "-V", *_]:
            return False
        case ["printf", str(form), *_] if not form.startswith("-"):
            return False
        case [name, *_]:
            return name in tables().lists["setting_builtins"]
        case _:
            return False
