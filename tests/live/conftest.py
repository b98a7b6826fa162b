"""Live tests cost money: they run only with `make test-live`, and only where a provider's key is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from swecli import demo
from swecli.core.llm.providers import default_model
from tests.support.program import Ended, Program

ROOT = Path(__file__).parent
SECONDS = 600


@dataclass(frozen=True, slots=True)
class Live:
    """The real program with a real model, at work on a copy of the sample project."""

    folder: Path
    program: Program
    model: str

    def run(self, prompt: str, *options: str) -> Ended:
        """One one-shot run that ended well."""
        limits = ("--max-turns", "40", "--max-tokens", "600000")
        ended = self.program.run(
            "-m", self.model, "-p", prompt, "--output-format", "json", *limits, *options, timeout=SECONDS
        )
        assert ended.code == 0, f"exit {ended.code}\n{ended.stdout}\n{ended.stderr}"
        return ended

    def checks(self) -> subprocess.CompletedProcess[str]:
        """The sample project's own tests."""
        command = [sys.executable, "test_basket.py"]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)

    def sources(self) -> dict[str, str]:
        """Path -> text of every Python file."""
        return {
            str(path.relative_to(self.folder)): path.read_text(encoding="utf-8")
            for path in sorted(self.folder.rglob("*.py"))
        }


def live_model(environment: Mapping[str, str]) -> str:
    """``provider/name`` to test with, or an empty string where there is no key."""
    return environment.get("SWECLI_MODEL", "").strip() or default_model(environment)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("SWECLI_LIVE") != "1":
        reason = "live tests run with make test-live"
    elif not live_model(os.environ):
        reason = "no provider's key is in the environment (see docs/providers.md)"
    else:
        return
    for item in items:
        if item.nodeid.startswith("tests/live/") and item.path.is_relative_to(ROOT):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def live(tmp_path: Path) -> Live:
    folder = tmp_path / "stationery"
    shutil.copytree(Path(demo.__file__).parent / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    # The keys and addresses of the environment are what this test is about.
    variables = {name: value for name, value in os.environ.items() if name not in ("SWECLI_HOME", "SWECLI_LIVE")}
    return Live(folder, Program(folder, tmp_path / "home", variables), live_model(os.environ))
