"""What a user meets who has no Python, an old one, or one without venv: one line that says so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent


def set_up(
    tmp_path: Path, pythons: dict[str, str], *, later: dict[str, str] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the setup script in a copy whose PATH holds ``pythons`` (name -> shell script) and basic tools only, and in a
    second folder, with a blank in its name, those that come ``later``."""
    project = tmp_path / "project"
    (project / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup.sh", project / "scripts")
    tools, behind = tmp_path / "bin", tmp_path / "other bin"
    for folder, scripts in ((tools, pythons), (behind, later or {})):
        folder.mkdir()
        for name, script in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            (folder / name).chmod(0o755)
    for tool in ("sh", "dirname", "touch"):
        found = shutil.which(tool)
        assert found
        (tools / tool).symlink_to(found)
    return subprocess.run(
        [str(tools / "sh"), "scripts/setup.sh", "runtime"],
        cwd=project,
        env={"PATH": f"{tools}:{behind}", "HOME": os.environ.get("HOME", "/"), **environment},
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


MAKES = "*venv*--clear*) exit 1;;"
FAST = f'case "$*" in {MAKES} --version) echo Python 3.12.1;; esac'
SLOW = f'case "$*" in *CONFIG_ARGS*) exit 1;; {MAKES} --version) echo Python 3.13.0;; esac'
BARE = 'case "$*" in *ensurepip*) exit 1;; esac'


@pytest.mark.parametrize(
    ("first", "later", "chosen"),
    [
        ({"python3.13": SLOW}, {"python3": FAST}, "other bin/python3"),
        ({"python3": SLOW}, {"python3": FAST}, "other bin/python3"),
        ({"python3.11": FAST}, {"python3.12": FAST}, "other bin/python3.12"),
        ({"python3": BARE}, {"python3": SLOW}, "other bin/python3"),
        ({"python3.13": SLOW, "python3": SLOW}, {"python3": BARE}, "bin/python3.13"),
        ({"python3": OLD}, {"python": SLOW}, "other bin/python"),
    ],
)
def test_the_newest_python_compiled_with_optimisations_is_chosen_or_else_the_newest(
    tmp_path: Path, first: dict[str, str], later: dict[str, str], chosen: str
) -> None:
    result = set_up(tmp_path, first, later=later)
    assert result.stdout.splitlines()[0].endswith(f" ({tmp_path}/{chosen}) ...")
    assert result.stderr == f"swecli setup: {tmp_path}/{chosen} could not make .venv; its message is above.\n"


def test_a_python_that_is_named_is_taken_as_it_is(tmp_path: Path) -> None:
    result = set_up(tmp_path, {"python3": FAST, "mine": SLOW}, PYTHON="mine")
    assert result.stderr == "swecli setup: mine could not make .venv; its message is above.\n"
