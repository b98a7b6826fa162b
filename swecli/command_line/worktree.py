"""`swecli -w`: a run in a git work tree of its own, created before the run and removed after it if unchanged."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path

from msgspec.structs import replace

from swecli.core.atomic_text import make_private, write_whole
from swecli.core.git import git_facts
from swecli.core.worktrees import (
    WorkTree,
    WorkTreeError,
    add_worktree,
    is_clean,
    keep_or_remove,
    name_of_tree,
    trees_of,
    worktrees_folder,
)
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError, folder_option

DECISIONS = "mcp.json"
"""In the data directory of a folder: the user's decisions about its MCP servers."""


def in_worktree(options: LaunchOptions, run: Callable[[LaunchOptions], int]) -> int:
    """Run in the work tree named by the options, or in that of the session to resume; without either, run unchanged.
    Reports at the end whether the work tree stays.

    Raises:
        StartError: there is no work tree, and none can be made.
    """
    from swecli.core.config.paths import user_paths
    from swecli.core.workspace.process import scrubbed_environment

    base = worktrees_folder(user_paths(os.environ))
    name = options.worktree if options.worktree is not None else _of_session(options, base)
    if name is None:
        return run(options)
    environment = scrubbed_environment(os.environ)
    _require_harmless(options, environment)
    name = name or f"{date.today():%m%d}-{secrets.token_hex(2)}"
    try:
        tree = add_worktree(options.cwd, base, name, environment, again=True)
    except WorkTreeError as error:
        raise StartError(f"-w: {error}", ExitCode.BAD_INPUT) from error
    with _used(tree) as alone:
        trust_as(options.cwd, tree.folder)
        inner = replace(options, cwd=tree.folder, worktree=name, banner=_banner(tree, name, environment))
        try:
            return run(inner)
        finally:
            from swecli.command_line.standard_streams import complain

            complain(f"swecli: {_ended(tree, name, environment, alone(), options)}")


def _of_session(options: LaunchOptions, base: Path) -> str | None:
    """The name of the work tree of the session to resume; None without one."""
    git = git_facts(options.cwd)
    if git is None or not options.resume:
        return None
    folder = trees_of(base, git)
    if not folder.exists():
        return None
    from swecli.assembly.session_list import SessionList

    tree_folder = SessionList(options, dict(os.environ)).folder_of(options.resume, folder)
    return name_of_tree(base, Path(tree_folder)) or None if tree_folder else None


def _require_harmless(options: LaunchOptions, environment: Mapping[str, str]) -> None:
    """Refuse a checkout that could run programs from git settings: before the user trusts a folder, nothing of it may
    run.

    Raises:
        StartError: it could.
    """
    from swecli.assembly.startup import startup_of
    from swecli.core.permissions.git_facts import git_problem

    if startup_of(options, dict(os.environ)).trust.trusts:
        return
    problem = git_problem(str(options.cwd), environment, (str(options.cwd),), submodules=False)
    if problem is not None:
        raise StartError(
            f"-w: {options.cwd} is not trusted, and git might run a program from it: {problem}. Trust it with "
            "`swecli permissions trust`, or for this run with --trust.",
            ExitCode.UNTRUSTED,
        )


def trust_as(folder: Path, tree: Path) -> None:
    """Apply the user's decision about a folder to its work tree, which has the same files."""
    from swecli.core.config.paths import user_paths
    from swecli.core.config.trust import accept_items, read_trust, refuse_items, write_trust

    data = user_paths(os.environ).data
    known, there = read_trust(data, folder), read_trust(data, tree)
    if known.state == "unknown" or there.state != "unknown":
        return
    with contextlib.suppress(OSError):  # without the decisions it is asked again
        write_trust(data, tree, known.state)
        accept_items(data, tree, known.accepted)
        refuse_items(data, tree, known.refused)
        decided = user_paths(os.environ).workspace_data(folder) / DECISIONS
        target = user_paths(os.environ).workspace_data(tree) / DECISIONS
        if decided.exists() and not target.exists():
            make_private(target.parent)
            write_whole(target, decided.read_text(encoding="utf-8"))


@contextlib.contextmanager
def _used(tree: WorkTree) -> Iterator[Callable[[], bool]]:
    """Mark the work tree as used. Yields a function that tests whether this is the only user."""
    descriptor = os.open(tree.root.with_name(f".{tree.root.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)

        def alone() -> bool:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            return True

        yield alone
    finally:
        os.close(descriptor)


def _banner(tree: WorkTree, name: str, environment: Mapping[str, str]) -> str:
    new = f"made from commit {tree.commit[:8]} of {tree.repository}" if tree.commit else f"of {tree.repository}"
    left = ""
    with contextlib.suppress(WorkTreeError):
        left = "" if is_clean(tree.repository, environment) else ". Uncommitted changes there are not included"
    return f"This is the worktree {name}, {new}, on branch {tree.branch}{left}."


def _ended(tree: WorkTree, name: str, environment: Mapping[str, str], alone: bool, options: LaunchOptions) -> str:
    """Report of the work tree's state for the user."""
    from swecli.core.config.paths import user_paths
    from swecli.core.config.trust import write_trust

    goes_on = (
        f" Continue with: swecli{folder_option(options.cwd)} -w {name} -c" if options.store and options.headless else ""
    )
    if not alone:
        return f"The worktree {name} is kept: another swecli is using it."
    if keep_or_remove(tree, environment):
        return f"The worktree {name} is kept: {tree.root} (branch {tree.branch}).{goes_on}"
    with contextlib.suppress(OSError):
        write_trust(user_paths(os.environ).data, tree.folder, "unknown")
    return f"The worktree {name} had no changes and was removed with its branch.{goes_on}"
