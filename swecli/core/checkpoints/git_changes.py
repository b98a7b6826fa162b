"""Differences between the working tree, with untracked files, and a git revision. Blocks on the disk and on git: call
it in a thread. git starts only if its configuration is known to run no program."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from swecli.core.checkpoints.generated import GeneratedFiles, GeneratedFolders, is_below
from swecli.core.git import GitFailedError, git_facts, head_commit, read_git, repository_of
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.git_facts import git_problem
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.workspace.text_file import decode, open_regular, read_all
from swecli.lazy_pattern import lazy_pattern

MOST_FILES: Final = 200
"""Files whose texts are read."""
MOST_BYTES: Final = 1_000_000
"""Bytes of one shown text; a larger file is only named."""
SECONDS: Final = 10.0
"""Time limit for each git command."""
_MAX_NAME_BYTES: Final = 16_000_000
"""Bytes of names that are read."""

Problem = Literal["no repository", "unsafe", "no revision", "failed"]


class GitRefused(Exception):
    """Why the changes are unknown: ``kind`` for decisions, the message as a sentence."""

    def __init__(self, kind: Problem, message: str) -> None:
        super().__init__(message)
        self.kind: Problem = kind


class GitChanges(Struct, frozen=True):
    """Changed files as absolute paths. ``more`` counts the files not shown; ``nested`` are untracked repositories of
    their own, whose files git does not list."""

    files: tuple[DiffBlock, ...] = ()
    more: int = 0
    generated: GeneratedFiles = GeneratedFiles()
    nested: tuple[str, ...] = ()


_WHY: Final = {
    "not started": "cannot start git ({}).",
    "too slow": f"git took longer than {SECONDS:g} s. Nothing was changed.",
    "failed": "git says: {}.",
}


class _Git(Struct, frozen=True):
    """git's absolute path, the top of the work tree, and git's environment."""

    program: str
    top: str
    environment: Mapping[str, str]

    def ask(self, *arguments: str, given: bytes = b"") -> bytes:
        """git's output.

        Raises:
            GitRefused: it failed, or took too long.
        """
        try:
            return read_git(self.program, self.top, arguments, self.environment, SECONDS, given=given)
        except GitFailedError as error:
            raise GitRefused("failed", _WHY[error.kind].format(error.first_line)) from error


class _Changed(Struct, frozen=True):
    """A changed path. ``mode`` and ``blob`` are the revision's; empty if it lacks the file. ``module``: it is or was a
    submodule, and ``blob`` its commit."""

    path: str
    mode: str = ""
    blob: str = ""
    module: bool = False


def _git(cwd: str, roots: Sequence[str], environment: Mapping[str, str]) -> _Git:
    top = repository_of(cwd)
    if top is None:
        raise GitRefused("no repository", "This folder is not in a git repository; /diff shows this session's changes.")
    facts = OsFacts(environment)
    program = facts.program("git", cwd)
    if not program:
        raise GitRefused("failed", "git is not installed; /diff shows this session's changes.")
    problem = facts.program_problem("git", cwd, roots) or git_problem(cwd, environment, roots, submodules=False)
    if problem is not None:
        raise GitRefused("unsafe", f"swecli does not start git here because it might run a program: {problem}.")
    return _Git(program, top, environment)


def against(
    revision: str, cwd: str, roots: Sequence[str], environment: Mapping[str, str], below: str = ""
) -> GitChanges:
    """Differences from ``revision``, with ``below`` (absolute) only there.

    Raises:
        GitRefused: the changes are unknown, with the reason.
    """
    git = _git(cwd, roots, environment)
    changes = {change.path: change for change in _tracked(git, _tree(git, revision))}
    nested: list[str] = []
    top = git.top
    for name in _untracked(git):
        if not name.endswith("/"):
            changes.setdefault(name, _Changed(name))
        elif not below or is_below(path := os.path.join(top, name[:-1]), below) or is_below(below, path):
            nested.append(os.path.join(top, name[:-1]))
    chosen = [
        change for name, change in sorted(changes.items()) if not below or is_below(os.path.join(top, name), below)
    ]
    listed, generated = GeneratedFolders((*roots, top)).split(
        [os.path.join(top, change.path) for change in chosen], below
    )
    listed_paths = set(listed)
    shown = [change for change in chosen if os.path.join(top, change.path) in listed_paths]
    old = _blobs(git, [change.blob for change in shown[:MOST_FILES] if change.blob and not change.module])
    files = [block for change in shown[:MOST_FILES] if (block := _block(change, top, old)) is not None]
    return GitChanges(tuple(files), max(0, len(shown) - MOST_FILES), generated, tuple(nested))


def still_staged(paths: Sequence[str], cwd: str, roots: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Those of the paths whose staged version is neither that of the last commit nor the file as it is now. Only the
    first ``MOST_FILES`` are looked at.

    Raises:
        GitRefused: it is unknown, with the reason.
    """
    git = _git(cwd, roots, environment)
    names = [os.path.relpath(path, git.top) for path in paths[:MOST_FILES] if is_below(path, git.top)]
    if not names:
        return []
    options = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all")
    entries = _names(git.ask("--literal-pathspecs", *options, "--", *names))
    staged = [(entry[0], entry[1], os.path.join(git.top, entry[3:])) for entry in entries]
    # A staged removal is compared with nothing: git takes the file that is there for a new one.
    return [path for x, y, path in staged if (x in "MTA" and y in "MTD") or (x == "D" and os.path.lexists(path))]


