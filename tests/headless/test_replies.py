"""What a run without a person answers."""

from __future__ import annotations

from swecli.core.engine.consent import ASKED_BY_HOOK
from swecli.core.permissions.decide import UNREAD, decide
from swecli.core.permissions.types import Call, Effects, Policy
from swecli.core.protocol.events import PermissionRequested
from swecli.headless.run import refusal


def test_a_refused_overwriting_names_the_way_that_needs_nobody() -> None:
    effects = Effects(writes=("/w/a",), unread=("/w/a",))
    decision = decide(Policy("accept-edits"), Call("write_file", {}, effects, "/w", ("/w",)))
    assert UNREAD in decision.reason
    asked = PermissionRequested("r", "i", "write_file", "a", (), decision.reason, "b")
    assert "Read the file first" in refusal(asked).note
    other = PermissionRequested("r", "i", "write_file", "a", (), "This would change a.", "b")
    assert "Do not retry it" in refusal(other).note


def test_what_a_hook_leaves_to_the_user_is_refused_with_its_reason() -> None:
    asked = PermissionRequested("r", "i", "run_command", "rm a", (), "The hook x.", "b", rule_note=ASKED_BY_HOOK)
    note = refusal(asked).note
    assert "The hook x." in note
    assert "--permission-mode" not in note
