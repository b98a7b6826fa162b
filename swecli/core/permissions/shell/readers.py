"""Commands that may print files which they do not name: what rules about reading hold for beside the proof.

The proof follows the commands that it understands. This looks at all others, as far as their words show what they read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from typing import cast

from msgspec import Struct

from swecli.core.permissions.facts import Reach
from swecli.core.permissions.paths import within_text
from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.shell.destructive import Place
from swecli.core.permissions.shell.scan import ScanWord, is_long_option
from swecli.core.permissions.shell.started import Started
from swecli.core.permissions.shell.subcommands import without_global_options
from swecli.core.permissions.types import Rule


class Showing(Struct, frozen=True):
    """What a command may show: ``reason`` is a sentence. ``certain``: a file that the rule covers is among what it
    reads now."""

    rule: Rule
    reason: str
    certain: bool


class _Readers(Struct, frozen=True):
    recursive: Mapping[str, frozenset[str]]
    always: frozenset[str]
    here: frozenset[str]
    leaving_out: Mapping[str, frozenset[str]]
    contents: frozenset[str]
    listing: frozenset[str]
    git: frozenset[str]
    code_options: frozenset[str]
    code_names: frozenset[str]
    code_words: re.Pattern[str]


@cache
def _readers() -> _Readers:
    import tomllib
    from pathlib import Path

    data = tomllib.loads(Path(__file__).with_name("readers.toml").read_text(encoding="utf-8"))
    recursive = {name: frozenset(text.split()) for name, text in cast("dict[str, str]", data["recursive"]).items()}
    always = recursive.pop("always")
    words = "|".join(cast("str", data["code"]["words"]).split())
    return _Readers(
        recursive,
        always,
        frozenset(data["here"]["names"].split()),
        {name: frozenset(text.split()) for name, text in cast("dict[str, str]", data["leaving_out"]).items()},
        frozenset(data["contents"]["names"].split()),
        frozenset(data["listing"]["names"].split()),
        frozenset(data["git"]["names"].split()),
        frozenset(data["code"]["options"].split()),
        frozenset(data["code"]["names"].split()),
        re.compile(rf"(?<![\w.])(?:{words})\b|\.(?:{words})\b|<\w*>|`"),
    )


def git_content(item: Started) -> str:
    """The subcommand of a git command that may print the content of files; empty for any other command."""
    if item.name != "git":
        return ""
    words = [word.text for word in item.words[1:]]
    name = next(iter(words[without_global_options("git", words) :]), "")
    return name if name in _readers().git else ""


def showing(items: Sequence[Started], rules: ReadRules, place: Place) -> Iterator[Showing]:
    """What these commands may show although a rule about reading covers it."""
    if not rules.rules:
        return
    for item in items:
        yield from _recursive(item, rules, place)
        yield from _of_git(item, rules, place)
        yield from _code(item, rules)
    yield from _given(items, rules, place)


def _recursive(item: Started, rules: ReadRules, place: Place) -> Iterator[Showing]:
    readers = _readers()
    if item.name not in readers.always and not _has_option(item, readers.recursive.get(item.name, frozenset())):
        return
    words, values = _parts(item)
    folders = list(dict.fromkeys(path for word in words for path in _folders(word, place)))
    if not folders and item.name in readers.here:
        folders = list(place.bases)
    for folder in folders:
        found = _covered_below(folder, item.name, values, rules, place)
        if found is not None:
            yield found


def _has_option(item: Started, options: frozenset[str]) -> bool:
    for word in item.words[1:]:
        text = word.text
        for option in options:
            if option.startswith("--"):
                if is_long_option(text, option):
                    return True
            elif re.match(rf"-[A-Za-z0-9]*{option[1]}", text):
                return True
    return False


def _folders(word: ScanWord, place: Place) -> Iterator[str]:
    text = word.text.partition("=")[2] if word.text.startswith("-") else word.text
    for base in place.bases if text and len(text) < 1_000 else ():
        path = within_text(text, base, place.home)
        if word.glob or not word.known:
            folder = posixpath.dirname(path) if word.glob else path
            if place.facts.kind(folder) == "directory":
                yield place.resolve(folder)
        elif place.facts.kind(path) == "directory":
            yield place.resolve(path)


def _covered_below(folder: str, name: str, left_out: Sequence[str], rules: ReadRules, place: Place) -> Showing | None:
    found = place.facts.secrets_below(folder, Reach(links=True), lambda path: rules.covering(path) is not None)
    if found is None:
        rule = rules.rules[0]
        return Showing(rule, f"{name} may read what your rule {rule.text} covers.", certain=False)
    for path in found:
        rule = rules.covering(path) or rules.covering(place.resolve(path))
        if rule is not None and not _leaves_out(left_out, posixpath.relpath(path, folder)):
            shown = posixpath.relpath(path, place.bases[0])
            reason = f"{name} would read {shown}, which your rule {rule.text} covers; exclude it with an option."
            return Showing(rule, reason, certain=True)
    return None


def _leaves_out(values: Sequence[str], path: str) -> bool:
    """Whether the values of a command's options surely leave a file out."""
    parts = path.split("/")
    for value in values:
        plain = re.sub(r"^\./|/\*{0,2}$", "", value)
        if "/" in plain:
            if fnmatchcase(path, plain) or path.startswith(f"{plain}/"):
                return True
        elif plain and any(fnmatchcase(part, plain) for part in parts):
            return True
    return False


