"""The git repositories of a workspace: which directories git works in, and which names in them steer what it runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from swecli.core.permissions.paths import inside
from swecli.core.sandbox.disk import Disk

COMMON_CONTENT = b".\n"
"""Of a ``commondir`` that is made only so that nobody else makes one: the directory itself, as without the file."""
_HOOKS_PATH = re.compile(r"^\s*hookspath\s*=\s*\"?([^\"#;\n]+)", re.IGNORECASE | re.MULTILINE)
_WORK_TREE = re.compile(r"^\s*worktree\s*=\s*\"?([^\"#;\n]+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """``writable`` are git's own directories outside of the folder, as far as they really belong to it. ``guarded``
    must not be written; ``absent`` must not appear (content None: a directory). ``problem`` is why the repository
    can't be protected, as a clause."""

    writable: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    absent: tuple[tuple[str, bytes | None], ...] = ()
    problem: str = ""


def git_places(folder: str, disk: Disk) -> GitPlaces:
    """What there is to protect about the ``.git`` of a folder; nothing where it has none."""
    git = posixpath.join(folder, ".git")
    kind = disk.kind(git)
    if kind == "missing":
        return GitPlaces()
    if kind == "link":
        return GitPlaces(problem=f"{git} is a symbolic link")
    if kind == "directory":
        return _directory(git, folder, disk)
    return _file(git, folder, disk) if kind == "file" else GitPlaces(guarded=(git,))


def _directory(git: str, folder: str, disk: Disk) -> GitPlaces:
    guarded, absent = _steering(git, disk)
    guarded += _hooks_path(git, folder, disk)
    links = [path for path in guarded if disk.kind(path) == "link"]
    problem = f"{links[0]} is a symbolic link" if links else ""
    return GitPlaces(
        guarded=tuple(path for path in guarded if path not in links), absent=tuple(absent), problem=problem
    )


def _steering(git: str, disk: Disk) -> tuple[list[str], list[tuple[str, bytes | None]]]:
    guarded: list[str] = []
    absent: list[tuple[str, bytes | None]] = []
    for name, content in (
        ("hooks", None),
        ("config", b""),
        ("config.worktree", b""),
        ("commondir", COMMON_CONTENT),
        ("info", None),
    ):
        path = posixpath.join(git, name)
        if disk.kind(path) == "missing":
            absent.append((path, content))
        else:
            guarded.append(path)
    for name in ("modules", "worktrees"):
        path = posixpath.join(git, name)
        if disk.kind(path) != "missing":
            guarded.append(path)
    return guarded, absent


def _hooks_path(git: str, folder: str, disk: Disk) -> list[str]:
    """The directory in the folder that the repository's own configuration takes hooks from."""
    found = _HOOKS_PATH.search(disk.text(posixpath.join(git, "config")))
    if found is None:
        return []
    path = posixpath.normpath(posixpath.join(folder, found.group(1).strip()))
    known = path != folder and inside(path, (folder,)) and disk.kind(path) != "missing"
    return [path] if known and not inside(path, (git,)) else []


def _file(git: str, folder: str, disk: Disk) -> GitPlaces:
    """A work tree or a submodule: the file names git's directory elsewhere. It counts only if that directory names
    this folder in turn: a repository could point anywhere."""
    words = disk.text(git).strip()
    if not words.startswith("gitdir:"):
        return GitPlaces(guarded=(git,))
    target = disk.real(posixpath.join(folder, words.removeprefix("gitdir:").strip()))
    if disk.kind(target) != "directory" or inside(target, (folder,)):
        return GitPlaces(guarded=(git,))
    common = disk.text(posixpath.join(target, "commondir")).strip()
    if common:
        back = disk.text(posixpath.join(target, "gitdir")).strip()
        shared = disk.real(posixpath.join(target, common))
        if not back or disk.real(posixpath.join(target, back)) != git or inside(target, (shared,)) is None:
            return GitPlaces(guarded=(git,))
        guarded, absent = _steering(shared, disk)
        own = ("commondir", "gitdir", "config.worktree")
        guarded += [path for name in own if disk.kind(path := posixpath.join(target, name)) != "missing"]
        if posixpath.join(target, "config.worktree") not in guarded:
            absent.append((posixpath.join(target, "config.worktree"), b""))
        return GitPlaces((shared, target), (git, *guarded), tuple(absent))
    found = _WORK_TREE.search(disk.text(posixpath.join(target, "config")))
    if found is None or disk.real(posixpath.join(target, found.group(1).strip())) != folder:
        return GitPlaces(guarded=(git,))
    guarded, absent = _steering(target, disk)
    return GitPlaces((target,), (git, *guarded), tuple(absent))


def nested(root: str, disk: Disk, limit: int = 300) -> Iterator[str]:
    """Folders directly below ``root`` that have a ``.git`` of their own. At most ``limit`` are looked at."""
    looked = 0
    for name in disk.names(root):
        if name in (".git", "node_modules"):
            continue
        path = posixpath.join(root, name)
        if looked >= limit:
            return
        looked += 1
        if disk.kind(posixpath.join(path, ".git")) != "missing" and disk.kind(path) == "directory":
            yield path
