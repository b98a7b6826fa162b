"""However a command with an effect is wrapped, it never runs without a question."""

from __future__ import annotations

import pytest

from swecli.core.permissions.types import Rule
from tests.core.permissions.shell.test_by_kind import read
from tests.core.permissions.shell.wraps import wraps
from tests.support.shell_workspace import ShellWorkspace

PER_WRAP = 10
FORBIDDEN = ("touch x", "rm x", "git push", "curl -s https://example.org")
_SILENT_AMONG_EFFECTS = frozenset("|&;\n#")


def cases() -> list[str]:
    """Each way of wrapping with ten commands, chosen the same way every time."""
    effects = [command for command in (*read("effects"), *read("network")) if not set(command) & _SILENT_AMONG_EFFECTS]
    return [
        wrap(effects[(index * 37 + step * 61) % len(effects)])
        for index, wrap in enumerate(wraps())
        for step in range(PER_WRAP)
    ]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("wraps"))


def test_no_wrap_makes_an_effect_silent(work: ShellWorkspace) -> None:
    commands = cases()
    assert len(commands) > 1_500
    assert [command for command in commands if work.decide(command).outcome == "allow"] == []


def test_a_deny_rule_is_not_got_round_by_any_wrap(work: ShellWorkspace) -> None:
    rules = tuple(Rule("deny", f"Bash({' '.join(command.split()[:2])} *)", "user") for command in FORBIDDEN)
    everything = Rule("allow", "Bash", "user")
    policy = work.policy(rules=(*rules, everything), mode="auto", sandbox="full", trust="trusted")
    silent = [
        wrapped
        for wrap in wraps()
        for command in FORBIDDEN
        if work.decide(wrapped := wrap(command), policy).outcome == "allow"
    ]
    assert silent == []
