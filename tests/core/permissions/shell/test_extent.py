"""Destructive commands in auto with a full sandbox: all ask, and show what they would take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.shell_workspace import ShellWorkspace

DESTRUCTIVE = [
    *(
        "rm -rf src",
        "rm -r src docs",
        "rm -fr ./src",
        "rm --recursive src",
        "rm -Rf src/",
        "rm -rf -- src",
        "\\rm -rf src",
    ),
    *(
        "/bin/rm -rf src",
        "command rm -rf src",
        "sudo rm -rf src",
        "env X=1 rm -rf src",
        "nice rm -rf src",
        "rm -rf src/*",
    ),
    *(
        "rm *",
        "rm -f *.md",
        "rm -rf $X/*",
        'rm -rf "$DIR"',
        "rm -rf ${HOME:-/x}/y",
        "cd docs && rm -rf ../src",
        "cd $X; rm -rf a",
    ),
    *("sh -c 'rm -rf src'", 'bash -lc "rm -rf src"', "eval rm -rf src", "echo src | xargs rm -rf", "ls | xargs rm"),
    *("find . -name '*.py' -delete", "find src -exec rm {} +", "find src -type f -exec rm -f {} \\;", "fd . src -x rm"),
    *(
        "git clean -fdx",
        "git clean -fd",
        "git reset --hard",
        "git checkout -- .",
        "git push --force",
        "git push -f origin main",
    ),
    *(
        "git branch -D x",
        "git stash drop",
        "git stash clear",
        "shred README.md",
        "dd if=/dev/zero of=README.md",
        "mkfs /dev/sda",
    ),
    *(
        "truncate -s 0 README.md",
        ": > README.md",
        "rm -rf {src,docs}",
        'r"m" -rf src',
        "$(echo rm) -rf src",
        "`echo rm` -r src",
    ),
    *(
        "python3 -c \"import shutil; shutil.rmtree('src')\"",
        "perl -e 'unlink glob \"*\"'",
        "rsync -a --delete /x/ src/",
    ),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    workspace = ShellWorkspace(tmp_path_factory.mktemp("extent"))
    (workspace.root / "src" / "c.py").write_text("12345")
    return workspace


def test_none_of_them_runs_in_auto_or_under_any_rule(work: ShellWorkspace) -> None:
    assert len(DESTRUCTIVE) >= 40
    for policy in work.loosest():
        silent = [command for command in DESTRUCTIVE if work.decide(command, policy).outcome == "allow"]
        assert silent == []


@pytest.mark.parametrize("command", ["rm -rf src", "cd docs && rm -rf ../src", "sh -c 'rm -rf src'", "sudo rm -r src/"])
def test_count_bytes_and_paths_are_shown(work: ShellWorkspace, command: str) -> None:
    evidence = work.decide(command, work.loosest()[0]).evidence
    assert any(line == "3 files in 2 folders, 20 bytes" for line in evidence)
    assert str(work.root / "src") in evidence


def test_wildcards_are_worked_out(work: ShellWorkspace) -> None:
    evidence = work.decide("rm -f src/*.py", work.loosest()[0]).evidence
    assert evidence[:3] == ("2 files, 14 bytes", str(work.root / "src/c.py"), str(work.root / "src/main.py"))


def test_what_is_not_known_is_said(work: ShellWorkspace) -> None:
    policy = work.loosest()[0]
    assert "at run time" in work.decide('rm -rf "$X"/*', policy).evidence[0]
    assert work.decide("rm -rf absent", policy).evidence[0] == "None of it exists now."
    assert work.decide("find src -name '*.py' -delete", policy).evidence[0].startswith("a part of 3 files")


def test_a_large_tree_is_counted_up_to_a_limit_and_quickly(tmp_path: Path) -> None:
    work = ShellWorkspace(tmp_path)
    for number in range(60):
        folder = work.root / "many" / str(number)
        folder.mkdir(parents=True)
        for name in range(100):
            (folder / str(name)).touch()
    assert work.decide("rm -rf many", work.loosest()[0]).evidence[0].startswith("at least 4,9")
