"""What the program offers to the interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.command_line.interactive import open_with_banner
from swecli.launch import LaunchOptions
from swecli.tui.program import Program, program_of


def started(options: LaunchOptions) -> Program:
    return program_of(options, open_with_banner)


def test_mentions_offer_no_generated_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    for path in ("src/cart.py", "src/__pycache__/cart.cpython-311.pyc", "node_modules/left/index.js", "dist/cart.js"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("")
    offered = set(started(LaunchOptions(cwd=project)).files())
    assert {"src/", "src/cart.py", "dist/cart.js"} <= offered
    assert not [path for path in offered if "__pycache__" in path or "node_modules" in path]


def test_a_bare_name_is_not_offered_as_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    assert "mock" not in started(LaunchOptions(cwd=tmp_path, model="mock")).models()
    assert started(LaunchOptions(cwd=tmp_path, model="openai/mock")).models()[0] == "openai/mock"


def test_a_key_is_first_asked_for_the_users_own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:s3cret@127.0.0.1:1/v1")
    (name, state), (second, _), *_ = started(LaunchOptions(cwd=tmp_path)).accounts().offered()
    assert (name, state) == ("openai", "http://127.0.0.1:1/v1 · key optional")
    assert second == "anthropic"
