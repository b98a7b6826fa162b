"""What is there before a command runs: sockets that others listen on, files with a name outside of the workspace, and
what steers other programs, so that whatever a contained command made of that can be undone."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from swecli.core.atomic_text import make_private
from swecli.core.permissions.git_facts import harmful_settings
from swecli.core.permissions.paths import inside
from swecli.core.permissions.protected import held_in_sandbox

MAX_ENTRIES = 200_000
_MAX_HOME = 20_000
_HOME_DEPTH = 4
_MAX_KEPT = 1_000_000
"""Bytes of one file that could be put back."""
_PACKAGES = ("node_modules", "site-packages")
"""Folders in which nobody works: no program takes its settings from there."""
_SOCKETS = "/proc/net/unix"

Content = bytes | None
"""Of a file that steers other programs; None for what is no ordinary file, or too large to be put back."""


@dataclass(frozen=True, slots=True)
class Survey:
    """``sockets`` are outside of the workspace. ``links`` are files in it that have a name outside as well.
    ``steering`` has what steers other programs, deeper than at the top too. ``whole``: everything was looked at."""

    sockets: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    steering: Mapping[str, Content] = field(default_factory=lambda: {})
    whole: bool = True


@dataclass(frozen=True, slots=True)
class _Folder:
    """What was in a folder of packages when it had this time of change."""

    changed: int
    folders: tuple[str, ...]
    linked: tuple[tuple[tuple[int, int], int, str], ...]
    """Files with more than one name: which, how many, path."""
    entries: int


class Surveyor:
    """Looks through the workspace of a session. Folders of packages, which are most of many workspaces, are looked into
    again only when something was added to them or taken away."""

    def __init__(self, roots: Sequence[str], home: str) -> None:
        self._roots = roots
        self._home = home
        self._packages: dict[str, _Folder] = {}

    def survey(self) -> Survey:
        """All that there is to know before a command."""
        walk = _Walk(self._roots, self._packages)
        walk.run()
        known = (*bound_sockets(), *sockets_below(self._home, self._roots))
        outside = sorted({path for path in known if inside(path, self._roots) is None})
        return Survey(tuple(outside), tuple(walk.linked_elsewhere()), walk.steering, walk.whole)

    def steering(self) -> Mapping[str, Content]:
        """Only what steers other programs."""
        walk = _Walk(self._roots, None)
        walk.run()
        return walk.steering


def bound_sockets() -> Iterator[str]:
    """Sockets with a name that exist now, by their real paths."""
    try:
        lines = Path(_SOCKETS).read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[7].startswith("/"):
            path = os.path.realpath(fields[7])
            with contextlib.suppress(OSError, ValueError):
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    yield path


def sockets_below(home: str, roots: Sequence[str]) -> Iterator[str]:
    """Sockets in the upper folders of the home directory, also those that another network namespace has bound."""
    pending, seen = [(home, 0)] if home else [], 0
    while pending:
        folder, depth = pending.pop(0)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MAX_HOME:
                        return
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _HOME_DEPTH and entry.name not in _PACKAGES and entry.path not in roots:
                            pending.append((entry.path, depth + 1))
                    elif not entry.is_file() and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                        yield os.path.realpath(entry.path)
        except OSError:
            continue


class _Walk:
    """One look through the workspace, links not followed. ``packages`` is what is known of folders of packages; None
    passes them over, and with them all hard links."""

    def __init__(self, roots: Sequence[str], packages: dict[str, _Folder] | None) -> None:
        self._roots = roots
        self._packages = packages
        self._seen = 0
        self._names: dict[tuple[int, int], list[str]] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self.steering: dict[str, Content] = {}

    @property
    def whole(self) -> bool:
        return self._seen <= MAX_ENTRIES

    def run(self) -> None:
        pending = [(root, root) for root in self._roots]
        while pending and self.whole:
            folder, root = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        self._seen += 1
                        if not entry.is_dir(follow_symlinks=False):
                            self._file(entry, root)
                        elif entry.name in _PACKAGES:
                            self._package_folders(entry.path)
                        elif inside(entry.path, self._roots) == root:
                            pending.append((entry.path, root))
            except OSError:
                continue

    def _file(self, entry: os.DirEntry[str], root: str) -> None:
        if self._packages is not None:
            with contextlib.suppress(OSError):
                for linked in _linked(entry):
                    self._note(linked)
        if _steers(entry.path[len(root) :].lstrip("/"), entry.path):
            self.steering[entry.path] = _content(entry.path)

    def _note(self, linked: tuple[tuple[int, int], int, str]) -> None:
        key, count, path = linked
        self._names.setdefault(key, []).append(path)
        self._counts[key] = count

    def _package_folders(self, top: str) -> None:
        known, pending = self._packages, [top]
        while pending and known is not None and self.whole:
            path = pending.pop()
            try:
                changed = os.stat(path, follow_symlinks=False).st_mtime_ns
                folder = known.get(path)
                if folder is None or folder.changed != changed:
                    folder = known[path] = _package_folder(path, changed)
            except OSError:
                continue
            self._seen += folder.entries
            pending += folder.folders
            for linked in folder.linked:
                self._note(linked)

    def linked_elsewhere(self) -> list[str]:
        """Files with more names than were found."""
        return sorted(path for key, names in self._names.items() if len(names) < self._counts[key] for path in names)


def _package_folder(path: str, changed: int) -> _Folder:
    with os.scandir(path) as found:
        entries = list(found)
    return _Folder(
        changed,
        tuple(entry.path for entry in entries if entry.is_dir(follow_symlinks=False)),
        tuple(linked for entry in entries for linked in _linked(entry)),
        len(entries),
    )


def _linked(entry: os.DirEntry[str]) -> Iterator[tuple[tuple[int, int], int, str]]:
    if entry.is_file(follow_symlinks=False):
        state = entry.stat(follow_symlinks=False)
        if state.st_nlink > 1:
            yield (state.st_dev, state.st_ino), state.st_nlink, entry.path


def _steers(relative: str, path: str) -> bool:
    """Whether a file steers other programs. Of a repository only its settings and hooks do."""
    parts = relative.split("/")
    if ".git" not in parts[:-1]:
        return held_in_sandbox(relative)
    below = parts[parts.index(".git") + 1 :]
    if "hooks" in below[:-1]:
        return not relative.endswith(".sample")
    if below[-1] in ("config", "config.worktree") and "refs" not in below and "logs" not in below:
        return harmful_settings(path)
    return below in (["info", "attributes"], ["commondir"])


def _content(path: str) -> Content:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_KEPT:
            return None
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            return stream.read(_MAX_KEPT)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def undo(before: Mapping[str, Content], after: Mapping[str, Content], keep: Path) -> tuple[str, ...]:
    """Take away what steers other programs and was not there before, and put back what was changed. What was taken
    away is kept below ``keep``. Returns the paths."""
    undone: list[str] = []
    for path, content in sorted(after.items()):
        if path in before and before[path] == content:
            continue
        if _taken_away(path, content, keep):
            undone.append(path)
            old = before.get(path)
            if old is not None:
                _put_back(path, old)
    return tuple(undone)


def _taken_away(path: str, content: Content, keep: Path) -> bool:
    if content is not None:
        kept = keep / path.lstrip("/")
        with contextlib.suppress(OSError):
            make_private(kept.parent)
            kept.write_bytes(content)
            kept.chmod(0o600)
    with contextlib.suppress(OSError), _parent(path) as parent:
        os.unlink(os.path.basename(path), dir_fd=parent)
        return True
    return False


def _put_back(path: str, content: bytes) -> None:
    with contextlib.suppress(OSError), _parent(path) as parent:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(os.path.basename(path), flags, 0o644, dir_fd=parent), "wb") as stream:
            stream.write(content)


@contextlib.contextmanager
def _parent(path: str) -> Generator[int]:
    """The folder of a path, opened where no link leads.

    Raises:
        OSError: it is not there, or a link.
    """
    folder = os.path.dirname(path)
    if os.path.realpath(folder) != folder:
        raise OSError(0, "a link leads there")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
