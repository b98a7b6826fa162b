"""500 tools of servers in a session: withheld, found, called, and told from then on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.deferral import Candidate, select_for_context
from swecli.core.engine.services import ExtensionHost
from swecli.core.llm.types import ToolSchema
from swecli.core.permissions.types import Effects
from swecli.core.protocol.budget import is_tools
from swecli.core.protocol.events import ToolsChanged
from swecli.core.tools.base import ToolContext, ToolOutcome
from swecli.core.tools.dynamic import DynamicTool, RawParams
from tests.core.context_management.test_tool_index import TOOLS
from tests.core.engine.support import bench, new_notes, notes_in
from tests.core.engine.test_offered_tools import Source

WANTED = "mcp__zoom__delete_user"
ASKED = "remove a person from our zoom account"
TEXT = '[[step]]\ntext = "done"\n'


class Generated(DynamicTool):
    of_server = True

    def effects(self, params: RawParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    async def run(self, params: RawParams, ctx: ToolContext) -> ToolOutcome:
        return ToolOutcome(f"{self.name} was called")


def settle(host: ExtensionHost, tools: Sequence[ToolSchema] = TOOLS) -> None:
    for source in dict.fromkeys(tool.source for tool in tools):
        made = [
            Generated(tool.name, tool.description, tool.parameters, source, verb=tool.name)
            for tool in tools
            if tool.source == source
        ]
        host.tools.settle(source, made)


def search(query: str) -> str:
    return f"[[step]]\n[[step.call]]\ntool = 'tool_search'\narguments = '{{\"query\": \"{query}\"}}'\n"


def call(tool: str) -> str:
    return f"[[step]]\n[[step.call]]\ntool = '{tool}'\narguments = '{{\"{tool.rpartition('_')[2]}_id\": \"7\"}}'\n"


async def test_a_tool_without_a_description_is_found_like_the_others(tmp_path: Path) -> None:
    tools = [replace(tool, description="") if tool.name == WANTED else tool for tool in TOOLS]

    def settled(host: ExtensionHost) -> None:
        settle(host, tools)

    async with bench(search("zoom delete user") + TEXT, tmp_path, extensions=(Source(settled),)) as made:
        await made.say("go")
        assert f"{WANTED}: \nParameters: " in made.tool_texts().popitem()[1]


async def test_tool_473_is_found_and_called(tmp_path: Path) -> None:
    wanted = TOOLS[473].name
    assert wanted == WANTED
    script = search(ASKED) + call(wanted) + TEXT + TEXT
    async with bench(script, tmp_path, extensions=(Source(settle),)) as made:
        await made.say("go")
        await made.say("more")
        found, called = list(made.tool_texts().values())
        assert f"{wanted}: Delete a user" in found
        assert '"user_id"' in found
        assert called == f"{wanted} was called"
        requests = made.model.requests
        assert [tool.name for tool in requests[0].tools if tool.source or tool.name == "tool_search"] == ["tool_search"]
        assert f"Not all of the {len(TOOLS)} tools of " in new_notes(requests[0])
        assert not new_notes(requests[1])
        # What was found comes at the end and stays; nothing before it changes.
        assert requests[1].tools[: len(requests[0].tools)] == requests[0].tools
        assert wanted in [tool.name for tool in requests[1].tools[len(requests[0].tools) :]]
        assert requests[1].tools == requests[2].tools == requests[3].tools
        assert requests[1].messages[: len(requests[0].messages)] == requests[0].messages
        facts = list(made.facts)
        last = requests[-1].tools
    async with bench(TEXT, tmp_path, extensions=(Source(settle),), history=facts) as made:
        await made.say("go on")
        assert made.model.requests[0].tools == last
        assert not made.bodies(ToolsChanged)


async def test_the_first_request_takes_a_tenth_of_the_window(tmp_path: Path) -> None:
    async with bench(TEXT, tmp_path, extensions=(Source(settle),)) as made:
        await made.say("go")
        budget = made.session.view.budget
        assert budget is not None
        taken = sum(part.tokens for part in budget.components if is_tools(part.name))
        assert taken <= 0.1 * budget.effective
        info = made.session.view.model
        assert info is not None
        context = ContextManager(())
        assert context.tool_tokens(made.model.requests[0].tools, info) <= 0.2 * context.tool_tokens(TOOLS, info)


async def test_a_withheld_tool_that_is_called_by_its_name_runs_and_joins(tmp_path: Path) -> None:
    name = "mcp__jira__create_issue"
    async with bench(call(name) + TEXT, tmp_path, extensions=(Source(settle),)) as made:
        await made.say("go")
        assert list(made.tool_texts().values()) == [f"{name} was called"]
        assert made.model.requests[1].tools[-1].name == name


async def test_few_tools_are_not_withheld(tmp_path: Path) -> None:
    source = Source(lambda host: settle(host, TOOLS[:10]))
    async with bench(TEXT, tmp_path, extensions=(source,), context=ContextManager(())) as made:
        await made.say("go")
        assert "tool_search" not in {tool.name for tool in made.model.requests[0].tools}
        assert len(made.model.requests[0].tools) == 10
        assert "tool_search" not in notes_in(made.model.requests[0])


async def test_a_search_without_a_hit_says_so(tmp_path: Path) -> None:
    async with bench(search("qqqq") + TEXT, tmp_path, extensions=(Source(settle),)) as made:
        await made.say("go")
        (text,) = made.tool_texts().values()
        assert text.startswith("No tool matches 'qqqq' (500 tools deferred)")


def candidate(name: str, tokens: int = 100, used: int = 0, first: bool = True) -> Candidate:
    return Candidate(ToolSchema(name, "", {}, "s"), tokens, used, first)


@pytest.mark.parametrize(
    ("candidates", "told", "fixed", "effective", "active"),
    [
        ([candidate("a"), candidate("b")], (), 100, 3_000, ["a", "b"]),
        ([candidate("a"), candidate("b")], (), 100, 2_999, []),
        ([candidate("a", used=5), candidate("b", used=9), candidate("c")], (), 0, 2_900, ["b"]),
        ([candidate("a", used=9), candidate("skill", 60, first=False)], (), 0, 1_500, ["skill"]),
        ([candidate("a"), candidate("b")], ("a",), 100, 100, ["a"]),
        ([candidate("a"), candidate("b")], ("a", "b"), 100, 100, ["a", "b"]),
    ],
    ids=["fits", "too many", "least recently used first", "servers first", "told stays", "all told"],
)
def test_what_is_withheld(
    candidates: list[Candidate], told: tuple[str, ...], fixed: int, effective: int, active: list[str]
) -> None:
    found = select_for_context(candidates, told, fixed, effective)
    assert [one.name for one in found.active] == active
    assert len(found.active) + len(found.deferred) == len(candidates)
    assert bool(found.reason) == bool(found.deferred)


def test_a_threshold_of_one_withholds_nothing() -> None:
    assert not select_for_context([candidate("a", 10_000)], (), 0, 100, 1.0).deferred
