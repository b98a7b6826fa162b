"""Prompts as commands, resources as mentions, and /mcp."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.block_text import block_lines
from swecli.commands.base import run_command
from swecli.commands.prompts import prompt_commands
from swecli.commands.registry import COMMANDS, CommandCall, parse
from swecli.core.mcp.servers import OWN_WORDS, Decisions
from swecli.core.mcp.tools import given
from swecli.core.permissions.types import Policy
from swecli.core.protocol.blocks import DisplayBlock, TableBlock
from swecli.core.protocol.commands import Compact, Submit
from swecli.core.protocol.events import ItemStarted, Notice, TurnEnded
from swecli.features.mcp.command import MCP
from tests.core.engine.support import Bench, bench, until
from tests.core.mcp.support import TEXT, call, served, unkind
from tests.support.frames import unframed


async def blocks_of(made: Bench, arguments: str) -> tuple[DisplayBlock, ...]:
    return (await run_command(MCP, made.session, arguments)).blocks


async def shown(made: Bench, arguments: str = "") -> str:
    return "\n".join(line for block in await blocks_of(made, arguments) for line in block_lines(block))


@pytest.mark.parametrize("line", ["/mcp__hub__review the parser", "/hub:review what='the parser'"])
async def test_a_prompt_is_sent_as_a_message(line: str, tmp_path: Path) -> None:
    async with served(TEXT, tmp_path, unkind()) as (made, servers):
        await until(lambda: servers.connections["hub"].state == "ready")
        found = parse(line, (*COMMANDS, *prompt_commands(made.session)))
        assert isinstance(found, CommandCall)
        result = await run_command(found.command, made.session, found.arguments)
        assert not result.blocks
        await until(lambda: bool(made.bodies(TurnEnded)))
        assert unframed(made.model.requests[0].messages[0].text).endswith("Review the parser closely.")
        (shown,) = [body.title for body in made.bodies(ItemStarted) if body.kind == "user"]
        assert shown.startswith("/mcp__hub__review ")


async def test_a_prompt_without_its_argument_is_not_sent(tmp_path: Path) -> None:
    async with served(TEXT, tmp_path, unkind()) as (made, servers):
        await until(lambda: servers.connections["hub"].state == "ready")
        (command,) = prompt_commands(made.session)
        result = await run_command(command, made.session, "")
        assert "it needs what (<what>). Nothing was sent." in block_lines(result.blocks[0])[0]
        assert not made.model.requests


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("one", {"a": "one"}),
        ("one two three", {"a": "one", "b": "two three"}),
        ("b=x y", {"b": "x", "a": "y"}),
        ("'one two' c=1", {"a": "one two", "b": "c=1"}),
        ("it's", {"a": "it's"}),
    ],
)
def test_arguments_of_a_prompt(text: str, expected: dict[str, str]) -> None:
    assert given(text, ["a", "b"]) == expected


async def test_a_resource_is_mentioned(tmp_path: Path) -> None:
    async with served(TEXT, tmp_path, unkind()) as (made, servers):
        await until(lambda: servers.connections["hub"].state == "ready")
        assert [one.word for one in made.session.mentionables] == ["hub:note://one"]
        made.send(Submit("What is in @hub:note://one?"))
        await until(lambda: bool(made.bodies(TurnEnded)))
        texts = [unframed(message.text) for message in made.model.requests[0].messages]
        assert "[Attached by the user: @hub:note://one]\nthe first note" in texts


async def test_a_mentioned_resource_that_the_mode_refuses_says_why_and_what_to_do(tmp_path: Path) -> None:
    async with served(TEXT, tmp_path, unkind(), policy=Policy(mode="plan")) as (made, servers):
        await until(lambda: servers.connections["hub"].state == "ready")
        made.send(Submit("What is in @hub:note://one?"))
        await until(lambda: bool(made.bodies(TurnEnded)))
        (told,) = [body for body in made.bodies(Notice) if body.topic == "attachments"]
        why = "plan mode is read-only, and the MCP server hub may change something."
        assert told.text == f"@hub:note://one was not attached: {why}"
        assert told.hint == "Shift+Tab leaves plan mode; then mention it again."


async def test_what_the_command_shows(tmp_path: Path) -> None:
    async with served(TEXT, tmp_path, unkind(), unkind("die", name="gone")) as (made, servers):
        await made.say("go")
        await until(lambda: servers.connections["gone"].state == "failed")
        overview = await shown(made)
        assert "ready" in overview
        assert "no such database" in overview
        detail = await shown(made, "hub")
        assert "Title: unkind 1.2" in detail
        assert "/mcp__hub__review" in detail
        assert "@hub:note://one" in detail
        assert "13 tools" in detail
        table = next(block for block in await blocks_of(made, "hub") if isinstance(block, TableBlock))
        assert len(table.rows) == 13
        assert "needs a server's name. Servers: hub, gone" in await shown(made, "enable")
        assert "Unknown MCP server 'nowhere'" in await shown(made, "nowhere")
        assert "hub is off" in await shown(made, "disable hub")
        assert "off" in await shown(made)


async def test_tools_that_are_all_withheld_are_counted_once(tmp_path: Path) -> None:
    async with served(TEXT, tmp_path, unkind(), tool_deferral=0.0001) as (made, _):
        await made.say("go")
        assert "13, all deferred" in await shown(made)
        assert "13 tools, all deferred (tool_search finds them), 0 tokens in each request" in await shown(made, "hub")


async def test_without_servers_it_says_how_to_add_one(tmp_path: Path) -> None:
    async with bench(TEXT, tmp_path) as made:
        assert "swecli mcp add" in await shown(made)


async def test_a_resource_is_attached_although_its_server_is_still_starting(tmp_path: Path) -> None:
    async with served(TEXT, tmp_path, unkind()) as (made, servers):
        assert servers.connections["hub"].state != "ready"
        await made.say("Read @hub:note://one.")
        assert "the first note" in str(made.model.requests[0].messages)
        assert not [body for body in made.bodies(Notice) if "was not attached" in body.text]


def instructed(made: Bench, request: int) -> int:
    """How often the model has the server's instructions."""
    return str(made.model.requests[request].messages).count("Be kind to it.")


