"""Commands that may print files which they do not name: what rules about reading hold for beside the proof.

The proof follows the commands that it understands. This looks at all others, as far as their words show what they read.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.permissions.facts import Reach
from swecli.core.permissions.paths import within_text
from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.shell.destructive import Place
from swecli.core.permissions.shell.scan import FoundCommand, ScanWord, is_long_option
from swecli.core.permissions.shell.started import Started
from swecli.core.permissions.shell.subcommands import without_global_options
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.shell.tables import tables
from swecli.core.permissions.shell.wrapped import unwrap
from swecli.core.permissions.types import Rule
from swecli.lazy_pattern import lazy_pattern


class Showing(Struct, frozen=True):
    """What a command may show: ``reason`` is a sentence. ``certain``: a file that the rule covers is among what it
    reads now. ``maskable``: the command shows nothing of it where a mount hides the files."""

    rule: Rule
    reason: str
    certain: bool
    maskable: bool = True


class _Readers(Struct, frozen=True):
    recursive: Mapping[str, frozenset[str]]
    always: frozenset[str]
    following: Mapping[str, frozenset[str]]
    here: frozenset[str]
    leaving_out: Mapping[str, frozenset[str]]
    contents: frozenset[str]
    listing: frozenset[str]
    git: frozenset[str]
    git_with: Mapping[str, frozenset[str]]
    git_plain: frozenset[str]
    git_moving: frozenset[str]
    plain: frozenset[str]
    elsewhere: frozenset[str]


@cache
def _readers() -> _Readers:
    import tomllib
    from pathlib import Path

    data = tomllib.loads(Path(__file__).with_name("readers.toml").read_text(encoding="utf-8"))
    recursive = {name: frozenset(text.split()) for name, text in cast("dict[str, str]", data["recursive"]).items()}
    always = recursive.pop("always")
    return _Readers(
        recursive,
        always,
        {name: frozenset(text.split()) for name, text in cast("dict[str, str]", data["following"]).items()},
        frozenset(data["here"]["names"].split()),
        {name: frozenset(text.split()) for name, text in cast("dict[str, str]", data["leaving_out"]).items()},
        frozenset(data["contents"]["names"].split()),
        frozenset(data["listing"]["names"].split()),
        frozenset(data["git"]["names"].split()),
        {name: frozenset(text.split()) for name, text in cast("dict[str, str]", data["git_with"]).items()},
        frozenset(data["git"]["plain"].split()),
        frozenset(data["git"]["moving"].split()),
        frozenset(data["plain"]["names"].split()),
        frozenset(data["elsewhere"]["names"].split()),
    )


def git_content(item: Started) -> str:
    """The subcommand of a git command that may print the content of files; empty for any other command."""
    if item.name != "git":
        return ""
    name, rest = _subcommand(item)
    readers = _readers()
    if name in readers.git:
        return name
    options = readers.git_with.get(name, frozenset())
    bare = {option for option in options if not option.startswith("-")}
    copies = name == "clone" and not any(_REMOTE.match(word.text) for word in rest)
    return name if copies or bare & {word.text for word in rest[:1]} or _has_option(rest, options - bare) else ""


def moves_work_tree(item: Started) -> bool:
    """Whether a git command may put files of the history into the work tree; an unknown one, perhaps an alias, may."""
    if item.name != "git":
        return False
    name, _ = _subcommand(item)
    readers = _readers()
    return name in readers.git_moving or not (name in readers.git_plain or name in readers.git)


_REMOTE = lazy_pattern(r"(?!file:)(?:[a-z+]+://|[\w.-]+@?[\w.-]*:(?!/?$))")
"""How the address of a repository on another machine begins."""


def _subcommand(item: Started) -> tuple[str, Sequence[ScanWord]]:
    """The subcommand of a git command, and the words behind it."""
    words = item.words[1:]
    rest = words[without_global_options("git", [word.text for word in words]) :]
    return (rest[0].text if rest else ""), rest[1:]


def showing(items: Sequence[Started], rules: ReadRules, place: Place) -> Iterator[Showing]:
    """What these commands may show although a rule about reading covers it."""
    if not rules.rules:
        return
    for item in items:
        yield from _recursive(item, rules, place)
        yield from _of_git(item, rules, place)
    yield from _given(items, rules, place)


def reads_all_below(item: Started) -> bool:
    """Whether a command reads or moves everything below the folders that it names."""
    readers = _readers()
    options = readers.recursive.get(item.name, frozenset())
    return item.name in readers.always or _has_option(item.words[1:], options)


def prints_content(item: Started) -> bool:
    """Whether a program prints or copies each file that it is given."""
    return item.name in _readers().contents


def _recursive(item: Started, rules: ReadRules, place: Place) -> Iterator[Showing]:
    if not reads_all_below(item):
        return
    words, values = _parts(item)
    folders = list(dict.fromkeys(path for word in words for path in _folders(word, place)))
    if not folders and item.name in _readers().here:
        folders = list(place.bases)
    for folder in folders:
        shown = _covered_below(folder, item.name, values, rules, place, _reach(item))
        if shown is not None:
            yield shown


def _reach(item: Started) -> Reach:
    """What a search looks into: everything, unless it is ripgrep without an option that widens it."""
    computed = any(not word.known for word in item.words[1:])
    widened = item.name != "rg" or computed or any(_WIDENS.match(word.text) for word in item.words[1:])
    return Reach(hidden=widened, ignored=widened, links=computed or _follows(item))


def _follows(item: Started) -> bool:
    """Whether a program may follow the links that it finds."""
    listed = _readers().following.get(item.name)
    if listed is None:
        return True
    keeping = frozenset(option[1:] for option in listed if option.startswith("!"))
    return _has_option(_options(item), listed) if not keeping else not _has_option(_options(item), keeping)


_TAR = frozenset(("tar", "gtar", "bsdtar"))


def _options(item: Started) -> Sequence[ScanWord]:
    """The words behind a name; the first one of tar has its options also without a dash."""
    words = item.words[1:]
    if item.name in _TAR and words and not words[0].text.startswith("-"):
        return (replace(words[0], text=f"-{words[0].text}"), *words[1:])
    return words


_WIDENS = lazy_pattern(r"-[A-Za-z0-9]*[u.g]|--(?:no-ignore|hidden|unr|glob|iglob|files-from|pre)")


def _has_option(words: Sequence[ScanWord], options: frozenset[str]) -> bool:
    for word in words:
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


def _covered_below(
    folder: str, name: str, left_out: Sequence[str], rules: ReadRules, place: Place, reach: Reach
) -> Showing | None:
    secrets = place.facts.secrets_below(folder, reach, rules)
    if secrets is None:
        rule = rules.rules[0]
        return Showing(rule, f"{name} may read what your rule {rule.text} covers.", certain=False)
    for path in secrets:
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
                yield Showing(rule, reason, certain=True, maskable=False)
                return
    rule = rules.rules[0]
    yield Showing(rule, f"git {name} may show what your rule {rule.text} covers.", certain=False, maskable=False)


def unseen(items: Sequence[Started], rules: ReadRules) -> Iterator[Showing]:
    """Commands whose words do not tell what they read: programs of the project, interpreters, build tools."""
    if not rules.rules:
        return
    rule = rules.rules[0]
    program: tuple[ScanWord, ...] = ()
    wrapped: FoundCommand | None = None
    for item in items:
        if item.found is wrapped and item.words != program:
            continue  # words of the wrapper, or behind the program that it starts
        behind = _program_behind(item)
        if behind:
            program, wrapped = behind, item.found
        elif item.name in tables().lists["wrappers"] or item.found is not wrapped:
            wrapped = None
        elsewhere = item.name in _readers().elsewhere
        if elsewhere or not _tells_what_it_reads(item):
            name = f"git {_subcommand(item)[0]}".rstrip() if item.name == "git" else item.name or "a computed program"
            what = f"what your rule {rule.text} covers, and its words do not tell what it reads."
            yield Showing(rule, f"{name} may read {what}", certain=False, maskable=not elsewhere and item.name != "git")


_XARGS_OPTION = lazy_pattern(r"-[0rtx]+|-[nPLI]\S+|--null|--no-run-if-empty")


def _program_behind(item: Started) -> tuple[ScanWord, ...]:
    """The words of the command that a wrapper surely starts; empty if it is none, or that is not sure."""
    texts = [word.text if word.known and not word.glob else None for word in item.words[1:]]
    rest: Sequence[str | None] | None = None
    if item.name in ("nohup", "setsid", "exec", "builtin"):
        rest = texts
    elif item.name == "xargs":
        before = next((at for at, text in enumerate(texts) if not text or not _XARGS_OPTION.fullmatch(text)), 0)
        rest = texts[before:]
    else:
        with contextlib.suppress(UnprovenError):
            rest = unwrap(item.name, texts, lambda name, value: True)
    if not rest or not rest[0] or rest[0].startswith("-"):
        return ()
    return item.words[-len(rest) :]


def _tells_what_it_reads(item: Started) -> bool:
    readers = _readers()
    if item.computed:
        return False
    if item.name == "git":
        name, _ = _subcommand(item)
        return name in readers.git_plain or name in readers.git or name in readers.git_with
    if item.name in tables().lists["shells"]:
        return any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text) for word in item.words[1:])
    known = item.name in readers.plain or item.name in readers.always or item.name in readers.recursive
    return known and item.name not in ("cpio", "pax") and not _lists_names(item)


_TAR_LISTS = frozenset(("-T",))
_LISTS = lazy_pattern(
    r"-T|-K|--files?(?:0)?-from|--null|-@$|@.|-[ix]r?@.|--input-file|--config|:{3,4}\+?$|--arg-file|-a$"
)
"""Options with a file that names the files to read."""


def _lists_names(item: Started) -> bool:
    if item.name in _TAR and _has_option(_options(item), _TAR_LISTS):
        return True
    return any(_LISTS.match(word.text) for word in item.words[1:])


def tells_by_words(item: Started) -> bool:
    """Whether a word with blanks is no code that might name files: it is text for a program that opens none by it."""
    return item.name == "git" or (item.name in _readers().plain and item.name not in tables().lists["shells"])


_PASSING_NAMES = frozenset(("xargs", "parallel", "find", "gfind", "fd", "fdfind"))
"""Programs that start another one with names."""


def is_given_names(item: Started) -> bool:
    """Whether another program starts this one with names that it finds or reads."""
    before = item.found.words[: len(item.found.words) - len(item.words)]
    return any(word.text.rpartition("/")[2] in _PASSING_NAMES for word in before)


def _given(items: Sequence[Started], rules: ReadRules, place: Place) -> Iterator[Showing]:
    """Programs that get the names of what they print from another one."""
    readers = _readers()
    for item in items:
        computed = any(not word.known and not word.text.startswith("-") for word in item.words[1:])
        if item.name not in readers.contents or not (computed or is_given_names(item)):
            continue
        listers = [each for each in items if each.name in readers.listing and each is not item]
        for lister in listers:
            folders = [path for word in lister.words[1:] for path in _folders(word, place)] or list(place.bases)
            for folder in folders:
                shown = _covered_below(folder, item.name, (), rules, place, Reach(links=True))
                if shown is not None:
                    yield shown
        if not listers:
            rule = rules.rules[0]
            reason = f"{item.name} may read what your rule {rule.text} covers: its files are known only when it runs."
            yield Showing(rule, reason, certain=False)
