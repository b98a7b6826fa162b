"""How long "always" holds: a turn, a session, or in the user's store; and the rule that let a call run is told."""

from __future__ import annotations

import pytest

from swecli.core.engine.state import SessionState
from swecli.core.protocol.events import (
    Body,
    Event,
    PermissionRequested,
    PermissionResolved,
    RuleRevoked,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.request_events import GrantSpan

RULE = "Bash(make *)"


def _state(*bodies: Body) -> SessionState:
    state = SessionState()
    for seq, body in enumerate(bodies, 1):
        state.apply(Event(seq=seq, ts=0.0, session="s", turn=1, agent="main", body=body))
    return state


def _always(span: GrantSpan) -> tuple[Body, Body]:
    asked = PermissionRequested("p1", "t1", "run_command", "make", (), "Commands ask.", "hash", RULE)
    return asked, PermissionResolved("p1", "always", span=span)


@pytest.mark.parametrize(
    ("span", "during", "after"),
    [("turn", [RULE], []), ("session", [RULE], [RULE]), ("week", [], []), ("project", [], [])],
)
def test_a_turn_and_a_session_are_kept_in_the_session(span: GrantSpan, during: list[str], after: list[str]) -> None:
    events = (TurnStarted("u1"), *_always(span))
    assert [rule.text for rule in _state(*events).rules] == during
    assert [rule.text for rule in _state(*events, TurnEnded("done")).rules] == after


@pytest.mark.parametrize("span", ["turn", "session"])
def test_what_is_revoked_holds_no_longer(span: GrantSpan) -> None:
    events = (TurnStarted("u1"), *_always(span))
    assert not _state(*events, RuleRevoked(RULE)).rules
    assert [rule.text for rule in _state(*events, RuleRevoked("Bash(other)")).rules] == [RULE]
