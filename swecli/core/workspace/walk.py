"""Walking a tree: globs and ignore rules; links are entries and never followed."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from swecli.core.braces import without_braces
from swecli.core.git import common_directory, git_directory
from swecli.core.workspace.text_file import read_bytes
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


IGNORE_FILES = (".gitignore", ".ignore", ".swecliignore")
_OWN_LOGS = ".swecli/logs"
"""swecli's session logs in a project, which are not part of it."""
GENERATED = frozenset(
    ("node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache")
)
"""Folders that tools fill and can fill again."""
NOT_OWN = GENERATED | {".git", ".hg", ".svn"}
"""Folders without a project's own files."""
MOSTLY_BUILT = frozenset(("target", "dist", "build"))
"""Folders that usually contain build results."""
_LIMIT = 262_144
_MANY = 500
"""Paths from which on one expression for all patterns saves more time than it takes to compile."""
_GROUP_NAME = lazy_pattern(r"\(\?P<\w+>")
_MAX_STARS = 3
"""Wildcards in one part of a pattern. Patterns become regular expressions, and a repository could choose an endlessly
slow one; patterns beyond the limit are not applied."""


class IgnoreRules:
    """The rules of one tree. Ignore files are read on first use of their directory."""

    def __init__(self, root: Path, names: Iterable[str] = IGNORE_FILES) -> None:
        self.root = root
        self._names = tuple(names)
        self._by_folder: dict[str, tuple[tuple[int, _Patterns], ...]] = {}

    def entry_ignored(self, path: str, is_dir: bool) -> bool:
        """Whether an entry with no ignored parent is ignored. ``path`` is relative, with slashes."""
        folder, _, name = path.rpartition("/")
        if name == ".git" or (path.endswith(_OWN_LOGS) and path[: -len(_OWN_LOGS)][-1:] in ("", "/")):
            return True
        shown = path + "/" if is_dir else path
        for start, patterns in self._for(folder):
            verdict = patterns.verdict(shown[start:])
            if verdict is not None:
                return verdict
        return False

    def ignored(self, path: str, is_dir: bool) -> bool:
        """Whether ``path`` or a directory above it is ignored."""
        parts = path.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self.entry_ignored(folder, True) for folder in above) or self.entry_ignored(path, is_dir)

    def _for(self, folder: str) -> tuple[tuple[int, _Patterns], ...]:
        """The patterns for entries of ``folder``, the deepest first, each with the start of the part of a path that
        they are about."""
        known = self._by_folder.get(folder)
        if known is None:
            known, parts = (), folder.split("/") if folder else []
            for depth in range(len(parts) + 1):
                parent = "/".join(parts[:depth])
                if parent not in self._by_folder:
                    own = self._load(parent)
                    self._by_folder[parent] = ((len(parent) + bool(parent), own), *known) if own is not None else known
                known = self._by_folder[parent]
        return known

    def _load(self, folder: str) -> _Patterns | None:
        names = self._names
        if not folder and ".gitignore" in names:
            names = (*_excludes_of(self.root), *names)
        lines: list[str] = []
        for name in names:
            path = os.path.join(self.root, folder, name)  # few folders have any; a Path would take longer than the look
            if not os.path.lexists(path):
                continue
            try:
                data, _ = read_bytes(Path(path), _LIMIT)
            except OSError:
                continue
            lines += data.decode("utf-8-sig", "replace").splitlines()
        lines = [line for line in lines if line.strip() and not line.startswith("#") and is_simple(line)]
        return _Patterns(_compiled(lines)) if lines else None


def _excludes_of(root: Path) -> tuple[str, ...]:
    """Path of a repository's own ignore file, which all its work trees share; empty outside a repository."""
    try:
        directory = git_directory(root) or root / ".git"  # which may be a link
        return (str(common_directory(directory) / "info" / "exclude"),)
    except OSError:
        return ()


class _Patterns:
    """The patterns of one folder's ignore files. After many paths one expression for all of them finds the paths that
    none matches, which are most."""

    def __init__(self, spec: GitIgnoreSpec) -> None:
        self._spec = spec
        self._asked = 0
        self._any: re.Pattern[str] | None = None

    def verdict(self, path: str) -> bool | None:
        """Whether ``path`` is ignored; None if no pattern says so or the opposite."""
        if self._any is None:
            self._asked += 1
            if self._asked == _MANY:
                self._any = _union(self._spec)
        elif self._any.match(path) is None:
            return None
        return self._spec.check_file(path).include


def _union(spec: GitIgnoreSpec) -> re.Pattern[str]:
    told = [cast("re.Pattern[str] | None", pattern.regex) for pattern in spec.patterns if pattern.include is not None]
    return re.compile("|".join(_GROUP_NAME.sub("(?:", regex.pattern) for regex in told if regex is not None) or r"(?!)")


