"""The reduction of a turn that all surfaces share."""

from __future__ import annotations

from decimal import Decimal

import pytest

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    MAIN,
    Body,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ItemStatus,
    PermissionRequested,
    PermissionResolved,
    QuestionAsked,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import TextPart, ToolCallPart, Usage
from swecli.core.protocol.turns import Item, Turns

BUDGET = Budget((), 500, 500, 1000, 1200, 200, "ok")


class Feed:
    def __init__(self) -> None:
        self.turns = Turns()
        self.seq = 0

    def __call__(self, body: Body, agent: str = MAIN) -> Item | None:
        self.seq += 1
        return self.turns.apply(Event(self.seq, 0.0, "s1", 1, body, agent))


@pytest.fixture
def feed() -> Feed:
    return Feed()


def ask(request: str, item: str, tool: str, title: str) -> PermissionRequested:
    return PermissionRequested(request, item, tool, title, (), "why", "")


def text(item: str, words: str, status: ItemStatus = "ok") -> tuple[Body, ...]:
    return ItemStarted(item, "text"), ItemCompleted(item, status, (TextPart(words),))


def test_an_answer_that_was_cut_and_continued_is_one_text(feed: Feed) -> None:
    feed(TurnStarted("u1"))
    for part in (text("a1", "The first half, ", "error"), text("a2", "and the second.")):
        feed(StepStarted(1, BUDGET))
        for body in part:
            feed(body)
    assert feed.turns.text == "The first half, and the second."
    feed(StepStarted(1, BUDGET))
    assert feed.turns.text == "The first half, and the second."  # the new step has none yet
    for body in text("a3", "Another."):
        feed(body)
    assert feed.turns.text == "Another."


def test_checkpoints_and_deltas_give_the_same_text(feed: Feed) -> None:
    feed(ItemStarted("a1", "text"))
    live = [feed(ItemDelta("a1", "Hello, ")), feed(ItemDelta("a1", "wor")), feed(ItemDelta("a1", "x", "output"))]
    assert live[-1] is not None
    assert live[-1].text == "Hello, wor"
    stored = Feed()
    stored(ItemStarted("a1", "text"))
    stored(ItemCheckpointed("a1", TextPart("Hello, ")))
    item = stored(ItemCheckpointed("a1", TextPart("wor"), begins=7))
    assert item is not None
    assert item.text == "Hello, wor"
    assert stored.turns.text == "Hello, wor"


def test_a_turn_cut_off_in_its_answer_keeps_the_text_and_no_item(feed: Feed) -> None:
    feed(TurnStarted("u1"))
    feed(ItemStarted("a1", "text"))
    feed(ItemDelta("a1", "half"))
    feed(ItemStarted("t9", "tool", "task"), "agent-1")
    assert not feed.turns.idle
    feed(TurnEnded("error", "broke off"))
    assert feed.turns.idle
    assert feed.turns.text == "half"
    assert list(feed.turns.items) == ["t9"]  # a background subagent's, which goes on


def test_a_call_keeps_its_target_its_answer_and_that_it_ran(feed: Feed) -> None:
    feed(ItemStarted("t1", "tool", "run_command"))
    feed(ItemCheckpointed("t1", ToolCallPart("c1", "run_command", '{"command": "ls"}'), "ls"))
    feed(ask("p1", "t1", "run_command", "ls"))
    feed(PermissionResolved("p1", "reject", note="not now"))
    item = feed(ItemCompleted("t1", "rejected", detail="rejected: not now"))
    assert item is not None
    assert item.call is not None
    assert (item.title, item.call.arguments, item.running) == ("ls", '{"command": "ls"}', False)
    assert item.resolved is not None
    assert item.resolved.note == "not now"
    assert feed.turns.rejected == [item]
    assert not feed.turns.items
    assert not feed.turns.requests


def test_the_end_of_a_turn_closes_its_questions_and_no_others(feed: Feed) -> None:
    feed(ask("p1", "t1", "edit_file", "a.py"))
    feed(ask("p2", "t2", "edit_file", "b.py"), "agent-1")
    feed(QuestionAsked("q1", "", ()))
    feed(TurnEnded("interrupted"))
    assert list(feed.turns.requests) == ["p2", "q1"]


def test_usage_and_cost_are_those_of_all_agents(feed: Feed) -> None:
    feed(StepStarted(1, BUDGET))
    assert feed.turns.cost is None  # no step has ended
    feed(StepEnded(1, Usage(input_total=3, output_total=1), "0.5"))
    feed(StepEnded(1, Usage(input_total=4), "0.25"), "agent-1")
    assert feed.turns.cost == Decimal("0.75")
    assert feed.turns.usage.input_total == 7
    feed(StepStarted(1, BUDGET))
    feed(StepEnded(1))
    assert feed.turns.cost is None
