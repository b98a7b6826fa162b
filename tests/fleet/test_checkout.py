"""Copies of a repository, and the patches that they leave."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swecli.core.git import GitFailedError
from swecli.fleet.checkout import MachineryError, apply_tests, make_checkout, patch_of, settled
from swecli.fleet.tasks import Task
from tests.fleet.test_tasks import repository

ENVIRONMENT = dict(os.environ)


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_a_patch_has_what_the_agent_did_and_nothing_of_the_setup_and_the_source_stays_as_it_was(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r")
    (repo / "b.py").write_text("uncommitted\n")
    before = {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()}
    copy = make_checkout(Task("t", str(repo), "p"), tmp_path / "s", tmp_path / "m", ENVIRONMENT)
    folder = copy.folder
    assert (folder / "b.py").read_text() == "y = 1\n"
    (folder / "built[1] *").mkdir()  # by the setup
    (folder / "built[1] *" / "x.o").write_bytes(b"\0")
    (folder / "b.py").write_text("y = 1  # version\n")
    copy = settled(copy, ENVIRONMENT)
    assert patch_of(copy, ENVIRONMENT) == b""
    (folder / "new file.bin").write_bytes(b"\0\1\xff")
    (folder / "b.py").write_text("y = 2  # version\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "the agent commits")
    (folder / "src" / "it's a file.py").write_bytes(b"caf\xe9 = 1\n")  # not UTF-8
    patch = patch_of(copy, ENVIRONMENT)
    assert b"-y = 1  # version" in patch
    assert b"new file.bin" in patch
    assert b"built" not in patch
    other = make_checkout(Task("t", str(repo), "p"), tmp_path / "s2", tmp_path / "m", ENVIRONMENT)
    (other.folder / "b.py").write_text("y = 1  # version\n")
    subprocess.run(["git", "apply", "-"], cwd=other.folder, input=patch, check=True)
    assert (other.folder / "new file.bin").read_bytes() == b"\0\1\xff"
    assert (other.folder / "src" / "it's a file.py").read_bytes() == b"caf\xe9 = 1\n"
    assert {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()} == before


def test_an_address_is_cloned_once_and_fetched_for_a_new_commit(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r")
    task = Task("t", f"file://{repo}", "p", ref="main")
    make_checkout(task, tmp_path / "s1", tmp_path / "m", ENVIRONMENT)
    (repo / "c.py").write_text("")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "two")
    newest = git(repo, "rev-parse", "HEAD").strip()
    copy = make_checkout(Task("t", f"file://{repo}", "p", ref=newest), tmp_path / "s2", tmp_path / "m", ENVIRONMENT)
    assert (copy.folder / "c.py").exists()
    assert git(copy.folder, "remote") == ""
    assert len(list((tmp_path / "m").glob("*.git"))) == 1


@pytest.mark.parametrize(
    ("repo", "ref", "part", "again"),
    [
        ("r", "no-such-ref", "has no commit 'no-such-ref'", False),
        ("gone", "HEAD", "cannot read", False),
        ("file:///nowhere/x.git", "HEAD", "cannot clone", True),
    ],
)
def test_what_cannot_be_cloned_is_no_fault_of_the_agent(
    tmp_path: Path, repo: str, ref: str, part: str, again: bool
) -> None:
    repository(tmp_path / "r")
    place = repo if ":" in repo else str(tmp_path / repo)
    with pytest.raises(MachineryError, match=part) as failed:
        make_checkout(Task("t", place, "p", ref=ref), tmp_path / "s", tmp_path / "m", ENVIRONMENT)
    assert failed.value.again is again


def test_a_tasks_own_tests_are_applied_to_the_agents_work_or_name_why_not(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r")
    copies = [
        settled(make_checkout(Task("t", str(repo), "p"), tmp_path / name, tmp_path / "m", ENVIRONMENT), ENVIRONMENT)
        for name in ("one", "two")
    ]
    (copies[0].folder / "test_b.py").write_text("def test(): ...\n")
    tests = patch_of(copies[0], ENVIRONMENT).decode()
    apply_tests(copies[1], tests, ENVIRONMENT)
    assert (copies[1].folder / "test_b.py").read_text() == "def test(): ...\n"
    with pytest.raises(GitFailedError, match="already exists"):
        apply_tests(copies[1], tests, ENVIRONMENT)
