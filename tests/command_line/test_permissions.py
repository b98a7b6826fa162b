"""``swecli permissions`` as users call it."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

from swecli.cli import main
from swecli.core.sandbox.plan import SandboxState
from swecli.launch import LaunchOptions


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "swecli"))
    monkeypatch.chdir(folder)
    return folder


def test_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "check", "--", "ls", "-la"]) == 0
    assert capsys.readouterr().out.startswith("allow: ")
    assert main(["permissions", "check", "--mode", "plan", "touch x"]) == 0
    assert capsys.readouterr().out.startswith("deny: ")
    assert main(["permissions", "check", "--json", "--", "npm test"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["offer"]) == ("ask", "Bash(npm test *)")


@pytest.mark.parametrize("level", ["full", "partial"])
def test_a_command_is_judged_with_the_sandbox_of_the_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, level: Literal["full", "partial"]
) -> None:
    looked: list[Path] = []

    def state(options: LaunchOptions, startup: object) -> SandboxState:
        looked.append(options.cwd)
        return SandboxState(level, "bwrap", checked=True)

    monkeypatch.setattr("swecli.assembly.sandbox.sandbox_state", state)
    assert main(["permissions", "check", "--mode", "auto", "--", "make all"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("allow: The sandbox contains" if level == "full" else "ask: ")
    assert ("no full sandbox here" in said) == (level == "partial")
    lines = [json.dumps({"command": "make all", "mode": "auto"})] * 3
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO("\n".join(lines).encode())))
    assert main(["permissions", "check", "--batch"]) == 0
    verdicts = {json.loads(line)["verdict"] for line in capsys.readouterr().out.splitlines()}
    assert verdicts == {"allow" if level == "full" else "ask"}
    assert len(looked) == 2


def test_the_reason_about_a_substitution_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "check", "--", "ls $(cat x)"]) == 0
    said = capsys.readouterr().out
    assert "the text from $(…) may not be file names" in said
    assert "xargs" not in said
    assert main(["permissions", "check", "--", "cat x | xargs ls"]) == 0
    assert "the text xargs passes on may not be file names" in capsys.readouterr().out


def test_words_that_the_shell_took_apart_are_one_argument_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "check", "--json", "--", "echo", "a; rm x"]) == 0
    assert json.loads(capsys.readouterr().out)["command"] == "echo 'a; rm x'"


def test_a_batch_gives_one_line_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, own_home: Path
) -> None:
    lines = [{"command": "ls", "cwd": str(own_home), "mode": "default"}, {"command": "touch x"}, {"command": 3}]
    raw = "\n".join(map(json.dumps, lines)).encode() + b"\n\xff\n"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(raw)))
    assert main(["permissions", "check", "--batch"]) == 0
    verdicts = [json.loads(line)["verdict"] for line in capsys.readouterr().out.splitlines()]
    assert verdicts == ["allow", "ask", None, None]


def test_a_hidden_character_of_a_command_is_not_written_to_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "check", "--", "echo \x1b]52;c;x\x07 > y"]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["check"],
        ["check", "--batch", "ls"],
        ["check", "--mode", "yolo", "ls"],
        ["check", "-C", "/no", "ls"],
    ],
)
def test_wrong_arguments_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith("swecli: ")
    assert told.count("\n") == 1


def test_a_grant_is_listed_judged_by_and_revoked(capsys: pytest.CaptureFixture[str], own_home: Path) -> None:
    assert main(["permissions", "grant", "Bash(make *)"]) == 0
    identifier = capsys.readouterr().out.split()[0]
    assert main(["permissions", "grant", "Bash(make all)", "--for", "project"]) == 0
    capsys.readouterr()
    assert main(["permissions", "check", "--json", "make all"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["rule"]["scope"]) == ("allow", "grant")
    assert main(["permissions", "list", "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["id"], first["rule"], first["uses"], first["void"]) == (identifier, "Bash(make *)", 0, "")
    assert second["void"].startswith("already covered by allow Bash(make *)")
    assert main(["permissions"]) == 0
    assert "Bash(make *)" in capsys.readouterr().out
    assert main(["permissions", "revoke", identifier]) == 0
    assert main(["permissions", "revoke", "Bash(make all)"]) == 0
    assert main(["permissions", "revoke", identifier]) == 2
    capsys.readouterr()
    assert main(["permissions", "check", "--json", "make all"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "ask"
    assert not list(own_home.iterdir())


def test_a_grant_says_when_its_program_starts_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "grant", "Bash(find *)"]) == 0
    assert capsys.readouterr().err == "find -exec can start any program or code, and this rule covers that, too.\n"


@pytest.mark.parametrize("rule", ["Bash(*x)", "Bash(", "", "Read(../x)", "WebFetch(x)"])
def test_a_rule_that_makes_no_sense_is_not_granted(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "grant", rule]) == 2
    assert main(["permissions"]) == 0
    assert "No rules yet" in capsys.readouterr().out


def test_trust_is_given_and_taken_and_settings_are_accepted(capsys: pytest.CaptureFixture[str], own_home: Path) -> None:
    (own_home / ".swecli").mkdir()
    (own_home / ".swecli" / "config.toml").write_text('[approval]\nallow = ["Bash(make *)"]\ndeny = ["Bash(ls *)"]\n')

    def verdicts() -> list[str]:
        capsys.readouterr()
        for command in ("make x", "ls"):
            assert main(["permissions", "check", "--json", command]) == 0
        return [json.loads(line)["verdict"] for line in capsys.readouterr().out.splitlines()]

    assert verdicts() == ["ask", "allow"]
    assert main(["permissions", "accept"]) == 55
    assert main(["permissions", "trust"]) == 0
    assert verdicts() == ["ask", "deny"]
    assert main(["permissions", "accept"]) == 0
    assert 'approval.allow = ["Bash(make *)"]' in capsys.readouterr().out
    assert main(["permissions", "accept", "approval.mode"]) == 2
    assert main(["permissions", "accept", "approval.allow"]) == 0
    assert verdicts() == ["allow", "deny"]
    assert main(["permissions", "decline"]) == 0
    assert verdicts() == ["ask", "allow"]
    assert main(["permissions", "forget"]) == 0
    assert verdicts() == ["ask", "allow"]


CLAUDE_RULES = {
    "allow": ["Bash(npm test:*)", "Bash", "WebFetch(domain:example.org)", "Bash(git log | head)"],
    "deny": ["Read(./.env)"],
    "ask": ["Bash(git push:*)"],
}


@pytest.fixture
def claude(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder, rules in ((own_home, CLAUDE_RULES), (tmp_path / "home", {"deny": ["Read(*.pem)"]})):
        (folder / ".claude").mkdir(parents=True)
        (folder / ".claude" / "settings.json").write_text(json.dumps({"permissions": rules}))
    return own_home


def rules_in(folder: Path) -> set[tuple[str, str]]:
    lines = [json.loads(line) for line in _said(["permissions", "list", "--json", "-C", str(folder)])]
    return {(line["effect"], line["rule"]) for line in lines}


def _said(arguments: list[str]) -> list[str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(arguments) == 0
    return out.getvalue().splitlines()


def test_rules_of_claude_code_are_listed_and_nothing_is_copied_unasked(claude: Path, tmp_path: Path) -> None:
    lines = _said(["permissions", "import"])
    assert len(lines) == 8
    assert any(line.startswith("deny   Read(*.pem)") and "to your settings" in line for line in lines)
    assert any(line.startswith("allow  Bash(npm test:*)") and "to grants for this folder" in line for line in lines)
    assert any("Bash  (" in line and "it allows every call of Bash" in line for line in lines)
    assert any("Bash(git log | head)" in line and "left out" in line for line in lines)
    assert not (claude / ".swecli").exists()
    assert not (tmp_path / "swecli" / "config.toml").exists()


def test_copied_rules_stay_with_what_they_were_for(claude: Path, tmp_path: Path) -> None:
    assert main(["permissions", "trust"]) == 0
    said = "\n".join(_said(["permissions", "import", "--all"]))
    assert "it allows every call of Bash" in said
    assert rules_in(claude) == {
        ("deny", "Read(*.pem)"),
        ("deny", "Read(./.env)"),
        ("ask", "Bash(git push:*)"),
        ("allow", "Bash(npm test:*)"),
        ("allow", "WebFetch(domain:example.org)"),
    }
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert rules_in(elsewhere) == {("deny", "Read(*.pem)")}
    before = rules_in(claude)
    _said(["permissions", "import", "--all"])
    assert rules_in(claude) == before
    _said(["permissions", "import", "--only", "Bash"])
    assert ("allow", "Bash") in rules_in(claude)


@pytest.mark.parametrize("rule", ["Bash(*)", "Bash(:*)", "Bash( ** )", "WebFetch(domain:*)", "Edit(**)", "Write(//**)"])
def test_a_pattern_for_everything_is_left_out_like_the_tool_alone(claude: Path, rule: str) -> None:
    rules = {"permissions": {"allow": [rule, "Read(**)", "Edit(docs/**)"]}}
    (claude / ".claude" / "settings.json").write_text(json.dumps(rules))
    said = "\n".join(_said(["permissions", "import", "--all"]))
    assert f"it allows every call of {rule.partition('(')[0]}; --only '{rule}' copies it" in said
    assert {text for effect, text in rules_in(claude) if effect == "allow"} == {"Read(**)", "Edit(docs/**)"}


@pytest.mark.parametrize("rule", ["Bash(git log | head)", "Bash(rm:*)"])
def test_a_rule_that_is_invalid_or_not_there_is_not_copied(
    claude: Path, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["permissions", "import", "--only", rule]) != 0
    assert rule in capsys.readouterr().err
    assert rules_in(claude) == set()


def test_damaged_settings_of_claude_code_are_reported(claude: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (claude / ".claude" / "settings.json").write_text("{")
    assert main(["permissions", "import", "--all"]) != 0
    assert "settings.json:1: is not valid JSON" in capsys.readouterr().err
