"""``swecli -w``: a run in a work tree of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.command_line.arguments import UsageError, launch_options, parsed
from swecli.command_line.headless import run_headless
from swecli.command_line.worktree import DECISIONS, in_worktree
from swecli.core.config.paths import user_paths
from swecli.core.config.trust import read_trust, write_trust
from swecli.core.mcp.servers import STORE, Decisions
from swecli.core.sessions.database import DATABASE, open_database
from swecli.core.sessions.store import SessionStore
from swecli.launch import LaunchOptions, StartError
from tests.core.test_worktrees import ENVIRONMENT, git

SCRIPT = '[[step]]\ntext = "Hello."\n[[step]]\ntext = "Again."\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("a = 1\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        git(folder, *words)
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    return folder


def write(name: str) -> Callable[[LaunchOptions], int]:
    def run(options: LaunchOptions) -> int:
        (options.cwd / name).write_text("new\n")
        return 0

    return run


def options_of(*arguments: str) -> LaunchOptions:
    return launch_options(parsed(arguments), os.environ, is_root=False)


def test_it_is_kept_with_changes_and_goes_on(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert in_worktree(options_of("-w", "fix"), write("new.txt")) == 0
    assert "The worktree fix is kept: " in capsys.readouterr().err
    assert not (project / "new.txt").exists()
    seen: list[LaunchOptions] = []

    def look(options: LaunchOptions) -> int:
        seen.append(options)
        (options.cwd.parent / "new.txt").unlink()
        return 3

    assert in_worktree(options_of("-w", "fix", "-C", "src"), look) == 3
    assert seen[0].cwd.name == "src"
    assert not seen[0].cwd.exists()


def test_without_changes_it_is_removed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders: list[Path] = []
    in_worktree(options_of("-w", "do this please"), lambda options: folders.append(options.cwd) or 0)
    assert not folders[0].exists()
    assert "was removed with its branch" in capsys.readouterr().err
    assert "swecli/" not in git(project, "branch", "--list")


def test_what_holds_for_the_folder_holds_in_it(project: Path) -> None:
    data = user_paths(os.environ).data
    write_trust(data, project, "trusted")
    Decisions(user_paths(os.environ).workspace_data(project) / STORE).change("time", definition="x", verdict="approved")
    trusted: list[bool] = []
    folders: list[Path] = []

    def look(options: LaunchOptions) -> int:
        folders.append(options.cwd)
        trusted.append(read_trust(data, options.cwd).trusts)
        decisions = Decisions(user_paths(os.environ).workspace_data(options.cwd) / DECISIONS)
        trusted.append(decisions.of("time").get("verdict") == "approved")
        return 0

    in_worktree(options_of("-w"), look)
    assert trusted == [True, True]
    assert not read_trust(data, folders[0]).trusts


def test_one_that_another_works_in_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = options_of("-w", "shared")
    folders: list[Path] = []

    def outer(inner: LaunchOptions) -> int:
        folders.append(inner.cwd)
        in_worktree(options, lambda _: 0)
        assert inner.cwd.exists()
        return 0

    in_worktree(options, outer)
    assert "another swecli is using it" in capsys.readouterr().err
    assert not folders[0].exists()


def test_its_session_is_found_again(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)

    def run(*arguments: str) -> str:
        options = replace(options_of(*arguments), script=script, output_format="json")
        assert in_worktree(options, run_headless) == 0
        return capsys.readouterr().out

    first = json.loads(run("-w", "talk", "-p", "hello"))
    again = json.loads(run("-w", "talk", "-c", "-p", "again"))
    assert first["session"] == again["session"]
    third = json.loads(run("-r", first["session"], "-p", "again"))
    assert third["session"] == first["session"]
    assert "talk" not in git(project, "branch", "--list")


def test_its_session_is_found_by_name_and_only_in_its_own_repository(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)

    def run(*arguments: str) -> str:
        options = replace(options_of(*arguments), script=script, output_format="json")
        assert in_worktree(options, run_headless) == 0
        return json.loads(capsys.readouterr().out)["session"]

    folders: list[Path] = []

    def keep(options: LaunchOptions) -> int:
        folders.append(options.cwd)
        return 0

    session = run("-w", "talk", "-p", "hello")
    in_worktree(options_of("-w", "talk"), keep)
    with closing(SessionStore(open_database(user_paths(os.environ).workspace_data(folders[0]) / DATABASE))) as store:
        store.rename(session, "Ärger")
    for name in ("ärger", "är", session):
        in_worktree(options_of("-r", name), keep)
        assert folders.pop() == folders[0]

    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-qm", "first", "--allow-empty")
    monkeypatch.chdir(other)
    in_worktree(options_of("-w", "mine"), write("new.txt"))
    in_worktree(options_of("-r", session), keep)
    assert folders.pop() == other


@pytest.mark.parametrize("name", ["../x", "a/b", "-x", ".hidden", "x.lock", "a..b", "x" * 80])
def test_bad_names(project: Path, name: str) -> None:
    with pytest.raises(StartError, match="cannot name a worktree"):
        in_worktree(replace(options_of(), worktree=name), lambda _: 0)


def test_where_there_is_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StartError, match="is not in a git repository"):
        in_worktree(options_of("-w"), lambda _: 0)


def test_what_makes_no_sense(project: Path) -> None:
    for words in (("-w", "-c"), ("-w", "x", "--dry-run", "-p", "y")):
        with pytest.raises(UsageError, match="-w"):
            options_of(*words)


def test_settings_of_git_that_name_programs_need_trust(project: Path) -> None:
    git(project, "config", "filter.x.smudge", "touch /tmp/never")
    with pytest.raises(StartError, match="is not trusted, and git might run a program"):
        in_worktree(options_of("-w", "x"), lambda _: 0)
    assert in_worktree(options_of("-w", "x", "--trust"), lambda _: 0) == 0