def _parts(item: Started) -> tuple[list[ScanWord], list[str]]:
    """The words of a command that may name what it reads, and the values of the options that leave files out: after
    ``=``, in the next words (zip: all of them), or after ``!`` (7z). A glob leaves files out only behind ``!``."""
    words: list[ScanWord] = []
    values: list[str] = []
    current, options = "", _readers().leaving_out.get(item.name, frozenset())
    for word in item.words[1:]:
        option, equals, value = word.text.partition("=")
        if word.known and item.name.startswith("7z") and word.text.startswith(("-xr!", "-x!")):
            values.append(word.text.partition("!")[2])
        elif option in options:
            values += _of_glob(option, value) if word.known and equals else ()
            current = "" if equals else option
        elif current and word.known and not word.text.startswith("-"):
            values += _of_glob(current, word.text)
            current = current if item.name == "zip" else ""
        else:
            words.append(word)
            current = ""
    return words, values


def naming(item: Started) -> list[ScanWord]:
    """The words of a command, without its name, that may name a file it touches: not those that leave files out."""
    if item.name == "git":
        return [word for word in item.words[1:] if not word.text.startswith((":!", ":^", ":(exclude)"))]
    if item.name in ("find", "gfind"):
        return [word for at, word in enumerate(item.words) if at and not _is_excluded_path(item.words, at)]
    return _parts(item)[0]


def _is_excluded_path(words: Sequence[ScanWord], at: int) -> bool:
    """Whether a word of find is the pattern of files that it passes over."""
    texts = [word.text for word in words[max(0, at - 2) : at + 2]]
    before, test = texts[:2] if at >= 2 else ("", "")
    return test in _PATH_TESTS and (before in ("-not", "!") or texts[-1] == "-prune")


_PATH_TESTS = frozenset(("-path", "-ipath", "-wholename", "-iwholename", "-name", "-iname"))


def _of_glob(option: str, value: str) -> tuple[str, ...]:
    if option not in ("-g", "--glob", "--iglob"):
        return (value,)
    return (value[1:],) if value.startswith("!") else ()


def _of_git(item: Started, rules: ReadRules, place: Place) -> Iterator[Showing]:
    name = git_content(item)
    if not name:
        return
    texts = [word.text for word in item.words[1:]]
    out = [text[2:] for text in texts if text.startswith((":!", ":^"))]
    for base in place.bases:
        tracked = place.facts.tracked_files(base)
        for path in tracked or ():
            rule = rules.covering(path)
            relative = posixpath.relpath(path, base)
            if rule is not None and not any(relative == each or relative.startswith(f"{each}/") for each in out):
                reason = f"git {name} may show {relative}, which your rule {rule.text} covers."
                yield Showing(rule, reason, certain=True)
                return
    rule = rules.rules[0]
    yield Showing(rule, f"git {name} may show what your rule {rule.text} covers.", certain=False)


def _code(item: Started, rules: ReadRules) -> Iterator[Showing]:
    readers = _readers()
    if item.name.rstrip("0123456789.") not in readers.code_names:
        return
    texts = [word.text for before, word in pairwise(item.words) if before.text in readers.code_options]
    texts += [item.found.stdin] if item.found.stdin else []
    if any(readers.code_words.search(text) for text in texts):
        rule = rules.rules[0]
        yield Showing(rule, f"{item.name} may read what your rule {rule.text} covers.", certain=False)


_PASSING_NAMES = frozenset(("xargs", "parallel", "find", "gfind", "fd", "fdfind"))
"""Programs that start another one with names."""


def _given(items: Sequence[Started], rules: ReadRules, place: Place) -> Iterator[Showing]:
    """Programs that get the names of what they print from another one."""
    readers = _readers()
    for item in items:
        computed = any(not word.known and not word.text.startswith("-") for word in item.words[1:])
        before = item.found.words[: len(item.found.words) - len(item.words)]
        listed = any(word.text.rpartition("/")[2] in _PASSING_NAMES for word in before)
        if item.name not in readers.contents or not (computed or listed):
            continue
        listers = [each for each in items if each.name in readers.listing and each is not item]
        for lister in listers:
            folders = [path for word in lister.words[1:] for path in _folders(word, place)] or list(place.bases)
            for folder in folders:
                found = _covered_below(folder, item.name, (), rules, place)
                if found is not None:
                    yield found
        if not listers:
            rule = rules.rules[0]
            reason = f"{item.name} may read what your rule {rule.text} covers: its files are known only when it runs."
            yield Showing(rule, reason, certain=False)
