"""What hands that know another agent type on the command line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from swecli.command_line.arguments import SUBCOMMANDS, UsageError, launch_options, main_parser, parsed
from swecli.command_line.habits import ANSWERS, SAME, WITH_VALUE, WORDS, answer_to, from_habit

RULES = ("Bash(git log:*)", "Edit", "mcp__a__b")


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        (["--dangerously-skip-permissions", "-p", "hi"], ["--yolo", "-p", "hi"]),
        (["--permission-mode", "acceptEdits"], ["--permission-mode", "accept-edits"]),
        (["--permission-mode=bypassPermissions"], ["--yolo"]),
        (["--approval-mode", "auto_edit"], ["--permission-mode", "accept-edits"]),
        (["--permission-mode", "plan"], ["--permission-mode", "plan"]),
        (["--permission-mode"], ["--permission-mode"]),
        (["--full-auto", "fix it"], ["--permission-mode", "auto", "fix it"]),
        (["exec", "fix it"], ["--print=", "fix it"]),
        (["exec", "--json", "-"], ["--print=", "--output-format", "stream-json"]),
        (["run", "fix it"], ["--print=", "fix it"]),
        (["--allowedTools", "Bash(git *)"], ["--allowed-tools", "Bash(git *)"]),
        (["--allowedTools=Edit"], ["--allowed-tools=Edit"]),
        (["-m", "--full-auto"], ["-m", "--permission-mode", "auto"]),
        (["--", "--full-auto"], ["--", "--full-auto"]),
        (["-p", "exec --full-auto"], ["-p", "exec --full-auto"]),
        (["exec"], ["--print="]),
        (["-m", "gpt-5", "exec", "fix it"], ["--print=", "-m", "gpt-5", "fix it"]),
        (["--full-auto", "exec", "-"], ["--print=", "--permission-mode", "auto"]),
        (["--allowedTools", "Edit", "e", "fix it"], ["--print=", "--allowed-tools", "Edit", "fix it"]),
        (["exec", "resume", "--last", "go on"], ["--print=", "--continue", "go on"]),
        (["exec", "resume", "2026-11-23", "go on"], ["--print=", "--resume", "2026-11-23", "go on"]),
        (["-p", "exec"], ["-p", "exec"]),
        (["-m", "exec", "fix it"], ["-m", "exec", "fix it"]),
        (["fix it", "exec"], ["fix it", "exec"]),
        (["--", "exec"], ["--", "exec"]),
        (["--mode", "acceptEdits", "fix it"], ["--permission-mode", "accept-edits", "fix it"]),
        (["--mode=plan"], ["--permission-mode", "plan"]),
        (["--accept-edits"], ["--permission-mode", "accept-edits"]),
        (["--auto", "fix it"], ["--permission-mode", "auto", "fix it"]),
        (["--sonnet", "fix it"], ["--model", "sonnet", "fix it"]),
        (["--prompt-interactive", "fix it"], ["fix it"]),
        (["--message", "fix it"], ["--print", "fix it"]),
        (["-v"], ["--version"]),
        (["resume"], ["--resume"]),
        (
            ["-p", "--output-format", "stream-json", "--verbose", "hi"],
            ["-p", "--output-format", "stream-json", "hi"],
        ),
        (["exec", "--json", "--verbose", "hi"], ["--print=", "--output-format", "stream-json", "hi"]),
        (["-p", "hi", "--verbose"], ["-p", "hi", "--verbose"]),
        (["--verbose", "--", "stream-json"], ["--verbose", "--", "stream-json"]),
        (
            ["-p", "hi", "--allowedTools", *RULES, "--debug"],
            ["-p", "hi", *(word for rule in RULES for word in ("--allowed-tools", rule)), "--debug"],
        ),
        (["--allowedTools=Edit", "Read"], ["--allowed-tools=Edit", "--allowed-tools", "Read"]),
        (["--disallowedTools", "Edit", "fix it"], ["--disallowed-tools", "Edit", "fix it"]),
        (["resume", "2026-11-23"], ["--resume", "2026-11-23"]),
        (["resume", "--last", "go on"], ["--continue", "go on"]),
    ],
)
def test_options_of_other_agents_mean_ours(typed: list[str], ours: list[str]) -> None:
    assert from_habit(typed) == ours


def test_what_is_understood_is_an_option_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = {option for action in main_parser()._actions for option in action.option_strings}
    assert {words[0] for words in SAME.values() if words} <= known
    assert not set(SAME) & known
    taking = {name for action in main_parser()._actions if action.nargs != 0 for name in action.option_strings}
    assert taking == WITH_VALUE
    assert not set(ANSWERS) & known
    line = ["exec", "--full-auto", "--allowedTools", "Bash(git log:*) Edit", "fix it"]
    options = launch_options(parsed(from_habit(line)), os.environ, is_root=False)
    assert options.headless
    assert (options.prompt, options.mode) == ("fix it", "auto")
    assert options.allowed_tools == ("Bash(git log:*)", "Edit")


def test_what_has_no_counterpart_is_answered() -> None:
    with pytest.raises(UsageError, match="swecli has no --mcp-config: add servers with swecli mcp add"):
        parsed(["--mcp-config", "x.json", "hello"])
    with pytest.raises(UsageError, match="swecli has no --yes-always: use --permission-mode"):
        parsed(["--yes-always"])
    assert answer_to(["--verbose"]).startswith("swecli has no --verbose: -p with")
    assert answer_to(["--", "--verbose"]) == ""
    assert "stream-json and json report" in answer_to(["--session-id", "1b2c"])
    assert "/agents lists them" in answer_to(["--agent=review"])
    assert not [answer for answer in ANSWERS.values() if "not available" in answer]
    assert answer_to(["--nonsense"]) == ""


def test_a_mistyped_option_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Option --contine is unknown; did you mean --continue\?"):
        parsed(["--contine", "--debug"])
    with pytest.raises(UsageError, match=r"did you mean --permission-mode\?"):
        parsed(["--permision_mode", "plan"])
    with pytest.raises(UsageError, match="Unrecognized arguments: --qqqq"):
        parsed(["--qqqq"])


def test_words_of_other_agents_are_no_subcommand_and_each_has_an_answer() -> None:
    assert not set(WORDS) & set(SUBCOMMANDS)
    named = {word for answer in WORDS.values() for word in re.findall(r"swecli ([a-z]+)", answer)}
    assert named <= set(SUBCOMMANDS)
