"""Sessions with models that sign their thoughts over the conversation: without an edit by the user no request is
refused and no thought is lost, and after an edit exactly those are left out that the edit made invalid."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.engine.services import ExtensionHost
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.llm.scripted import parse_script
from swecli.core.llm.types import ToolSchema
from swecli.core.protocol.budget import TAIL, Component
from swecli.core.protocol.commands import (
    ChangeContext,
    Compact,
    Rewind,
    SetMode,
    UndoCompaction,
)
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionUndone,
    ContextEdited,
    ContextEditPlanned,
    Event,
    ItemStarted,
    ModeChanged,
    StepStarted,
    ToolsChanged,
)
from tests.core.context_management.test_tool_index import TOOLS
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_deferral import ASKED, search, settle
from tests.core.engine.test_offered_tools import Source
from tests.support.strict_anthropic import AnthropicRules
from tests.support.strict_responses import ResponsesRules
from tests.support.strict_server import StrictServer

SUMMARY = (
    "## Goal\\nRead the files.\\n## Done\\nThe files a, b and c were read; nothing was changed in any of them.\\n"
    "## Next\\nGo on with whatever the user asks for next."
)


def steps(count: int, aside: str = "") -> str:
    """Turns of three steps, each with a thought."""
    lines = [f'aside = "{aside}"\n' if aside else ""]
    for number in range(count):
        lines += [
            f'[[step]]\nreasoning = "I think {number}a."\ncall = [{call("read_file", f"a{number}")}]\n',
            f'[[step]]\nreasoning = "I think {number}b."\ntext = "Next."\ncall = [{call("read_file", f"b{number}")}]\n',
            f'[[step]]\nreasoning = "I think {number}c."\ntext = "Done {number}."\n',
        ]
    return "".join(lines)


@contextmanager
def strict(script: str, rules: Any = None) -> Iterator[StrictServer[Any]]:
    with StrictServer(parse_script(script), rules or AnthropicRules()) as server:
        yield server


@asynccontextmanager
async def session(
    server: StrictServer[Any], folder: Path, history: Sequence[Event] = (), **changes: Any
) -> AsyncIterator[Bench]:
    of_claude = isinstance(server.rules, AnthropicRules)
    name = "anthropic/claude-opus-5-5" if of_claude else "openai/gpt-6-sol"
    settings = Overrides() if of_claude else Overrides(protocol="openai-responses")

    def client(_name: str) -> HttpModelClient:
        return HttpModelClient(resolve(name, server.environment(), overrides=settings))

    async with bench(
        '[[step]]\ntext = "unused"', folder, history=history, name=name, make_client=client, **changes
    ) as b:
        yield b


def sound(server: StrictServer[Any], thoughts: int) -> None:
    assert server.refused == []
    assert server.rules.lost == []
    assert server.rules.thoughts == thoughts


def came_back(turns: int) -> int:
    """Thoughts that all requests of so many turns bring back: each request has those of all earlier ones."""
    return sum(range(3 * turns))


@pytest.mark.parametrize("rules", [AnthropicRules, lambda: AnthropicRules(enforced=False), ResponsesRules])
async def test_a_plain_session(rules: Callable[[], Any], tmp_path: Path) -> None:
    with strict(steps(3), rules()) as server:
        async with session(server, tmp_path) as b:
            for number in range(3):
                ended = await b.say(f"go {number}")
                assert ended.outcome == "done", ended
        sound(server, came_back(3))


@pytest.mark.parametrize("rules", [AnthropicRules, ResponsesRules])
async def test_modes_a_run_without_a_user_and_a_resumption(rules: Callable[[], Any], tmp_path: Path) -> None:
    def context(headless: bool) -> ContextManager:
        return ContextManager((), PromptTexts(base="Short.", headless=headless))

    with strict(steps(5), rules()) as server:
        async with session(server, tmp_path, context=context(True)) as b:
            assert (await b.say("go")).outcome == "done"
            facts = list(b.facts)
        async with session(server, tmp_path, history=facts, context=context(False)) as b:
            for mode in ("plan", "auto", "default"):
                before = len(b.bodies(ModeChanged))
                b.send(SetMode(mode))
                await until(lambda n=before: len(b.bodies(ModeChanged)) > n)
                assert (await b.say(f"in {mode}")).outcome == "done"
            titles = [body.name for body in b.bodies(ItemStarted) if body.kind == "note"]
            assert titles == ["mode", "presence", "mode", "mode"]
            facts = list(b.facts)
        async with session(server, tmp_path, history=facts, context=context(True)) as b:
            assert (await b.say("alone again")).outcome == "done"
        sound(server, came_back(5))


async def test_fifty_ordinary_steps_need_few_notes(tmp_path: Path) -> None:
    turns = 17
    with strict(steps(turns)) as server:
        async with session(server, tmp_path, context=ContextManager((), PromptTexts(headless=True))) as b:
            for number in range(turns):
                assert (await b.say(f"go {number}")).outcome == "done"
            notes = [body for body in b.bodies(ItemStarted) if body.kind == "note"]
        assert len(notes) <= 10
        sound(server, came_back(turns))


def thoughts_in(request: Any) -> int:
    return sum(
        block["type"] == "thinking"
        for message in request.body["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
    )


async def edited(b: Bench, *changes: ContextChange) -> None:
    before = len(b.bodies(ContextEdited))
    b.send(ChangeContext(changes))
    await until(lambda: len(b.bodies(ContextEdited)) > before and not b.session.view.busy)


async def test_an_edit_leaves_out_what_it_made_invalid_and_its_undo_brings_it_back(tmp_path: Path) -> None:
    with strict(steps(4)) as server:
        async with session(server, tmp_path) as b:
            await b.say("one")
            await b.say("two")
            read = [body.item for body in b.bodies(ItemStarted) if body.name == "read_file"]
            await edited(b, ContextChange("drop", read[2]))  # the first call of the second turn
            assert (await b.say("three")).outcome == "done"
            assert thoughts_in(server.asked[6]) == 3  # those of the first turn: the answer with the call is gone whole
            await edited(b, ContextChange("restore", read[2]))
            assert (await b.say("four")).outcome == "done"
            assert thoughts_in(server.asked[9]) == 6  # those of the turn in between are bound to the edited form
        assert server.refused == []


async def test_after_a_compaction_the_chain_begins_anew_and_undo_brings_thoughts_back(tmp_path: Path) -> None:
    with strict(steps(5, SUMMARY)) as server:
        async with session(server, tmp_path) as b:
            for number in range(3):
                b.gates.outputs |= {f"{name}{number}": f"line of {name}\n" * 2_000 for name in "ab"}
                await b.say(f"turn {number}")
            before = thoughts_in(server.asked[8])
            b.send(Compact())
            await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
            assert (await b.say("and now?")).outcome == "done"
            after = next(request for request in reversed(server.asked) if "and now?" in str(request.body))
            assert thoughts_in(after) <= 2
            b.send(UndoCompaction())
            await until(lambda: bool(b.bodies(CompactionUndone)) and not b.session.view.busy)
            assert (await b.say("with all again")).outcome == "done"
            undone = next(request for request in server.asked if "with all again" in str(request.body))
            assert thoughts_in(undone) == before + 1
        assert server.refused == []


async def test_a_rewind_keeps_the_thoughts_before_it(tmp_path: Path) -> None:
    with strict(steps(3)) as server:
        async with session(server, tmp_path) as b:
            await b.say("one")
            await b.say("two")
            second = [body.item for body in b.bodies(ItemStarted) if body.kind == "user"][1]
            b.send(Rewind(second))
            assert (await b.say("instead")).outcome == "done"
            assert thoughts_in(server.asked[6]) == 3
        assert server.refused == []
        assert server.rules.lost == []


def late(prefix: str) -> list[ToolSchema]:
    return [tool for tool in TOOLS if tool.name.startswith(f"mcp__{prefix}__")]


@pytest.mark.parametrize("rules", [AnthropicRules, ResponsesRules])
async def test_tools_that_arrive_late_join_where_the_conversation_is(rules: Callable[[], Any], tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []
    with strict(steps(4), rules()) as server:
        async with session(server, tmp_path, extensions=(Source(hosts.append),)) as b:
            assert (await b.say("one")).outcome == "done"
            settle(hosts[0], late("zoom")[:3])
            assert (await b.say("two")).outcome == "done"
            settle(hosts[0], late("jira")[:2])
            assert (await b.say("three")).outcome == "done"
            assert [len(body.added) for body in b.bodies(ToolsChanged)] == [3, 2]
            second = [body.item for body in b.bodies(ItemStarted) if body.kind == "user"][1]
            b.send(Rewind(second))
            assert (await b.say("instead")).outcome == "done"
        assert server.refused == []
        assert server.rules.lost == []
        assert "zoom" not in str(server.asked[-1].body["tools"])
        assert "mcp__zoom__" in str(server.asked[-1].body)


async def test_tools_that_a_search_found_join_where_the_conversation_is(tmp_path: Path) -> None:
    found = search(ASKED).replace("[[step]]", '[[step]]\nreasoning = "I look for one."')
    with strict(found + steps(2)) as server:
        async with session(server, tmp_path, extensions=(Source(settle),)) as b:
            assert (await b.say("one")).outcome == "done"
            assert (await b.say("two")).outcome == "done"
        assert server.refused == []
        assert server.rules.lost == []
        assert server.rules.thoughts == sum(range(7))


async def test_an_edit_that_waits_for_a_compaction_costs_nothing_until_then(tmp_path: Path) -> None:
    with strict(steps(5, SUMMARY)) as server:
        async with session(server, tmp_path) as b:
            for number in range(3):
                b.gates.outputs |= {f"{name}{number}": f"line of {name}\n" * 2_000 for name in "ab"}
                await b.say(f"turn {number}")
            first, *_ = (body.item for body in b.bodies(ItemStarted) if body.kind == "user")
            await planned(b, first)
            assert (await b.say("go on")).outcome == "done"
            sound(server, came_back(4))
            assert not b.bodies(ContextEdited)
            newest = [body.item for body in b.bodies(ItemStarted) if body.kind == "user"][-1]
            await planned(b, newest)  # what a compaction always keeps
            b.send(Compact())
            await until(lambda: b.bodies(ContextEditPlanned)[-1].changes == () and not b.session.view.busy)
            assert newest in [change.id for body in b.bodies(ContextEdited) for change in body.changes]


async def planned(b: Bench, item: str) -> None:
    before = len(b.bodies(ContextEditPlanned))
    b.send(ChangeContext((ContextChange("pin", item),), later=True))
    await until(lambda: len(b.bodies(ContextEditPlanned)) > before)


def with_vanished_notes(event: Event) -> Event:
    """The event as a version recorded it whose requests ended with notes that later ones did not repeat."""
    body = event.body
    if not isinstance(body, StepStarted):
        return event
    budget = replace(body.budget, components=(*body.budget.components, Component(TAIL, 50)))
    return replace(event, body=replace(body, budget=budget))


async def test_thoughts_behind_notes_that_vanished_are_left_out_of_a_resumed_session(tmp_path: Path) -> None:
    def noted(body: dict[str, Any]) -> dict[str, Any]:
        newest = body["messages"][-1]
        newest["content"] = [*newest["content"], {"type": "text", "text": "Your todo list: []"}]
        return body

    rules = AnthropicRules(enforced=False, rewrite=noted)
    with strict(steps(4), rules) as server:
        async with session(server, tmp_path) as b:
            assert (await b.say("one")).outcome == "done"
            facts = list(map(with_vanished_notes, b.facts))
        rules.rewrite, rules.enforced = None, True
        rules.lost.clear()
        async with session(server, tmp_path, history=facts) as b:
            for word in ("two", "three"):
                assert (await b.say(word)).outcome == "done"
        assert server.refused == []
        assert {lost.reason for lost in rules.lost} == {"left out"}  # those that nobody can bring back
        assert thoughts_in(server.asked[-1]) == 5