def ignore_root(start: Path, roots: Iterable[Path]) -> Path:
    """Where the ignore files for ``start`` begin: its repository, else its workspace directory."""
    for folder in (start, *start.parents):
        if os.path.exists(folder / ".git"):
            return folder
    return next((root for root in roots if start.is_relative_to(root)), start)


def is_simple(line: str) -> bool:
    """Whether a pattern of gitignore stays within the limits for those that a repository chooses."""
    return all(part == "**" or part.count("*") <= _MAX_STARS for part in line.split("/")) and (
        line.count("**") <= _MAX_STARS
    )


def _compiled(lines: list[str]) -> GitIgnoreSpec:
    """The rules; invalid lines are skipped, as in git."""
    from pathspec import GitIgnoreSpec  # not needed before the first file is examined

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_valid(line)])


def _is_valid(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def left_out_by_ripgrep(directory: str) -> Callable[[str, bool], bool]:
    """Whether ripgrep, started on ``directory`` without options, skips an absolute path below it because of an ignore
    file. It uses git's only inside a repository."""
    start = Path(directory)
    root = ignore_root(start, ())
    names = (".gitignore", ".ignore", ".rgignore") if os.path.exists(root / ".git") else (".ignore", ".rgignore")
    rules = IgnoreRules(root, names)

    def left_out(path: str, is_directory: bool) -> bool:
        relative = os.path.relpath(path, root)
        return not relative.startswith("..") and rules.entry_ignored(relative, is_directory)

    return left_out


_MOST_SEARCHED = 64
"""Patterns that the braces of a search may stand for: it tries each on every path."""


class Glob:
    """A pattern without a slash matches the last name of a path, any other the whole path, relative to the start of the
    search. A leading ``!`` inverts it."""

    def __init__(self, pattern: str) -> None:
        self._negated = pattern.startswith("!")
        bare = pattern.removeprefix("!").removeprefix("./").rstrip("/")
        self._alternatives = tuple(_segments(alternative) for alternative in _alternatives(bare))

    def matches(self, path: str) -> bool:
        parts = tuple(path.split("/"))
        return any(_match(alternative, parts) for alternative in self._alternatives) != self._negated


def _segments(pattern: str) -> tuple[str, ...]:
    if "/" not in pattern:
        return ("**", pattern)
    return tuple(part for part in pattern.split("/") if part)


def _alternatives(pattern: str) -> list[str]:
    """Beyond a limit braces are literal."""
    try:
        return without_braces(pattern, _MOST_SEARCHED)
    except ValueError:
        return [pattern]


def _match(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    @cache
    def rest(at: int, part: int) -> bool:
        if at == len(pattern):
            return part == len(parts)
        if pattern[at] == "**":
            if at == len(pattern) - 1:
                return part < len(parts)
            return any(rest(at + 1, later) for later in range(part, len(parts) + 1))
        return part < len(parts) and fnmatchcase(parts[part], pattern[at]) and rest(at + 1, part + 1)

    return rest(0, 0)


_MAX_DEPTH = 64


class Entry(NamedTuple):
    """``path`` is relative to the start of the walk, with slashes; ``depth`` counts from 1."""

    path: str
    is_dir: bool
    depth: int
    is_file: bool = True
    """Whether it is a regular file."""


def walk(
    start: Path,
    roots: tuple[Path, ...],
    *,
    max_depth: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    skip: Callable[[str], bool] = lambda folder: False,
) -> Iterator[Entry]:
    """Entries below ``start``, a directory before its contents and the deepest last, so that a limit cuts deep levels.
    Unreadable directories, and those that ``skip`` rejects, are skipped.

    An ignored directory can be walked by naming it: rules from above it don't count then.
    """
    root = ignore_root(start, roots)
    rules = IgnoreRules(root)
    prefix = "" if start == root else start.relative_to(root).as_posix() + "/"
    if prefix and rules.ignored(prefix[:-1], True):
        rules, prefix = IgnoreRules(start, IGNORE_FILES), ""
    limit = min(max_depth or _MAX_DEPTH, _MAX_DEPTH)
    waiting = deque([("", 0)])
    while waiting and not stop():
        folder, depth = waiting.popleft()
        if folder:
            yield Entry(folder, True, depth, is_file=False)
        if depth >= limit:
            continue
        for name, is_dir, is_file in _entries(start / folder):
            path = f"{folder}/{name}" if folder else name
            if rules.entry_ignored(prefix + path, is_dir):
                continue
            if not is_dir:
                yield Entry(path, False, depth + 1, is_file)
            elif not skip(path):
                waiting.append((path, depth + 1))


def _entries(folder: Path) -> list[tuple[str, bool, bool]]:
    try:
        with os.scandir(folder) as entries:
            listing = [
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                for entry in entries
            ]
    except OSError:
        return []
    return sorted(listing)
