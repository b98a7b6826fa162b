"""Which rules have an effect, and which commands one would have decided about."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.permissions.check import command_call, matching_commands, void_reason
from swecli.core.permissions.decide import decide
from swecli.core.permissions.types import Rule, RuleEffect
from tests.support.shell_workspace import ShellWorkspace

pytestmark = pytest.mark.usefixtures("once")
CORPUS = Path(__file__).parent / "shell" / "corpus"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("rules"))


@pytest.mark.parametrize(
    ("rule", "others", "reason"),
    [
        (("allow", "Bash(git push *)"), (), ""),
        (("allow", "Bash(git push *)"), (("deny", "Bash(git *)"),), "always overruled by deny Bash(git *)"),
        (("allow", "Bash(git push)"), (("ask", "Bash"),), "always overruled by ask Bash"),
        (("allow", "Bash(git *)"), (("deny", "Bash(git push *)"),), ""),
        (("deny", "Bash(git *)"), (("allow", "Bash(git *)"),), ""),
        (("ask", "Bash(a *)"), (("ask", "Bash(a *)"),), "already covered by ask Bash(a *)"),
        (("allow", "Bash(make x)"), (("allow", "Bash(make *)"),), "already covered by allow Bash(make *)"),
        (("allow", "Read(a/**)"), (("deny", "Read(a/**)"),), "always overruled by deny Read(a/**)"),
        (("allow", "WebFetch(domain:a.b.c)"), (("deny", "WebFetch(domain:b.c)"),), "always overruled"),
        (("allow", "Bash(*x)"), (), "not understood"),
        (("deny", "Bash(*x)"), (), ""),
        (("allow", "Bash(rm x *)"), (("deny", "Bash(rm)"),), "always overruled by deny Bash(rm)"),
        (("allow", "Bash(git log *)"), (("deny", "Bash(git l*)"),), "always overruled by deny Bash(git l*)"),
        (("allow", "Read(//etc/**)"), (("allow", "mcp__hub__*"), ("deny", "mcp__hub"), ("allow", "Edit")), ""),
        (("allow", "Edit(//etc/**)"), (("deny", "mcp__hub__*"), ("deny", "Read"), ("allow", "WebFetch")), ""),
        (("allow", "Read(a/**)"), (("allow", "Read"),), "already covered by allow Read"),
        (("allow", "Edit(a/**)"), (("deny", "Edit"),), "always overruled by deny Edit"),
        (("allow", "mcp__hub__get"), (("deny", "mcp__hub__*"),), "always overruled by deny mcp__hub__*"),
        (("deny", "Read(./a/**)"), (("deny", "Read(a/**)"),), "already covered by deny Read(a/**)"),
    ],
)
def test_what_makes_a_rule_void(
    work: ShellWorkspace, rule: tuple[RuleEffect, str], others: tuple[tuple[RuleEffect, str], ...], reason: str
) -> None:
    mine = Rule(*rule, "user")
    policy = work.policy(rules=(*(Rule(*other, "user") for other in others), mine))
    told = void_reason(mine, policy)
    assert told.startswith(reason)
    assert bool(told) == bool(reason)


def test_of_two_rules_that_mean_the_same_the_first_is_in_force(work: ShellWorkspace) -> None:
    rules = (Rule("deny", "Read(private/**)", "user"), Rule("deny", "Read(./private/**)", "project"))
    assert [bool(void_reason(rule, work.policy(rules=rules))) for rule in rules] == [False, True]


def test_rules_of_a_project_are_void_without_trust(work: ShellWorkspace) -> None:
    rule = Rule("allow", "Bash(make *)", "project")
    assert "not trusted" in void_reason(rule, work.policy(rules=(rule,)))
    assert void_reason(rule, work.policy(rules=(rule,), trust="session")) == ""


@pytest.mark.parametrize("text", ["Bash(git *)", "Bash(npm test *)", "Bash(ls *)", "Bash", "Read(.env)"])
@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_the_count_is_that_of_deciding_each_anew(work: ShellWorkspace, effect: RuleEffect, text: str) -> None:
    lines = [
        *(CORPUS / "asked.txt").read_text().splitlines()[::5],
        "npm test",
        "git add .",
        "ls",
        "cat .env",
        "rm -rf src",
    ]
    calls = [command_call(line, work.root) for line in lines]
    rule, policy = Rule(effect, text, "session"), work.policy()
    found = matching_commands(rule, calls, policy)
    alone = replace(policy, rules=(rule,))
    expected = [call for call in calls if decide(alone, call).rule == rule]
    assert {match.call.effects.command for match in found} >= {call.effects.command for call in expected}
    if effect == "allow":
        assert [match.call for match in found if not match.reads] == expected
