"""Work trees of swecli's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swecli.core.config.paths import Paths
from swecli.core.worktrees import WorkTreeError, add_worktree, keep_or_remove, worktrees_folder

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("a = 1\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_one_without_changes_is_removed_with_its_branch(repository: Path, tmp_path: Path) -> None:
    tree = add_worktree(repository / "src", tmp_path / "trees", "fix", ENVIRONMENT)
    made = (tree.folder / "a.py").read_text()

    assert made == "a = 1\n"
    assert tree.folder == tree.root / "src"
    assert git(tree.root, "branch", "--show-current") == "swecli/fix"
    assert not keep_or_remove(tree, ENVIRONMENT)
    assert not tree.root.exists()
    assert "swecli/fix" not in git(repository, "branch", "--list")


@pytest.mark.parametrize("how", ["new file", "edit", "commit"])
def test_one_with_changes_is_kept(repository: Path, tmp_path: Path, how: str) -> None:
    tree = add_worktree(repository, tmp_path / "trees", "fix", ENVIRONMENT)
    (tree.root / ("new.py" if how == "new file" else "src/a.py")).write_text("b = 2\n")
    if how == "commit":
        git(tree.root, "commit", "-qam", "second")

    assert keep_or_remove(tree, ENVIRONMENT)
    assert tree.root.exists()
    assert not git(repository, "status", "--porcelain")


@pytest.mark.parametrize("name", ["../up", "", "a b", "-b", ".", "x.lock"])
def test_a_name_that_can_not_be_one_is_refused(repository: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(WorkTreeError, match="cannot name a worktree"):
        add_worktree(repository, tmp_path / "trees", name, ENVIRONMENT)


def test_a_name_twice_says_where_the_first_is(repository: Path, tmp_path: Path) -> None:
    tree = add_worktree(repository, tmp_path / "my trees", "fix", ENVIRONMENT)

    with pytest.raises(WorkTreeError, match=f"swecli -C '{tree.root}'"):
        add_worktree(repository, tmp_path / "my trees", "fix", ENVIRONMENT)


def test_a_folder_without_repository_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkTreeError, match="not in a git repository"):
        add_worktree(tmp_path, tmp_path / "trees", "fix", ENVIRONMENT)


def test_a_repository_without_a_commit_is_told(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")

    with pytest.raises(WorkTreeError, match="no commit yet"):
        add_worktree(tmp_path, tmp_path / "trees", "fix", ENVIRONMENT)


def test_hooks_of_the_repository_do_not_run(repository: Path, tmp_path: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    add_worktree(repository, tmp_path / "trees", "fix", ENVIRONMENT)

    assert not (tmp_path / "ran").exists()


def test_they_are_where_tools_may_write(tmp_path: Path) -> None:
    apart = Paths(tmp_path / "config", tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    home = tmp_path / "home"
    together = Paths(home, home / "data", home / "cache", home / "state")

    for paths in (apart, together):
        folder = worktrees_folder(paths)
        assert not any(folder.is_relative_to(own) for own in paths.all)


def test_one_that_is_there_goes_on(repository: Path, tmp_path: Path) -> None:
    first = add_worktree(repository, tmp_path / "trees", "one", ENVIRONMENT)
    with pytest.raises(WorkTreeError, match="already exists"):
        add_worktree(repository, tmp_path / "trees", "one", ENVIRONMENT)
    again = add_worktree(repository / "src", tmp_path / "trees", "one", ENVIRONMENT, again=True)
    assert (again.root, again.folder) == (first.root, first.root / "src")
    (again.root / "b.py").write_text("b = 1\n")
    git(again.root, "add", ".")
    git(again.root, "commit", "-qm", "second")
    assert keep_or_remove(again, ENVIRONMENT)  # the commit is nowhere else
    git(repository, "worktree", "remove", str(first.root))
    third = add_worktree(repository, tmp_path / "trees", "one", ENVIRONMENT, again=True)
    assert (third.root / "b.py").exists()
    git(repository, "branch", "merged", "swecli/one")
    assert not keep_or_remove(third, ENVIRONMENT)
    assert not first.root.exists()


def test_the_same_name_in_another_work_tree_is_the_same_one(repository: Path, tmp_path: Path) -> None:
    first = add_worktree(repository, tmp_path / "trees", "one", ENVIRONMENT)
    again = add_worktree(first.folder, tmp_path / "trees", "one", ENVIRONMENT, again=True)
    assert again.root == first.root
    second = add_worktree(first.folder, tmp_path / "trees", "two", ENVIRONMENT)
    assert second.root.parent == first.root.parent


def test_a_folder_of_something_else_is_not_taken_for_one(repository: Path, tmp_path: Path) -> None:
    place = add_worktree(repository, tmp_path / "trees", "one", ENVIRONMENT).root.with_name("two")
    place.mkdir()
    git(place, "init", "-q")
    with pytest.raises(WorkTreeError, match="already exists"):
        add_worktree(repository, tmp_path / "trees", "two", ENVIRONMENT, again=True)
