"""Proof that the commands behind find -exec, xargs and a list of names only read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from swecli.core.permissions.facts import Reach
from swecli.core.permissions.paths import is_secret
from swecli.core.permissions.shell.expand import (
    Situation,
    absolute,
    check_content,
    check_name,
    check_tree,
    expand,
    looks_for_secrets,
)
from swecli.core.permissions.shell.history import GitWords, check_git
from swecli.core.permissions.shell.searched import check_listed
from swecli.core.permissions.shell.syntax import Command, Simple, UnprovenError, Word
from swecli.core.permissions.shell.tables import tables
from swecli.core.permissions.shell.values import Listed
from swecli.lazy_pattern import lazy_pattern

NAME_TO_COME = "./{}"
"""Placeholder for each name of the list."""
_XARGS = "the text xargs passes on"
_SHELL = "the text from $(…)"
_UNDERSTOOD = "{} may not be file names"
_GIT_OPTIONS = frozenset(("-z", "-c", "-m", "-o", "--cached", "--modified", "--others", "--exclude-standard", "--"))
_SEARCH_OPTIONS = lazy_pattern(
    r"-[rRlLiwEFPZsIunHh]+|--(include|exclude|exclude-dir|glob|type)=.*|--(files|files-with-matches|recursive|ignore-case"
    r"|null|hidden|no-ignore|word-regexp)|-e|-g|-t|-[gt].+"
)
_NAME_TESTS = frozenset(("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname", "-ilname"))


_SEARCHES = frozenset(("grep", "egrep", "fgrep"))
_ENDING = lazy_pattern(r"(?:[\w-]+/)*(?:\*\*?/)*\*\.[A-Za-z0-9]+")


def check_executed(
    inner: Sequence[str], predicates: Sequence[str], starts: Sequence[str], situation: Situation
) -> None:
    """Raise ``UnprovenError`` unless a command may get every file that find meets. Its own options are judged
    elsewhere."""
    lists = tables().lists
    name = inner[0] if inner else ""
    predicates = _before_actions(predicates)
    if name not in lists["listed_names"] | lists["listed_content"]:
        raise UnprovenError(f"{name or 'nothing'} may change the files that find lists")
    _check_tests(name, predicates, situation)
    if name not in lists["listed_names"]:
        check_listed(name, predicates, starts, situation)
    if _required(predicates, "-type") == ["f"] and {"-L", "-follow"}.isdisjoint(predicates):
        return  # no link is listed
    for start in starts or ["."]:
        check_tree(start, situation, _required(predicates, "-name")[:1] or ("*",))


_ACTIONS = frozenset(("-exec", "-execdir", "-print", "-print0", "-printf", "-ls"))


def _before_actions(predicates: Sequence[str]) -> Sequence[str]:
    """The tests of find that hold for every file it lists: what stands behind an action does not limit it."""
    action = next((at for at, word in enumerate(predicates) if word in _ACTIONS), len(predicates))
    return predicates[:action]


def _required(predicates: Sequence[str], test: str) -> list[str]:
    """The values of a test that every listed file passes."""
    if not {"-o", "-or", ",", "(", ")"}.isdisjoint(predicates):
        return []
    return [
        predicates[at + 1]
        for at, word in enumerate(predicates[:-1])
        if word == test and (at == 0 or predicates[at - 1] not in ("-not", "!"))
    ]


def _check_tests(name: str, predicates: Sequence[str], situation: Situation) -> None:
    if name not in tables().lists["listed_content"]:
        return
    for position, word in enumerate(predicates[:-1]):
        if word in ("-regex", "-iregex") or (
            word in _NAME_TESTS and looks_for_secrets(predicates[position + 1], situation)
        ):
            situation.object_to_reading(f"{name} may read files that hold secrets")


def unwrap_xargs(listed: Listed, arguments: Sequence[str | None], situation: Situation) -> list[str | None]:
    """The command that ``xargs`` starts with the names that another command lists. That one is judged elsewhere.

    Raises:
        UnprovenError: it may get forbidden operands.
    """
    rest = list(arguments)
    placeholder: str | None = None
    while rest and rest[0] is not None and rest[0].startswith("-"):
        option = rest.pop(0) or ""
        if option in ("-n", "-P", "-L", "-I", "--max-args", "--max-procs"):
            value = rest.pop(0) if rest else None
            if value is None or not (option == "-I" or value.isdigit()):
                raise UnprovenError("this use of xargs is not understood")
            placeholder = value if option == "-I" else placeholder
        elif option == "-I{}":
            placeholder = "{}"
        elif not re.fullmatch(r"-[0rt]+|-[nPL]\d+|--null|--no-run-if-empty", option):
            raise UnprovenError("this use of xargs is not understood")
    rest = rest or ["echo"]  # the default of xargs
    inner = [word for word in rest if word is not None]
    if len(inner) != len(rest) or (placeholder is not None and any(placeholder in word for word in inner[:1])):
        raise UnprovenError("this use of xargs is not understood")
    _check_names(_listed_here(listed, situation), inner, situation, split_by_shell=False)
    return [NAME_TO_COME if placeholder is not None and placeholder in word else word for word in inner]


def with_names(
    producer: Sequence[str | None], arguments: Sequence[str | None], situation: Situation
) -> list[str | None]:
    """The command that takes the output of ``producer``, split by the shell, as its last operands. The producer is
    judged elsewhere.

    Raises:
        UnprovenError: it may get forbidden operands.
    """
    inner = [word for word in arguments if word is not None]
    if len(inner) != len(arguments):
        raise UnprovenError(_UNDERSTOOD.format(_SHELL))
    _check_names(producer, inner, situation, split_by_shell=True)
    return list(inner)


def check_each_name(listed: Listed, inner: Sequence[str], situation: Situation) -> None:
    """Raise ``UnprovenError`` unless a command may get each of the names that another command lists, in a loop. Both
    are judged elsewhere."""
    _check_names(_listed_here(listed, situation), inner, situation, split_by_shell=True)


def _listed_here(listed: Listed, situation: Situation) -> tuple[str | None, ...]:
    if listed.cwds != situation.cwds:
        raise UnprovenError("names that were listed in another directory are not checked")
    return listed.words


def _check_names(
    producer: Sequence[str | None], inner: Sequence[str], situation: Situation, *, split_by_shell: bool
) -> None:
    lists = tables().lists
    if inner and inner[0] in lists["listed_any"]:
        return
    words = [word for word in producer if word is not None]
    names = _SHELL if split_by_shell else _XARGS
    if words[:1] == ["git"] and situation.cwds != (situation.start,):
        raise UnprovenError("the names that git lists after cd are not checked")
    if len(words) != len(producer) or not words:
        raise UnprovenError(_UNDERSTOOD.format(names))
    if words[0] == "git" and words[1:2] != ["ls-files"]:
        _check_changed(words, inner, situation, names)
        return
    _check_producer(words, names)
    starts = ["."]
    of_git = words[:2] == ["git", "ls-files"] and {"-o", "--others"}.isdisjoint(words)
    if words[0] == "find":
        starts = _starts(words[1:])
        check_executed(inner, words, starts, situation)
    else:
        if not inner or inner[0] not in lists["listed_names"] | lists["listed_content"]:
            raise UnprovenError(f"{names} goes to a command that may change files")
        shown = inner[0] in lists["listed_content"] - _SEARCHES
        if shown and words[0] == "git" and not any(map(_ENDING.fullmatch, words[2:])):
            raise UnprovenError(f"{names} may be any file that git knows")
        for word in words[1:]:
            if word.startswith("/") or ".." in word.split("/"):
                raise UnprovenError(f"{names} may be elsewhere")
            if looks_for_secrets(word, situation) or is_secret("/" + word, situation.facts.secret_names):
                situation.object_to_reading(f"{word} may hold secrets")
        if not of_git:
            check_tree(".", situation)
        elif situation.facts.tracked_links_lead_outside(situation.start, situation.roots):
            situation.object_to_reading("a link that git tracks may lead outside the workspace")
        if inner[0] in lists["listed_content"]:
            _check_listed(words, inner[0], situation)
    paths = [path for start in starts for path in absolute(start, situation)]
    tests = _required(_before_actions(words), "-name")[:1] if words[0] == "find" else []
    wild, names = split_by_shell, tests or ("*",)
    if not of_git and any(situation.facts.odd_names(path, wildcards=wild, names=names) for path in paths):
        raise UnprovenError("some names in the workspace would be split, expanded or taken as options")
    if words[0] == "git" and situation.facts.odd_tracked_names(situation.start, wildcards=split_by_shell):
        raise UnprovenError("some names that git tracks would be split, expanded or taken as options")


_CHANGED_OPTIONS = lazy_pattern(
    r"--name-only|--cached|--staged|--no-renames|--diff-filter=[A-Za-z]+|--(format|pretty=format:)=?|-[0-9]+|-n[0-9]+|-r"
    r"|--no-commit-id|--merge-base|--"
)


_OF_ONE_FILE = ("blame", "diff", "log")
"""Subcommands of git that show only what concerns the path behind ``--``."""
_NAMES_OF_ALL = ("--no-ext-diff", "--no-textconv", "--no-renames", "-z")
"""A file that was renamed is listed under both of its names."""


def _check_changed(words: Sequence[str], inner: Sequence[str], situation: Situation, names: str) -> None:
    """Raise unless a command may get the names of changed files that git lists, which git is asked for."""
    options = [word for word in words[2:] if word.startswith("-")]
    fine = words[1:2] in (["diff"], ["show"], ["log"], ["diff-tree"]) and "--name-only" in options
    lists = tables().lists
    if not fine or not all(map(_CHANGED_OPTIONS.fullmatch, options)):
        raise UnprovenError(_UNDERSTOOD.format(names))
    if words[1] in ("show", "log") and not {"--format=", "--pretty=format:"} & set(options):
        raise UnprovenError(_UNDERSTOOD.format(names))
    of_git = len(inner) > 3 and inner[0] == "git" and inner[1] in _OF_ONE_FILE and inner[-2:] == ["--", NAME_TO_COME]
    if not inner or (inner[0] not in lists["listed_names"] | lists["listed_content"] and not of_git):
        raise UnprovenError(f"{names} goes to a command that may change files")
    if situation.facts.repository(situation.start) != situation.start:
        raise UnprovenError("git lists these names from another directory")
    if situation.moved or situation.edited:
        raise UnprovenError("an earlier command may change the names that git lists")
    found = situation.facts.names_shown(situation.start, (words[1], *_NAMES_OF_ALL, *words[2:]))
    if found is None:
        raise UnprovenError("git did not say which names it lists", soft=True, git_knows=True)
    for name in dict.fromkeys(each.lstrip("\n") for each in found):
        if re.fullmatch(r"[\w./@+,=-]*", name) is None or name.startswith("-"):
            raise UnprovenError("some names that git lists would be split, expanded or taken as options")
        if name:
            (check_name if inner[0] in lists["listed_names"] else check_content)(name, situation)


def _check_listed(words: Sequence[str], name: str, situation: Situation) -> None:
    """Raise if the names that git, grep or ripgrep list for ``name`` may include a secret."""
    if words[0] == "git" and not {"-o", "--others"} & set(words):
        check_git("git grep", GitWords(), situation)
        return
    wide = any(re.match(r"-(-hidden|-no-ignore|-glob|-iglob|g|\.|[a-zA-Z]*u)", word) for word in words[1:])
    narrow = words[0] == "rg" and not wide
    check_listed(name, (), ["."], situation, Reach(hidden=not narrow, ignored=not narrow))


def producer(commands: Sequence[Command], situation: Situation) -> tuple[str | None, ...] | None:
    """The words of the command whose lines a pipeline prints, ignoring commands that only drop or sort lines. None if
    it is not one plain command."""
    for command in reversed(commands):
        if not isinstance(command, Simple) or command.assignments:
            return None
        # stderr does not enter the pipe.
        if any(redirect.fd != "2" or redirect.operator not in (">", ">>") for redirect in command.redirects):
            return None
        words = tuple(word.literal for word in command.words)
        if not _only_selects(words):
            return words if None not in words else _expanded(command, situation)
    return None


def _expanded(command: Simple, situation: Situation) -> tuple[str | None, ...]:
    """The words of a command as far as they are known here."""
    try:
        return tuple(argument for word in command.words for argument in expand(word, situation))
    except UnprovenError:
        return tuple(word.literal for word in command.words)


def list_of_names(words: Sequence[Word], situation: Situation) -> tuple[str | None, ...] | None:
    """The command that prints the last operands, if these are an unquoted ``$( … )`` of one pipeline and all before is
    known."""
    lists = tables().lists
    if words[0].literal not in lists["listed_names"] | lists["listed_content"]:
        return None
    if len(words) < 2 or any(segment.script is not None for word in words[:-1] for segment in word.segments):
        return None
    return names_of_substitution(words[-1], situation)


def names_of_substitution(word: Word, situation: Situation) -> tuple[str | None, ...] | None:
    """The command that prints the names in a word that is an unquoted ``$( … )`` of one pipeline."""
    only = word.segments[0] if len(word.segments) == 1 else None
    if only is None or only.quoted or only.script is None or only.kind != "commands":
        return None
    items = only.script.items
    if len(items) != 1 or len(items[0].items) != 1:
        return None
    found = producer(items[0].items[0][1].commands, situation)
    return found if found is not None and found[:1] not in (("pwd",), ("seq",), ("basename",), ("dirname",)) else None


def _only_selects(words: Sequence[str | None]) -> bool:
    """Whether a command only passes on whole lines of its input."""
    known = [word for word in words if word is not None]
    if len(known) != len(words):
        return False
    options = " ".join(known[1:])
    match known[:1]:
        case ["head"] | ["tail"]:
            return re.fullmatch(r"(-n ?[+-]?\d+|-\d+)?", options) is not None
        case ["sort"]:
            return re.fullmatch(r"(-[ruVnf]+)?", options) is not None
        case ["uniq"] | ["tac"] | ["cat"]:
            return not options
        case ["grep"] | ["egrep"] | ["fgrep"]:
            rest = [word for word in known[1:] if not re.fullmatch(r"-[viEFPwx]+|-e", word)]
            return len(rest) == 1 and not rest[0].startswith("-")
        case _:
            return False


def _check_producer(words: Sequence[str], names: str) -> None:
    """Raise unless the command only prints names that it finds."""
    lists = tables().lists
    options = [word for word in words[1:] if word.startswith("-")]
    match words[0]:
        case "find":
            harmless = (lists["find_alone"] | lists["find_value"] | lists["find_file"]) - {"-printf", "-ls"}
            # A value that begins with a dash, such as -mtime -7, is not an option.
            fine = all(word in harmless or re.fullmatch(r"-\d+[a-zA-Z]?", word) for word in options)
        case "git":
            fine = words[1:2] == ["ls-files"] and all(word in _GIT_OPTIONS for word in options)
        case "grep" | "egrep" | "fgrep" | "rg":
            listing = any(re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z]*|--files(-with-matches)?", word) for word in options)
            fine = listing and all(_SEARCH_OPTIONS.fullmatch(word) for word in options)
        case "ls":
            fine = len(options) == len(words) - 1 and all(re.fullmatch(r"-[1AatrS]+", word) for word in options)
        case _:
            fine = False
    if not fine:
        raise UnprovenError(_UNDERSTOOD.format(names))


def _starts(words: Sequence[str]) -> list[str]:
    starts: list[str] = []
    for word in words:
        if word in ("-P", "-H", "-L"):
            continue
        if word.startswith(("-", "(", "!", ",")):
            break
        starts.append(word)
    return starts or ["."]
