"""Which lines are commands."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from swecli.commands.registry import COMMANDS, CommandCall, UnknownCommand, command_table, find, nearest, parse


def test_names_and_aliases_are_unique_and_lower_case() -> None:
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)
    assert all(command.summary and not command.summary.endswith(".") for command in COMMANDS)
    for promised in ("help", "init", "model", "mode", "context", "clear", "quit"):
        assert find(promised), promised


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("/help", "help", ""),
        ("  /mode  plan ", "mode", "plan"),
        ("/Q", "quit", ""),
        ("/?", "help", ""),
        ("/model openrouter/a/b", "model", "openrouter/a/b"),
        ("/new\nline two", "clear", "line two"),
    ],
)
def test_commands_are_found_by_name_and_alias(line: str, name: str, arguments: str) -> None:
    parsed = parse(line)
    assert isinstance(parsed, CommandCall)
    assert (parsed.command.name, parsed.arguments) == (name, arguments)


def test_case_is_ignored_also_in_names_of_servers() -> None:
    prompt = replace(COMMANDS[0], name="mcp__Hub__newIssue", aliases=("Hub:newIssue",))
    for name in ("mcp__Hub__newIssue", "MCP__hub__newissue", "hub:NEWISSUE"):
        assert find(name, (prompt,)) is prompt


def test_a_name_may_begin_with_a_digit() -> None:
    mine = msgspec.structs.replace(COMMANDS[0], name="3d-web", aliases=())
    assert parse("/3D-web now", (mine,)) == CommandCall(mine, "now")


@pytest.mark.parametrize(
    "line",
    ["/etc/hosts is wrong", "/usr/bin", "hello /help", "/", "/ help", "/a.py fails", "//", "", "/123", "/2 of them"],
)
def test_paths_and_other_text_are_for_the_model(line: str) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("contxt", "context"),
        ("ex", ""),
        ("qiut", "quit"),
        ("dif", "diff"),
        ("expotr", "export"),
        ("claer", "clear"),
        ("zzzzzz", ""),
        ("MODL", "model"),
        ("statsu", "status"),
        ("cst", "cost"),
    ],
)
def test_the_nearest_command_is_suggested(name: str, expected: str) -> None:
    unknown = parse(f"/{name} x")
    assert isinstance(unknown, UnknownCommand)
    assert unknown.nearest == nearest(name) == expected
    assert "Nothing was sent." in unknown.message


def test_other_names_lead_to_no_command_that_only_looks_alike() -> None:
    for name, command in (("kill", "/jobs"), ("stop", "/jobs"), ("dir", "/add-dir"), ("edit", "Ctrl+G")):
        unknown = parse(f"/{name}")
        assert isinstance(unknown, UnknownCommand)
        assert command in unknown.message
        assert "Did you mean" not in unknown.message


def test_the_table_lists_every_command_or_names_it_with_its_listed_one() -> None:
    rows = command_table().rows
    assert len(rows) == 35
    assert [row[0].split()[0] for row in rows] == [f"/{command.name}" for command in COMMANDS if not command.under]
    also = {row[0].split()[0]: row[2].split(", ") for row in rows}
    for command in COMMANDS:
        if command.under:
            assert f"/{command.name}" in also[f"/{command.under}"]


def test_every_name_of_before_works_on() -> None:
    before = """help init context cache compact wire sentinel recall find where btw copy export handoff undo
        redo rewind diff review commit model effort login logout mode plan permissions hooks mcp lsp
        playbook todos memory jobs theme keys vim config usage status doctor skills skill commands agents
        add-dir clear resume fork rename quit"""
    for name in before.split():
        call = parse(f"/{name}")
        assert isinstance(call, CommandCall), name
        assert call.command.name == name


def test_every_command_is_told_like_the_others() -> None:
    for command in COMMANDS:
        assert command.summary[:1].isupper(), command.name
        assert not command.summary.endswith("."), command.name


def test_the_readme_names_every_command() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    sentence = readme.split("Slash commands: ")[1].split(".\n")[0]
    assert re.split(r",\s+", sentence) == [f"/{command.name}" for command in COMMANDS if not command.under]


def test_what_now_counts_of_other_agents_is_not_denied() -> None:
    for name in ("plugin", "plugins", "marketplace", "rules"):
        told = parse(f"/{name}")
        assert isinstance(told, UnknownCommand)
        assert "/commands, /skills and /agents list" in told.elsewhere or "/status names the rules" in told.elsewhere


def test_hints_and_words_for_habits_name_only_commands_that_there_are() -> None:
    from swecli.commands.registry import ELSEWHERE
    from swecli.tui.greeting import HINTS

    told = [hint(lambda action: "Key") for hint in HINTS] + list(ELSEWHERE.values())
    known = {name for command in COMMANDS for name in (command.name, *command.aliases)}
    named = {name for text in told for name in re.findall(r"(?:^|[\s(])/([a-z][a-z-]*)", text)}
    assert len(named) > 15
    assert named <= known
    assert [text for text in ELSEWHERE.values() if ": " in text] == []  # the colon before it is the only one


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        *(("/compact", True), ("/compact the parser", True), ("/compact undo", True), ("/compact plan", False)),
        *(("/compact plan for the parser", True), ("/compact history", False), ("/context", False)),
        *(("/context drop m3", True), ("/context items", False), ("/model", False), ("/model sonnet", True)),
        ("/model list gpt", False),
        *(("/plan", False), ("/plan show", False), ("/plan go", True), ("/plan fix the parser", True)),
        *(("/memory", False), ("/memory notes.md", False), ("/memory delete notes.md", True), ("/sentinel", False)),
        *(("/sentinel take", True), ("/clear", True), ("/commit", True), ("/effort high", False), ("/btw why", False)),
    ],
)
def test_what_cannot_run_during_a_turn_waits(line: str, waits: bool) -> None:
    found = parse(line)
    assert isinstance(found, CommandCall)
    assert found.command.needs_rest(found.arguments) is waits
