"""A start with a standard stream closed: what can't be told is not done, and the status says so."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import ROOT, Program
from tests.support.waiting import PATIENCE


def run(tmp_path: Path, tail: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Program(tmp_path, tmp_path / "home")
    command = shlex.join([sys.executable, "-m", "swecli.cli", *arguments])
    return subprocess.run(
        ["sh", "-c", f"{command} {tail}"],
        cwd=tmp_path,
        env={**program.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["-p", "hello"], ["config", "get", "ui.theme"], ["--version"]])
def test_an_answer_that_would_be_lost_is_a_failure(tmp_path: Path, arguments: list[str]) -> None:
    ended = run(tmp_path, ">&-", *arguments)
    assert ended.returncode == 1
    assert ended.stderr.startswith("swecli: standard output is closed")
    assert ended.stderr.count("\n") == 1
    assert run(tmp_path, ">&- 2>&-", *arguments).returncode == 1


def test_a_closed_standard_error_is_none(tmp_path: Path) -> None:
    ended = run(tmp_path, "2>&-", "config", "get", "agent.max_steps")
    assert ended.returncode == 0
    assert ended.stdout == "(unset)\n"
