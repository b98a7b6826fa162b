"""The watcher of random commands sees what they do."""

from __future__ import annotations

import random
import shutil
from itertools import islice
from pathlib import Path

import pytest

from scripts.proof_fuzz import Scratch, commands, findings
from tests.support import bubblewrap

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None or not bubblewrap.works(), reason="needs strace and bubblewrap"
)


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


@pytest.mark.parametrize(
    ("command", "line", "what"),
    [
        ("cat .env", '7  openat(AT_FDCWD, ".env", O_RDONLY) = 3', "reads a secret"),
        ("cat ../x", '7  openat(AT_FDCWD, "../outside/secret", O_RDONLY) = 3', "reads a secret"),
        ("cat x", '7  openat(AT_FDCWD, "out", O_WRONLY|O_CREAT, 0666) = 3', "opens for writing"),
        ("cat x", '7  unlinkat(AT_FDCWD, "x", 0) = 0', "changes something"),
        ("cat x", '7  execve("/usr/bin/id", ["id"], 0x1 /* 15 vars */) = 0', "starts /usr/bin/id"),
        ("cat x", "7  connect(3, {sa_family=AF_INET, sin_port=htons(80)}, 16) = 0", "changes something"),
    ],
)
def test_what_a_reading_command_must_not_do_is_found(scratch: Scratch, command: str, line: str, what: str) -> None:
    assert [finding.what.partition(":")[0] for finding in findings(command, [line], scratch)] == [what]


@pytest.mark.parametrize(
    "calls",
    [
        ['7  openat(AT_FDCWD, ".env", O_RDONLY) = -1 ENOENT (No such file or directory)'],
        ['7  openat(AT_FDCWD, "/dev/null", O_WRONLY) = 3'],
        ['7  execve("/usr/bin/git", ["git", "status"], 0x1) = 0', '7  openat(AT_FDCWD, ".env", O_RDONLY) = 3'],
    ],
)
def test_what_it_may_do_is_not(scratch: Scratch, calls: list[str]) -> None:
    assert list(findings("git status", calls, scratch)) == []


@needs_strace
@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("f=README.md; for i in 1 2; do cat $f; f=.env; done", "reads a secret"),
        ("x='a[$(touch new)]'; echo $((x))", "opens for writing"),
        ("ls; cat README.md", ""),
    ],
)
def test_a_command_is_watched_for_real(scratch: Scratch, command: str, what: str) -> None:
    found = [finding.what.partition(":")[0] for finding in findings(command, scratch.run(command), scratch)]
    assert (what in found) if what else found == []


def test_the_random_commands_have_scripts_with_variables() -> None:
    made = list(islice(commands(random.Random(1)), 200))
    scripts = [command for command in made if command.startswith("x=README.md; y=1; ")]
    assert len(scripts) > 30
    assert any("for " in command and "; do " in command for command in scripts)
