"""File-system facts for the decision, behind a small protocol that keeps the decision pure."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from swecli.core.git import (
    GitFailedError,
    has_objects,
    read_git,
    refs_state,
    repository_of,
    tracked,
    tracked_names,
)
from swecli.core.permissions.git_facts import (
    credentials_in,
    git_problem,
    personal_settings,
    settings_of,
)
from swecli.core.permissions.history_names import HistoryNames
from swecli.core.permissions.listings import MAX_SEARCHED, Listings, covered
from swecli.core.permissions.paths import folders_above, inside, is_secret
from swecli.core.permissions.version_managers import chosen_version
from swecli.core.secret_names import SecretNames, is_test_key, secret_names
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from subprocess import Popen

    from swecli.core.permissions.rules import ReadRules

PathKind = Literal["file", "directory", "other", "missing"]

MAX_NAMES = 5_000
MAX_TREE = 5_000
_OF_HISTORY = ("log", "show", "ls-tree")
"""Commands of git that show nothing of the work tree."""
_PASSING = lazy_pattern(r"-g|--(?:walk-)?reflog|--(?:until|before|since|after)|.*@\{")
"""Words of git that mean something else at another time, or with another reflog."""
GIT_SECONDS = 0.7
"""Seconds that git may take to report what a command would destroy: a question waits for it."""
LEARN_SECONDS = 5.0
"""Seconds that git may take to list the history where nobody waits for it."""
OUTPUT_SECONDS = 5.0
"""Seconds for which git's output is reused."""
MAX_OUTPUT = 2_000_000
"""Bytes of git's output."""
_MAX_HISTORY = 64_000_000
_MOST_SHOWN = 32
"""Lists of names that are kept."""
MAX_MENTIONING = 65_536
"""Bytes of a settings file that are read at most."""
_ODD_NAME = lazy_pattern(r"[\s'\"\\]|^-")
_ODD_OR_WILD = lazy_pattern(r"[\s'\"\\*?\[]|^-")
_MAPPING = lazy_pattern(r"""\{|["']?[\w-]+["']?[ \t]*:(?:\s|$)""")
"""How JSON and YAML with keys begin."""
_TABLE = lazy_pattern(r"""\[|["']?[\w-]+["']?[ \t]*[.=]""")
"""How TOML begins."""


class BlastRadius(Struct, frozen=True):
    """Amount in a place: files, folders, bytes. ``whole`` is False if counting stopped early."""

    files: int = 0
    folders: int = 0
    size: int = 0
    whole: bool = True

    def __add__(self, other: BlastRadius) -> BlastRadius:
        return BlastRadius(
            self.files + other.files, self.folders + other.folders, self.size + other.size, self.whole and other.whole
        )


class Reach(Struct, frozen=True):
    """Scope of a recursive search: whether it covers ``hidden`` names and ``ignored`` files, the folder names it skips
    (``pruned``, wildcards allowed), and whether it follows ``links``."""

    hidden: bool = True
    ignored: bool = True
    pruned: tuple[str, ...] = ()
    links: bool = False


Ignoring = Callable[[str], Callable[[str, bool], bool]]
"""For a directory, a predicate: whether the ignore files exclude an absolute path below it (second argument: whether
the path is a directory)."""


def nothing_ignored(directory: str) -> Callable[[str, bool], bool]:
    return lambda path, is_directory: False


class GitObject(Struct, frozen=True):
    """``hash`` is empty if there is no such object."""

    kind: Literal["commit", "tree", "blob", "missing"]
    hash: str = ""


