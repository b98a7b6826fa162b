"""A subagent in the transcript: one block, its figures and its calls."""

from __future__ import annotations

import pytest

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import (
    AgentEnded,
    AgentStarted,
    Body,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ItemStatus,
    PermissionRequested,
    PermissionResolved,
    QuestionAsked,
    StepEnded,
    StepStarted,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart, Usage
from swecli.tui.transcript.blocks import AGENT_CALLS, Put, ToolBlock
from swecli.tui.transcript.palette import DARK
from swecli.tui.transcript.reducer import Reducer
from swecli.tui.transcript.tool_rows import tool_rows

USAGE = Usage(input_total=1_000, output_total=100)
BEGUN: tuple[tuple[str, Body], ...] = (
    ("main", ItemStarted("t1", "tool", "task", "look")),
    ("main", ItemCheckpointed("t1", ToolCallPart("c1", "task", "{}"), "look", running=True)),
    ("main", AgentStarted("agent-1", "t1", "look", "explore", "a/b")),
)


def events(*bodies: tuple[str, Body]) -> list[Event]:
    return [Event(n, float(n), "s", 1, body, agent) for n, (agent, body) in enumerate(bodies, 1)]


def call(number: int) -> tuple[str, Body]:
    return "agent-1", ItemCheckpointed(f"t100{number}", ToolCallPart("c", "read_file", "{}"), f"file-{number}")


def block(reducer: Reducer) -> ToolBlock:
    found = reducer.blocks["t1"]
    assert isinstance(found, ToolBlock)
    return found


def test_its_steps_tokens_cost_and_calls_are_in_the_block_of_its_call() -> None:
    reducer = Reducer()
    step: tuple[tuple[str, Body], ...] = (
        ("agent-1", StepStarted(1, Budget((), 0, 0, 1, 1, 0, "ok", "estimated", "endpoint"))),
        call(1),
        ("agent-1", StepEnded(1, USAGE, "0.02")),
    )
    reducer.reduce(events(*BEGUN, *step, *step))
    figures = block(reducer).agent

    assert figures is not None
    assert (figures.steps, figures.tokens, str(figures.cost)) == (2, 2_200, "0.04")
    assert figures.doing == "Read file-1"
    assert list(reducer.ids) == ["t1"]

    reducer.reduce(events(("main", AgentEnded("agent-1", "limit", "", 2, 2_300, "0.05"))))
    ended = block(reducer).agent
    assert ended is not None
    assert (ended.outcome, ended.tokens, ended.doing) == ("limit", 2_300, "")


def test_whatever_comes_of_it_in_one_frame_is_one_change_and_bounded() -> None:
    reducer = Reducer()
    reducer.reduce(events(*BEGUN))
    changes = reducer.reduce(events(*(call(number) for number in range(500))))
    figures = block(reducer).agent

    assert len(changes) == 1
    assert isinstance(changes[0], Put)
    assert figures is not None
    assert len(figures.calls) == AGENT_CALLS
    assert figures.earlier == 500 - AGENT_CALLS


def test_an_open_question_is_told_until_it_is_answered() -> None:
    reducer = Reducer()
    asked = PermissionRequested("p1", "t1001", "write_file", "a", (), "", "b")
    reducer.reduce(events(*BEGUN, ("agent-1", asked)))
    waiting = block(reducer).agent
    reducer.reduce(events(("agent-1", PermissionResolved("p1", "once"))))
    answered = block(reducer).agent

    assert waiting is not None
    assert answered is not None
    assert (waiting.asks, answered.asks) == (1, 0)
    assert block(reducer).status == "running"


def test_the_call_that_is_asked_about_is_shown_and_not_a_later_one() -> None:
    reducer = Reducer()
    asked = ("agent-1", PermissionRequested("p1", "t1000", "write_file", "a", (), "", "b"))
    other = ("agent-1", PermissionRequested("p2", "t1001", "write_file", "c", (), "", "b"))
    resolved = ("agent-1", PermissionResolved("p1", "once"))
    written = ("agent-1", ItemCheckpointed("t1000", ToolCallPart("c", "write_file", "{}"), "a"))

    reducer.reduce(events(*BEGUN, written, asked, call(1), other))
    assert last_lines(reducer) == ("Write a", "Write a")

    reducer.reduce(events(resolved))
    assert last_lines(reducer) == ("Write c", "Write c")

    reducer.reduce(events(("agent-1", PermissionResolved("p2", "reject"))))
    assert last_lines(reducer) == ("Read file-1", "Read file-1")


def last_lines(reducer: Reducer) -> tuple[str, str]:
    """Last row of the block, folded and expanded."""
    folded, expanded = (tool_rows(block(reducer), 80, DARK, expanded=expanded)[-1] for expanded in (False, True))
    return folded.body, expanded.body


@pytest.mark.parametrize("status", ["interrupted", "error"])
def test_a_result_written_for_the_model_is_not_shown(status: ItemStatus) -> None:
    told = ToolResultPart("c1", "task", '[agent-1 ended. Its transcript: read_result with ref_id "agent-1"]', True)
    reducer = Reducer()
    ended = ("main", AgentEnded("agent-1", "error", "the server is down", 2, 2_300, "0.05"))
    reducer.reduce(events(*BEGUN, call(1), ended, ("main", ItemCompleted("t1", status, (told,), detail=status))))
    folded, expanded = (
        [row.body for row in tool_rows(block(reducer), 80, DARK, expanded=way)] for way in (False, True)
    )

    assert not any("read_result" in line for line in (*folded, *expanded))
    assert ("the server is down" in folded) == (status == "error")
    assert "the server is down" in expanded
    assert "Read file-1" in expanded


def test_a_question_without_a_text_counts_as_open() -> None:
    reducer = Reducer()
    reducer.reduce(events(*BEGUN, ("agent-1", QuestionAsked("q1", "t1001", ()))))
    figures = block(reducer).agent
    assert figures is not None
    assert figures.asks == 1


def test_events_of_an_agent_that_is_not_known_change_nothing() -> None:
    assert Reducer().reduce(events(call(1))) == []
