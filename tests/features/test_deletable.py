"""Three features are deleted with their words: what is left imports, answers, and passes the tests of the engine.

``DELETABLE=whole`` also checks the types and runs the tests of the engine and of headless runs, for some minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.features import FEATURES

ROOT = Path(__file__).resolve().parents[2]
DELETED = ("sentinel", "spending", "language_servers")
FOLDERS = (
    *(f"{place}/features/{name}" for place in ("swecli", "tests") for name in DELETED),
    *(f"{place}/core/language_servers" for place in ("swecli", "tests")),
)
"""A feature is its folder, and its pure package in the core if nothing else needs that."""
ANSWERS = """
import importlib, pkgutil, sys
import swecli
left_out = ("swecli.__main__", "swecli.demo.project")
for module in pkgutil.walk_packages(swecli.__path__, "swecli."):
    if not module.name.startswith(left_out):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # of an optional dependency
            if error.name is None or error.name.startswith("swecli"):
                raise
from swecli.commands.registry import COMMANDS
names = {command.name for command in COMMANDS}
assert "status" in names and not names & {"sentinel", "lsp"}, names
assert swecli.__file__.startswith(sys.argv[1]), swecli.__file__
import asyncio
from pathlib import Path
from swecli.app import open_session
from swecli.core.protocol.commands import Submit
from swecli.launch import LaunchOptions

async def main():
    script = Path(sys.argv[2])
    session = await open_session(LaunchOptions(script.parent, script=script, yolo=True, store=False))
    session.send(Submit("hello"))
    await session.worked()
    print(session.answer)
    await session.close()

asyncio.run(main())
"""
SCRIPT = """
[[step]]
call = [{ tool = "write_file", arguments = { path = "a.py", content = "x = 1" } }]
[[step]]
text = "done without them"
"""


def test_each_word_is_a_folder_and_each_folder_a_word() -> None:
    folders = {path.parent.name for path in (ROOT / "swecli" / "features").glob("*/__init__.py")}
    assert folders == set(FEATURES)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A copy of the program without the features."""
    copy = tmp_path / "copy"
    for name in (
        "swecli",
        *(("tests", "scripts", "benchmarks", "docs") if os.environ.get("DELETABLE") == "whole" else ()),
    ):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*FOLDERS,):
        shutil.rmtree(copy / name, ignore_errors=True)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "OPENCLI.md.template"):
        shutil.copy(ROOT / name, copy / name)
    words = copy / "swecli" / "features" / "__init__.py"
    text = words.read_text(encoding="utf-8")
    for name in DELETED:
        text, count = re.subn(rf'"{name}",?\s*', "", text)
        assert count == 1
    words.write_text(text, encoding="utf-8")
    return copy


def _run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {**given, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_without_them_everything_imports_and_a_run_answers(left: Path, tmp_path: Path) -> None:
    (tmp_path / "script.toml").write_text(SCRIPT, encoding="utf-8")
    home = str(tmp_path / "home")
    ended = _run(left, sys.executable, "-c", ANSWERS, str(left), str(tmp_path / "script.toml"), SWECLI_HOME=home)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "done without them"
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "x = 1"


@pytest.mark.skipif(os.environ.get("DELETABLE") != "whole", reason="takes minutes: DELETABLE=whole")
def test_without_them_the_types_are_right_and_the_engines_tests_pass(left: Path) -> None:
    typed = _run(left, sys.executable, "-m", "scripts.check_types", "--pythonpath", sys.executable)
    assert typed.returncode == 0, typed.stdout
    own = f"--ignore={left / 'tests' / 'features' / 'test_deletable.py'}"
    more = {"PYTEST_ADDOPTS": f"-n 2 -p no:cacheprovider --basetemp={left.parent / 'tests'} {own}"}
    tested = _run(left, sys.executable, "-m", "pytest", "tests/core/engine", "tests/headless", "tests/features", **more)
    assert tested.returncode == 0, tested.stdout[-5_000:]
