"""Where a session has an index of its folder, and where not."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.assembly.services import launch_of
from swecli.assembly.startup import startup_of
from swecli.core.config.trust import write_trust
from swecli.core.llm.scripted import parse_script
from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.types import Rule
from swecli.core.retrieval.retrieve import Ranked, Retrieval
from swecli.core.tools.registry import ToolRegistry
from swecli.features.retrieval.tool import Locate, LocateParams
from swecli.features.retrieval.wiring import git_program, project_index
from swecli.launch import LaunchOptions
from tests.core.retrieval.project import git
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program
from tests.support.tool_context import ToolBench


def has_index(options: LaunchOptions, home: Path) -> bool:
    environment = {"SWECLI_HOME": str(home), "HOME": str(home), "PATH": "/usr/bin:/bin"}
    return project_index(launch_of(options, startup_of(options, environment))) is not None


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


SAYS = '[[step]]\ntext = "Hello."\n[[step]]\ncall = [{ tool = "locate", arguments = { query = "pricing" } }]\n'


def test_a_session_that_had_the_tool_has_it_again_whatever_became_of_the_index(tmp_path: Path) -> None:
    """The tools are the beginning of every request: without one the provider would read all of it anew."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pricing.py").write_text("def pricing(): ...\n")
    why = "This folder has no index: its files are no longer trusted"
    last = f'[[step]]\nexpect = {{ last_result = "{why}" }}\ntext = "Done."'
    with LoopbackServer(parse_script(SAYS + last), manners=Manners(window=128_000)) as provider:
        run = Program(project, tmp_path / "home", provider.environment())
        assert run.run("-p", "hi", "-m", "openai/m").stdout == "Hello.\n"
        (project / "AGENTS.md").write_text("Be quick.\n")  # from now on the folder asks for trust
        assert run.run("-c", "-p", "where is it?", "-m", "openai/m").stdout == "Done.\n"
        first, *others = ([tool["function"]["name"] for tool in one.body["tools"]] for one in provider.asked)
    assert "locate" in first
    assert [*others] == [first, first]


def test_a_session_that_never_had_the_tool_is_not_given_a_spare_one() -> None:
    spare = Locate(nothing, lambda: "why")
    registry = ToolRegistry((), (spare,))
    assert not registry.restore(["search", "symbols"])
    assert (registry.names(), registry.schemas()) == ((), ())
    assert registry.restore(["search", "locate"])
    assert registry.get("locate") is spare
    assert [one.name for one in registry.schemas()] == ["locate"]
    assert not registry.restore(["locate"])


async def test_places_in_files_that_a_rule_covers_are_not_shown(tmp_path: Path) -> None:
    bench = ToolBench(tmp_path)

    async def retrieval(text: str) -> Retrieval:
        return Retrieval((), (Ranked("keys/a.py", 2.0, "pricing", 3), Ranked("b.py", 1.0, "pricing", 1)))

    rules = ReadRules((Rule("deny", "Read(keys/**)", "user"),), (str(bench.folder),))
    context = replace(bench.context, read_rules=lambda: rules)
    outcome = await Locate(retrieval, lambda: "").run(LocateParams(query="pricing"), context)
    assert outcome.text == "b.py:1 pricing\n(files covered by Read(keys/**) are left out)"
    assert outcome.detail == "1 place"


async def nothing(text: str) -> None:
    return None
