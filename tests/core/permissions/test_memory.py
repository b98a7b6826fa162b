"""What the memory tool may do, and that nobody else may do it in the user's folder."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.permissions.decide import after_untrusted, decide
from swecli.core.permissions.types import Call, Effects, Policy, Rule
from swecli.core.protocol.events import Mode

DATA, WORK = "/home/u/data", "/proj"
POLICY = Policy(mode="auto", trust="trusted", own_dirs=(DATA,), memory=(f"{DATA}/memories",), sandbox="full")


HOME_DATA = "/home/u/.local/share/swecli"
AT_HOME: dict[str, Any] = {
    "mode": "default",
    "home": "/home/u",
    "own_dirs": (HOME_DATA,),
    "memory": (f"{HOME_DATA}/memories",),
}


def call(tool: str, *, reads: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> Call:
    return Call(tool, {}, Effects(reads, writes), WORK, (WORK,))


@pytest.mark.parametrize(
    ("mode", "path", "outcome"),
    [
        ("default", f"{WORK}/.swecli/memory/a.md", "ask"),
        ("accept-edits", f"{WORK}/.swecli/memory/a.md", "allow"),
        ("auto", f"{WORK}/.swecli/memory/a.md", "allow"),
        ("plan", f"{WORK}/.swecli/memory/a.md", "deny"),
        ("auto", f"{DATA}/memories/a.md", "ask"),
        ("plan", f"{DATA}/memories/a.md", "deny"),
        ("auto", f"{DATA}/trust.json", "deny"),
        ("auto", f"{DATA}/memories-x/a.md", "deny"),
        ("auto", f"{WORK}/.swecli/config.toml", "deny"),
    ],
)
def test_writes(mode: Mode, path: str, outcome: str) -> None:
    assert decide(replace(POLICY, mode=mode), call("memory", writes=(path,))).outcome == outcome


@pytest.mark.parametrize(
    ("tool", "path", "outcome"),
    [
        ("memory", f"{DATA}/memories/a.md", "allow"),
        ("memory", f"{DATA}/trust.json", "ask"),
        ("read_file", f"{DATA}/memories/a.md", "ask"),
    ],
)
def test_reads(tool: str, path: str, outcome: str) -> None:
    assert decide(POLICY, call(tool, reads=(path,))).outcome == outcome


def test_other_tools_do_not_write_the_users_memories() -> None:
    assert decide(POLICY, call("write_file", writes=(f"{DATA}/memories/a.md",))).outcome == "deny"


@pytest.mark.parametrize(
    ("changes", "path", "outcome"),
    [
        ({"mode": "default"}, f"{WORK}/.swecli/memory/a.md", "allow"),
        ({"mode": "default"}, f"{DATA}/memories/a.md", "allow"),
        ({"mode": "default", "untrusted": ("example.org",)}, f"{DATA}/memories/a.md", "allow"),
        ({"mode": "default", "rules": (Rule("ask", "Edit(**)", "user"),)}, f"{WORK}/.swecli/memory/a.md", "ask"),
        ({"mode": "plan"}, f"{WORK}/.swecli/memory/a.md", "deny"),
        ({"mode": "default"}, f"{WORK}/.git/config", "ask"),
        ({"mode": "default"}, f"{DATA}/trust.json", "deny"),
        (AT_HOME, f"{HOME_DATA}/memories/me.md", "allow"),
        (AT_HOME, "/home/u/.config/x", "ask"),
    ],
)
def test_what_the_user_typed_needs_no_question(changes: dict[str, Any], path: str, outcome: str) -> None:
    typed = replace(call("memory", writes=(path,)), typed=True)
    assert decide(replace(POLICY, **changes), typed).outcome == outcome


def test_what_strangers_say_is_not_kept_without_a_question() -> None:
    policy = replace(POLICY, untrusted=("example.org",))
    write = call("memory", writes=(f"{WORK}/.swecli/memory/a.md",))
    decision = after_untrusted(policy, write, decide(policy, write), proven=False)
    assert decision.outcome == "ask"
    assert "persists into later sessions" in decision.reason
    view = call("memory", reads=(f"{DATA}/memories/a.md",))
    assert after_untrusted(policy, view, decide(policy, view), proven=False).outcome == "allow"


def test_in_its_usual_place_the_users_folder_asks_unless_the_user_typed() -> None:
    write = call("memory", writes=(f"{HOME_DATA}/memories/me.md",))
    decision = decide(replace(POLICY, **AT_HOME), write)
    assert (decision.outcome, "personal configuration" in decision.reason) == ("ask", True)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "allow"),
        ({"untrusted": ("example.org",)}, "allow"),
        ({"rules": (Rule("ask", "mcp__hub__read_resource", "user"),)}, "ask"),
        ({"rules": (Rule("deny", "mcp__hub__read_resource", "user"),)}, "deny"),
        ({"mode": "plan"}, "deny"),
    ],
)
def test_what_the_user_named_is_read_without_a_question(changes: dict[str, Any], outcome: str) -> None:
    read = Call("mcp__hub__read_resource", {}, Effects(external="the MCP server hub"), WORK, (WORK,), typed=True)
    policy = replace(POLICY, **{"mode": "default", **changes})
    assert decide(policy, read).outcome == outcome
    if not changes:
        assert decide(policy, replace(read, typed=False)).outcome == "ask"
