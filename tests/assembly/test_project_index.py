"""Where a session has an index of its folder, and where not."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.assembly.services import git_program, project_index
from swecli.assembly.startup import startup_of
from swecli.core.config.trust import write_trust
from swecli.launch import LaunchOptions
from tests.core.retrieval.project import git


def has_index(options: LaunchOptions, home: Path) -> bool:
    environment = {"SWECLI_HOME": str(home), "HOME": str(home), "PATH": "/usr/bin:/bin"}
    return project_index(options, startup_of(options, environment), environment) is not None


@pytest.fixture
def options(tmp_path: Path) -> LaunchOptions:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    return LaunchOptions(cwd=folder, headless=True)


def test_a_plain_folder_has_one_and_the_settings_turn_it_off(options: LaunchOptions, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert has_index(options, home)
    assert not has_index(LaunchOptions(cwd=options.cwd, safe_mode=True), home)
    (home / "config.toml").write_text("[context]\nretrieval = false\n")
    assert not has_index(options, home)


def test_a_folder_that_wants_trust_has_none_before(options: LaunchOptions, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (options.cwd / "AGENTS.md").write_text("Be quick.\n")
    assert not has_index(options, home)
    write_trust(home / "data", options.cwd, "trusted")
    assert has_index(options, home)
    write_trust(home / "data", options.cwd, "declined")
    assert not has_index(options, home)


def test_git_is_not_started_where_it_might_run_something(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    assert git_program(tmp_path, environment) == ""
    git(tmp_path, "init", "-q")
    assert git_program(tmp_path, environment).endswith("git")
    git(tmp_path, "config", "core.fsmonitor", "./evil")
    assert git_program(tmp_path, environment) == ""
