"""Survey before a command runs: sockets of other programs, files with a hard link outside the workspace, and control
files (files that control other programs), so that a contained command's changes to them can be undone."""

from __future__ import annotations

import collections
import contextlib
import os
import posixpath
import stat
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.atomic_text import make_private
from swecli.core.permissions.git_facts import harmful_settings
from swecli.core.permissions.paths import inside
from swecli.core.permissions.protected import held_in_sandbox
from swecli.core.permissions.rules import NO_READ_RULES, ReadRules
from swecli.core.sandbox.settings_files import may_be_read
from swecli.core.secret_names import SecretNames, is_test_key

MAX_ENTRIES = 200_000
_MAX_HOME = 20_000
_MOST_UNLOOKED = 100
"""Folders below home that are hidden because they were not looked into."""
_MAX_RESTORED = 1_000_000
"""Bytes of one file that can be restored."""
_PACKAGES = ("node_modules", "site-packages")
"""Package folders: no program takes its settings from there."""
_BULK = frozenset(
    (*_PACKAGES, ".cache", ".npm", ".rustup", ".nvm", ".pyenv", ".rbenv", "miniconda3", "anaconda3", "miniforge3")
)
"""Folders of a home directory with many files of programs."""
_STORES = """.m2/repository .gradle/caches .gradle/wrapper .cargo/registry .cargo/git go/pkg .local/share/uv
  .local/share/mise .local/share/pnpm .local/share/virtualenvs .local/pipx .local/share/pipx .sdkman/candidates
  .asdf/installs .volta/tools .deno .bun/install .local/share/fnm .julia .opam .ghcup .stack .conan2 .nuget/packages
  .pub-cache .terraform.d/plugins .vscode/extensions .vscode-server Library/Caches"""
_PROGRAM_STORES = frozenset(_STORES.split())
"""Folders below home where package managers keep programs."""
_HOOKS = "hooks"
_SOCKETS = "/proc/net/unix"
_SETTLED = 2_000_000_000
"""Nanoseconds; a later change gets another time on every file system."""

Content = bytes | None
"""Content of a control file; None if it is not an ordinary file or too large to restore."""


class Survey(Struct, frozen=True):
    """``sockets`` are those of programs outside. ``links`` are workspace files with a hard link outside. ``steering``
    has the control files at any depth, ``controlling`` the folders that hold nothing else. ``secrets`` are files and
    folders, in the workspace and below home, whose names suggest secrets or that a rule keeps from being read;
    ``ruled`` are the latter alone. ``whole``: the survey of the workspace is complete. ``unruled`` is the first rule
    that covers more files than could be looked for. ``unlooked`` are folders below home that were not looked into, as
    there are too many files; ``open`` are more than can be hidden."""

    sockets: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    steering: Mapping[str, Content] = field(default_factory=lambda: {})
    controlling: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()
    ruled: tuple[str, ...] = ()
    whole: bool = True
    unruled: str = ""
    unlooked: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


class _Folder(Struct, frozen=True):
    """A folder's entries by name, at the time of this stamp. ``files`` are regular workspace files, ``steering``
    control files, ``settings`` git's settings, which control programs depending on their content. ``controlling`` are
    those of the folders whose name alone makes what is in them control files. ``linked`` are package files with several
    hard links, with identity and link count."""

    stamp: tuple[int, ...]
    entries: int = 0
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    controlling: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    linked: tuple[tuple[tuple[int, int], int, str], ...] = ()
    secrets: tuple[str, ...] = ()
    """Resolved paths."""
    others: tuple[str, ...] = ()
    """Files outside the workspace."""


class Abandoned(Exception):
    """The survey ended early, because its session did."""


