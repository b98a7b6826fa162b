"""What "always" offers lets the command run that raised it: in this session, in a new one, and nothing dangerous."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.rules import parse_rule
from swecli.core.permissions.types import Rule
from tests.support.shell_workspace import ShellWorkspace

pytestmark = pytest.mark.usefixtures("once")
CORPUS = Path(__file__).parent / "shell" / "corpus"
COMMANDS = (CORPUS / "asked.txt").read_text().splitlines()
DANGEROUS = [line.split("\t", 1)[1] for line in (CORPUS / "dangerous.txt").read_text().splitlines()]
COMPOUND = [f"{left} && {right}" for left in COMMANDS[::7] for right in ("npm test", "cargo build --release", "ls -la")]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("offers"))


def test_the_offered_rule_lets_the_same_command_run(work: ShellWorkspace) -> None:
    offered = 0
    for command in (*COMMANDS, *COMPOUND):
        first = work.decide(command)
        if first.outcome != "ask":
            continue
        assert first.offer_note.endswith("."), command
        assert first.offer_note.startswith("Can't be allowed in general: ") == (not first.offers), command
        if not first.offers:
            continue
        offered += 1
        for scope in ("session", "grant", "user"):
            rules = tuple(Rule("allow", offer, scope) for offer in first.offers)
            again = work.decide(command, work.policy(rules=rules))
            assert again.outcome == "allow", command
            assert again.rule in rules, command
    assert offered > 120


def test_an_offered_rule_lets_nothing_dangerous_run(work: ShellWorkspace) -> None:
    offers = {offer for command in (*COMMANDS, *COMPOUND) for offer in work.decide(command).offers}
    rules = tuple(Rule("allow", offer, "session") for offer in sorted(offers))
    policy = work.policy(rules=rules)
    assert [command for command in DANGEROUS if work.decide(command, policy).outcome == "allow"] == []


def test_no_offer_is_for_whatever_an_interpreter_or_wrapper_is_given(work: ShellWorkspace) -> None:
    names = (
        "python",
        "python3.12",
        "bash",
        "sh",
        "node",
        "perl",
        "sudo",
        "env",
        "xargs",
        "docker",
        "ssh",
        "find",
        "rm",
    )
    for name in names:
        for rest in ("x", "-c x", "x.y", "run x"):
            assert not any(parse_rule(offer).rest for offer in work.decide(f"{name} {rest}").offers)
