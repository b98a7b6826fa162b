"""What a run without a person answers."""

from __future__ import annotations

from swecli.core.engine.decisions import ASKED_BY_HOOK
from swecli.core.permissions.decide import NO_RULE_NOW, UNREAD, decide
from swecli.core.permissions.types import Call, Effects, Policy
from swecli.core.protocol.events import Event, ItemCompleted, ItemStarted, PermissionRequested
from swecli.headless.outcome import Outcome
from swecli.headless.printers import closing_lines
from swecli.headless.replies import refusal


def test_a_refused_overwriting_names_the_way_that_needs_nobody() -> None:
    effects = Effects(writes=("/w/a",), unread=("/w/a",))
    decision = decide(Policy("accept-edits"), Call("write_file", {}, effects, "/w", ("/w",)))
    assert UNREAD in decision.reason
    asked = PermissionRequested("r", "i", "write_file", "a", (), decision.reason, "b")
    assert "Read the file first" in refusal(asked).note
    other = PermissionRequested("r", "i", "write_file", "a", (), "This would change a.", "b")
    assert "Do not retry it" in refusal(other).note


def test_a_path_outside_of_the_project_is_named_as_that() -> None:
    for effects, outside in ((Effects(reads=("/other/a",)), True), (Effects(writes=("/w/a",)), False)):
        decision = decide(Policy(), Call("read_file", {}, effects, "/w", ("/w",)))
        assert decision.outcome == "ask"
        asked = PermissionRequested("r", "i", "read_file", "a", (), decision.reason, "b")
        assert ("whose files have relative paths" in refusal(asked).note) == outside
    asked = PermissionRequested("r", "i", "run_command", "a", (), "This goes to /x, outside the workspace.", "b")
    assert "relative paths" not in refusal(asked).note


def test_what_a_hook_leaves_to_the_user_is_refused_with_its_reason() -> None:
    asked = PermissionRequested("r", "i", "run_command", "rm a", (), "The hook x.", "b", rule_note=ASKED_BY_HOOK)
    note = refusal(asked).note
    assert "The hook x." in note
    assert "--permission-mode" not in note


def test_what_no_rule_can_allow_is_refused_without_naming_one() -> None:
    policy = Policy("auto", untrusted=("the MCP server a",))
    call = Call("mcp__b__x", {}, Effects(external="the MCP server b"), "/w", ("/w",))
    asked = PermissionRequested("r", "i", "mcp__b__x", "", (), "This goes to b, and …", "b", rule_note=NO_RULE_NOW)
    assert decide(policy, call).outcome == "ask"
    note = refusal(asked).note
    assert "This goes to b, and …" in note
    assert "--allowed-tools" not in note
    outcome = Outcome()
    outcome.nobody_to_ask(asked)
    for number, body in enumerate((ItemStarted("i", "tool", "mcp__b__x"), ItemCompleted("i", "rejected"))):
        outcome.apply(Event(number, 0.0, "fake", 1, body))
    lines = closing_lines(outcome)
    assert lines[0] == "not allowed: mcp__b__x (needs approval after text from outside, but no user is present)"
    assert not any("--allowed-tools" in line for line in lines)
    assert "--yolo" in lines[-1]
