"""Check of one command's arguments against its table: options, operands, and the files among them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from swecli.core.permissions.facts import Reach
from swecli.core.permissions.shell.expand import (
    Situation,
    absolute,
    check_content,
    check_entry,
    check_git_settings,
    check_name,
    check_revision,
    check_tree,
    looks_for_secrets,
)
from swecli.core.permissions.shell.history import GitWords, check_git
from swecli.core.permissions.shell.searched import check_below, check_grep, check_ripgrep, check_trees
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.shell.tables import Table
from swecli.lazy_pattern import lazy_pattern

_NAME_PATTERNS = frozenset(("-g", "--glob", "--iglob", "--include"))

_SIGNATURES = lazy_pattern(r"%G|%\(\*?signature|^(--sort=)?-?\*?signature")
"""Options that make git check signatures, which starts another program."""

_LISTS = frozenset(("strings", "less", "more", "lsof", "nm", "size", "readelf", "objdump", "c++filt"))
"""Programs for which a word after ``@`` or ``+`` is a list of words, or a command, rather than a file."""

_COUNTERS = frozenset(("tokei", "cloc", "scc"))
"""Programs that show nothing of what they read but its amount."""

_DEREFERENCE = frozenset(("-L", "-D", "-H", "--dereference", "--dereference-args"))


class _Parsed(Struct):
    options: set[str] = field(default_factory=lambda: set[str]())
    texts: list[tuple[str, str]] = field(default_factory=lambda: list[tuple[str, str]]())
    """Options with their values."""
    files: list[str] = field(default_factory=lambda: list[str]())
    """Files that options name."""
    operands: list[str] = field(default_factory=lambda: list[str]())
    sequence: list[tuple[str, str]] = field(default_factory=lambda: list[tuple[str, str]]())
    """Options with their values, or without a name operands, in the order given."""
    paths_from: int | None = None
    """How many operands preceded ``--``."""


def check_table(name: str, table: Table, arguments: Sequence[str | None], situation: Situation) -> None:
    """Raise ``UnprovenError`` unless these arguments only read, and only what may be read without a question."""
    if table.operands == "any":
        return
    known = [argument for argument in arguments if argument is not None]
    if len(known) != len(arguments):
        raise UnprovenError(f"an argument of {name} is unknown")
    if name.startswith("git ") and any(_SIGNATURES.search(argument) for argument in known):
        raise UnprovenError("git would run another program to check signatures")
    parsed = _parse(name, table, known)
    _check_options(name, table, parsed, situation)
    _check_operands(name, table, parsed, situation)
    _check_searched(name, table, parsed, situation)


# --- reading options -----------------------------------------------------------------------------------------------


def _parse(name: str, table: Table, arguments: Sequence[str]) -> _Parsed:
    parsed = _Parsed()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            parsed.paths_from = len(parsed.operands)
            parsed.operands += rest
            parsed.sequence += (("", word) for word in rest)
            break
        if argument == "-" or not argument.startswith("-"):
            parsed.operands.append(argument)
            parsed.sequence.append(("", argument))
        elif argument in table.words or (table.digits and re.fullmatch(r"-[0-9]+", argument)):
            parsed.options.add(argument)
            parsed.sequence.append((argument, ""))
        elif argument.startswith("--"):
            _long(name, table, argument, rest, parsed)
        else:
            _short(name, table, argument, rest, parsed)
    return parsed


def _long(name: str, table: Table, argument: str, rest: list[str], parsed: _Parsed) -> None:
    option, equals, value = argument[2:].partition("=")
    parsed.options.add(f"--{option}")
    parsed.sequence.append((f"--{option}", ""))
    takes_value = option in table.long_values or option in table.long_files
    if equals:
        if not takes_value and option not in table.long_optional and option not in table.long_last:
            raise UnprovenError(f"{name} --{option} may do more than read")
        _keep(option in table.long_files, argument, value, parsed)
    elif takes_value:
        _keep(option in table.long_files, argument, _next(name, argument, rest), parsed)
    elif option in table.long_last:
        if rest:
            _keep(False, argument, _next(name, argument, rest), parsed)
    elif option not in table.long and option not in table.long_optional:
        raise UnprovenError(f"{name} {argument} may do more than read")


def _short(name: str, table: Table, argument: str, rest: list[str], parsed: _Parsed) -> None:
    letters = argument[1:]
    if not table.cluster and len(letters) > 1:
        raise UnprovenError(f"{name} {argument} may do more than read")
    for index, letter in enumerate(letters):
        parsed.options.add(f"-{letter}")
        parsed.sequence.append((f"-{letter}", ""))
        attached = letters[index + 1 :]
        if letter in table.flags:
            continue
        if letter in table.optional:
            _keep(False, f"-{letter}", attached, parsed)
        elif letter in table.values or letter in table.files:
            if table.apart and attached and not re.fullmatch(r"[0-9]+", attached):
                raise UnprovenError(f"{name} interprets {argument} in its own way")
            _keep(letter in table.files, f"-{letter}", attached or _next(name, f"-{letter}", rest), parsed)
        elif table.digits and letters[index:].isascii() and letters[index:].isdigit():
            parsed.sequence[-1] = (f"-{letters[index:]}", "")
            return
        else:
            raise UnprovenError(f"{name} -{letter} may do more than read")
        return


def _keep(is_file: bool, option: str, value: str, parsed: _Parsed) -> None:
    if is_file:
        parsed.files.append(value)
    else:
        parsed.texts.append((option.partition("=")[0], value))
    parsed.sequence[-1] = (option.partition("=")[0], value)


def _next(name: str, option: str, rest: list[str]) -> str:
    if not rest:
        raise UnprovenError(f"the option {option} of {name} has no value")
    value = rest.pop(0)
    backwards = option == "--sort" and name.startswith("git ") and re.fullmatch(r"-[a-z]+(:[a-z]+)?", value)
    if value.startswith("-") and not backwards and not re.fullmatch(r"-[0-9]*", value):
        raise UnprovenError(f"the value {value} of {name} {option} looks like an option")
    return value


# --- judging options -----------------------------------------------------------------------------------------------


def _check_options(name: str, table: Table, parsed: _Parsed, situation: Situation) -> None:
    if table.require and not table.require & parsed.options:
        needed = sorted(word for word in table.require if not word.startswith("--")) or sorted(table.require)
        raise UnprovenError(f"{name} without {' or '.join(needed)} may do more than read")
    for file in parsed.files:
        check_content(file, situation)
    for option, text in parsed.texts:
        if option in _NAME_PATTERNS and looks_for_secrets(text, situation):
            situation.object_to_reading(f"{text} may stand for files that hold secrets")


def _check_operands(name: str, table: Table, parsed: _Parsed, situation: Situation) -> None:
    operands = parsed.operands
    if table.follow & parsed.options:
        start = 1 if table.operands.startswith("pattern") and not table.pattern_by & parsed.options else 0
        for operand in operands[start:] or ["."]:
            check_tree(operand, situation)
    if table.opens_links:
        for operand in operands:
            check_tree(operand, situation)
    if table.max is not None and len(operands) > table.max:
        raise UnprovenError(f"{name} may write to its operand number {table.max + 1}")
    if operands and operands[0] in table.refuse:
        raise UnprovenError(f"{name} {operands[0]} may change something")
    match table.operands:
        case "none":
            if operands:
                raise UnprovenError(f"{name} with an operand may change something")
        case "plus":
            if any(not operand.startswith("+") for operand in operands):
                raise UnprovenError(f"{name} with an operand may change something")
        case "subcommand":
            _check_subcommand(name, table, parsed)
        case "text":
            if table.list_by and operands and not table.list_by & parsed.options:
                raise UnprovenError(f"{name} with a name may create it")
        case "names":
            for operand in operands:
                _not_a_list(name, operand)
                check_name(operand, situation)
        case "entries":
            for operand in operands:
                (check_name if _DEREFERENCE & parsed.options else check_entry)(operand, situation)
        case "words":
            for operand in operands:
                if "/" in operand:
                    raise UnprovenError(f"{name} reads {operand} as a file")
        case "anywhere":
            pass
        case "files":
            for operand in operands:
                _not_a_list(name, operand)
                check_content(operand, situation)
        case "revisions":
            _check_revisions(operands, parsed, situation)
        case _:
            _check_pattern(name, table, parsed, situation)


def _check_searched(name: str, table: Table, parsed: _Parsed, situation: Situation) -> None:
    """Check everything read below the operands, besides the operands themselves."""
    operands = parsed.operands
    start = 1 if operands and not table.pattern_by & parsed.options else 0
    if name in ("grep", "egrep", "fgrep"):
        by_value = any(option in ("-d", "--directories") and value == "recurse" for option, value in parsed.texts)
        if table.recursive & parsed.options or by_value:
            check_grep(parsed.options, parsed.texts, operands[start:], situation)
    elif name == "rg" and not {"--files", "--type-list"} & parsed.options:
        check_ripgrep(parsed.options, parsed.texts, operands[start:], situation)
    elif name == "diff" and {"-r", "--recursive"} & parsed.options:
        check_trees(name, operands, situation)
    elif name == "gofmt":
        check_below(name, operands, Reach(links=True), lambda path: path.endswith(".go"), situation)
    elif name in _COUNTERS and situation.rules.rules:
        check_below(name, operands or ["."], Reach(links=True), situation.covered, situation)
    elif name.startswith("git "):
        for option, value in parsed.texts:
            if option == "-L" and name not in ("git blame", "git annotate"):  # there, an operand names the file
                for colon in re.finditer(":", value):
                    check_content(value[colon.end() :], situation)
        first = start if name == "git grep" else 0
        if name == "git cat-file":
            revisions, paths = operands, []
        elif parsed.paths_from is not None:
            revisions, paths = operands[first : parsed.paths_from], operands[max(first, parsed.paths_from) :]
        else:
            paths = [operand for operand in operands[first:] if _may_be_path(operand, situation)]
            revisions = [operand for operand in operands[first:] if operand not in paths]
        words = GitWords(parsed.options, parsed.texts, parsed.sequence, revisions, paths)
        check_git(name, words, situation)
        if name == "git remote get-url" or (name == "git remote" and {"-v", "--verbose"} & parsed.options):
            check_git_settings(name, situation)


def _may_be_path(operand: str, situation: Situation) -> bool:
    """Whether git may treat an operand as a path rather than a revision."""
    if operand.startswith((":!", ":^", ":(")) or any(char in operand for char in "*?[\\"):
        return True
    return any(situation.facts.kind(path) != "missing" for path in absolute(operand, situation))


def _not_a_list(name: str, operand: str) -> None:
    if operand.startswith(("@", "+")) and name in _LISTS:
        raise UnprovenError(f"{name} does not treat {operand} as a file")


def _check_subcommand(name: str, table: Table, parsed: _Parsed) -> None:
    if not parsed.operands:
        if parsed.options <= {"--version", "-V", "-v"} and parsed.options:
            return
        raise UnprovenError(f"{name} without a subcommand is not understood")
    if parsed.operands[0] not in table.subcommands:
        raise UnprovenError(f"{name} {parsed.operands[0]} may change files")


def _check_revisions(operands: Sequence[str], parsed: _Parsed, situation: Situation) -> None:
    for index, operand in enumerate(operands):
        if parsed.paths_from is not None and index >= parsed.paths_from:
            if not operand.startswith((":!", ":^")):  # excluded
                check_content(operand, situation)
        else:
            check_revision(operand, situation)


def _check_pattern(name: str, table: Table, parsed: _Parsed, situation: Situation) -> None:
    operands, start = list(parsed.operands), 0
    if operands and not table.pattern_by & parsed.options:
        start = 1
    if table.operands == "pattern-revisions":
        for operand in operands[start:]:
            check_revision(operand, situation)
        return
    for operand in operands[start:]:
        check_content(operand, situation)
    if len(operands) == start and (name in ("rg", "fd", "fdfind") or table.recursive & parsed.options):
        check_content(".", situation)
