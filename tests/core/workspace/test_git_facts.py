"""The branch, without running git."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.git import git_facts


def repository(folder: Path, head: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)
    return folder


def test_branch_seen_from_a_subdirectory(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", "ref: refs/heads/feature/x\n")
    (root / "src").mkdir()
    facts = git_facts(root / "src")
    assert facts is not None
    assert (facts.root, facts.branch, facts.commit) == (root, "feature/x", None)


def test_detached_head(tmp_path: Path) -> None:
    facts = git_facts(repository(tmp_path, "a" * 40 + "\n"))
    assert facts is not None
    assert (facts.branch, facts.commit) == (None, "a" * 40)


@pytest.mark.parametrize("relative", [True, False])
def test_work_tree_with_a_git_file(tmp_path: Path, relative: bool) -> None:
    folder = tmp_path / "main" / ".git" / "worktrees" / "other"
    folder.mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/other\n")
    tree = tmp_path / "other"
    tree.mkdir()
    target = "../main/.git/worktrees/other" if relative else str(folder)
    (tree / ".git").write_text(f"gitdir: {target}\n")
    facts = git_facts(tree)
    assert facts is not None
    assert (facts.branch, facts.folder) == ("other", folder)


@pytest.mark.parametrize("content", ["", "garbage", "gitdir: nowhere\n", "\0\xff"])
def test_nonsense_is_no_repository(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    assert git_facts(tmp_path) is None
