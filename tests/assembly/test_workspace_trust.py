"""What an answer about trust does to the run and to the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.assembly.startup import read_startup
from swecli.assembly.workspace_trust import WorkspaceTrust
from swecli.launch import LaunchOptions
from swecli.tui.trust_gate import TrustChoice


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    (folder / ".swecli").mkdir(parents=True)
    (folder / ".swecli" / "config.toml").write_text('[approval]\nallow = ["Bash(make *)"]\n')
    return folder


@pytest.mark.parametrize(
    ("choice", "now", "later"),
    [
        ("trust", "session", "trusted"),
        ("session", "session", "unknown"),
        ("decline", "declined", "declined"),
        ("later", "declined", "unknown"),
    ],
)
def test_an_answer_holds_for_the_run_and_is_kept_if_it_was_meant_so(
    folder: Path, choice: TrustChoice, now: str, later: str, tmp_path: Path
) -> None:
    gate = WorkspaceTrust(LaunchOptions(cwd=folder))
    question = gate.question()
    assert question is not None
    assert question.names == (".swecli/config.toml",)
    assert gate.answer(choice) == ""
    assert gate.applied(LaunchOptions(cwd=folder)).trust == now
    environment = {"SWECLI_HOME": str(tmp_path / "home")}
    assert read_startup(folder, environment, {}).trust.state == later
    again = WorkspaceTrust(LaunchOptions(cwd=folder)).question()
    assert (again is None) == (later != "unknown")


def test_an_accepted_setting_counts_from_then_on(folder: Path, tmp_path: Path) -> None:
    gate = WorkspaceTrust(LaunchOptions(cwd=folder))
    gate.answer("trust")
    items = gate.items()
    assert [item.key for item in items] == ["approval.allow"]
    assert gate.accept(items) == ""
    loaded = read_startup(folder, {"SWECLI_HOME": str(tmp_path / "home")}, {}).loaded
    assert [rule.text for rule in loaded.rules] == ["Bash(make *)"]
    assert gate.items() == []


def test_nothing_is_asked_where_the_command_line_said_it(folder: Path) -> None:
    assert WorkspaceTrust(LaunchOptions(cwd=folder, trust="session")).question() is None


def test_an_answer_that_cannot_be_kept_holds_for_the_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    gate = WorkspaceTrust(LaunchOptions(cwd=folder))
    assert "holds for this run" in gate.answer("trust")
    assert gate.applied(LaunchOptions(cwd=folder)).trust == "session"
