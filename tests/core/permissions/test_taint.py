"""After text of strangers, what a rule would let out asks; what stays inside runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.decide import after_untrusted, decide
from swecli.core.permissions.types import Call, Decision, Effects, Outcome, Policy, Rule

RULES = tuple(
    Rule("allow", text, "user") for text in ("WebFetch(domain:example.com)", "Bash(./send *)", "Read(//etc/**)")
)


@pytest.mark.parametrize(
    ("effects", "tool", "origins", "outcome"),
    [
        (Effects(network="example.com"), "web_fetch", (), "allow"),
        (Effects(network="example.com"), "web_fetch", ("example.com",), "allow"),
        (Effects(network="docs.example.com"), "web_fetch", ("example.com",), "ask"),
        (Effects(network="example.com"), "web_fetch", ("example.com", "/etc/hosts"), "ask"),
        (Effects(command="./send it"), "run_command", (), "allow"),
        (Effects(command="./send it"), "run_command", ("example.com",), "ask"),
        (Effects(reads=("/etc/hostname",)), "read_file", (), "allow"),
        (Effects(reads=("/etc/hostname",)), "read_file", ("example.com",), "ask"),
        (Effects(internal=True), "update_todos", ("example.com",), "allow"),
    ],
)
def test_the_way_out_asks(
    tmp_path: Path, effects: Effects, tool: str, origins: tuple[str, ...], outcome: Outcome
) -> None:
    arguments = {"command": effects.command} if effects.command else {}
    call = Call(tool, arguments, effects, str(tmp_path), (str(tmp_path),))
    decision = decide(Policy(rules=RULES, untrusted=origins), call)
    assert decision.outcome == outcome, decision
    if outcome == "ask":
        assert "which may contain instructions" in decision.reason
    assert decide(Policy(rules=RULES, untrusted=origins, yolo=True), call).outcome == "allow"


def test_proven_and_contained_commands_and_refusals_stay_as_they_are() -> None:
    call = Call("run_command", {}, Effects(command="cat a"), "/w", ("/w",))
    policy = Policy(untrusted=("example.com",))
    for decision, proven in (
        (Decision("allow", "proven"), True),
        (Decision("allow", "held", contained=True), False),
        (Decision("deny", "no"), False),
    ):
        assert after_untrusted(policy, call, decision, proven=proven) is decision
