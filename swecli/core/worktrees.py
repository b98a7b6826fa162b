"""Git work trees of swecli's own: made for a session or a subagent, kept when they have changes, else removed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swecli.core.atomic_text import make_private
from swecli.core.config.paths import Paths, workspace_key
from swecli.core.git_files import git_facts

_SECONDS = 120.0
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""A repository may name programs that git would run."""
_FOLDER = "swecli-worktrees"


class WorkTreeError(Exception):
    """There is no work tree; the message says why."""


@dataclass(frozen=True, slots=True)
class WorkTree:
    """``root`` is the work tree, ``folder`` the place in it that is like the one it was made from; ``branch`` is
    checked out there and began at ``commit``. ``repository`` is the work tree that it was made from."""

    root: Path
    folder: Path
    branch: str
    commit: str
    repository: Path


def worktrees_folder(paths: Paths) -> Path:
    """Where they are made: beside swecli's own folders, in which no tool may write."""
    folder = paths.data.with_name(_FOLDER)
    while any(Path(os.path.realpath(folder)).is_relative_to(own) for own in paths.all):
        folder = folder.parent.with_name(_FOLDER)
    return folder


def place_of(base: Path, repository: Path, name: str) -> Path:
    return base / f"{repository.name or 'root'}-{workspace_key(repository)[:8]}" / name


def add_worktree(cwd: Path, base: Path, name: str, environment: Mapping[str, str]) -> WorkTree:
    """A new work tree at the newest commit, on a new branch ``swecli/NAME``. Takes the time of a checkout.

    Raises:
        WorkTreeError: ``cwd`` is in no repository, the name is taken, or git can't do it.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name) or ".." in name or name.endswith((".", ".lock")):
        raise WorkTreeError(f"{name!r} can't name a worktree: use letters, digits, dots, dashes and underscores.")
    git = git_facts(cwd)
    if git is None:
        raise WorkTreeError(f"{cwd} is in no git repository, so no worktree can be made of it.")
    root, branch = place_of(base, git.root, name), f"swecli/{name}"
    if root.exists():
        raise WorkTreeError(f"{root} exists already. Use another name, or work in it: swecli -C {root}")
    commit = _git(git.root, environment, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", empty="no commit yet")
    make_private(root.parent)
    _git(git.root, environment, "worktree", "add", "-b", branch, "--", str(root), commit)
    below = cwd.relative_to(git.root) if cwd.is_relative_to(git.root) else Path()
    folder = root / below if (root / below).is_dir() else root
    return WorkTree(root, folder, branch, commit, git.root)


def keep_or_remove(tree: WorkTree, environment: Mapping[str, str]) -> bool:
    """Remove a work tree and its branch if nothing was changed or committed there. True where it is kept, also where
    git can't tell."""
    try:
        if _git(tree.root, environment, "status", "--porcelain", "--untracked-files=all"):
            return True
        if _git(tree.root, environment, "rev-parse", "HEAD") != tree.commit:
            return True
        if _git(tree.repository, environment, "rev-parse", f"refs/heads/{tree.branch}") != tree.commit:
            return True
        _git(tree.repository, environment, "worktree", "remove", "--", str(tree.root))
        _git(tree.repository, environment, "branch", "-D", "--", tree.branch)
    except WorkTreeError:
        return tree.root.exists()
    return False


def _git(folder: Path, environment: Mapping[str, str], *arguments: str, empty: str = "") -> str:
    try:
        done = subprocess.run(
            ["git", *_QUIET, "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env=dict(environment),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkTreeError(f"git can't be run: {error}") from error
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise WorkTreeError(f"git {arguments[0]} failed: {said or empty or f'exit status {done.returncode}'}")
    return done.stdout.strip()
