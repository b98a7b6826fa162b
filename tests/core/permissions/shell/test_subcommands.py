"""A rule about a subcommand is about it wherever the program's options put it."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.rules import parse_rule
from swecli.core.permissions.shell.subcommands import may_match, program
from swecli.core.permissions.types import Policy, Rule
from tests.support.shell_workspace import ShellWorkspace

CORPUS = Path(__file__).parent / "corpus" / "subcommands.txt"
LINES = [tuple(line.split("\t")) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
"""Whether a deny rule matches, the rule's pattern, the command."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("subcommands"))


def under(workspace: ShellWorkspace, *rules: tuple[str, str], **changes: object) -> Policy:
    return workspace.policy(rules=tuple(Rule(effect, text, "user") for effect, text in rules), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("label", "pattern", "command"), LINES, ids=[line[2] for line in LINES])
def test_options_before_a_subcommand_hide_it_from_no_rule(
    workspace: ShellWorkspace, label: str, pattern: str, command: str
) -> None:
    name = command.split()[0]
    for effect in ("deny", "ask"):
        rules = ((effect, f"Bash({pattern})"), ("allow", f"Bash({name} *)"), ("allow", "Bash"))
        decision = workspace.decide(command, under(workspace, *rules))
        matched = decision.outcome == effect and decision.rule is not None and decision.rule.effect == effect
        assert matched == (label == "covered"), decision.reason
    yolo = workspace.decide(command, under(workspace, ("deny", f"Bash({pattern})"), yolo=True))
    assert yolo.outcome == ("deny" if label == "covered" else "allow")


@pytest.mark.parametrize("command", [line[2] for line in LINES if line[0] == "covered"])
def test_an_allow_rule_for_the_subcommand_does_not_reach_over_an_option(
    workspace: ShellWorkspace, command: str
) -> None:
    pattern = next(line[1] for line in LINES if line[2] == command)
    if not command.startswith(pattern.removesuffix(" *")):
        allowed = workspace.decide(command, under(workspace, ("allow", f"Bash({pattern})")))
        assert allowed.outcome == "ask"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("kubectl $ACTION pod x", "ask"),
        ("kubectl -n $NS delete pod x", "deny"),
        ("kubectl $OPTIONS delete pod x", "deny"),
        ("kubectl del* pod x", "ask"),
        ("npm $ACTION", "allow"),
        ("kubectl get pods > pods.txt &", "allow"),
    ],
)
def test_a_computed_word_may_be_the_subcommand(workspace: ShellWorkspace, command: str, expected: str) -> None:
    for rules in ((("deny", "Bash(kubectl delete *)"),), (("deny", "Bash(kubectl delete *)"), ("ask", "Bash(helm *)"))):
        decision = workspace.decide(command, under(workspace, *rules, yolo=True))
        assert decision.outcome == expected, decision.reason


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("FOO=1 npm test", "Setting FOO may change what the command does, so it needs your approval."),
        ("npm test &", "It runs something in the background (&), so it needs your approval."),
        ("f() { npm test; }; f", "It has an unexpected parenthesis, so it needs your approval."),
        ("npm test <<EOF\n$(id)\nEOF", "A here-document with commands is not understood, so it needs your approval."),
    ],
)
def test_a_question_names_no_rule_that_has_nothing_to_do_with_it(
    workspace: ShellWorkspace, command: str, reason: str
) -> None:
    rules = (("allow", "Bash(npm test *)"), ("deny", "Bash(kubectl delete *)"))
    assert workspace.decide(command, under(workspace, *rules)).reason == reason


def test_a_question_about_a_computed_program_names_the_rule_or_one_of_several(workspace: ShellWorkspace) -> None:
    one = under(workspace, ("deny", "Bash(kubectl delete *)"))
    two = under(workspace, ("deny", "Bash(kubectl delete *)"), ("deny", "Bash(helm uninstall *)"))
    because = "may forbid this, because part of it is computed when it runs."
    assert workspace.decide("$X y", one).reason == f"The rule Bash(kubectl delete *) {because}"
    assert workspace.decide("$X y", two).reason == f"A deny rule such as Bash(kubectl delete *) {because}"
    assert workspace.decide("helm $X y", two).reason == f"The rule Bash(helm uninstall *) {because}"


def test_a_long_command_is_matched_in_linear_time() -> None:
    pattern = parse_rule("Bash(make deploy * now)")
    assert not may_match(pattern, "make", ["-x", "deploy", "a"] * 30_000)


def test_programs_of_one_family_share_their_options() -> None:
    assert program("gradlew") is program("gradle")
    assert program("pip3.12") is program("pip")
    assert program("kubectl").lengths("-nprod") == (1,)
    assert program("kubectl").lengths("-n") == (2,)
    assert program("unheard-of").lengths("--profile") == (1, 2)