_LINK: Final = "120000"
_MODULE: Final = "160000"


_REVISION: Final = lazy_pattern(r"[A-Za-z0-9@_/.][^\s\x00-\x1f:?*\[\\]{0,200}")


def _tree(git: _Git, revision: str) -> str:
    """The tree of a revision; the empty one for HEAD before the first commit."""
    unknown = GitRefused("no revision", f"unknown git revision {revision}.")
    if _REVISION.fullmatch(revision) is None or ".." in revision:
        raise unknown
    try:
        return git.ask("rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}").decode("ascii", "replace").strip()
    except GitRefused as error:
        if revision != "HEAD":
            raise unknown from error
    git.ask("symbolic-ref", "--quiet", "HEAD")  # fails unless HEAD is merely a branch without commits
    return git.ask("hash-object", "-t", "tree", "/dev/null").decode("ascii").strip()


def _tracked(git: _Git, tree: str) -> Iterator[_Changed]:
    options = ("--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=dirty", "--no-ext-diff", "--no-textconv")
    fields = _names(git.ask("diff", *options, "-z", tree, "--"))
    # Each entry is ":MODE MODE BLOB BLOB STATUS", then the path.
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        mode, new, blob, *_ = head.removeprefix(":").split(" ")
        if _MODULE in (mode, new):
            yield _Changed(path, mode, blob if mode == _MODULE else "", module=True)
        else:
            yield _Changed(path, mode, blob) if mode != "000000" else _Changed(path)


def _untracked(git: _Git) -> list[str]:
    """Files, and repositories of their own, which end with a slash."""
    return _names(git.ask("ls-files", "--others", "--exclude-standard", "-z"))


def _names(data: bytes) -> list[str]:
    if len(data) > _MAX_NAME_BYTES:
        raise GitRefused("failed", "More files differ than swecli can show; git diff shows all.")
    return [os.fsdecode(name) for name in data.split(b"\0") if name]


def _blobs(git: _Git, names: Sequence[str]) -> dict[str, bytes | int]:
    """The contents, or the size if too large to show."""
    unique = list(dict.fromkeys(names))
    if not unique:
        return {}
    sizes: dict[str, int] = {}
    asked = "".join(f"{name}\n" for name in unique).encode()
    for line in git.ask("cat-file", "--batch-check=%(objectname) %(objectsize)", given=asked).splitlines():
        name, _, size = line.decode("ascii", "replace").partition(" ")
        sizes[name] = int(size) if size.isdigit() else 0
    small = [name for name in unique if sizes.get(name, 0) <= MOST_BYTES]
    contents: dict[str, bytes | int] = {name: size for name, size in sizes.items() if size > MOST_BYTES}
    data = git.ask("cat-file", "--batch", given="".join(f"{name}\n" for name in small).encode())
    at = 0
    for name in small:
        end = data.index(b"\n", at)
        words = data[at:end].split(b" ")
        size = int(words[2]) if len(words) == 3 else 0
        contents[name] = data[end + 1 : end + 1 + size]
        at = end + 1 + (size + 1 if len(words) == 3 else 0)
    return contents


def _block(change: _Changed, top: str, blobs: Mapping[str, bytes | int]) -> DiffBlock | None:
    path = os.path.join(top, change.path)
    if change.module:
        facts = git_facts(Path(path)) if os.path.lexists(os.path.join(path, ".git")) else None
        return DiffBlock(path, _subproject(change.blob), _subproject(head_commit(facts) if facts else ""))
    before: str | None = None
    why_old = ""
    if change.blob:
        data = blobs.get(change.blob, b"")
        before, why_old = _shown(data, link=change.mode == _LINK)
    after, why_new, mode = _present(path)
    if before is None and not why_old and after is None and not why_new:
        return None  # deleted since git listed it
    if note := why_new or why_old:
        return DiffBlock(path, "" if change.blob else None, "" if mode is not None else None, note)
    if before is not None and after is not None and "\r\n" in after and "\r\n" not in before:
        # git converts line ends both ways; only other differences are changes.
        after = after.replace("\r\n", "\n") if after.replace("\r\n", "\n") != before else after
    if before == after:
        return DiffBlock(path, before, after, f"mode {change.mode[-3:]} -> {mode or 0:o}" if mode is not None else "")
    return DiffBlock(path, before, after)


def _subproject(commit: str) -> str | None:
    """A submodule as git shows it in a diff."""
    return f"Subproject commit {commit}\n" if commit else None


def _present(path: str) -> tuple[str | None, str, int | None]:
    """The current text of a file, why it is not shown, and its mode; no mode if there is no file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None, "", None
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return None, f"a link to {os.readlink(path)}", mode
    if not stat.S_ISREG(status.st_mode):
        return None, "not an ordinary file", mode
    if status.st_size > MOST_BYTES:
        return None, f"{status.st_size:,} bytes, too large to show", mode
    try:
        with open_regular(Path(path)) as (descriptor, now):
            text, why = _shown(read_all(descriptor, now.st_size))
    except OSError as error:
        return None, f"cannot read it ({error.strerror})", mode
    return text, why, mode


def _shown(data: bytes | int, *, link: bool = False) -> tuple[str | None, str]:
    if isinstance(data, int):
        return None, f"{data:,} bytes, too large to show"
    if link:
        return None, f"a link to {data.decode('utf-8', 'replace')}"
    text = decode(data)
    return (None, f"binary, {len(data):,} bytes") if text.looks_binary else (text.text, "")
