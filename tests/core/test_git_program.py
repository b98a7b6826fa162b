"""git as swecli starts it: nothing of the repository runs, and every failure has a kind and words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.core.git import GitFailedError, git_environment, read_git

GIT = shutil.which("git") or ""
pytestmark = pytest.mark.skipif(not GIT, reason="git is not installed")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "de_DE.UTF-8"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run([GIT, "init", "-q", str(tmp_path)], check=True, env=ENVIRONMENT)
    return tmp_path


def trap(folder: Path, name: str, words: str) -> Path:
    """A program that leaves a mark where it is run."""
    program = folder / name
    program.write_text(f"#!/bin/sh\ntouch {folder}/ran\n{words}\n")
    program.chmod(0o755)
    return folder / "ran"


def test_a_repository_gets_nothing_run(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    traps = tmp_path_factory.mktemp("traps")
    ran = trap(traps, "monitor", "exit 1")
    trap(traps, "post-index-change", "exit 0")
    for key, value in (
        ("core.fsmonitor", str(traps / "monitor")),
        ("core.hooksPath", str(traps)),
        ("diff.external", str(traps / "monitor")),
        ("core.pager", str(traps / "monitor")),
    ):
        subprocess.run([GIT, "-C", str(repository), "config", key, value], check=True, env=ENVIRONMENT)
    (repository / "ä.txt").write_text("one\n")
    for arguments in (("add", "-A"), ("status", "--porcelain"), ("diff", "--no-ext-diff", "--cached")):
        said = read_git(GIT, repository, arguments, ENVIRONMENT, 30.0)
    assert "ä.txt" in said.decode()
    assert b"+one" in said
    assert not ran.exists()


def test_what_is_given_is_read_and_errors_are_told_in_english(repository: Path) -> None:
    blob = read_git(GIT, repository, ("hash-object", "-w", "--stdin"), ENVIRONMENT, 30.0, given=b"text")
    assert read_git(GIT, repository, ("cat-file", "blob", blob.decode().strip()), ENVIRONMENT, 30.0) == b"text"
    with pytest.raises(GitFailedError) as failed:
        read_git(GIT, repository, ("rev-parse", "--verify", "nothing"), ENVIRONMENT, 30.0)
    assert (failed.value.kind, failed.value.first_line) == ("failed", "Needed a single revision")
    with pytest.raises(GitFailedError) as silent:
        read_git(GIT, repository, ("rev-parse", "--verify", "--quiet", "nothing"), ENVIRONMENT, 30.0)
    assert (str(silent.value), silent.value.first_line) == ("", "exit status 1")
    assert git_environment(ENVIRONMENT)["LC_ALL"] == "C"


def test_a_program_that_is_missing_or_does_not_end_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(GitFailedError) as missing:
        read_git(str(tmp_path / "git"), tmp_path, ("status",), ENVIRONMENT, 30.0)
    assert (missing.value.kind, str(missing.value)) == ("not started", "No such file or directory")
    sleeper = tmp_path / "git"
    sleeper.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(3600)\n")
    sleeper.chmod(0o755)
    with pytest.raises(GitFailedError) as slow:
        read_git(str(sleeper), tmp_path, ("status",), ENVIRONMENT, 0.2)
    assert (slow.value.kind, str(slow.value)) == ("too slow", "it took longer than 0.2 s")