class FileFacts:
    """Facts about the disk at the moment of the decision. Paths are absolute; only git's own configuration and archives
    are opened for their content. This base class knows nothing, so no command with operands is proven."""

    own_names: tuple[str, ...] = ()
    """Patterns of the user's for names of files that may hold secrets."""

    @property
    def secret_names(self) -> SecretNames:
        return secret_names(self.own_names)

    def resolve(self, path: str) -> str:
        """The path with links followed as far as it exists."""
        return os.path.normpath(path)

    def kind(self, path: str) -> PathKind:
        """The kind of entry at ``path``, links followed."""
        return "other"

    def size(self, path: str) -> int:
        """Bytes of a file; 0 if missing."""
        return 0

    def read_only(self, path: str) -> bool:
        """Whether the mode of a file protects its content."""
        return False

    def names_elsewhere(self, path: str, roots: Sequence[str]) -> int:
        """How many hard links of a file lie outside ``roots``; 0 if it is missing."""
        return 0

    def blast_radius(self, path: str) -> BlastRadius:
        """The amount at and below ``path``, links not followed."""
        return BlastRadius(whole=False)

    def unknown_to_git(self, paths: Sequence[str], cwd: str) -> int | None:
        """How many files at and below ``paths`` git does not track; None without a repository or if unknown."""
        return None

    def git_lines(self, cwd: str, arguments: Sequence[str]) -> tuple[str, ...] | None:
        """Output lines of a git command that changes nothing; None if git may not start, fails or takes too long."""
        return None

    def repository(self, cwd: str) -> str:
        """The work tree around a folder; the folder itself without one."""
        return cwd

    def names_shown(self, cwd: str, arguments: Sequence[str]) -> tuple[str, ...] | None:
        """The names that a git command lists, separated by NUL characters; none in a repository without any object.
        None if git may not start, fails or takes too long."""
        return None

    def history(self, cwd: str) -> frozenset[str] | None:
        """Every name that a file ever had in the repository around a folder, relative to its work tree: in any revision
        that a branch, tag, stash or reflog leads to. None if git may not start, fails or takes too long."""
        return None

    def kept_back(self, cwd: str, about: Hashable, is_kept_back: Callable[[str], bool]) -> tuple[str, ...] | None:
        """The absolute paths of ``history`` for which ``is_kept_back`` holds, whose answers depend on ``about``. None
        if they are not known yet; starts no program."""
        return None

    def learn_history(self, cwd: str, running: list[Popen[bytes]]) -> None:
        """Find out in good time what ``history`` will be asked for. For a thread, as git may take seconds; its process
        is in ``running`` meanwhile."""

    def objects(self, cwd: str, revisions: Sequence[str]) -> tuple[GitObject, ...] | None:
        """What each of these words means to git, tags followed; None if that is unknown."""
        return None

    def names_of_blob(self, cwd: str, start: str) -> tuple[str, ...]:
        """The tracked names, as absolute paths, of the content with a hash that starts like this."""
        return ()

    def names(self, directory: str) -> tuple[str, ...] | None:
        """The names in a directory; empty if it is none, None if there are too many to judge."""
        return None

    def members(self, archive: str) -> tuple[str, ...] | None:
        """Names of the files in an archive; None if it is none, or too large to list."""
        return None

    def leads_outside(self, path: str, roots: Sequence[str], names: Sequence[str] = ("*",)) -> bool:
        """Whether following links below ``path`` whose names match ``names`` may leave ``roots``; also True if it is
        too large to check."""
        return True

    def tracked_links_lead_outside(self, cwd: str, roots: Sequence[str]) -> bool:
        """Whether following links that git tracks may leave ``roots``; also True if unknown."""
        return True

    def odd_names(self, path: str, *, wildcards: bool = False, names: Sequence[str] = ("*",)) -> bool:
        """Whether a folder below ``path``, or a file there whose name matches ``names``, has blanks, quotes,
        backslashes or (with ``wildcards``) wildcards in its name, or begins with a dash; also True if it is too large
        to check."""
        return True

    def secrets_below(self, path: str, reach: Reach, rules: ReadRules | None = None) -> tuple[str, ...] | None:
        """Files below a directory that may hold secrets or that ``rules`` cover, within the reach of a search; None if
        it is too large to check. Empty for a file."""
        return None

    def tracked_files(self, cwd: str) -> tuple[str, ...] | None:
        """Tracked files in the repository of ``cwd``, as absolute paths; None if unknown."""
        return None

    def credentials_in(self, path: str) -> bool:
        """Whether a git configuration file contains a password or token, or can't be judged."""
        return False

    def git_settings(self, cwd: str) -> tuple[str, ...]:
        """Settings files that git would read in ``cwd``: the repository's, the user's and the machine's."""
        return ()

    def tracked_below(self, folder: str) -> bool | None:
        """Whether git tracks a folder or a file below it; None if unknown or without a repository."""
        return None

    def odd_tracked_names(self, cwd: str, *, wildcards: bool = False) -> bool:
        """Whether a tracked name in ``cwd``, existing or not, is odd as in ``odd_names``; also True if unknown."""
        return True

    def below(self, path: str, *, skipping: tuple[str, ...] = ()) -> tuple[str, ...] | None:
        """Relative names of everything below a directory except folders named in ``skipping``; None if it is too
        large."""
        return None

    def may_set(self, path: str, key: str) -> bool:
        """Whether a small settings file (JSON, YAML or TOML) may have this key, which escapes could hide, or is a text
        instead, which may name another file; also True if unknown."""
        return True

    def has_key(self, path: str, key: str) -> bool:
        """Whether a small JSON file has this top-level key; also True if unknown."""
        return True

    def program(self, name: str, cwd: str) -> str:
        """Path of a program found on PATH; empty if there is none."""
        return ""

    def program_problem(self, name: str, cwd: str, roots: Sequence[str]) -> str | None:
        """Why the program that the shell would start under this name is not reliable, as a clause; None if it lies
        outside the workspace or does not exist."""
        return f"{name} may be any program"

    def shell_problem(self, cwd: str, *, moving: bool) -> str | None:
        """Why the shell may deviate from the text, as a clause; ``moving`` if the command changes directory."""
        return "the shell's environment is unknown"

    def git_problem(self, cwd: str, roots: Sequence[str]) -> str | None:
        """Why git started here might run a program that the repository chose; None if it won't."""
        return "the repository's configuration is unknown"

    def without_programs(self) -> FileFacts:
        """The same facts without starting a program: anything only git knows is unknown."""
        return self


