"""How long a turn has waited for the user is counted once, however many questions were open."""

from __future__ import annotations

from swecli.core.engine.state import SessionState
from swecli.core.protocol.events import (
    Body,
    Event,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    TurnStarted,
)


def permission(name: str) -> PermissionRequested:
    return PermissionRequested(name, "t", "edit_file", "a", (), "why", "hash")


def waited(*timed: tuple[float, Body]) -> float:
    state = SessionState()
    for seq, (ts, body) in enumerate(timed, 1):
        state.apply(Event(seq, ts, "s", 1, body))
    return state.waited


def test_overlapping_questions_count_once() -> None:
    asked = ((0.0, TurnStarted("u")), (10.0, permission("p")), (12.0, QuestionAsked("q", "t", ())))
    assert waited(*asked, (20.0, PermissionResolved("p", "once")), (25.0, QuestionAnswered("q", ()))) == 15
    assert waited(*asked) == 0, "it counts once it is answered"


def test_each_turn_counts_for_itself() -> None:
    first = ((0.0, TurnStarted("u")), (1.0, permission("p")), (4.0, PermissionResolved("p", "reject")))
    assert waited(*first) == 3
    assert waited(*first, (9.0, TurnStarted("v"))) == 0
    later = ((10.0, permission("r")), (12.0, PermissionResolved("r", "once")))
    assert waited(*first, *later) == 5


def test_a_clock_that_goes_back_counts_nothing() -> None:
    assert waited((9.0, TurnStarted("u")), (9.0, permission("p")), (3.0, PermissionResolved("p", "once"))) == 0
