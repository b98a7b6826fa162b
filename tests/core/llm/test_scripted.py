"""The scripted model: streaming, usage, faults, imperfections, conditions."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.scripted import ScriptedModel, ScriptMismatch, parse_script, split
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelRequest,
    ReasoningDelta,
    Started,
    StreamEvent,
    SystemBlock,
    TextDelta,
    ToolArgsDelta,
    ToolCallDone,
    ToolSchema,
    UsageUpdate,
)
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart, Usage
from tests.support.waiting import PATIENCE

SYSTEM = SystemBlock("You are a coding agent. " * 40)
TOOLS = (ToolSchema("read_file", "Read a file", {"type": "object"}),)


def user(text: str) -> Message:
    return Message("user", (TextPart(text),))


def result(text: str, *, error: bool = False) -> Message:
    return Message("tool", (ToolResultPart("call_1", "read_file", text, is_error=error),))


def request(*messages: Message, tools: bool = True) -> ModelRequest:
    return ModelRequest((SYSTEM,), TOOLS if tools else (), messages or (user("hello"),))


async def answer(model: ScriptedModel, of: ModelRequest | None = None) -> list[StreamEvent]:
    return [event async for event in model.stream(of or request())]


def finished(events: list[StreamEvent]) -> Message:
    assert isinstance(events[-1], Finished)
    return events[-1].message


def failed(events: list[StreamEvent]) -> Failed:
    assert isinstance(events[-1], Failed)
    return events[-1]


async def test_an_answer_streams_reasoning_text_and_calls_in_order() -> None:
    model = ScriptedModel(
        parse_script("""
        [[step]]
        reasoning = "I need the code."
        text = "Let me look."
        call = [{ tool = "read_file", arguments = { path = "a.py" } }, { tool = "list_files", id = "mine" }]
        """)
    )
    events = await answer(model)
    assert isinstance(events[0], Started)
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "I need the code."
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Let", " me", " look."]
    assert "".join(e.text for e in events if isinstance(e, ToolArgsDelta) and e.part == 2) == '{"path": "a.py"}'
    done = [e.call for e in events if isinstance(e, ToolCallDone)]
    assert done == [ToolCallPart("call_1", "read_file", '{"path": "a.py"}'), ToolCallPart("mine", "list_files", "{}")]
    message = finished(events)
    assert [part.type for part in message.parts] == ["reasoning", "text", "tool_call", "tool_call"]
    assert message.tool_calls == tuple(done)
    assert message.response is not None
    assert message.response.complete
    assert message.response.stop.kind == "tool_use"
    assert model.over
    assert model.requests == [request()]


async def test_made_ids_stay_unique_over_the_conversation() -> None:
    model = ScriptedModel(parse_script('step = [{call = [{tool = "a"}]}, {call = [{tool = "b"}, {tool = "c"}]}]'))
    first = finished(await answer(model))
    second = finished(await answer(model, request(user("x"), first, result("ok"))))
    assert [call.call_id for call in (*first.tool_calls, *second.tool_calls)] == ["call_1", "call_2", "call_3"]


async def test_after_the_last_step_the_model_says_that_the_script_is_over() -> None:
    model = ScriptedModel(parse_script('closing = "That was all."\nstep = [{text = "one"}]'))
    assert finished(await answer(model)).text == "one"
    assert finished(await answer(model)).text == "That was all."
    assert finished(await answer(model)).text == "That was all."


async def test_usage_grows_and_the_shared_prefix_is_read_from_the_cache() -> None:
    model = ScriptedModel(parse_script('step = [{text = "a"}, {text = "b"}, {text = "c"}]'))
    history: list[Message] = [user("first")]
    usages: list[Usage] = []
    for text in ("x" * 400, "y" * 400, "z"):
        events = await answer(model, request(*history))
        usages.extend(event.usage for event in events if isinstance(event, UsageUpdate))
        response = finished(events).response
        assert response is not None
        assert response.usage == usages[-1]
        history += [finished(events), user(text)]
    totals = [usage.input_total or 0 for usage in usages]
    assert totals == sorted(totals)
    assert totals[0] < totals[1] < totals[2]
    assert usages[0].cache_read == 0
    assert totals[0] * 0.9 < (usages[1].cache_read or 0) < totals[1]
    assert totals[1] * 0.9 < (usages[2].cache_read or 0) < totals[2]


async def test_a_changed_system_prompt_loses_the_cache() -> None:
    model = ScriptedModel(parse_script('step = [{text = "a"}, {text = "b"}]'))
    await answer(model)
    changed = ModelRequest((SystemBlock("Other."), SYSTEM), TOOLS, (user("hello"),))
    events = await answer(model, changed)
    assert [event.usage.cache_read for event in events if isinstance(event, UsageUpdate)] == [0]


async def test_given_usage_wins_and_silence_is_kept() -> None:
    model = ScriptedModel(
        parse_script("""
        step = [{text = "a", usage = {input = 1000, cache_read = 900, output = 7, cache_write = 5, reasoning = 3}},
                {text = "b", usage = {silent = true}}]
        """)
    )
    events = await answer(model)
    assert [e.usage for e in events if isinstance(e, UsageUpdate)] == [Usage(1000, 900, 5, 7, 3)]
    assert not [e for e in await answer(model) if isinstance(e, UsageUpdate)]


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ('kind = "overflow", tokens = 210000, window = 200000', "context_overflow", 400),
        ('kind = "auth"', "auth", 401),
        ('kind = "rate_limit", retry_after = 2.5', "rate_limit", 429),
        ('kind = "overloaded"', "overloaded", 529),
        ('kind = "server"', "server", 500),
        ('kind = "quota"', "quota", 402),
        ('kind = "not_found", message = "no such model"', "not_found", 404),
        ('kind = "network"', "network", None),
    ],
)
async def test_a_fault_before_the_answer(fault: str, kind: str, status: int | None) -> None:
    events = await answer(ScriptedModel(parse_script(f'step = [{{text = "never", fault = {{{fault}}}}}]')))
    assert len(events) == 1
    end = failed(events)
    assert (end.error.kind, end.error.status, end.message) == (kind, status, None)
    if kind == "context_overflow":
        assert (end.error.prompt_tokens, end.error.window) == (210000, 200000)
        assert "210000" in end.error.message
    if kind == "rate_limit":
        assert end.error.retry_after == 2.5


@pytest.mark.parametrize("kind", ["cut", "overloaded", "garbage", "server"])
async def test_a_fault_within_the_answer_keeps_what_arrived(kind: str) -> None:
    source = f'step = [{{text = "one two three", fault = {{kind = "{kind}", after = 6}}}}]'
    events = await answer(ScriptedModel(parse_script(source)))
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "one tw"
    end = failed(events)
    assert end.message is not None
    assert end.message.text == "one tw"
    assert end.message.response is not None
    assert not end.message.response.complete


async def test_a_cut_within_arguments_never_completes_the_call() -> None:
    source = """[[step]]
    text = "Reading."
    call = [{ tool = "read_file", arguments = { path = "abc" } }]
    fault = { kind = "cut", after = 5, in_arguments = true }
    """
    events = await answer(ScriptedModel(parse_script(source)))
    assert not [e for e in events if isinstance(e, ToolCallDone)]
    end = failed(events)
    assert end.error.kind == "truncated"
    assert end.message is not None
    assert end.message.tool_calls == (ToolCallPart("call_1", "read_file", '{"pat'),)


@given(after=st.integers(0, 60), chunk=st.sampled_from(["words", "whole", 1, 7]))
@settings(max_examples=60, deadline=None)
def test_a_cut_leaves_exactly_so_many_characters(after: int, chunk: str | int) -> None:
    shown = f'"{chunk}"' if isinstance(chunk, str) else str(chunk)
    source = f"""chunk = {shown}
    [[step]]
    reasoning = "abc def"
    text = "ghi jkl"
    call = [{{ tool = "t", arguments = {{ a = "b c" }} }}]
    fault = {{ kind = "cut", after = {after} }}
    """
    events = asyncio.run(answer(ScriptedModel(parse_script(source))))
    arrived = "".join(e.text for e in events if isinstance(e, TextDelta | ReasoningDelta | ToolArgsDelta))
    assert arrived == 'abc defghi jkl{"a": "b c"}'[:after]
    assert failed(events).error.kind == "truncated"


@given(text=st.text(max_size=200), chunk=st.sampled_from(["words", "whole", 1, 5]))
def test_pieces_join_to_the_text(text: str, chunk: str | int) -> None:
    assert "".join(split(text, chunk)) == text  # pyright: ignore[reportArgumentType]
    assert all(split(text, chunk))  # pyright: ignore[reportArgumentType]


async def test_a_stall_ends_only_with_the_request() -> None:
    model = ScriptedModel(parse_script('step = [{text = "one two", fault = {kind = "stall", after = 3}}]'))
    seen: list[StreamEvent] = []
    arrived = asyncio.Event()

    async def follow() -> None:
        async for event in model.stream(request()):
            seen.append(event)
            if isinstance(event, TextDelta):
                arrived.set()

    task = asyncio.create_task(follow())
    await asyncio.wait_for(arrived.wait(), PATIENCE)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert [e.text for e in seen if isinstance(e, TextDelta)] == ["one"]


async def test_pauses_are_those_of_the_script() -> None:
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    source = """delay = 0.5
    step = [{text = "a b", wait = 2}, {text = "c", delay = 0, fault = {kind = "stall", seconds = 90, after = 1}}]"""
    model = ScriptedModel(parse_script(source), pause=pause)
    await answer(model)
    assert waited == [2, 0.5, 0.5]
    waited.clear()
    assert failed(await answer(model)).error.kind == "stalled"
    assert waited == [0, 0, 90]


async def test_imperfections_are_sent_as_they_are() -> None:
    model = ScriptedModel(
        parse_script("""
        [[step]]
        stop = "end"
        call = [{ tool = "read_file", arguments = '{"path": ', id = "same" }, { tool = "no_such", id = "same" }]
        [[step]]
        text = ""
        [[step]]
        fault = { kind = "empty" }
        """)
    )
    message = finished(await answer(model))
    assert [(call.call_id, call.name, call.arguments) for call in message.tool_calls] == [
        ("same", "read_file", '{"path": '),
        ("same", "no_such", "{}"),
    ]
    assert message.response is not None
    assert message.response.stop.kind == "end"
    assert finished(await answer(model)).parts == ()
    assert finished(await answer(model)).parts == ()


async def test_steps_with_a_condition_are_passed_over_until_it_holds() -> None:
    source = """step = [{text = "rejected", when = {last_error = true}}, {text = "done", when = {last_result = "ok"}},
                        {text = "go on"}]"""
    call = Message("assistant", (ToolCallPart("call_1", "read_file", "{}"),))
    for results, expected in (((result("no", error=True),), "rejected"), ((result("ok"),), "done"), ((), "go on")):
        model = ScriptedModel(parse_script(source))
        assert finished(await answer(model, request(user("x"), call, *results))).text == expected


async def test_a_request_that_is_not_as_expected_fails_loudly() -> None:
    source = 'step = [{text = "a", expect = {last_result = "passed", last_user = "hello"}}]'
    model = ScriptedModel(parse_script(source, origin="fix.toml"))
    call = Message("assistant", (ToolCallPart("call_1", "read_file", "{}"),))
    with pytest.raises(ScriptMismatch, match=r"fix\.toml: step 1: .*'passed'.*2 failed"):
        await answer(model, request(user("hello"), call, result("2 failed")))


async def test_requests_without_tools_take_no_step_where_there_is_an_aside() -> None:
    model = ScriptedModel(parse_script('aside = "A summary."\nstep = [{text = "one"}]'))
    assert finished(await answer(model, request(tools=False))).text == "A summary."
    assert finished(await answer(model)).text == "one"