class OsFacts(FileFacts):
    """The real file system. ``environment`` is the environment of commands; its PATH decides which program a name
    means."""

    def __init__(
        self, environment: Mapping[str, str], ignoring: Ignoring = nothing_ignored, own_names: tuple[str, ...] = ()
    ) -> None:
        self.own_names = own_names
        self._environment = dict(environment)
        self._path = tuple(self._environment.get("PATH", os.defpath).split(os.pathsep))
        self._ignoring = ignoring
        self._git_output: dict[tuple[str, ...], tuple[float, tuple[str, ...] | None]] = {}
        """Recent git output: one call may be decided twice."""
        self._starts_programs = True
        self._listings = Listings(lambda: self.secret_names)
        self._shown: dict[tuple[object, ...], tuple[float, tuple[str, ...] | None]] = {}
        """The last names that git listed, by its words and the state of the repository, and when; None if it failed."""
        self._history = HistoryNames()

    def resolve(self, path: str) -> str:
        return _real(path)

    def kind(self, path: str) -> PathKind:
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            return "other" if os.path.islink(path) and not _dangling(path) else "missing"
        if stat.S_ISREG(mode):
            return "file"
        return "directory" if stat.S_ISDIR(mode) else "other"

    def size(self, path: str) -> int:
        try:
            return os.stat(path).st_size
        except (OSError, ValueError):
            return 0

    def read_only(self, path: str) -> bool:
        try:
            return not os.access(path, os.W_OK) or not os.stat(path).st_mode & 0o222
        except (OSError, ValueError):
            return True

    def names_elsewhere(self, path: str, roots: Sequence[str]) -> int:
        try:
            state = os.lstat(path)
        except (OSError, ValueError):
            return 0
        if not stat.S_ISREG(state.st_mode) or state.st_nlink < 2:
            return 0
        paths: set[str] = set()
        for root in roots:
            for entry in _tree(root, MAX_SEARCHED):
                if entry is None or len(paths) == state.st_nlink:
                    break
                if entry.inode() == state.st_ino and entry.stat(follow_symlinks=False).st_dev == state.st_dev:
                    paths.add(entry.path)
        return state.st_nlink - len(paths)

    def blast_radius(self, path: str) -> BlastRadius:
        try:
            state = os.lstat(path)
        except (OSError, ValueError):
            return BlastRadius()
        if not stat.S_ISDIR(state.st_mode):
            return BlastRadius(files=1, size=state.st_size)
        files, folders, size = 0, 1, 0
        for entry in _tree(path):
            if entry is None:
                return BlastRadius(files, folders, size, whole=False)
            if entry.is_dir(follow_symlinks=False):
                folders += 1
                continue
            files += 1
            try:
                size += entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue  # gone meanwhile
        return BlastRadius(files, folders, size)

    def members(self, archive: str) -> tuple[str, ...] | None:
        from swecli.core.permissions.archive_names import archive_names

        return archive_names(archive)

    def unknown_to_git(self, paths: Sequence[str], cwd: str) -> int | None:
        folder = repository_of(cwd)
        names = tracked_names(cwd) if folder is not None else None
        if folder is None or names is None:
            return None
        tracked = frozenset(os.path.join(folder, name) for name in names)
        count = 0
        for path in paths:
            if not os.path.isdir(path) or os.path.islink(path):
                count += path not in tracked
                continue
            for entry in _tree(path):
                if entry is None:
                    return None
                count += not entry.is_dir(follow_symlinks=False) and entry.path not in tracked
        return count

    def without_programs(self) -> OsFacts:
        facts = OsFacts(self._environment, self._ignoring, self.own_names)
        facts._starts_programs = False
        facts._listings, facts._shown, facts._history = self._listings, self._shown, self._history
        return facts

    def git_lines(self, cwd: str, arguments: Sequence[str]) -> tuple[str, ...] | None:
        if not self._starts_programs:
            return None
        key = (cwd, *arguments)
        before = self._git_output.get(key)
        if before is not None and time.monotonic() - before[0] < OUTPUT_SECONDS:
            return before[1]
        output = self._git(cwd, arguments)
        lines = tuple(os.fsdecode(line) for line in output.splitlines()) if output is not None else None
        self._git_output = {key: (time.monotonic(), lines)}
        return lines

    def repository(self, cwd: str) -> str:
        return repository_of(cwd) or cwd

    def names_shown(self, cwd: str, arguments: Sequence[str]) -> tuple[str, ...] | None:
        if not has_objects(cwd):
            return ()
        lasting = arguments[0] in _OF_HISTORY and not any(map(_PASSING.match, arguments))
        key = (cwd, *arguments, *refs_state(cwd)) if lasting else ()
        known = self._shown.get(key)
        if known is not None and (known[1] is not None or time.monotonic() - known[0] < OUTPUT_SECONDS):
            return known[1]
        if not self._starts_programs:
            return None
        output = self._git(cwd, arguments)
        names = tuple(os.fsdecode(name) for name in output.split(b"\0") if name) if output is not None else None
        if key:
            while len(self._shown) >= _MOST_SHOWN:
                self._shown.pop(next(iter(self._shown)))
            self._shown[key] = (time.monotonic(), names)
        return names

    def history(self, cwd: str) -> frozenset[str] | None:
        if not has_objects(cwd):
            return frozenset()
        names = self._history.known(cwd)
        if names is not None or not self._starts_programs:
            return names
        return self._history.learn(cwd, lambda words: self._git(cwd, words, most=_MAX_HISTORY), patience=GIT_SECONDS)

    def kept_back(self, cwd: str, about: Hashable, is_kept_back: Callable[[str], bool]) -> tuple[str, ...] | None:
        return self._history.kept_back(cwd, about, is_kept_back) if has_objects(cwd) else ()

    def learn_history(self, cwd: str, running: list[Popen[bytes]]) -> None:
        def ask(words: Sequence[str]) -> bytes | None:
            return self._git(cwd, words, seconds=LEARN_SECONDS, most=_MAX_HISTORY, running=running)

        if has_objects(cwd) and self._history.known(cwd) is None:
            self._history.learn(cwd, ask, patience=0, again=True)

    def objects(self, cwd: str, revisions: Sequence[str]) -> tuple[GitObject, ...] | None:
        if not has_objects(cwd):
            return (GitObject("missing"),) * len(revisions)
        if not self._starts_programs or any("\n" in word for word in revisions):
            return None
        # A word with a colon may be a search for a message, behind which nothing can follow a tag.
        words = [word if ":" in word else f"{word}^{{}}" for word in revisions]
        given = "".join(f"{word}\n" for word in words).encode("utf-8", "surrogateescape")
        output = self._git(cwd, ("cat-file", "--batch-check=%(objecttype) %(objectname)"), given)
        lines = [] if output is None else output.decode("utf-8", "replace").split("\n")[:-1]
        objects = [each for each in map(_git_object, lines) if each is not None]
        return tuple(objects) if len(objects) == len(words) else None

    def names_of_blob(self, cwd: str, start: str) -> tuple[str, ...]:
        folder = repository_of(cwd) or cwd
        return tuple(os.path.join(folder, each.name) for each in tracked(cwd) or () if each.blob.startswith(start))

    def _git(
        self,
        cwd: str,
        arguments: Sequence[str],
        given: bytes = b"",
        *,
        seconds: float = GIT_SECONDS,
        most: int = MAX_OUTPUT,
        running: list[Popen[bytes]] | None = None,
    ) -> bytes | None:
        folder, program = repository_of(cwd), self.program("git", cwd)
        if folder is None or not program:
            return None
        if self.program_problem("git", cwd, (folder,)) or git_problem(cwd, self._environment, (folder,)):
            return None
        try:
            output = read_git(program, cwd, arguments, self._environment, seconds, given=given, running=running)
        except GitFailedError:
            return None
        return output if len(output) <= most else None

    def names(self, directory: str) -> tuple[str, ...] | None:
        names: list[str] = []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if len(names) > MAX_NAMES:
                        return None
        except OSError:
            return ()
        return tuple(names)

    def leads_outside(self, path: str, roots: Sequence[str], names: Sequence[str] = ("*",)) -> bool:
        for folder, listed in self._listings.walk(path):
            if listed is None:
                return True
            for link in listed.links:
                chosen = any(fnmatchcase(link, pattern) for pattern in names)
                if chosen and inside(_real(os.path.join(folder, link)), roots) is None:
                    return True
        return False

    def tracked_links_lead_outside(self, cwd: str, roots: Sequence[str]) -> bool:
        tracked = self.tracked_files(cwd)
        if tracked is None:
            return True
        folders = dict.fromkeys(map(os.path.dirname, tracked))
        places = (*folders, *filter(os.path.islink, tracked))
        return any(inside(_real(path), roots) is None for path in places)

    def odd_names(self, path: str, *, wildcards: bool = False, names: Sequence[str] = ("*",)) -> bool:
        odd = _ODD_OR_WILD if wildcards else _ODD_NAME
        for _, listed in self._listings.walk(path):
            if listed is None or any(map(odd.search, listed.folders)):
                return True
            suspects = [name for name in (*listed.files, *listed.links) if odd.search(name)]
            if any(fnmatchcase(name, pattern) for name in suspects for pattern in names):
                return True
        return False

    def secrets_below(self, path: str, reach: Reach, rules: ReadRules | None = None) -> tuple[str, ...] | None:
        top = os.path.normpath(path)
        ignored = nothing_ignored(path) if reach.ignored else self._ignoring(path)
        if ignored(top, True):
            ignored = nothing_ignored(path)  # a search looks into an ignored folder that it is given
        secrets: list[str] = []
        pending, walked, seen = [(top, top)], {top}, 0
        while pending:
            shown, folder = pending.pop()  # they differ behind a link
            listed = self._listings.listed(folder, top)
            if listed is None:
                continue
            seen += listed.count
            if seen > MAX_SEARCHED:
                return None
            for link in listed.links if reach.links else ():
                target = _real(os.path.join(folder, link))
                if (link[0] == "." and not reach.hidden) or target in walked:
                    continue
                # Whatever keeps the search from the target under its own name does not hold for the link.
                shown_path = os.path.join(shown, link)
                if os.path.isdir(target):
                    walked.add(target)
                    pending.append((shown_path, target))
                elif self._is_kept_back(target, top) or (rules and rules.covering(target)):
                    secrets.append(shown_path)
            for name in listed.folders:
                pruned = any(fnmatchcase(name, pattern) for pattern in reach.pruned)
                below = os.path.join(shown, name)
                if not pruned and (reach.hidden or name[0] != ".") and not ignored(below, True):
                    pending.append((below, os.path.join(folder, name)))
            for name in dict.fromkeys((*listed.secret, *listed.settings, *covered(listed, folder, rules))):
                shown_path, real = os.path.join(shown, name), os.path.join(folder, name)
                harmless = name in listed.settings and not self.credentials_in(real)
                if harmless and name not in listed.secret and not (rules and rules.covering(real)):
                    continue
                if (reach.hidden or name[0] != ".") and not ignored(shown_path, False):
                    secrets.append(shown_path)
        return tuple(sorted(secrets))

    def _is_kept_back(self, target: str, top: str) -> bool:
        """Whether the target of a link may hold secrets, by its name below ``top`` or alone."""
        below = target[len(top) :] if target.startswith(f"{top}/") else f"/{os.path.basename(target)}"
        return is_secret(below, self.secret_names) and not is_test_key(below)

    def tracked_files(self, cwd: str) -> tuple[str, ...] | None:
        names = tracked_names(cwd)
        folder = repository_of(cwd) or cwd
        return None if names is None else tuple(os.path.join(folder, name) for name in names)

    def credentials_in(self, path: str) -> bool:
        return credentials_in(path)

    def git_settings(self, cwd: str) -> tuple[str, ...]:
        return (*settings_of(cwd), *personal_settings(self._environment))

    def tracked_below(self, folder: str) -> bool | None:
        top = repository_of(os.path.dirname(folder))
        names = tracked_names(top) if top is not None else None
        if top is None or names is None:
            return None
        inner = os.path.relpath(folder, top)
        return any(inside(name, (inner,)) is not None for name in names)

    def odd_tracked_names(self, cwd: str, *, wildcards: bool = False) -> bool:
        odd = _ODD_OR_WILD if wildcards else _ODD_NAME
        names = tracked_names(cwd)
        return names is None or any(odd.search(part) for name in names for part in name.split("/"))

    def below(self, path: str, *, skipping: tuple[str, ...] = ()) -> tuple[str, ...] | None:
        paths: list[str] = []
        pending = [(path, "")]
        while pending:
            folder, prefix = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if len(paths) >= MAX_SEARCHED:
                            return None
                        if entry.name in skipping:
                            continue
                        paths.append(prefix + entry.name)
                        if entry.is_dir(follow_symlinks=False):
                            pending.append((entry.path, f"{prefix}{entry.name}/"))
            except OSError:
                return None
        return tuple(sorted(paths))

    def may_set(self, path: str, key: str) -> bool:
        data = _small(path)
        if data is None or b"\\" in data or key.encode() in data:
            return True
        lines = (line.strip() for line in data.decode("utf-8", "replace").split("\n"))
        first = next((line for line in lines if line and line != "---" and not line.startswith("#")), "{")
        return not (_TABLE if path.endswith(".toml") else _MAPPING).match(first)

    def has_key(self, path: str, key: str) -> bool:
        data = _small(path)
        try:
            document: object = None if data is None else json.loads(data)
        except (ValueError, RecursionError):
            return True
        return not isinstance(document, dict) or key in document

    def program(self, name: str, cwd: str) -> str:
        for entry in self._path:
            path = os.path.join(cwd, entry or ".", name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return os.path.normpath(path)
        return ""

    def program_problem(self, name: str, cwd: str, roots: Sequence[str]) -> str | None:
        home = self._environment.get("HOME", "")
        for entry in self._path:
            path = os.path.join(entry or ".", name)
            if not entry.startswith("/"):
                path = os.path.join(cwd, path)
            if not (os.path.isfile(path) and os.access(path, os.X_OK)):
                continue
            real = _real(path)
            if not entry.startswith("/"):
                return f"PATH finds {name} through a relative directory"
            if inside(os.path.normpath(path), roots) or inside(real, roots):
                return f"{name} is a program in the workspace"
            return chosen_version(name, path, real, lambda: tuple(folders_above(cwd, roots, home)), _small)
        return None

    def shell_problem(self, cwd: str, *, moving: bool) -> str | None:
        environment = self._environment
        if any(key.startswith("BASH_FUNC_") or key in ("BASH_ENV", "SHELLOPTS", "BASHOPTS") for key in environment):
            return "the environment may redefine commands"
        if moving and "CDPATH" in environment:
            return "CDPATH may redirect cd"
        known_as = environment.get("PWD", cwd)
        if moving and known_as != cwd and os.path.realpath(known_as) == os.path.realpath(cwd):
            return "the shell knows this directory under another name"
        return None

    def git_problem(self, cwd: str, roots: Sequence[str]) -> str | None:
        return git_problem(cwd, self._environment, roots)


def _git_object(line: str) -> GitObject | None:
    """A line of ``git cat-file --batch-check``; None for a name that may be several objects."""
    kind, _, name = line.partition(" ")
    if kind in ("commit", "tree", "blob"):
        return GitObject(kind, name)
    return GitObject("missing") if line.endswith(" missing") else None


_ALLOW_MISSING: Any = getattr(os.path, "ALLOW_MISSING", True)
"""Without this value, being strict about what is missing as well, and then looking again, comes to the same."""


def _real(path: str) -> str:
    """The path with links followed, up to a link that may not be read, such as those in ``/proc`` of another user's
    process: whatever it names lies behind that link. (Python 3.13 would go on behind it as if it were a folder, unless
    told to ignore nothing but what is missing.)

    Most paths have no link: one look at each name on the way shows that in less time."""
    if path[:1] == "/" != path[1:2] and path == os.path.normpath(path):
        end = 0
        try:
            while end < len(path):
                end = path.find("/", end + 1)
                end = end if end > 0 else len(path)
                if stat.S_ISLNK(os.lstat(path[:end]).st_mode):
                    break
            else:
                return path
        except FileNotFoundError:
            return path  # nor is there anything below
        except OSError:
            pass  # what to make of it is decided below
    try:
        return os.path.realpath(path, strict=_ALLOW_MISSING)
    except OSError as error:
        if error.errno != errno.ELOOP and error.filename and os.path.islink(error.filename):
            return os.path.abspath(os.fsdecode(error.filename))
    return os.path.realpath(path)


def _small(path: str) -> bytes | None:
    """The content of a small ordinary file; None for anything else."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            data = stream.read(MAX_MENTIONING + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= MAX_MENTIONING else None


def _tree(path: str, limit: int = MAX_TREE) -> Iterator[os.DirEntry[str] | None]:
    """Every entry below a directory, links not followed; None ends the list if there are too many."""
    pending, seen = [path], 0
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > limit:
                        yield None
                        return
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue


def _dangling(path: str) -> bool:
    try:
        return not os.path.lexists(_real(path))
    except (OSError, ValueError):
        return False
