"""What a user meets who has no Python, an old one, or one without venv: one line that says so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent


def set_up(tmp_path: Path, pythons: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the setup script in a copy whose PATH holds ``pythons`` (name -> shell script) and basic tools only."""
    project = tmp_path / "project"
    (project / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup.sh", project / "scripts")
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "dirname", "touch"):
        found = shutil.which(tool)
        assert found
        (tools / tool).symlink_to(found)
    for name, script in pythons.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    return subprocess.run(
        [str(tools / "sh"), "scripts/setup.sh", "runtime"],
        cwd=project,
        env={"PATH": str(tools), "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


OLD = 'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac'
NO_VENV = 'case "$2" in *ensurepip*) exit 1;; esac; exit 0'


@pytest.mark.parametrize(
    ("pythons", "environment", "line"),
    [
        ({}, {}, "Python 3.11 or newer is needed, and there is no python3 on PATH."),
        ({"python3": OLD}, {}, "Python 3.11 or newer is needed; found only Python 3.9.2."),
        ({"python3": NO_VENV}, {}, "python3 has no venv module (on Debian or Ubuntu: apt install python3-venv)."),
        ({}, {"PYTHON": "python9"}, "PYTHON=python9 is not there."),
        ({"python3.9": OLD}, {"PYTHON": "python3.9"}, "PYTHON=python3.9 is older than Python 3.11."),
    ],
)
def test_an_unusable_python_gets_one_line(
    tmp_path: Path, pythons: dict[str, str], environment: dict[str, str], line: str
) -> None:
    result = set_up(tmp_path, pythons, **environment)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"swecli setup: {line}\n"


def test_a_newer_python_is_preferred_to_an_old_python3(tmp_path: Path) -> None:
    log = tmp_path / "log"
    result = set_up(tmp_path, {"python3": OLD, "python3.12": f'echo "$@" >>{log}; [ "$2" != venv ]'})
    assert "python3.12 could not make .venv" in result.stderr
    assert "-m venv --clear .venv" in log.read_text(encoding="utf-8")
