"""git: its own files, read without running it, and the program, run so that a repository can't make it run others."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

# --- git's files, read directly -----------------------------------------------------------------------------


MAX_BYTES = 1_000_000
MAX_INDEX = 64_000_000
_MAX_PACKED_REFS = 4 * 1024 * 1024


class GitFacts(NamedTuple):
    """``root`` is the work tree, ``folder`` its git directory. ``branch`` is None if HEAD is detached, then ``commit``
    has the hash."""

    root: Path
    folder: Path
    branch: str | None
    commit: str | None


def git_facts(start: Path) -> GitFacts | None:
    """The work tree around ``start``, or None if there is none or its files are invalid."""
    for root in (start, *start.parents):
        try:
            folder = root / ".git" if (root / ".git").is_dir() else _linked_directory(root)
        except OSError:
            continue
        if folder is None:
            continue
        head = _first_line(folder / "HEAD")
        if head is None:
            return None
        if head.startswith("ref:"):
            name = head.removeprefix("ref:").strip()
            return GitFacts(root, folder, name.removeprefix("refs/heads/"), None)
        return GitFacts(root, folder, None, head if _is_hash(head) else None)
    return None


def head_commit(git: GitFacts) -> str:
    """Hash of the newest commit; empty if there is none yet or git's files are invalid."""
    if git.commit is not None:
        return git.commit
    if git.branch is None or ".." in git.branch:
        return ""
    name = f"refs/heads/{git.branch}"
    try:
        folders = dict.fromkeys((git.folder, common_directory(git.folder)))
    except OSError:
        return ""
    for folder in folders:
        if _is_hash(commit := _first_line(folder / name) or ""):
            return commit
        for line in _text(folder / "packed-refs", _MAX_PACKED_REFS).splitlines():
            commit, _, packed = line.partition(" ")
            if packed == name:
                return commit if _is_hash(commit) else ""
    return ""


def repository_of(cwd: str) -> str | None:
    start = Path(cwd)
    folders = (str(folder) for folder in (start, *start.parents))
    return next((folder for folder in folders if os.path.lexists(os.path.join(folder, ".git"))), None)


def git_directory(folder: Path) -> Path | None:
    """Git's own directory for a folder: its ``.git``, or the target of a file of this name; None for anything else.

    Raises:
        OSError: there is nothing, or it can't be read.
    """
    mode = os.lstat(folder / ".git").st_mode
    if stat.S_ISDIR(mode):
        return folder / ".git"
    return _linked_directory(folder) if stat.S_ISREG(mode) else None


def _linked_directory(folder: Path) -> Path | None:
    """Target of the ``.git`` file of a work tree or submodule."""
    target = linked_target(read_text(folder / ".git"))
    return Path(os.path.realpath(folder / target)) if target else None


def linked_target(text: str) -> str:
    """The git directory that the text of a ``.git`` file names, as written; empty for any other text."""
    return _named(text.removeprefix("gitdir: ")) if text.startswith("gitdir: ") else ""


def _named(text: str) -> str:
    """The path in a file of git's, which ignores only line ends behind it; empty for bytes that are no plain text."""
    name = text.rstrip("\r\n")
    return name if name.isprintable() and "\ufffd" not in name else ""


def common_directory(place: Path) -> Path:
    """The directory shared by all work trees of a repository, with branches and settings.

    Raises:
        OSError: git's directory can't be read.
    """
    shared = os.path.join(place, "commondir")
    if not os.path.lexists(shared):
        return place
    name = _named(read_text(Path(shared)))
    if not name:
        raise OSError(0, "commondir names no folder")
    return Path(os.path.realpath(place / name))


class Tracked(NamedTuple):
    """An entry of an index: a name, and the hash of the content that is added."""

    name: str
    blob: str


def tracked_names(cwd: str) -> tuple[str, ...] | None:
    """The names in the index of the repository that git started in ``cwd`` would use, as text; None if unknown."""
    entries = tracked(cwd)
    return None if entries is None else tuple(entry.name for entry in entries)


def tracked(cwd: str) -> tuple[Tracked, ...] | None:
    """The index of the repository that git started in ``cwd`` would use; None if unknown."""
    try:
        folder = repository_of(cwd)
        if folder is None:
            return ()
        directory = git_directory(Path(folder))
        if directory is None:
            return None
        index = directory / "index"
        if not os.path.lexists(index):
            return ()
        state = os.stat(index)
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_INDEX:
            return None
        wide = "sha256" in read_text(common_directory(directory) / "config").lower()
        return _index_entries(index.read_bytes(), 32 if wide else 20)
    except OSError:
        return None


def _index_entries(data: bytes, hash_size: int) -> tuple[Tracked, ...] | None:
    """The entries of an index of version 2 to 4 (gitformat-index)."""
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        return None
    entries: list[Tracked] = []
    name, at = b"", 12
    for _ in range(int.from_bytes(data[8:12], "big")):
        flags_at = at + 40 + hash_size
        blob = data[at + 40 : flags_at].hex()
        start = flags_at + (4 if int.from_bytes(data[flags_at : flags_at + 2], "big") & 0x4000 else 2)
        prefix = b""
        if version == 4:  # prefix-compressed: length to drop from the previous name, and a suffix
            drop, start = _variable_integer(data, start)
            prefix = name[: len(name) - drop]
        end = data.find(b"\0", start)
        if end < 0:
            return None
        name = prefix + data[start:end]
        entries.append(Tracked(name.decode("utf-8", "replace"), blob))
        at = end + 1 if version == 4 else at + (end - at) // 8 * 8 + 8
    return tuple(entries)