async def test_the_instructions_of_a_server_reach_the_model_once(tmp_path: Path) -> None:
    async with served(TEXT * 3, tmp_path, unkind()) as (made, servers):
        await made.say("go")
        assert instructed(made, 0) == 1
        await servers.reconnect("hub")
        await servers.settled("hub")
        await made.say("more")
        assert instructed(made, 1) == 1
        facts = made.facts
    async with served(TEXT, tmp_path, unkind(), history=list(facts)) as (made, _):
        await made.say("again")
        assert instructed(made, -1) == 1


async def test_instructions_that_a_compaction_removed_are_told_again(tmp_path: Path) -> None:
    async with served(TEXT * 3, tmp_path, unkind()) as (made, _):
        await made.say("go")
        await made.say("more " * 3_000)
        made.send(Compact(without_model=True))
        await made.idle()
        await made.say("again")
        assert instructed(made, -1) == 1


async def test_instructions_that_changed_are_used_only_with_consent(tmp_path: Path) -> None:
    decisions = Decisions(None)
    async with served(TEXT, tmp_path, unkind(), decisions=decisions) as (made, _):
        await made.say("go")
    decisions.change("hub", tools={**(decisions.tools("hub") or {}), OWN_WORDS: "of other words"})
    async with served(TEXT, tmp_path, unkind(), decisions=decisions) as (made, servers):
        await made.say("go")
        assert servers.left_out["hub"] == (OWN_WORDS,)
        assert instructed(made, 0) == 0


async def test_a_tool_added_at_run_time_is_known_at_the_next_step(tmp_path: Path) -> None:
    async with served(call("change") + TEXT, tmp_path, unkind("odd")) as (made, _):
        await made.say("go")
        names = [{tool.name for tool in request.tools} for request in made.model.requests]
        assert ["mcp__hub__added" in tools for tools in names] == [False, True]
        assert ["mcp__hub__echo" in tools for tools in names] == [True, False]
