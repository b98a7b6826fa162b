"""Asking a program for its version or help runs unasked, unless a file of the folder decides what that starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.shell.versions import tells_about_itself
from tests.support.shell_workspace import ShellWorkspace

OBEYED = (
    ("npm --version", ".npmrc", ""),
    ("npm ls", ".npmrc", ""),
    ("npx --version", ".npmrc", ""),
    ("yarn --version", ".yarnrc.yml", "yarnPath: x.cjs"),
    ("pnpm -v", "package.json", '{"packageManager": "pnpm@9.0.0"}'),
    ("poetry --version", ".poetry", ""),
    ("ansible --version", "ansible.cfg", "[defaults]\ncowpath = ./x"),
    ("mvn -v", ".mvn", ""),
    ("dotnet --info", "global.json", "{}"),
    ("bundle --version", "Gemfile", ""),
    ("flake8 --version", "tox.ini", ""),
)


@pytest.fixture
def work(tmp_path: Path) -> ShellWorkspace:
    return ShellWorkspace(tmp_path, secrets=False)


@pytest.mark.parametrize(("command", "file", "text"), OBEYED, ids=[command for command, _, _ in OBEYED])
def test_a_file_that_configures_the_program_makes_it_ask(
    work: ShellWorkspace, command: str, file: str, text: str
) -> None:
    assert work.decide(command).outcome == "allow"
    (work.root / file).write_text(text)
    decision = work.decide(command)
    assert decision.outcome == "ask"
    assert (
        decision.reason
        == f"{file} in the workspace or above it configures {command.split()[0]}, so it needs your approval."
    )
    assert work.decide(f"cd src && {command}").outcome == "ask"


def _installed(work: ShellWorkspace, name: str, *beside: str) -> Path:
    """A program outside the workspace, first on PATH, with others beside it."""
    folder = work.outside / "bin"
    folder.mkdir(exist_ok=True)
    for each in (name, *beside):
        (folder / each).write_text("#!/bin/sh\n")
        (folder / each).chmod(0o755)
    work.environment["PATH"] = f"{folder}:{work.environment['PATH']}"
    return folder


@pytest.mark.parametrize("command", ["cargo --version", "rustc -vV", "cargo help build"])
def test_rustup_starts_the_toolchain_that_a_file_names(work: ShellWorkspace, command: str) -> None:
    (work.root / "rust-toolchain.toml").write_text('[toolchain]\npath = "x"\n')
    assert work.decide(command).outcome == "allow"
    _installed(work, command.split()[0], "rustup")
    assert work.decide(command).outcome == "ask"
    (work.root / "rust-toolchain.toml").unlink()
    assert work.decide(command).outcome == "allow"


@pytest.mark.parametrize(
    ("file", "text", "outcome"),
    [
        ("go.mod", "module x\n\ngo 1.22\n", "allow"),
        ("go.mod", "module x\ngo 1.22.3 // as installed\ntoolchain default\n", "allow"),
        ("go.mod", "module x\ngo 1.23\n", "ask"),
        ("go.mod", "module x\ngo 1.20\n\u00a0toolchain go1.22.4\n", "ask"),
        ("go.mod", "module x\ngo 1.20\ntoolchain go1.20-custom\n", "ask"),
        ("go.work", "go 1.22.9\n", "ask"),
    ],
)
def test_go_starts_another_version_only_for_a_newer_module(
    work: ShellWorkspace, file: str, text: str, outcome: str
) -> None:
    (_installed(work, "go").parent / "VERSION").write_text("go1.22.3\ntime 2024\n")
    (work.root / file).write_text(text)
    assert [work.decide(command).outcome for command in ("go version", "go env GOPATH")] == [outcome, outcome]


def test_go_before_versions_were_chosen_by_modules_stays_itself(work: ShellWorkspace) -> None:
    (work.root / "go.mod").write_text("go 1.99\n")
    folder = _installed(work, "go")
    assert work.decide("go version").outcome == "ask"
    (folder.parent / "VERSION").write_text("go1.19.8\n")
    assert work.decide("go version").outcome == "allow"


def test_a_program_of_the_workspace_is_not_asked_for_its_version(work: ShellWorkspace) -> None:
    tool = work.root / "go"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    work.environment["PATH"] = f"{work.root}:{work.environment['PATH']}"
    assert isinstance(work.policy().facts, OsFacts)
    assert work.decide("go version").outcome == "ask"
    assert work.decide("./go version").outcome == "ask"


def test_the_words_are_all_of_the_use() -> None:
    assert tells_about_itself("python3.12", ["--version"])
    assert tells_about_itself("clang-15", ["-v"])
    assert not tells_about_itself("python3.12", ["--version", "x.py"])
    assert not tells_about_itself("python3.12", ["--version", None])
    assert not tells_about_itself("cargo", ["xtask", "--help"])
    assert not tells_about_itself("go", ["run", "--help"])


@pytest.mark.parametrize(
    ("command", "outcome"), [("yes | head -3", "allow"), ("yes", "ask"), ("yes | head -n -3", "ask")]
)
def test_yes_runs_only_where_head_ends_it(work: ShellWorkspace, command: str, outcome: str) -> None:
    assert work.decide(command).outcome == outcome


def test_gofmt_shows_no_file_that_is_kept_back(work: ShellWorkspace) -> None:
    assert work.decide("gofmt -d .").outcome == "allow"
    (work.root / "src" / "link.go").symlink_to(work.outside / "id_rsa")
    (work.outside / "id_rsa").write_text("key")
    assert work.decide("gofmt -d .").outcome == "ask"
