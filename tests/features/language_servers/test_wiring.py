"""Which language servers a run has: none in a folder that is not trusted, and nothing of them is loaded at start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.assembly.services import launch_of
from swecli.assembly.startup import Startup, read_startup
from swecli.core.config.trust import accept_items, write_trust
from swecli.core.sandbox.sandbox import Sandbox
from swecli.features.language_servers.wiring import language_servers
from swecli.launch import Launch, LaunchOptions
from tests.support.waiting import PATIENCE

OWN = '[language_servers.mine]\ncommand = "mine"\nextensions = [".mine"]\n'


class Work:
    """A folder with a Python file, and a program that is called like a server."""

    def __init__(self, base: Path) -> None:
        self.home, self.folder, self.bin = base / "home", base / "work", base / "bin"
        for folder in (self.home, self.folder / ".swecli", self.bin):
            folder.mkdir(parents=True)
        (self.folder / "a.py").touch()
        for name in ("pylsp", "mine"):
            (self.bin / name).write_text("#!/bin/sh\nexit 1\n")
            (self.bin / name).chmod(0o755)

    def startup(self) -> Startup:
        return read_startup(self.folder, {"SWECLI_HOME": str(self.home), "HOME": str(self.home)}, {})

    def trust(self) -> None:
        write_trust(self.home / "data", self.folder, "trusted")

    def launch(self, **options: bool) -> Launch:
        launch = launch_of(replace(LaunchOptions(self.folder), **options), self.startup())
        return replace(launch, child_environment={"PATH": str(self.bin)}, sandbox=Sandbox.none())

    def names(self, **options: bool) -> tuple[list[str], bool]:
        """The servers, and whether the model is offered questions."""
        servers, offered = language_servers(self.launch(**options))
        return [program.server.name for program in servers.programs] if servers is not None else [], offered


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def test_a_folder_has_to_be_trusted(work: Work) -> None:
    assert work.names() == ([], False)
    write_trust(work.home / "data", work.folder, "declined")
    assert work.names() == ([], False)
    work.trust()
    assert work.names() == (["pylsp"], True)


@pytest.mark.parametrize("option", ["safe_mode", "look_only", "dry_run", "compact_dry_run"])
def test_runs_without_servers(work: Work, option: str) -> None:
    work.trust()
    assert work.names(**{option: True}) == ([], False)


def test_they_can_be_switched_off(work: Work) -> None:
    work.trust()
    (work.home / "config.toml").write_text("[diagnostics]\nenabled = false\n")
    assert work.names() == ([], False)


def test_questions_are_offered_only_where_a_file_has_a_server(work: Work) -> None:
    work.trust()
    (work.folder / "a.py").rename(work.folder / "a.txt")
    assert work.names() == (["pylsp"], False)


def test_a_server_that_the_project_names_waits_for_consent(work: Work) -> None:
    work.trust()
    (work.folder / ".swecli" / "config.toml").write_text(OWN)
    assert work.names() == (["pylsp"], True)
    pending = work.startup().pending
    assert {item.key for item in pending} == {"language_servers.mine.command", "language_servers.mine.extensions"}
    accept_items(work.home / "data", work.folder, [item.digest for item in pending])
    assert work.names() == (["mine", "pylsp"], True)


def test_ones_own_settings_need_no_consent(work: Work) -> None:
    work.trust()
    options = "[language_servers.mine.options]\nnested = { a = [1, 2] }\n[language_servers.pylsp]\nenabled = false\n"
    (work.home / "config.toml").write_text(OWN + options)
    assert work.names() == (["mine"], False)
    servers, _ = language_servers(work.launch())
    assert servers is not None
    assert servers.programs[0].server.options == {"nested": {"a": [1, 2]}}


def test_at_the_start_no_part_of_a_server_is_loaded(work: Work) -> None:
    work.trust()
    code = f"""
import sys
from pathlib import Path
from tests.features.language_servers.test_wiring import *
options = LaunchOptions(Path({str(work.folder)!r}))
startup = read_startup(options.cwd, {{"SWECLI_HOME": {str(work.home)!r}}}, {{}})
launch = replace(launch_of(options, startup), child_environment={{"PATH": {str(work.bin)!r}}}, sandbox=Sandbox.none())
servers, offered = language_servers(launch)
assert servers is not None and offered
print(*(name.rpartition(".")[2] for name in sorted(sys.modules) if name.startswith("swecli.core.language_servers.")))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout.split() == ["definitions", "servers"]
