"""Files that a command reads from a tree: whether a search may show lines from files with secrets."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from swecli.core.permissions.facts import Reach
from swecli.core.permissions.paths import inside, is_secret
from swecli.core.permissions.shell.expand import Situation, absolute
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.shell.tables import tables
from swecli.core.secret_names import is_test_key

Texts = Sequence[tuple[str, str]]
"""Options with their values, in order."""

_RIPGREP_ALL = frozenset(("-u", "--unrestricted"))
_RIPGREP_HIDDEN = frozenset(("-.", "--hidden", *_RIPGREP_ALL))


def check_grep(options: Collection[str], texts: Texts, operands: Sequence[str], situation: Situation) -> None:
    """Raise ``UnprovenError`` if a recursive grep over these operands reads a secret, or that is unknown."""
    pruned = tuple(value.rstrip("/") for option, value in texts if option == "--exclude-dir")
    chosen = [(option, value) for option, value in texts if option in ("--include", "--exclude")]

    def read(path: str) -> bool:
        verdict = not chosen or chosen[0][0] == "--exclude"
        for option, pattern in chosen:
            if fnmatchcase(posixpath.basename(path), pattern):
                verdict = option == "--include"
        return verdict

    links = not {"-R", "--dereference-recursive"}.isdisjoint(options)
    check_below("grep", operands or ["."], Reach(pruned=pruned, links=links), read, situation)


def check_ripgrep(options: Collection[str], texts: Texts, operands: Sequence[str], situation: Situation) -> None:
    """Raise ``UnprovenError`` if ripgrep over these operands reads a secret, or that is unknown. It skips hidden and
    ignored files unless a glob or an option asks for them."""
    if not operands and situation.piped:
        return
    globs = [(option == "--iglob", value) for option, value in texts if option in ("-g", "--glob", "--iglob")]
    wanted = any(not value.startswith("!") for _, value in globs)
    types = [value for option, value in texts if option in ("-t", "--type")]
    redefined = any(option in ("--type-add", "--type-clear") for option, _ in texts)
    known, endings_of = not redefined, tables().ripgrep_types
    known = known and all(name in endings_of for name in types)
    endings = tuple(ending for name in types for ending in endings_of[name]) if known else ()
    ignored = wanted or bool(_RIPGREP_ALL & set(options)) or any(option.startswith("--no-ignore") for option in options)
    # A later glob takes precedence, and one that is no exclusion may bring a folder back.
    last_wanted = max((at for at, (_, value) in enumerate(globs) if not value.startswith("!")), default=-1)
    reach = Reach(
        hidden=wanted or bool(_RIPGREP_HIDDEN & set(options)),
        ignored=ignored,
        links=not {"-L", "--follow"}.isdisjoint(options),
        pruned=tuple(
            match[1]
            for _, value in globs[last_wanted + 1 :]
            if (match := re.fullmatch(r"!(?:\*\*/)?([^/{}\[\]]+?)(?:/(?:\*\*)?)?", value))
        ),
    )

    def read(path: str) -> bool:
        if types and endings and not path.casefold().endswith(endings):
            return False
        verdict = not wanted
        for fold, value in globs:
            bare = value.removeprefix("!")
            if glob_takes(bare, path.casefold() if fold else path, loose=not value.startswith("!"), fold=fold):
                verdict = not value.startswith("!")
        return verdict

    check_below("rg", operands or ["."], reach, read, situation)


def check_listed(
    name: str, predicates: Sequence[str], starts: Sequence[str], situation: Situation, reach: Reach | None = None
) -> None:
    """Raise ``UnprovenError`` if a command that reads the files find lists gets a secret, or that is unknown."""
    alternatives = {"-o", "-or", ",", "(", ")"} & set(predicates)
    negated = ("-not", "!")
    names = [
        (word == "-iname", predicates[at + 1])
        for at, word in enumerate(predicates[:-1])
        if word in ("-name", "-iname") and not alternatives and predicates[at - 1] not in negated
    ]
    passed_over = [
        (test, predicates[at + 2])
        for at, (word, test) in enumerate(pairwise(predicates[:-1]))
        if word in negated and test in ("-name", "-path", "-wholename") and not alternatives
    ]

    def read(path: str) -> bool:
        base = posixpath.basename(path)
        if not all(fnmatchcase(base.casefold() if fold else base, p.casefold() if fold else p) for fold, p in names):
            return False
        return not any(_passes_over(test, pattern, path, starts, situation) for test, pattern in passed_over)

    links = not {"-L", "-follow"}.isdisjoint(predicates)
    check_below(name, starts or ["."], reach or Reach(links=links), read, situation)


def _passes_over(test: str, pattern: str, path: str, starts: Sequence[str], situation: Situation) -> bool:
    """Whether find, started at any of these, does not list a file because of a negated test."""
    if test == "-name":
        return fnmatchcase(posixpath.basename(path), pattern)
    below = [
        posixpath.join(start, posixpath.relpath(path, posixpath.normpath(top)))
        for start in starts or ["."]
        for top in absolute(start, situation)
        if path.startswith(posixpath.normpath(top).rstrip("/") + "/")
    ]
    return bool(below) and all(fnmatchcase(each, pattern) for each in below)


def check_trees(name: str, operands: Sequence[str], situation: Situation) -> None:
    """Raise ``UnprovenError`` if a command that compares whole trees reads a secret, or that is unknown."""
    check_below(name, operands, Reach(links=True), lambda path: True, situation)


def check_below(
    name: str, starts: Sequence[str], reach: Reach, read: Callable[[str], bool], situation: Situation
) -> None:
    if situation.effects_only:
        return
    for start in starts:
        for path in absolute(start, situation):
            secrets = situation.facts.secrets_below(path, reach, situation.rules if situation.rules.rules else None)
            if secrets is None:
                rule = next(iter(situation.rules.rules), None)
                what = "secrets" if rule is None else f"secrets and for what your rule {rule.text} covers"
                raise UnprovenError(f"{start} is too large to check for {what}", soft=True, rule=rule)
            reads = [path for path in (*secrets, *_checked_out(path, reach, situation)) if read(path)]
            # A rule comes first: consent to reading a secret must not include what it covers.
            first = next(iter((*filter(situation.covered, reads), *reads)), None)
            if first is not None:
                shown = posixpath.relpath(first, posixpath.normpath(path))
                rule = situation.rules.covering(first) or situation.rules.covering(situation.facts.resolve(first))
                why = "may hold secrets" if rule is None else f"your rule {rule.text} covers"
                raise UnprovenError(
                    f"{name} would read {shown}, which {why}; exclude it with an option", soft=True, rule=rule
                )


def _checked_out(folder: str, reach: Reach, situation: Situation) -> Iterator[str]:
    """Files below a folder that may hold secrets or that a rule covers, which an earlier git command of the script may
    bring back from the history."""
    if not situation.moved:
        return
    listed = ("log", "--all", "--full-history", "--format=", "--no-renames", "--no-relative", "--name-only", "-z")
    names = situation.facts.names_shown(situation.start, listed)
    if names is None:
        raise UnprovenError("an earlier git command may bring files with secrets back", soft=True, git_knows=True)
    top = situation.facts.repository(situation.start)
    for name in dict.fromkeys(name.lstrip("\n") for name in names):
        path = posixpath.normpath(posixpath.join(top, name))
        below = posixpath.relpath(path, folder)
        pruned = any(fnmatchcase(part, pattern) for part in below.split("/") for pattern in reach.pruned)
        hidden = not reach.hidden and any(part.startswith(".") for part in below.split("/"))
        if inside(path, (folder,)) is None or pruned or hidden:
            continue
        secret = is_secret(f"/{below}", situation.facts.secret_names) and not is_test_key(path)
        if secret or situation.covered(path):
            yield path


def glob_takes(pattern: str, path: str, *, loose: bool, fold: bool) -> bool:
    """Whether a glob may match a path. ``loose`` errs towards yes, otherwise towards no."""
    text = pattern.casefold() if fold else pattern
    expression, at, depth = "", 0, 0
    while at < len(text):
        char = text[at]
        if text.startswith("**", at):
            expression, at = expression + ".*", at + (3 if text.startswith("**/", at) else 2)
            continue
        if char == "*":
            expression += ".*" if loose else "[^/]*"
        elif char == "?":
            expression += "."
        elif char == "[" and (end := text.find("]", at + 2)) > 0:
            expression, at = expression + ("." if loose else "(?!)"), end
        elif char == "{":
            expression, depth = expression + "(?:", depth + 1
        elif char == "}" and depth:
            expression, depth = expression + ")", depth - 1
        elif char == "," and depth:
            expression += "|"
        else:
            expression += re.escape(char)
        at += 1
    expression += ")" * depth
    return re.search(rf"(?:^|/)(?:{expression.lstrip('/')})$", path, re.DOTALL) is not None