def _variable_integer(data: bytes, at: int) -> tuple[int, int]:
    """An integer in git's encoding of offsets, and its end."""
    byte = data[at]
    value, at = byte & 0x7F, at + 1
    while byte & 0x80 and at < len(data):
        byte = data[at]
        value, at = (value + 1) << 7 | byte & 0x7F, at + 1
    return value, at


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """A file of git's as text.

    Raises:
        OSError: it can't be read, or is not a regular file of at most ``limit`` bytes.
    """
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode) or state.st_size > limit:
        raise OSError(0, f"{path.name} is not an ordinary file")
    return path.read_bytes().decode("utf-8", "replace")


def _text(path: Path, limit: int = MAX_BYTES) -> str:
    try:
        return read_text(path, limit)
    except (OSError, ValueError):
        return ""


def _first_line(path: Path) -> str | None:
    try:
        return read_text(path).partition("\n")[0].strip()
    except (OSError, ValueError):  # a name with a null byte
        return None


def has_objects(cwd: str) -> bool:
    """Whether the repository of ``cwd`` has anything that git could show; also True if unknown."""
    try:
        folder = repository_of(cwd)
        directory = git_directory(Path(folder)) if folder is not None else None
        if directory is None:
            return True
        objects = common_directory(directory) / "objects"
        if os.path.lexists(objects / "info" / "alternates"):
            return True
        packs = objects / "pack"
        return any(len(name) == 2 for name in os.listdir(objects)) or (packs.is_dir() and bool(os.listdir(packs)))
    except OSError:
        return True


_MOST_REFS = 200


def refs_state(cwd: str) -> tuple[object, ...]:
    """Changes with every change of what a repository's revisions mean: HEAD, branches, replaced and grafted objects. A
    unique one if that is unknown."""
    try:
        folder = repository_of(cwd)
        directory = git_directory(Path(folder)) if folder is not None else None
        if directory is None:
            return (object(),)
        common = common_directory(directory)
        paths = [
            directory / "HEAD",
            common / "packed-refs",
            common / "shallow",
            common / "info" / "grafts",
            common / "config",
        ]
        paths += [common / "objects" / "info" / "alternates"]
        paths += [directory / name for name in os.listdir(directory) if name.endswith("_HEAD")]
        pending = [common / "refs", directory / "refs", common / "reftable"]
        while pending:
            paths.append(path := pending.pop())
            if path.is_dir():
                pending += [path / name for name in os.listdir(path)]
            if len(paths) > _MOST_REFS:
                return (object(),)
        return tuple(
            (state.st_ino, state.st_mtime_ns, state.st_ctime_ns, state.st_size)
            if (state := _stat(path)) is not None
            else None
            for path in paths
        )
    except OSError:
        return (object(),)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_hash(text: str) -> bool:
    return len(text) in (40, 64) and all(char in "0123456789abcdef" for char in text)


# Starting git: without programs that a repository could make it run, and without waiting for a terminal.


_SAFE: Final = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"),
    *("-c", "diff.external=", "-c", "core.pager=cat"),
)
"""Disables programs that a repository may name for git to run."""


class GitFailedError(Exception):
    """git gave no answer. ``kind`` is the kind of failure, the message git's own explanation, possibly empty."""

    def __init__(self, kind: Literal["not started", "too slow", "failed"], message: str, status: int = 0) -> None:
        super().__init__(message)
        self.kind: Literal["not started", "too slow", "failed"] = kind
        self.status = status

    @property
    def first_line(self) -> str:
        """The short message; the exit status if git wrote none."""
        return str(self).partition("\n")[0].removeprefix("fatal: ") or f"exit status {self.status}"


def git_command(program: str, folder: str | Path, arguments: Sequence[str]) -> list[str]:
    """The words that run git in a folder."""
    return [program, *_SAFE, "-C", str(folder), *arguments]


def git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """git's environment: messages in English, no questions at the terminal, no lock for reading."""
    return {**environment, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def read_git(
    program: str,
    folder: str | Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    *,
    given: bytes = b"",
    fetches: bool = False,
    running: list[subprocess.Popen[bytes]] | None = None,
) -> bytes:
    """Output of git within ``seconds``. Unless it ``fetches``, it gets no object from another machine. While it runs,
    its process is in ``running``, so that another thread can end it.

    Raises:
        GitFailedError: it can't be started, took longer, or ended with an error.
    """
    settings = () if fetches else ("-c", "protocol.allow=never")
    words, pipe = git_command(program, folder, (*settings, *arguments)), subprocess.PIPE
    running = running if running is not None else []
    try:
        process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=git_environment(environment))
        running.append(process)
        with process:
            try:
                output, complaint = process.communicate(given, timeout=seconds)
            finally:
                process.kill()  # does nothing to one that has ended
                running.remove(process)
    except subprocess.TimeoutExpired as error:
        raise GitFailedError("too slow", f"it took longer than {seconds:g} s") from error
    except (OSError, ValueError) as error:
        raise GitFailedError("not started", getattr(error, "strerror", None) or str(error)) from error
    if process.returncode:
        raise GitFailedError("failed", complaint.decode("utf-8", "replace").strip(), process.returncode)
    return output
