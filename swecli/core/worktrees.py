"""Git work trees of swecli's own: made for a session or a subagent, kept if they have changes, else removed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from swecli.core.atomic_text import make_private
from swecli.core.config.paths import Paths, workspace_key
from swecli.core.git import GitFacts, GitFailedError, common_directory, git_facts, read_git

_SECONDS = 120.0
_FOLDER = "swecli-worktrees"


class WorkTreeError(Exception):
    """There is no work tree; the message gives the reason."""


class WorkTree(Struct, frozen=True):
    """``root`` is the work tree, ``folder`` the place in it that corresponds to the original folder; ``branch`` is
    checked out there and began at ``commit``, which is empty for a continued one. ``repository`` is the original work
    tree."""

    root: Path
    folder: Path
    branch: str
    commit: str
    repository: Path


def whereabouts(folder: str, branch: str = "") -> str:
    """Location of the changes in a kept work tree."""
    return f"Its changes are in the git worktree {folder}{f' (branch {branch})' if branch else ''}, and only there."


def worktrees_folder(paths: Paths) -> Path:
    """Their folder: beside swecli's own folders, in which no tool may write."""
    folder = paths.data.with_name(_FOLDER)
    while any(Path(os.path.realpath(folder)).is_relative_to(own) for own in paths.all):
        folder = folder.parent.with_name(_FOLDER)
    return folder


def trees_of(base: Path, git: GitFacts) -> Path:
    """The folder of all work trees of a repository, the same in each of them."""
    main = _main_tree(git) or git.root
    return base / f"{main.name or 'root'}-{workspace_key(main)[:8]}"


def place_of(base: Path, git: GitFacts, name: str) -> Path:
    return trees_of(base, git) / name


def _main_tree(git: GitFacts) -> Path | None:
    """The main work tree; None for a bare repository or a submodule, whose directories are elsewhere."""
    try:
        common = common_directory(git.folder)
    except OSError:
        return None
    return common.parent if common.name == ".git" else None


def repository_of_tree(folder: Path) -> Path | None:
    """The main work tree of the repository of a work tree's folder; None if unknown."""
    git = git_facts(folder)
    try:
        return common_directory(git.folder).parent if git is not None else None
    except OSError:
        return None


def name_of_tree(base: Path, folder: Path) -> str:
    """The name of the work tree that contains a folder, even if it is gone; empty for any other folder."""
    parts = folder.relative_to(base).parts if folder.is_relative_to(base) else ()
    return parts[1] if len(parts) > 1 else ""


def is_in_tree(folder: str) -> bool:
    """Whether a path, possibly gone, is in a work tree of swecli's."""
    return _FOLDER in Path(folder).parts


def add_worktree(cwd: Path, base: Path, name: str, environment: Mapping[str, str], *, again: bool = False) -> WorkTree:
    """A new work tree at the newest commit, on a new branch ``swecli/NAME``. Takes the time of a checkout. ``again``:
    reuse an existing one of this name, or its branch if only that is left.

    Raises:
        WorkTreeError: ``cwd`` is in no repository, the name is taken, or git can't do it.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name) or ".." in name or name.endswith((".", ".lock")):
        raise WorkTreeError(f"{name!r} cannot name a worktree: use letters, digits, dots, dashes and underscores.")
    git = git_facts(cwd)
    if git is None:
        raise WorkTreeError(f"{cwd} is not in a git repository, so swecli cannot make a worktree of it.")
    root, branch = place_of(base, git, name), f"swecli/{name}"
    below = cwd.relative_to(git.root) if cwd.is_relative_to(git.root) else Path()
    if root.exists():
        if not again or not _belongs(root, git):
            there = shlex.quote(str(root))
            raise WorkTreeError(f"{root} already exists. Use another name, or work in it: swecli -C {there}")
        return WorkTree(root, _within(root, below), branch, "", git.root)
    empty = f"{git.root} has no commit yet, so swecli cannot make a worktree of it. Commit once, then try again."
    commit = _git(git.root, environment, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", silent=empty)
    make_private(root.parent)
    if again and _git(git.root, environment, "for-each-ref", f"refs/heads/{branch}"):
        _git(git.root, environment, "worktree", "prune")
        _git(git.root, environment, "worktree", "add", "--", str(root), branch)
        return WorkTree(root, _within(root, below), branch, "", git.root)
    _git(git.root, environment, "worktree", "add", "-b", branch, "--", str(root), commit)
    return WorkTree(root, _within(root, below), branch, commit, git.root)


def _within(root: Path, below: Path) -> Path:
    return root / below if (root / below).is_dir() else root


def _belongs(root: Path, git: GitFacts) -> bool:
    """Whether this is a work tree of the repository."""
    facts = git_facts(root)
    try:
        return (
            facts is not None
            and facts.root == root
            and os.path.samefile(common_directory(facts.folder), common_directory(git.folder))
        )
    except OSError:
        return False


def is_clean(folder: Path, environment: Mapping[str, str]) -> bool:
    """Whether it equals the newest commit there.

    Raises:
        WorkTreeError: git fails.
    """
    return not _git(folder, environment, "status", "--porcelain", "--untracked-files=all")


def keep_or_remove(tree: WorkTree, environment: Mapping[str, str]) -> bool:
    """Remove a work tree and its branch if nothing was changed there, and no commit exists only there. True if it is
    kept, also if git fails."""
    try:
        if not is_clean(tree.root, environment):
            return True
        head = _git(tree.root, environment, "rev-parse", "HEAD")
        own = _git(tree.repository, environment, "rev-parse", f"refs/heads/{tree.branch}")
        if any(commit != tree.commit and _only_here(tree, environment, commit) for commit in {head, own}):
            return True
        _git(tree.repository, environment, "worktree", "remove", "--", str(tree.root))
        _git(tree.repository, environment, "branch", "-D", "--", tree.branch)
    except WorkTreeError:
        return tree.root.exists()
    return False


def _only_here(tree: WorkTree, environment: Mapping[str, str], commit: str) -> bool:
    """Whether no other branch or tag has this commit."""
    refs = _git(tree.repository, environment, "for-each-ref", "--contains", commit, "--format=%(refname)")
    return not {*refs.split()} - {f"refs/heads/{tree.branch}"}


def _git(folder: Path, environment: Mapping[str, str], *arguments: str, silent: str = "") -> str:
    """``silent`` is the sentence for a failure without a message of git."""
    try:
        output = read_git("git", folder, arguments, environment, _SECONDS, fetches=True)
    except GitFailedError as error:
        if error.kind != "failed":
            raise WorkTreeError(f"git cannot run: {error}") from error
        why = " ".join(str(error).split())
        if not why and silent:
            raise WorkTreeError(silent) from error
        why = why or error.first_line
        raise WorkTreeError(f"git {arguments[0]} failed: {why}") from error
    return output.decode("utf-8", "replace").strip()
