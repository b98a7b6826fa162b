"""The agent as a library: tasks with results, functions as tools, answers with a schema."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from swecli import Agent, AgentError, AgentOptions, CompactContext, CompactDecision, ContextConfig, tool
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.protocol.events import ItemDelta, TurnEnded, TurnStarted
from swecli.core.protocol.messages import TextPart
from swecli.core.tools.base import ToolError
from swecli.core.tools.function import FunctionTool
from tests.support.tool_context import ToolBench
from tests.support.waiting import PATIENCE, until


def calling(tool_name: str, arguments: dict[str, Any], answer: str = "Done.") -> ScriptedModel:
    text = f"[[step]]\n[[step.call]]\ntool = {json.dumps(tool_name)}\narguments = {json.dumps(json.dumps(arguments))}\n"
    return ScriptedModel(parse_script(f"{text}\n[[step]]\ntext = {json.dumps(answer)}\n"))


def saying(*answers: str) -> ScriptedModel:
    return ScriptedModel(parse_script("\n".join(f"[[step]]\ntext = {json.dumps(answer)}" for answer in answers)))


def options(model: ScriptedModel, folder: Path, **given: Any) -> AgentOptions:
    return AgentOptions(model_client=model, cwd=folder, environment={}, **given)


async def test_a_task_has_a_result(tmp_path: Path) -> None:
    async with Agent(options(saying("One.", "Two."), tmp_path)) as agent:
        result = await agent.run("hi")
        assert (result.text, result.outcome) == ("One.", "done")
        assert result.usage is not None
        assert (await agent.run("again")).text == "Two."
        assert len(agent.history) == 4


async def test_without_a_conversation_each_task_has_its_own(tmp_path: Path) -> None:
    agent = Agent(options(saying("One.", "Two."), tmp_path))
    assert (await agent.run("hi")).text == "One."
    assert (await agent.run("hi")).text == "Two."
    assert len(agent.history) == 2


def slow(*answers: str) -> ScriptedModel:
    steps = (f"[[step]]\ndelay = 0.2\ntext = {json.dumps(answer)}" for answer in answers)
    return ScriptedModel(parse_script("\n".join(steps)))


async def test_a_task_after_one_that_was_cancelled_gets_its_own_answer(tmp_path: Path) -> None:
    async with Agent(options(slow("One.", "Two."), tmp_path)) as agent:
        first = asyncio.create_task(agent.run("first"))
        await until(lambda: bool(agent.history))
        first.cancel()
        result = await agent.run("second")
        asked = [message.text for message in agent.history if message.role == "user"]
        assert asked == ["first", "second"]
        assert [message.text for message in agent.history if message.role == "assistant"][-1] == result.text
        assert agent.history[-1].role == "assistant"


async def test_tasks_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    async with Agent(options(slow("One.", "Two."), tmp_path)) as agent:
        done = await asyncio.gather(agent.run("a"), agent.run("b"))
        assert [result.text for result in done] == ["One.", "Two."]
        assert [message.text for message in agent.history] == ["a", "One.", "b", "Two."]
    alone = Agent(options(slow("One.", "Two."), tmp_path))
    done = await asyncio.gather(alone.run("a"), alone.run("b"))
    assert [result.text for result in done] == ["One.", "Two."]
    assert len(alone.history) == 2


async def test_a_stream_that_is_left_early_interrupts_its_task(tmp_path: Path) -> None:
    async with Agent(options(slow("One.", "Two."), tmp_path)) as agent:
        async with aclosing(agent.stream("first")) as events:
            async for event in events:
                if isinstance(event.body, TurnStarted):
                    break
        await agent.query("second")
        await agent.run("third")
        parts = [part async for part in agent.receive_messages()]
        answers = [message.text for message in agent.history if message.role == "assistant"]
        assert [part.text for part in parts if isinstance(part, TextPart)] == answers[-2:-1]


async def test_a_message_after_an_interrupt_is_answered(tmp_path: Path) -> None:
    async with Agent(options(slow("One.", "Two."), tmp_path)) as agent:
        await agent.query("first")
        await until(lambda: bool(agent.history))
        agent.interrupt()
        await agent.query("second")
        for _ in range(2):
            _ = [part async for part in agent.receive_messages()]
        assert [message.text for message in agent.history if message.role == "user"] == ["first", "second"]
        assert agent.history[-1].role == "assistant"


async def test_events_stream_until_the_end(tmp_path: Path) -> None:
    async with Agent(options(saying("One two three."), tmp_path)) as agent:
        bodies = [event.body async for event in agent.stream("hi")]
    assert any(isinstance(body, TurnStarted) for body in bodies)
    assert "".join(body.text for body in bodies if isinstance(body, ItemDelta)) == "One two three."
    assert isinstance(bodies[-1], TurnEnded)


async def test_a_function_is_a_tool(tmp_path: Path) -> None:
    called: list[tuple[str, int]] = []

    def weather(city: Annotated[str, Field(description="Where")], days: int = 1) -> dict[str, Any]:
        """The weather of the next days."""
        called.append((city, days))
        return {"city": city, "sun": True}

    model = calling("weather", {"city": "Oslo", "days": "2"})
    async with Agent(options(model, tmp_path, tools=[weather])) as agent:
        assert (await agent.run("weather?")).text == "Done."
        results = [part for message in agent.history for part in message.parts if part.type == "tool_result"]
    assert called == [("Oslo", 2)]
    assert json.loads(results[0].text) == {"city": "Oslo", "sun": True}  # pyright: ignore[reportAttributeAccessIssue]
    (schema,) = model.requests[0].tools
    assert (schema.name, schema.description) == ("weather", "The weather of the next days.")
    assert schema.parameters["properties"]["city"] == {"type": "string", "description": "Where"}
    assert schema.parameters["required"] == ["city"]


@dataclass
class Point:
    x: int
    y: int


async def test_a_coroutine_with_rich_types_is_a_tool(tmp_path: Path) -> None:
    @tool(name="distance", description="How far it is", read_only=True)
    async def far(to: Point, unit: Literal["m", "km"] = "m") -> str:
        return f"{abs(to.x) + abs(to.y)} {unit}"

    model = calling("distance", {"to": {"x": 3, "y": 4}, "unit": "km"})
    async with Agent(options(model, tmp_path, tools=[far], mode="plan")) as agent:
        await agent.run("how far?")
        texts = [part.text for message in agent.history for part in message.parts if part.type == "tool_result"]  # pyright: ignore[reportAttributeAccessIssue]
    assert texts == ["7 km"]


async def test_plan_mode_refuses_a_function_that_may_change_something(tmp_path: Path) -> None:
    def store() -> None:
        raise AssertionError("it must not run")

    async with Agent(options(calling("store", {}), tmp_path, tools=[store], mode="plan")) as agent:
        await agent.run("store it")
        texts = [part.text for message in agent.history for part in message.parts if part.type == "tool_result"]  # pyright: ignore[reportAttributeAccessIssue]
    assert "Plan mode is read-only" in texts[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"n": 0}, "ValueError: no zero"), ({}, "n"), ({"n": "x"}, "n"), ({"n": 1, "m": 2}, "m")],
)
async def test_a_failing_function_tells_the_model(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    def invert(n: int) -> float:
        if n == 0:
            raise ValueError("no zero")
        return 1 / n

    bench = ToolBench(tmp_path)
    made = FunctionTool(invert)
    with pytest.raises(ToolError, match=said):
        await made.run(made.validated(arguments), bench.context)


@pytest.mark.parametrize("error", [SystemExit(2), StopIteration("empty")])
async def test_an_error_that_would_end_or_stop_the_loop_ends_the_call_only(
    tmp_path: Path, error: BaseException
) -> None:
    def fails() -> None:
        raise error

    async def waits() -> None:
        if isinstance(error, StopIteration):
            raise RuntimeError("coroutine raised StopIteration")
        raise error

    bench = ToolBench(tmp_path)
    for function in (fails, waits):
        made = FunctionTool(function)
        with pytest.raises(ToolError, match=f"{made.name} failed: "):
            await asyncio.wait_for(made.run(made.validated({}), bench.context), PATIENCE)


def variadic(*names: str) -> None: ...


def positional(name: str, /) -> None: ...


def opaque(call: Callable[[int], int]) -> None: ...


@pytest.mark.parametrize("function", [variadic, positional, opaque, lambda n: n])
def test_what_can_not_be_a_tool(function: Any) -> None:
    with pytest.raises(TypeError):
        FunctionTool(function)


async def test_tools_of_swecli_go_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the content")
    model = calling("read_file", {"path": "a.txt"})
    async with Agent(options(model, tmp_path, tools=["read_file"])) as agent:
        await agent.run("read it")
        texts = [part.text for message in agent.history for part in message.parts if part.type == "tool_result"]  # pyright: ignore[reportAttributeAccessIssue]
    assert "the content" in texts[0]
    for wrong in (["no_such_tool"], ["read_file", "read_file"]):
        with pytest.raises(ValueError, match="tool"):
            Agent(options(model, tmp_path, tools=wrong))


class Person(BaseModel):
    name: str
    age: int


async def test_an_answer_with_a_schema_is_corrected_once(tmp_path: Path) -> None:
    model = saying("Ada is 36.", '{"name": "Ada", "age": 36}')
    async with Agent(options(model, tmp_path)) as agent:
        result = await agent.run("who?", schema=Person)
    assert result.value == Person(name="Ada", age=36)
    assert '"age"' in str(model.requests[0].messages)
    assert "does not match" in str(model.requests[1].messages)
    async with Agent(options(saying("No.", "No."), tmp_path)) as agent:
        with pytest.raises(AgentError, match="does not match the schema"):
            await agent.run("who?", schema={"type": "object"})


async def test_other_tasks_run_while_an_answer_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, ran = asyncio.get_running_loop(), threading.Event()

    def slow(schema: Mapping[str, Any], value: object) -> str:
        loop.call_soon_threadsafe(ran.set)
        return "" if ran.wait(PATIENCE) else "nothing else ran"

    monkeypatch.setattr("swecli.core.answer_schema.problems", slow)
    async with Agent(options(saying("{}"), tmp_path)) as agent:
        result = await agent.run("who?", schema={"type": "object"})
    assert result.value == {}


async def test_a_compaction_asks_the_hook_of_the_options(tmp_path: Path) -> None:
    asked: list[str] = []

    async def on_pre_compact(context: CompactContext) -> CompactDecision:
        asked.append(context.trigger)
        return CompactDecision(cancel=True)

    context = ContextConfig(strategy="truncation", on_pre_compact=on_pre_compact)
    async with Agent(options(saying(*["Some words. " * 40] * 15), tmp_path, context=context)) as agent:
        for number in range(15):
            await agent.run(f"Message {number}")
        assert await agent.compact() is None
    assert asked == ["manual"]


async def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
    source = next(part for part in page.split("```")[1::2] if "class Weather" in part).removeprefix("python\n")
    defined: dict[str, Any] = {"__name__": "example"}
    exec(compile(source, "library.md", "exec"), defined)
    model = saying('{"city": "Oslo", "sunny": true}')
    async with Agent(options(model, tmp_path, tools=[defined["forecast"], "read_file"])) as agent:
        result = await agent.run("Will Oslo be sunny?", schema=defined["Weather"])
    assert result.value == defined["Weather"](city="Oslo", sunny=True)
    assert [schema.name for schema in model.requests[0].tools] == ["forecast", "read_file"]


async def test_a_result_has_the_whole_of_an_answer_that_broke_off_and_went_on(tmp_path: Path) -> None:
    script = (
        '[[step]]\ntext = "The first half and"\nfault = { kind = "cut", after = 16 }\n[[step]]\ntext = " the second."\n'
    )
    async with Agent(options(ScriptedModel(parse_script(script)), tmp_path)) as agent:
        result = await agent.run("Tell me both halves.")
    assert result.text.startswith("The first")
    assert result.text.endswith(" the second.")
