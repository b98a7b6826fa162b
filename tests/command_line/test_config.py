"""``swecli config``: values with their origin, one of them, changes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.cli import main
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions
from swecli.tui.preferences import keep_model


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path))
    monkeypatch.delenv("SWECLI_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.toml"
    path.write_text('# mine\n[approval]\nmode = "plan"\n\n[providers.p]\nheaders = { X-Key = "sesame" }\n')
    return path


def test_all_values_with_their_origin(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == ExitCode.OK
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.startswith("approval.mode"))
    assert line.split() == ["approval.mode", "plan", f"{file}:3"]
    assert "sesame" not in out
    assert main(["config", "--set-only"]) == ExitCode.OK
    assert "default" not in capsys.readouterr().out.replace(str(file), "")


def test_json_has_one_object_for_each(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--json"]) == ExitCode.OK
    out = capsys.readouterr().out
    found = {each["key"]: each for each in map(json.loads, out.splitlines())}
    assert "sesame" not in out
    mode = found["approval.mode"]
    assert (mode["value"], mode["layer"], mode["origin"], mode["line"]) == ('"plan"', "user", f"{file}:3", 3)
    assert found["agent.max_steps"]["value"] is None
    assert all(each["about"] and each["takes"] for each in found.values())


def test_get_set_and_unset(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "set", "agent.max_steps", "12"]) == ExitCode.OK
    assert main(["config", "get", "agent.max_steps"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[-1] == "12"
    assert file.read_text().startswith('# mine\n[approval]\nmode = "plan"\n')
    assert main(["config", "unset", "agent.max_steps"]) == ExitCode.OK
    assert "max_steps" not in tomllib.loads(file.read_text()).get("agent", {})


@pytest.mark.parametrize("name", ["agent.context_budget", "context.context_budget", "context.max_context_tokens"])
def test_a_setting_with_two_names_stays_under_the_one_in_the_file(
    name: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("[context]\nmax_context_tokens = 50000\n")
    assert main(["config", "set", name, "60000"]) == ExitCode.OK
    assert file.read_text() == "[context]\nmax_context_tokens = 60000\n"
    assert main(["config", "get", name]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[-1] == "60000"
    assert main(["config", "unset", name]) == ExitCode.OK
    assert file.read_text() == "[context]\n"


def test_the_files_of_the_settings(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path"]) == ExitCode.OK
    folder = file.parent / ".swecli"
    expected = [f"user: {file}", f"project: {folder / 'config.toml'}", f"local: {folder / 'config.local.toml'}"]
    assert capsys.readouterr().out.splitlines() == expected


def test_a_rule_for_an_unknown_tool_is_told_where_it_is_set(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "set", "approval.deny", '["Bassh", "Bash(rm *)", "mcp__db"]']) == ExitCode.OK
    said = capsys.readouterr().out
    assert said.startswith("The rule Bassh has no effect: unknown tool 'Bassh'; tools: ")
    assert said.count("has no effect") == 1
    assert tomllib.loads(file.read_text())["approval"]["deny"] == ["Bassh", "Bash(rm *)", "mcp__db"]
    assert main(["permissions", "grant", "run_comand", "-C", str(file.parent)]) == ExitCode.OK
    assert "The rule run_comand has no effect" in capsys.readouterr().err
    assert main(["permissions", "list", "--json", "-C", str(file.parent)]) == ExitCode.OK
    assert capsys.readouterr().out.count("unknown tool") == 2


def test_allow_rules_of_a_project_are_listed_before_they_are_accepted(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("")
    project = tmp_path / "project"
    (project / ".swecli").mkdir(parents=True)
    own = project / ".swecli" / "config.toml"
    own.write_text('[approval]\nallow = ["Bash(npm test)"]\ndeny = ["Bash(rm *)"]\n')
    at = ("-C", str(project))

    def effects() -> list[tuple[str, str]]:
        assert main(["permissions", "list", "--json", *at]) == ExitCode.OK
        rows = map(json.loads, capsys.readouterr().out.splitlines()[-2:])
        return [(row["rule"], row["void"]) for row in rows]

    assert main(["permissions", "trust", *at]) == ExitCode.OK
    waiting = "not accepted: swecli permissions accept approval.allow"
    assert effects() == [("Bash(rm *)", ""), ("Bash(npm test)", waiting)]
    assert main(["permissions", "accept", "approval.allow", *at]) == ExitCode.OK
    assert sorted(effects()) == [("Bash(npm test)", ""), ("Bash(rm *)", "")]


def test_a_switch_is_set_with_the_usual_words(file: Path) -> None:
    assert main(["config", "set", "ui.mouse", "no"]) == ExitCode.OK
    assert tomllib.loads(file.read_text())["ui"]["mouse"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("set", "model.name", "sonnet"), ExitCode.BAD_INPUT, 'model.name must be "provider/model" or an alias'),
        (("set", "agent.max_steps", "0"), ExitCode.BAD_INPUT, "agent.max_steps must be"),
        (("set", "nothing", "1"), ExitCode.BAD_INPUT, "nothing is not a setting; `swecli config` lists all"),
        (("set", "thme", "nord"), ExitCode.BAD_INPUT, "swecli: thme is not a setting; did you mean ui.theme?"),
        (("set", "theme", "nord"), ExitCode.BAD_INPUT, "swecli: theme is not a setting; did you mean ui.theme?"),
        (("unset", "theme"), ExitCode.BAD_INPUT, "swecli: theme is not a setting; did you mean ui.theme?"),
        (("set", "agent.max_step", "1"), ExitCode.BAD_INPUT, "did you mean agent.max_steps?"),
        (("get", "theme"), ExitCode.USAGE, "Setting theme is unknown; did you mean ui.theme?"),
        (("set", "approval.mode", "auto", "--local"), ExitCode.BAD_INPUT, "only tighten"),
        (("unset", "agent.max_steps"), ExitCode.BAD_INPUT, "is not set in"),
        (("set", "models.window", "big"), ExitCode.BAD_INPUT, "models.window takes a table; 'big' is not a TOML value"),
        (
            ("set", "subagents.model", "quick"),
            ExitCode.BAD_INPUT,
            "subagents.model must be",
        ),
        (("get", "nothing"), ExitCode.USAGE, "Setting nothing is unknown"),
        (("frob",), ExitCode.USAGE, "has no 'frob'"),
    ],
)
def test_what_is_refused_is_one_line(
    file: Path, arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = file.read_text()
    assert main(["config", *arguments]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert file.read_text() == before


def test_a_broken_file_is_an_error_with_its_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[agent]\nmax_steps = -3\n")
    assert main(["config"]) == ExitCode.CONFIG
    assert "config.toml:2: agent.max_steps" in capsys.readouterr().err


def test_what_is_taken_out_of_a_file_with_other_errors_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('[agent]\nmax_steps = -3\n[ui]\ntheme = "nord"\n')
    assert main(["config", "unset", "ui.theme"]) == ExitCode.OK
    said = capsys.readouterr().out
    assert f"ui.theme removed from {file}; the settings still have an error: " in said
    assert "agent.max_steps" in said


def test_the_model_that_was_picked_last_is_the_one_of_the_next_start(file: Path) -> None:
    file.write_text('# mine\n[ui]\ntheme = "nord"\n')
    options = LaunchOptions(cwd=file.parent)
    for flagged in (replace(options, base_url="http://localhost:1/v1"), replace(options, settings=file)):
        with pytest.raises(ValueError, match="applies to this run only"):
            keep_model(flagged, "openai/c")
    assert "model" not in file.read_text()
    for ref in ("openai/a", "anthropic/b"):
        assert keep_model(options, ref) == "Saved as default. -m overrides it."
        assert tomllib.loads(file.read_text()) == {"ui": {"theme": "nord"}, "model": {"name": ref}}
    assert file.read_text().startswith('# mine\n[ui]\ntheme = "nord"\n')
    assert keep_model(options, "anthropic/b") == ""


def test_a_model_that_another_place_sets_for_the_folder_is_not_overwritten_in_vain(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWECLI_MODEL", "openai/env")
    before = file.read_text()
    with pytest.raises(ValueError, match="SWECLI_MODEL sets openai/env for new sessions"):
        keep_model(LaunchOptions(cwd=file.parent), "openai/c")
    assert file.read_text() == before
