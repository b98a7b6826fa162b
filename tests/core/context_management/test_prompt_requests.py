from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from swecli.core.context_management.budget import Limits
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompt import (
    BASE,
    PromptSection,
    build_prompt,
    build_request,
    message_breakpoints,
)
from swecli.core.llm.types import ModelInfo, ModelRequest, ToolSchema
from swecli.core.protocol.budget import MEMORY, PROJECT_INSTRUCTIONS
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart

INFO = ModelInfo("fake", "m", 10_000, 4_000)
LIMITS = Limits()
TOOLS = [ToolSchema(name, f"Does {name}.", {"type": "object"}) for name in ("write", "read", "ask")]
PROMPT = build_prompt(
    [
        PromptSection(MEMORY, "memory"),
        PromptSection(BASE, "base"),
        PromptSection(PROJECT_INSTRUCTIONS, "rules"),
    ]
)


def user(number: int) -> Message:
    return Message("user", (TextPart(f"question {number}"),), f"u{number}")


def step(number: int, calls: int) -> tuple[Message, ...]:
    made = tuple(ToolCallPart(f"c{number}.{call}", "read", "{ }") for call in range(calls))
    text = Message("assistant", (TextPart(f"answer {number}"), *made), f"a{number}")
    if not calls:
        return (text,)
    results = tuple(ToolResultPart(call.call_id, "read", f"result {call.call_id}") for call in made)
    return (text, Message("tool", results, f"a{number}.results"))


def build(messages: tuple[Message, ...], watermarks: tuple[int, ...] = ()) -> ModelRequest:
    return build_request(PROMPT, TOOLS, messages, info=INFO, limits=LIMITS, session="s", watermarks=watermarks)


def prefix(request: ModelRequest) -> list[str]:
    """The request's stable part in wire order, one string per piece."""
    system = [block.text for block in request.system]
    return [repr(request.tools), *system, *map(repr, request.messages)]


def test_a_request_is_a_function_of_its_values() -> None:
    request = build((user(1),))
    assert [tool.name for tool in request.tools] == ["ask", "read", "write"]
    assert [block.text for block in request.system] == ["base", "rules", "memory"]
    assert request.max_output_tokens == 4_000
    assert request.session == "s"
    assert build((user(1),)) == request
    shuffled = build_request(PROMPT, reversed(TOOLS), [user(1)], info=INFO, limits=LIMITS, session="s", effort="high")
    assert shuffled == replace(request, effort="high")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=15))
def test_each_request_begins_with_the_one_before(turns: list[int]) -> None:
    history: tuple[Message, ...] = (user(0),)
    before = prefix(build(history))
    marked_before: set[int] = set()
    for number, calls in enumerate(turns, 1):
        history = (*history, user(number)) if calls < 0 else (*history, *step(number, calls))
        request = build(history)
        assert prefix(request)[: len(before)] == before
        before = prefix(request)
        marks = set(request.breakpoints)
        assert len(history) - 1 in marks
        assert len(marks) + sum(block.breakpoint for block in request.system) <= 4
        assert request.system[-1].breakpoint
        # Where nothing but one answer was added, a place that the previous request marked is marked again.
        if calls >= 0:
            assert marks & marked_before or not marked_before
        marked_before = marks


def test_breakpoints_of_messages() -> None:
    first_turn = (user(1), *step(1, 2), *step(2, 1), *step(3, 0))
    assert message_breakpoints(()) == ()
    assert message_breakpoints(first_turn[:1]) == (0,)
    assert message_breakpoints(first_turn[:3]) == (0, 2)
    assert message_breakpoints(first_turn[:5]) == (2, 4)
    second = (*first_turn, user(2), *step(4, 1))
    assert message_breakpoints(second) == (5, 6, 8)
    assert message_breakpoints(second, 2) == (2, 5, 8)
    assert message_breakpoints(second, 8) == (5, 6, 8)
    assert message_breakpoints(second, 99) == (5, 6, 8)


def test_the_system_prompt_gives_up_breakpoints_for_the_conversation() -> None:
    def marked(request: ModelRequest) -> list[str]:
        return [block.text for block in request.system if block.breakpoint]

    assert marked(build((user(1),))) == ["base", "rules", "memory"]
    assert marked(build((user(1), *step(1, 1)))) == ["base", "memory"]
    assert marked(build((user(1), *step(1, 0), user(2), *step(2, 1)))) == ["memory"]


@pytest.mark.parametrize(("words", "limit"), [(10, 4_000), (7_000, None)])
def test_the_answer_is_limited_to_what_is_left(words: int, limit: int | None) -> None:
    message = Message("user", (TextPart(" the" * words),), "u1")
    prepared = ContextManager((), limits=LIMITS).prepare((message,), info=INFO)
    assert prepared.request.max_output_tokens == (limit or 10_000 - prepared.budget.upper)
    assert prepared.request.messages == (message,)
    unknown = ModelInfo("fake", "m", 10_000)
    assert build_request(PROMPT, (), (), info=unknown, limits=LIMITS, session="").max_output_tokens == 10_000


def test_the_measure_attributes_the_sections() -> None:
    budget = TokenMonitor().measure(build((user(1),)), LIMITS, INFO, PROMPT.components)
    names = {component.name for component in budget.components}
    assert {"system prompt", PROJECT_INSTRUCTIONS, MEMORY, "tool descriptions", "user messages"} <= names
