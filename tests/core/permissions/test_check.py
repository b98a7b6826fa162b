"""Verdicts by JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swecli.core.permissions.check import BadCheck, judge_lines
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Policy, Rule


def _judged(line: object, cwd: Path, *rules: Rule) -> dict[str, Any]:
    text = line if isinstance(line, str) else json.dumps(line)
    policy = Policy(facts=OsFacts({"PATH": "/usr/bin:/bin"}), home="/home/u", rules=rules)
    (answer,) = judge_lines([text], lambda _: policy)
    return json.loads(answer)


def test_a_verdict_has_its_reason_and_its_rule(tmp_path: Path) -> None:
    assert _judged({"command": "ls", "cwd": str(tmp_path)}, tmp_path)["verdict"] == "allow"
    asked = _judged({"command": "npm test", "cwd": str(tmp_path), "id": 7}, tmp_path)
    assert (asked["verdict"], asked["offer"], asked["id"]) == ("ask", "Bash(npm test *)", 7)
    assert "may change files" in asked["reason"]
    refused = _judged({"command": "rm -rf /", "cwd": str(tmp_path)}, tmp_path)
    assert (refused["verdict"], refused["evidence"]) == ("deny", ["/"])
    ruled = _judged({"command": "ls", "cwd": str(tmp_path)}, tmp_path, Rule("deny", "Bash(ls *)", "user", "here"))
    assert ruled["rule"] == {"effect": "deny", "rule": "Bash(ls *)", "scope": "user", "origin": "here"}


def test_the_mode_of_the_line_counts(tmp_path: Path) -> None:
    verdicts = {
        mode: _judged({"command": "make x", "cwd": str(tmp_path), "mode": mode}, tmp_path)["verdict"]
        for mode in ("default", "accept-edits", "plan", "auto")
    }
    assert verdicts == {"default": "ask", "accept-edits": "ask", "plan": "deny", "auto": "ask"}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "null",
        "[" * 100_000,
        "{}",
        {"command": 1},
        {"command": None},
        {"command": "ls", "cwd": 3},
        {"command": "ls", "cwd": "/absent/folder"},
        {"command": "ls", "cwd": "a\0b"},
        {"command": "ls", "mode": "yolo"},
        {"command": "ls", "mode": ["auto"]},
    ],
)
def test_a_bad_line_is_answered_without_a_verdict(line: object, tmp_path: Path) -> None:
    answer = _judged(line, tmp_path)
    assert answer["verdict"] is None
    assert answer["error"]


@pytest.mark.parametrize("command", ["ls \0", "echo \ud800", "x" * 2_000_000])
def test_text_that_no_command_can_hold_never_runs(command: str, tmp_path: Path) -> None:
    assert _judged({"command": command, "cwd": str(tmp_path)}, tmp_path)["verdict"] in ("ask", "deny")


def test_a_folder_whose_settings_are_broken_is_told(tmp_path: Path) -> None:
    def policy_of(_: Path) -> Policy:
        raise BadCheck("config.toml:3: must be a table")

    (answer,) = judge_lines([json.dumps({"command": "ls", "cwd": str(tmp_path)})], policy_of)
    assert "config.toml:3" in json.loads(answer)["error"]
