"""A start with a standard stream closed: what can't be told is not done, and the status says so."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import ROOT, Program
from tests.support.waiting import PATIENCE


def run(tmp_path: Path, tail: str, *arguments: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    program = Program(tmp_path, tmp_path / "home")
    command = shlex.join([sys.executable, "-m", "swecli.cli", *arguments])
    return subprocess.run(
        ["sh", "-c", f"{command} {tail}"],
        cwd=tmp_path,
        env={**program.environment, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
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


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["permissions", "check", "--batch"], 0, ""),
        (["retrieve", "--batch"], 0, ""),
        (["doctor", "--repair", "vacuum"], 0, "Nothing is stored here."),
        (["mcp", "serve"], 0, ""),
        (["demo", "--plain"], 0, "Continue with: swecli demo"),
    ],
)
def test_a_closed_standard_input_is_empty(tmp_path: Path, arguments: list[str], status: int, told: str) -> None:
    ended = run(tmp_path, "<&-", *arguments)
    assert (ended.returncode, ended.stderr.strip()) == (status, "")
    assert told in ended.stdout


@pytest.mark.parametrize("arguments", [["mcp", "list"], ["mcp", "list", "--json"], ["mcp", "add", "one", "--", "x"]])
def test_a_full_disk_behind_the_output_is_a_failure(tmp_path: Path, arguments: list[str]) -> None:
    assert run(tmp_path, "", "mcp", "add", "two", "--", "y").returncode == 0
    ended = run(tmp_path, ">/dev/full", *arguments)
    assert ended.returncode == 1
    assert ended.stderr == "swecli: The output cannot be written: No space left on device\n"


@pytest.mark.parametrize("arguments", [["permissions", "grant", "Bash(x …)"]])
def test_what_the_encoding_of_the_output_lacks_becomes_an_escape(tmp_path: Path, arguments: list[str]) -> None:
    ended = run(tmp_path, "", *arguments, encoding="latin-1")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "\\u2026" in ended.stdout


@pytest.mark.parametrize("arguments", [["sessions", "list", "-n"], ["lab", "tune", "--sessions"], ["--max-turns"]])
def test_a_number_that_fits_nowhere_is_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    ended = run(tmp_path, "", *arguments, "9" * 30)
    assert ended.returncode == 2
    assert "a number of 30 digits is too large" in ended.stderr


def test_a_mark_before_the_lines_of_a_batch_is_no_part_of_them(tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(b'\xef\xbb\xbf{"command": "ls"}\n')
    ended = run(tmp_path, "<batch", "permissions", "check", "--batch")
    assert '"verdict": "allow"' in ended.stdout


def test_a_closed_standard_error_is_none(tmp_path: Path) -> None:
    ended = run(tmp_path, "2>&-", "config", "get", "agent.max_steps")
    assert ended.returncode == 0
    assert ended.stdout == "(unset)\n"
