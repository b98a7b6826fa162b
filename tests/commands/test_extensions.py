"""/skills, /commands, /agents and the commands that files define."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.block_text import block_lines
from swecli.commands.base import CommandResult
from swecli.commands.registry import CommandCall, commands_of, parse
from swecli.core.protocol.events import Notice, TurnEnded
from tests.core.engine.support import Bench, bench, until
from tests.core.extensions.support import Places

ANSWERS = '[[step]]\ntext = "one"\n' * 3


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = Places(tmp_path / "project", tmp_path / "home")
    (made.project / ".git").mkdir(parents=True)
    made.home.mkdir()
    made.skill("pdf", "Fill forms")
    made.write(".claude/commands/git/say.md", "---\ndescription: says\nargument-hint: <word>\n---\nSay $1")
    made.write(
        "~/.claude/agents/mine.md", "---\nname: mine\ndescription: d\ntools: Read, Nope\npermissionMode: x\n---\np"
    )
    made.write("~/.claude/commands/help.md", "mine")
    return made


async def run(made: Bench, line: str) -> CommandResult:
    found = parse(line, commands_of(made.session))
    assert isinstance(found, CommandCall)
    return await found.command.run(made.session, found.arguments)


def shown(result: CommandResult) -> str:
    return "\n".join(line for block in result.blocks for line in block_lines(block))


async def test_they_are_commands_with_their_hints(places: Places) -> None:
    async with bench(ANSWERS, places.project, extension_files=places.open(built_in=("help",))) as made:
        own = {each.name: each for each in commands_of(made.session) if each.own}
        assert set(own) == {"git:say", "pdf"}
        assert (own["git:say"].arguments, own["git:say"].summary) == ("<word>", "says")
        found = parse("/GIT:say hello there", commands_of(made.session))
        assert isinstance(found, CommandCall)
        assert (found.command.name, found.arguments) == ("git:say", "hello there")


@pytest.mark.parametrize(
    ("line", "sent"), [("/git:say hi", "Say hi"), ("/pdf", "Use the skill pdf"), ("/skill pdf now", "ARGUMENTS: now")]
)
async def test_a_call_begins_a_turn(places: Places, line: str, sent: str) -> None:
    async with bench(ANSWERS, places.project, extension_files=places.open()) as made:
        assert (await run(made, line)).blocks == ()
        await until(lambda: bool(made.bodies(TurnEnded)))
        assert sent in made.model.requests[0].messages[0].text


async def test_lists_name_source_state_and_problems(places: Places) -> None:
    async with bench(ANSWERS, places.project, extension_files=places.open(built_in=("help",))) as made:
        skills = shown(await run(made, "/skills"))
        assert "Fill forms" in skills
        assert ".claude/skills" in skills
        agents = shown(await run(made, "/agents"))
        assert all(name in agents for name in ("explore", "general", "review", "mine", "built in"))
        assert "~/.claude/agents/mine.md:5: mode 'x'" in agents
        assert "1 tool, default, unknown: Nope" in agents
        commands = shown(await run(made, "/commands"))
        assert "/git:say <word>" in commands
        assert "~/.claude/commands/help.md: /help is a command of swecli" in commands
        assert "Say $1" in shown(await run(made, "/commands git:say"))
        assert "Fill forms" in shown(await run(made, "/skills /pdf"))
        assert "Mode: " in shown(await run(made, "/agents explore"))
        assert "Unknown name nope; /skills lists the skills" in shown(await run(made, "/skills nope"))


async def test_what_waits_is_shown_and_approved(places: Places) -> None:
    async with bench(ANSWERS, places.project, extension_files=places.open(at_once=False)) as made:
        assert "/commands approve git:say" in shown(await run(made, "/git:say x"))
        assert "Say $1" in shown(await run(made, "/commands git:say"))
        assert "Ignored" in shown(await run(made, "/skills"))
        assert "Nothing needs approval: nope" in shown(await run(made, "/skills approve nope"))
        assert "Approved in their current version: pdf" in shown(await run(made, "/skills approve"))
        assert "Fill forms" in shown(await run(made, "/skills"))
        assert len(places.kept) == 1
        assert made.bodies(Notice) == []


async def test_an_approval_counts_at_once_also_for_a_list_of_commands_from_before(places: Places) -> None:
    async with bench(ANSWERS, places.project, extension_files=places.open(at_once=False)) as made:
        before = parse("/pdf now", commands_of(made.session))
        assert isinstance(before, CommandCall)
        assert "/skills approve pdf" in shown(await before.command.run(made.session, "now"))
        await run(made, "/skills approve pdf")
        assert (await before.command.run(made.session, "now")).blocks == ()
        await until(lambda: bool(made.bodies(TurnEnded)))
        assert "Use the skill pdf" in made.model.requests[0].messages[0].text


async def test_an_empty_list_says_where_to_put_one(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path / "home")
    async with bench(ANSWERS, tmp_path, extension_files=places.open()) as made:
        assert ".swecli, .agents or .claude" in shown(await run(made, "/skills"))
        assert "explore" in shown(await run(made, "/agents"))
    async with bench(ANSWERS, tmp_path) as made:
        assert "This session has no skills" in shown(await run(made, "/skills"))
