"""Misspelt rules are told, rules that hold are not."""

from __future__ import annotations

import pytest

from swecli.assembly.rule_notices import rule_notices
from swecli.core.permissions.types import Rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Bashh(rm *)", "Bashh takes no pattern"),
        ("Bash(", "expected Tool or Tool(pattern)"),
        ("Bassh", "there is no tool 'Bassh'"),
        ("run_comand", "there is no tool 'run_comand'"),
        ("", "expected Tool or Tool(pattern)"),
    ],
)
def test_a_misspelt_rule_is_named_with_its_origin(text: str, why: str) -> None:
    (told,) = rule_notices([Rule("deny", text, "flag", "--disallowed-tools")])
    assert told.startswith(f"--disallowed-tools: the deny rule {text!r} has no effect: ")
    assert why in told


@pytest.mark.parametrize(
    "text",
    [
        *("Bash(rm *)", "Bash", "Read(*.pem)", "Read", "Edit(docs/**)", "Grep", "Glob", "Write", "LS", "run_command"),
        *("WebFetch", "WebFetch(domain:example.com)", "ask_user", "edit_file(/a)", "TodoWrite"),
        *("mcp__server", "mcp__server__tool"),
    ],
)
def test_a_rule_that_can_hold_is_not_mentioned(text: str) -> None:
    assert rule_notices([Rule("allow", text, "user", "config.toml:2")]) == ()
