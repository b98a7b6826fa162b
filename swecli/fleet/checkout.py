"""The copy of a repository that an attempt works in, and the patch that it leaves."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from swecli.core.atomic_text import make_private
from swecli.core.git import GitFailedError, read_git
from swecli.fleet.tasks import Task, commit_of

SECONDS = 120.0
"""Seconds of a git command that stays on this machine; a clone gets the task's time."""


class MachineryError(Exception):
    """An attempt failed through no fault of the agent. ``kind`` is a word to group by; ``again``: it may work later."""

    def __init__(self, kind: str, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.kind = kind
        self.again = again


class Checkout(Struct, frozen=True):
    """A repository of its own. ``commit`` is what was checked out, ``base`` the tree that the patch starts from: the
    commit with what the setup changed in tracked files."""

    folder: Path
    commit: str
    base: str


def make_checkout(task: Task, scratch: Path, mirrors: Path, environment: Mapping[str, str]) -> Checkout:
    """Check out the task's commit in a new repository below ``scratch``. Objects of the source are referred to, not
    copied: a repository of any size takes the time of its checkout. The source is only read.

    Raises:
        MachineryError: there is no such repository or commit, or the disk is full.
    """
    name = re.sub(r"[^\w.-]", "-", task.repo.rstrip("/").rpartition("/")[2].removesuffix(".git")).lstrip(".-")
    folder = scratch / (name or "repository")
    try:
        scratch.mkdir(parents=True, mode=0o700)
        source = _mirrored(task, mirrors, environment) if task.is_remote else Path(task.repo)
        commit = _commit(task, source, environment)
        shared = ("clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--single-branch")
        local = ("-c", "protocol.allow=never", "-c", "protocol.file.allow=always", "-c", "safe.directory=*")
        read_git("git", scratch, (*local, *shared, "--", str(source), str(folder)), environment, SECONDS, fetches=True)
        read_git("git", folder, ("remote", "remove", "origin"), environment, SECONDS)
        read_git("git", folder, ("checkout", "--quiet", "--detach", commit), environment, max(SECONDS, task.timeout))
    except GitFailedError as error:
        raise MachineryError("clone", f"cannot clone {task.repo}: {error.first_line}", again=True) from error
    except OSError as error:
        raise MachineryError("clone", f"cannot clone {task.repo}: {error.strerror or error}", again=True) from error
    return Checkout(folder, commit, commit)


def _commit(task: Task, source: Path, environment: Mapping[str, str]) -> str:
    try:
        return commit_of(source, task.ref, environment)
    except GitFailedError as error:
        missing = source.is_dir() and error.kind == "failed"
        what = f"{task.repo} has no commit {task.ref!r}" if missing else f"cannot read {task.repo}"
        raise MachineryError("clone", f"{what}: {error.first_line}", again=error.kind != "failed") from error


def _mirrored(task: Task, mirrors: Path, environment: Mapping[str, str]) -> Path:
    """A bare clone of an address, made or fetched by one attempt while the others wait."""
    make_private(mirrors)
    mirror = mirrors / f"{hashlib.sha256(task.repo.encode()).hexdigest()[:20]}.git"
    with open(mirror.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        limit = max(600.0, task.timeout)
        if not mirror.exists():
            half = mirror.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)
            clone = ("clone", "--quiet", "--mirror", "--", task.repo, str(half))
            read_git("git", mirrors, clone, environment, limit, fetches=True)
            os.replace(half, mirror)
            return mirror
        try:
            commit_of(mirror, task.ref, environment)
        except GitFailedError:
            read_git("git", mirror, ("fetch", "--quiet", "--prune"), environment, limit, fetches=True)
    return mirror


def settled(checkout: Checkout, environment: Mapping[str, str]) -> Checkout:
    """The checkout after its setup: new untracked files are ignored from now on, and changes of tracked ones are not
    part of the patch.

    Raises:
        MachineryError: git fails.
    """
    try:
        output = _git(checkout, environment, "ls-files", "-z", "--others", "--exclude-standard", "--directory")
        names = [name for name in output.decode("utf-8", "surrogateescape").split("\0") if name]
        exclude = checkout.folder / ".git" / "info" / "exclude"
        exclude.parent.mkdir(exist_ok=True)
        lines = ["/.swecli/", *(_anchored(name) for name in names if "\n" not in name)]
        with open(exclude, "a", encoding="utf-8", errors="surrogateescape") as file:
            file.write("\n".join(["", *lines, ""]))
        _git(checkout, environment, "add", "--update")
        tree = _git(checkout, environment, "write-tree").decode().strip()
    except (GitFailedError, OSError) as error:
        raise MachineryError("setup", f"git failed after the setup: {error}", again=True) from error
    return Checkout(checkout.folder, checkout.commit, tree)


def _anchored(name: str) -> str:
    """The pattern of git's ignore files that matches this path alone."""
    return "/" + re.sub(r"([\\*?\[ ])", r"\\\1", name)


def patch_of(checkout: Checkout, environment: Mapping[str, str]) -> bytes:
    """What the agent changed, committed or not, as a patch that ``git apply`` takes; empty if nothing.

    Raises:
        MachineryError: git fails.
    """
    try:
        _git(checkout, environment, "add", "--all")
        options = (
            "--cached",
            "--binary",
            "--full-index",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
        )
        return _git(checkout, environment, "diff", *options, checkout.base)
    except GitFailedError as error:
        raise MachineryError("patch", f"git cannot make the patch: {error.first_line}", again=True) from error


def apply_tests(checkout: Checkout, patch: str, environment: Mapping[str, str]) -> None:
    """Apply the task's own tests.

    Raises:
        GitFailedError: they don't apply, for instance because the agent changed the same lines.
    """
    data = patch.encode("utf-8", "surrogateescape")
    read_git("git", checkout.folder, ("apply", "--whitespace=nowarn", "-"), environment, SECONDS, given=data)


def _git(checkout: Checkout, environment: Mapping[str, str], *arguments: str) -> bytes:
    return read_git("git", checkout.folder, arguments, environment, SECONDS)
