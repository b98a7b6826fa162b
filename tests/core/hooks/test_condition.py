"""Which calls a hook with a condition is about."""

from __future__ import annotations

import pytest

from swecli.core.hooks.hook import Hook, holds, problems
from swecli.core.permissions.types import Effects


@pytest.mark.parametrize(
    ("condition", "tool", "effects", "meant"),
    [
        ("Bash", "run_command", Effects(command="ls"), True),
        ("Bash(git *)", "run_command", Effects(command="ls"), False),
        ("Bash(git *)", "run_command", Effects(command="cd x && git push"), True),
        ("Bash(git push:*)", "run_command", Effects(command="env A=1 git push origin"), True),
        ("Bash(git *)", "run_command", Effects(command="echo 'unterminated"), True),
        ("Bash(git *)", "read_file", Effects(reads=("/w/git",)), False),
        ("Edit(src/**)", "edit_file", Effects(writes=("/w/src/a.py",)), True),
        ("Edit(*.ts)", "edit_file", Effects(writes=("/w/src/a.py",)), False),
        ("Read(*.env)", "read_file", Effects(reads=("/w/x.env",)), True),
        ("WebFetch(domain:example.org)", "web_fetch", Effects(network="docs.example.org"), True),
        ("WebFetch(domain:example.org)", "web_fetch", Effects(network="notexample.org"), False),
        ("mcp__git", "mcp__git__log", Effects(), True),
        ("mcp__git", "mcp__web__get", Effects(), False),
        ("not a rule(", "read_file", Effects(), True),
    ],
)
def test_a_permission_rule(condition: str, tool: str, effects: Effects, meant: bool) -> None:
    assert holds(condition, tool, effects, ("/w",), "/home/me") == meant


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (Hook("PreToolUse", "x", "Bash", condition="Bash(git *)", background=True), []),
        (Hook("PreToolUse", "x", "Ba("), ["matches everything"]),
        (Hook("PreToolUse", "x", condition="Bash("), ["not a permission rule (expected Tool or Tool(pattern))"]),
        (Hook("Stop", "x", condition="Bash(rm *)"), ["Stop it never runs"]),
        (Hook("SessionEnd", "x", background=True), ["waits for it anyway"]),
    ],
)
def test_what_has_no_effect_is_named(hook: Hook, words: list[str]) -> None:
    found = problems(hook)
    assert len(found) == len(words)
    assert all(word in one for word, one in zip(words, found, strict=True))
