from __future__ import annotations

import pytest

from swecli.core.sandbox.launch import blocked
from swecli.core.sandbox.plan import Layer, Mount, Placeholder, Plan

PLAN = Plan(("/w",), (Mount("/w/.env", "denied", False),), (Placeholder("/w/.vscode"),), "/p")


@pytest.mark.parametrize(
    ("output", "layer", "said"),
    [
        ("touch: cannot touch '/etc/x': Read-only file system", "bwrap", "read-only path"),
        ("OSError: [Errno 30] Read-only file system: '/x'", "bwrap", "read-only path"),
        ("curl: (6) Could not resolve host: example.org", "bwrap", "network"),
        ("connect: Network is unreachable", "bwrap", "network"),
        ("npm error code EAI_AGAIN", "bwrap", "network"),
        ("go: dial tcp: lookup proxy.golang.org: no such host", "bwrap", "network"),
        ("cat: .env: Permission denied", "bwrap", "secret"),
        ("mv: cannot move '.vscode': Device or resource busy", "bwrap", "protected"),
        ("mount: Operation not permitted", "bwrap", "does not permit"),
        ("cat: other: Permission denied", "landlock", "does not allow"),
    ],
)
def test_what_the_sandbox_stopped(output: str, layer: Layer, said: str) -> None:
    assert said in blocked(output, 1, PLAN, layer)


@pytest.mark.parametrize(
    "output", ["cat: other: Permission denied", "2 failed, 3 passed", "Device or resource busy", ""]
)
def test_other_failures_are_not_blamed_on_it(output: str) -> None:
    assert blocked(output, 1, PLAN, "bwrap") == ""


def test_a_command_that_ended_well_or_was_killed_was_not_stopped() -> None:
    assert blocked("Read-only file system", 0, PLAN, "bwrap") == ""
    assert blocked("Read-only file system", None, PLAN, "bwrap") == ""
    open_network = Plan(("/w",), (), (), "/p", network=True)
    assert blocked("Could not resolve host", 6, open_network, "bwrap") == ""
