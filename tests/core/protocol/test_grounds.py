"""What is shown of the reason of a question: each thing once."""

from __future__ import annotations

from swecli.core.permissions.decide import decide
from swecli.core.permissions.types import Call, Effects, Policy
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock
from swecli.core.protocol.events import PermissionRequested
from swecli.core.protocol.request_events import grounds


def shown(effects: Effects, facts: tuple[str, ...] = (), blocks: tuple[DisplayBlock, ...] = ()) -> tuple[str, ...]:
    tool = "run_command" if effects.command else "write_file"
    found = decide(Policy("default"), Call(tool, {}, effects, "/w", ("/w",)))
    assert found.outcome == "ask"
    return grounds(
        PermissionRequested("p1", "t1", tool, "", blocks, found.reason, "x", evidence=found.evidence, facts=facts)
    )


def test_a_simple_command_has_its_reason_once() -> None:
    (reason,) = shown(Effects(command="make 'a: b'"))
    assert reason.endswith(", so it needs your approval.")


def test_other_parts_of_a_command_have_their_own_lines() -> None:
    reason, *more = shown(Effects(command="make all && frobnicate 2 && ls"))
    assert "make" in reason
    assert [line.split(":")[0] for line in more] == ["frobnicate 2", "ls"]


def test_parts_with_one_reason_are_told_apart() -> None:
    lines = shown(Effects(command="make one && make two"))
    assert [line.split(":")[0] for line in lines[1:]] == ["make one", "make two"]


def test_a_change_of_a_file_is_told_by_the_facts_or_else_by_the_reason() -> None:
    edit = Effects(writes=("/w/a.py", "/w/b.py"))
    assert shown(edit, ("+1 -1",)) == ()
    assert shown(edit) == ("This would change /w/a.py.", "/w/b.py")


def test_no_change_is_promised_of_a_file_that_has_this_content_already() -> None:
    same = DiffBlock("a.py", "x = 1\n", "x = 1\n", "already has this content, 6 bytes")
    assert shown(Effects(writes=("/w/a.py",)), blocks=(same,)) == ()


def test_a_change_with_another_reason_keeps_it() -> None:
    (reason,) = shown(Effects(writes=("/elsewhere/a",)), ("new file, 2 lines",))
    assert "outside the workspace" in reason