class Surveyor:
    """Survey of a session's workspace, links not followed. A folder is listed again only if its change times moved, one
    of which can't be forged; the link counts of files outside packages and the content of control files are read each
    time."""

    def __init__(
        self,
        roots: Sequence[str],
        home: str,
        names: Callable[[], SecretNames] | None = None,
        needed: Sequence[str] = (),
        hidden: Sequence[str] = (),
    ) -> None:
        """``names`` gives those of secrets, which a start need not wait for; None looks for none. Below home, what is
        ``needed`` must stay visible, and what is ``hidden`` is not looked at."""
        self._needed, self._hidden = tuple(needed), frozenset(hidden)
        self._names = names
        self._rules = NO_READ_RULES
        self._ruled: dict[str, tuple[_Folder, tuple[str, ...]]] = {}
        """What rules keep from being read in each folder, by path."""
        self._roots = tuple(roots)
        self._home = home
        self._known: dict[str, _Folder] = {}
        self._abandoned = False

    def abandon(self) -> None:
        """End a survey that runs in another thread, and each later one."""
        self._abandoned = True

    def survey(self, rules: ReadRules = NO_READ_RULES) -> Survey:
        """Takes seconds in a large workspace. ``rules`` keep files from being read.

        Raises:
            Abandoned: nobody needs it any more.
        """
        if rules != self._rules:
            self._rules, self._ruled = rules, {}
        secrets: set[str] = set()
        ruled: set[str] = set()
        own: list[str] = []
        visited: dict[str, _Folder] = {}
        steering: dict[str, Content] = {}
        controlling: set[str] = set()
        names: dict[tuple[int, int], list[str]] = {}
        counts: dict[tuple[int, int], int] = {}
        seen = 0
        for path, root, folder in self._walk(packages=True):
            if self._abandoned:
                raise Abandoned
            visited[path] = folder
            seen += folder.entries
            for key, count, linked in folder.linked or _linked(path, folder.files):
                names.setdefault(key, []).append(linked)
                counts[key] = count
            if root:
                steering |= _steering_in(path, folder)
                controlling.update(f"{path}/{name}" for name in folder.controlling)
                secrets.update(folder.secrets)
                ruled.update(self._kept_unread(path, folder))
                own += [f"{path}/{name}" for name in folder.sockets]
        elsewhere = sorted(path for key, paths in names.items() if len(paths) < counts[key] for path in paths)
        home_sockets: set[str] = set()
        unlooked: list[str] = []
        for path, folder in self._below_home(visited, unlooked):
            home_sockets.update(os.path.realpath(f"{path}/{name}") for name in folder.sockets)
            secrets.update(folder.secrets)
        elsewhere_ruled, unruled = self._ruled_elsewhere()
        ruled.update(elsewhere_ruled)
        self._known = visited
        # Sockets that contained commands bind belong to another network namespace and are not among these.
        bound = {posixpath.basename(name) for name in bound_names()} if own else set[str]()
        sockets = {*bound_sockets(), *(path for path in home_sockets if inside(path, self._roots) is None)}
        sockets.update(path for path in own if posixpath.basename(path) in bound)
        whole = seen <= MAX_ENTRIES
        if not whole and not unruled and rules.rules:
            unruled = rules.rules[0].text
        return Survey(
            tuple(sorted(sockets)),
            tuple(elsewhere),
            steering,
            frozenset(controlling),
            tuple(sorted(self._holding(secrets) | ruled)),
            tuple(sorted(ruled)),
            whole,
            unruled,
            *self._hidden_instead(unlooked),
        )

    def _holding(self, secrets: set[str]) -> set[str]:
        """Those of the files whose names suggest secrets that hold some now, which their folder does not tell."""
        names = self._names and self._names()
        return {path for path in secrets if not names or not may_be_read(path, names)}

    def steering(self) -> Mapping[str, Content]:
        contents: dict[str, Content] = {}
        for path, _, folder in self._walk(packages=False):
            contents |= _steering_in(path, folder)
        return contents

    def remove_folders(self, planted: Sequence[str], before: Collection[str]) -> None:
        """Remove empty folders that were made for control files at these paths, but none from ``before``."""
        for path in planted:
            folder = os.path.dirname(path)
            while (root := inside(folder, self._roots)) and folder not in before:
                if not _is_control_folder(folder[len(root) :]) or not _remove_empty(folder):
                    break
                folder = os.path.dirname(folder)

    def _walk(self, *, packages: bool) -> Iterator[tuple[str, str, _Folder]]:
        """Workspace folders with their root (empty for package folders), up to the limit."""
        pending, seen = [(root, root) for root in self._roots], 0
        while pending and seen <= MAX_ENTRIES:
            path, root = pending.pop()
            folder = self._folder(path, root)
            if folder is None:
                continue
            seen += folder.entries
            yield path, root, folder
            for name in folder.folders:
                below = f"{path}/{name}" if path != "/" else f"/{name}"
                if not root or name in _PACKAGES:
                    pending += [(below, "")] if packages else []
                elif inside(below, self._roots) == root:
                    pending.append((below, root))

    def _kept_unread(self, path: str, folder: _Folder) -> tuple[str, ...]:
        """Entries of a folder that a rule keeps from being read."""
        if not self._rules.rules:
            return ()
        known = self._ruled.get(path)
        if known is None or known[0] is not folder or not folder.stamp:
            names = (*folder.folders, *(folder.files or folder.others))
            result = [f"{path}/{name}" for name in names if self._rules.covering(f"{path}/{name}") is not None]
            result += [below for name in folder.folders if self._rules.covers_folder(below := f"{path}/{name}")]
            known = self._ruled[path] = (folder, tuple(dict.fromkeys(result)))
        return known[1]

    def _ruled_elsewhere(self) -> tuple[set[str], str]:
        """What rules about places outside the workspace keep from being read, and the first rule that covers more than
        could be looked for."""
        ruled: set[str] = set()
        for rule, top in self._rules.elsewhere():
            if self._rules.covers_folder(top) or not os.path.isdir(top):
                ruled.update([top] if os.path.lexists(top) and self._rules.covering(f"{top}/_") else ())
                continue
            pending, seen = [top], 0
            while pending:
                path = pending.pop()
                folder = self._folder(path, "", self._home)
                if folder is None:
                    continue
                seen += folder.entries
                if seen > _MAX_HOME or self._abandoned:
                    return ruled, rule.text
                unread = self._kept_unread(path, folder)
                ruled.update(unread)
                below = (f"{path.rstrip('/')}/{name}" for name in folder.folders)
                pending += [each for each in below if each not in unread and each not in self._roots]
        return ruled, ""

    def _below_home(self, visited: dict[str, _Folder], unlooked: list[str]) -> Iterator[tuple[str, _Folder]]:
        """The folders of the home directory, the upper ones first; those beyond the limit are added to ``unlooked``.
        Sockets there may be bound by another network namespace."""
        pending, seen = collections.deque([self._home] if self._home else []), 0
        while pending and seen <= _MAX_HOME:
            path = pending.popleft()
            if path in self._roots or path in self._hidden or self._abandoned:
                continue
            folder = self._folder(path, "", self._home)
            if folder is None:
                continue
            visited.setdefault(path, folder)
            seen += folder.entries
            yield path, folder
            pending += [
                below
                for name in folder.folders
                if name not in _BULK and (below := f"{path}/{name}")[len(self._home) + 1 :] not in _PROGRAM_STORES
            ]
        unlooked += [path for path in pending if path not in self._roots and path not in self._hidden]

    def _hidden_instead(self, unlooked: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The folders to hide because they, or some below them, were not looked into, and those that can't be hidden.
        What is needed stays visible, with all around it."""
        needed = (*self._roots, *self._needed)

        def around_needed(path: str) -> bool:
            return path == self._home or any(inside(root, (path,)) for root in needed)

        paths = {path for path in unlooked if inside(path, needed) is None}
        for depth in range(max((path.count("/") for path in paths), default=0), self._home.count("/") + 1, -1):
            if len(paths) <= _MOST_UNLOOKED:
                break
            # Folders that others stand for are among these.
            above = ((path, posixpath.dirname(path) if path.count("/") == depth else path) for path in paths)
            paths = {path if around_needed(parent) else parent for path, parent in above}
        hidden = sorted(path for path in paths if not around_needed(path))
        return tuple(hidden[:_MOST_UNLOOKED]), tuple(hidden[_MOST_UNLOOKED:])

    def _folder(self, path: str, root: str, top: str = "") -> _Folder | None:
        """A folder's entries, cached or listed now; None if it is gone or unreadable. Names of secrets count below
        ``root`` and ``top``."""
        try:
            state = os.lstat(path)
            stamp = (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_ctime_ns)
            known = self._known.get(path)
            if known is not None and known.stamp == stamp:
                return known
            now = time.time_ns()
            folder = (
                _listed(path, root, stamp, root or top, self._names and self._names())
                if stat.S_ISDIR(state.st_mode)
                else None
            )
        except OSError:
            return None
        if folder is not None and (posixpath.basename(path) == _HOOKS or not 0 < state.st_ctime_ns < now - _SETTLED):
            # A further change could leave the same times; what hooks mean depends on the folder above.
            return replace(folder, stamp=())
        if folder is not None:
            self._known[path] = folder
        return folder


def _listed(path: str, root: str, stamp: tuple[int, ...], top: str = "", names: SecretNames | None = None) -> _Folder:
    folders, files, sockets = list[str](), list[str](), list[str]()
    steering, settings, controlling = list[str](), list[str](), list[str]()
    below = path[len(root) :].lstrip("/")
    with os.scandir(path) as directory:
        entries = list(directory)
    repository = _bare_repository(path, {entry.name for entry in entries}) if root else ""
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
            if root and _is_control_folder(f"{below}/{entry.name}"):
                controlling.append(entry.name)
            continue
        if entry.is_file(follow_symlinks=False):
            files.append(entry.name)
        elif stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
            sockets.append(entry.name)
        if root:
            steers = _is_control_file(f"{repository}/{entry.name}") if repository else False
            if steers is False:
                steers = _is_control_file(f"{below}/{entry.name}" if below else entry.name)
            (settings if steers is None else steering if steers else []).append(entry.name)
    return _Folder(
        stamp,
        len(entries),
        tuple(folders),
        tuple(files) if root else (),
        tuple(steering),
        tuple(settings),
        tuple(controlling),
        tuple(sockets),
        () if root else tuple(_linked(path, files)),
        tuple(_secrets_of(entries, path[len(top) :], names)) if top and names is not None else (),
        () if root else tuple(files),
    )


def _bare_repository(path: str, names: Collection[str]) -> str:
    """What a folder with these names is within a repository: ``.git``, its hooks, or nothing. Git may take a folder
    itself for a repository, and then obeys its settings and hooks."""
    if "/.git/" in f"{path}/":
        return ""
    if _looks_bare(names):
        return ".git"
    if posixpath.basename(path) != _HOOKS:
        return ""
    with contextlib.suppress(OSError):
        return f".git/{_HOOKS}" if _looks_bare(os.listdir(posixpath.dirname(path))) else ""
    return ""


def _looks_bare(names: Collection[str]) -> bool:
    return "HEAD" in names and ("commondir" in names or ("objects" in names and "refs" in names))


def _secrets_of(entries: Iterable[os.DirEntry[str]], below: str, names: SecretNames) -> Iterator[str]:
    """Files and folders whose names suggest secrets, by their real paths. ``below`` is their folder's path below the
    workspace or home."""
    if names.cover_folder(below):
        return  # the whole folder is named where it is listed
    for entry in entries:
        name = f"{below}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if names.cover_folder(name):
                yield entry.path
        elif names.matches(name) and not is_test_key(name):
            path = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
            if os.path.isfile(path):
                yield path


def _linked(folder: str, names: Iterable[str]) -> Iterator[tuple[tuple[int, int], int, str]]:
    """Files with several hard links: identity, link count, path."""
    for name in names:
        try:
            state = os.lstat(f"{folder}/{name}")
        except OSError:
            continue
        if state.st_nlink > 1 and stat.S_ISREG(state.st_mode):
            yield (state.st_dev, state.st_ino), state.st_nlink, f"{folder}/{name}"


def _steering_in(path: str, folder: _Folder) -> dict[str, Content]:
    paths = [f"{path}/{name}" for name in folder.steering]
    paths += [settings for name in folder.settings if harmful_settings(settings := f"{path}/{name}")]
    return {path: _content(path) for path in paths}


def _is_control_file(relative: str) -> bool | None:
    """Whether a file is a control file; None if its content decides. In a repository only settings and hooks are."""
    parts = relative.split("/")
    if ".git" not in parts[:-1]:
        return held_in_sandbox(relative)
    below = parts[parts.index(".git") + 1 :]
    if "hooks" in below[:-1]:
        return not relative.endswith(".sample")
    if below[-1] in ("config", "config.worktree") and "refs" not in below and "logs" not in below:
        return None
    return below in (["info", "attributes"], ["commondir"])


def _is_control_folder(relative: str) -> bool:
    """Whether all that is in a folder are control files. Those of git hold more."""
    return ".git" not in relative.split("/") and held_in_sandbox(relative)


def bound_names() -> Iterator[str]:
    """The names of this network namespace's sockets as they were bound, also relative ones."""
    try:
        lines = Path(_SOCKETS).read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split(None, 7)
        if len(fields) == 8:
            yield fields[7]


def bound_sockets() -> Iterator[str]:
    """Existing named sockets, by their real paths."""
    for name in bound_names():
        if name.startswith("/"):
            path = os.path.realpath(name)
            with contextlib.suppress(OSError, ValueError):
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    yield path


def _content(path: str) -> Content:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_RESTORED:
            return None
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            return stream.read(_MAX_RESTORED)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def changed(before: Mapping[str, Content], after: Mapping[str, Content]) -> Sequence[str]:
    """The paths of new and changed control files."""
    return [path for path in sorted(after) if path not in before or before[path] != after[path]]


def undo(before: Mapping[str, Content], after: Mapping[str, Content], keep: Path) -> tuple[str, ...]:
    """Remove new control files and restore changed ones; what was there is kept below ``keep``. Returns the paths."""
    undone: list[str] = []
    for path in changed(before, after):
        mode = _mode(path)
        if _remove(path, after[path], keep):
            undone.append(path)
            old = before.get(path)
            if old is not None:
                _restore(path, old, mode)
    return tuple(undone)


def _remove(path: str, content: Content, keep: Path) -> bool:
    if content is not None:
        saved = keep / path.lstrip("/")
        with contextlib.suppress(OSError):
            make_private(saved.parent)
            saved.write_bytes(content)
            saved.chmod(0o600)
    with contextlib.suppress(OSError), _parent(path) as parent:
        os.unlink(os.path.basename(path), dir_fd=parent)
        return True
    return False


def _remove_empty(folder: str) -> bool:
    """Remove an empty folder. False if it is still there."""
    try:
        with _parent(folder) as parent:
            os.rmdir(os.path.basename(folder), dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _mode(path: str) -> int:
    """Permission bits for a restored file: those of the present one, which none but the user may write."""
    try:
        state = os.lstat(path)
    except OSError:
        return 0o644
    return state.st_mode & 0o755 if stat.S_ISREG(state.st_mode) else 0o644


def _restore(path: str, content: bytes, mode: int) -> None:
    with contextlib.suppress(OSError), _parent(path) as parent:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(os.path.basename(path), flags, mode, dir_fd=parent), "wb") as stream:
            stream.write(content)


@contextlib.contextmanager
def _parent(path: str) -> Generator[int]:
    """The folder of a path, opened without following links.

    Raises:
        OSError: it is missing, or a link.
    """
    folder = os.path.dirname(path)
    if os.path.realpath(folder) != folder:
        raise OSError(0, "a link leads there")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
