"""The line of every tool, and what is below it, in every state, at the widths of three terminals, dark and light.

Each golden is made of events with what the tool itself gives for its sample call. A tool without one fails here.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil

import pytest
from msgspec.structs import replace

import swecli.core.tools
from swecli.core.protocol.blocks import DiffBlock, TextBlock, Todo, TodoBlock
from swecli.core.protocol.events import (
    Body,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    PermissionRequested,
    PermissionResolved,
    QuestionAsked,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.protocol.request_events import Question
from swecli.core.tools.base import Tool
from swecli.core.tools.registry import builtin_tools
from swecli.tool_words import TOOL_WORDS, words_for
from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.blocks import ToolBlock
from swecli.tui.transcript.palette import DARK, LIGHT, Palette
from swecli.tui.transcript.reducer import Reducer
from swecli.tui.transcript.rows import Row, cells
from tests.tui.transcript.events import stream
from tests.tui.transcript.golden import check
from tests.tui.transcript.tool_calls import CALLS, Made, made

WIDTHS = {78: "80x24", 118: "120x40", 198: "200x60"}
"""What a terminal leaves for rows."""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    async def all_of_them() -> dict[str, Made]:
        return {name: await made(name, tmp_path_factory.mktemp(name)) for name in CALLS}

    return asyncio.run(all_of_them())


def classes() -> set[type[Tool]]:
    """Every tool that the program has, offered by default or not."""
    for module in pkgutil.iter_modules(swecli.core.tools.__path__, "swecli.core.tools."):
        importlib.import_module(module.name)
    found: set[type[Tool]] = set()
    kinds: list[type[Tool]] = [Tool]
    while kinds:
        below = kinds.pop().__subclasses__()
        kinds += below
        found |= {
            one for one in below if one.__module__.startswith("swecli.") and isinstance(vars(one).get("name"), str)
        }
    return found


def states(call: Made) -> dict[str, ToolBlock]:
    """The call from its first piece to each of its ends."""
    part = ToolCallPart("c", call.name, call.arguments)
    half = len(call.arguments) // 2
    named: tuple[Body, ...] = (
        ItemStarted("t", "tool", call.name),
        ItemDelta("t", call.arguments[:half], "arguments"),
        ItemCheckpointed("t", part, call.title),
    )
    consent = PermissionRequested("p", "t", call.name, call.title, call.preview, "This mode asks.", "hash")
    question = QuestionAsked("p", "t", (Question("Which price is meant?"),))
    asks: Body = question if call.name == "ask_user" else consent
    running: tuple[Body, ...] = (*named, ItemCheckpointed("t", part, call.title, running=True))
    output = tuple(ItemDelta("t", block.output, "output") for block in call.blocks if block.type == "terminal")
    result = (ToolResultPart("c", call.name, call.text),)
    status = "error" if call.detail == "exit 3" else "ok"
    bodies: dict[str, tuple[Body, ...]] = {
        "writing": named[:2],
        "named": named,
        "waiting": (*named, asks),
        "running": (*running, *output),
        "done": (*running, ItemCompleted("t", status, result, call.blocks, call.detail, 1.2)),
        "failed": (*running, ItemCompleted("t", "error", (ToolResultPart("c", call.name, "It can't be done."),))),
        "rejected": (
            *named,
            consent,
            PermissionResolved("p", "reject", note="not now"),
            ItemCompleted("t", "rejected"),
        ),
        "interrupted": (*running, ItemCompleted("t", "interrupted", duration=3.0)),
    }
    return {name: _block(events) for name, events in bodies.items()}


def _block(bodies: tuple[Body, ...]) -> ToolBlock:
    reducer = Reducer()
    reducer.reduce(stream(*bodies))
    block = reducer.blocks["t"]
    assert isinstance(block, ToolBlock)
    return block


def drawn(call: Made, width: int, palette: Palette) -> dict[str, list[Row]]:
    blocks = states(call)
    forms = {state: render_block(block, width, palette, expanded=False) for state, block in blocks.items()}
    forms["done, expanded"] = render_block(blocks["done"], width, palette, expanded=True)
    forms["done, short"] = render_block(blocks["done"], width, palette, expanded=False, short=True)
    return forms


def test_every_tool_has_a_sample_and_one_name_on_the_screen() -> None:
    assert {tool.name for tool in classes()} == set(CALLS)
    assert {type(tool) for tool in builtin_tools()} <= classes()
    for tool in classes():
        assert words_for(tool.name).verb == tool.verb
        assert cells(words_for(tool.name).sign) == 1
        assert tool.name in TOOL_WORDS


@pytest.mark.parametrize("width", WIDTHS, ids=WIDTHS.get)
def test_lines(calls: dict[str, Made], width: int) -> None:
    lines: list[str] = []
    for name, call in calls.items():
        for state, rows in drawn(call, width, DARK).items():
            assert all(cells(row.text) <= width for row in rows)
            assert [row.text for row in rows] == [row.text for row in drawn(call, width, LIGHT)[state]]
            lines += [f"=== {name}: {state}", *(f"{row.text}|" for row in rows)]
    check(f"tools-{WIDTHS[width]}", "\n".join(lines) + "\n")


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda palette: palette.name)
def test_styles(calls: dict[str, Made], palette: Palette) -> None:
    lines: list[str] = []
    for name, call in calls.items():
        for state, rows in drawn(call, 78, palette).items():
            lines.append(f"=== {name}: {state}")
            lines += [
                f"{n:>2} {part.text.strip()!r} {part.style}"
                for n, row in enumerate(rows)
                for part in row.segments()
                if part.text.strip()
            ]
    check(f"tools-{palette.name}-styles", "\n".join(lines) + "\n")


def test_no_line_names_less_than_verb_and_target(calls: dict[str, Made]) -> None:
    """Also at the width of a narrow terminal, and as soon as the arguments are there."""
    for name, call in calls.items():
        for state, rows in drawn(call, 38, DARK).items():
            head = rows[0].text
            assert words_for(name).verb in head
            if state != "writing" and call.title:
                assert call.title[:5] in head or call.title[-5:] in head, (name, state)


@pytest.mark.parametrize(
    ("detail", "result", "head"),
    [
        ("a.txt does not exist.", "a.txt does not exist.", "◇ Read a.txt   failed"),
        ("One of many…", "One of many names.\nTry another.", "◇ Read a.txt   failed"),
        ("interrupted", "The user interrupted this call.", "◇ Read a.txt   failed · interrupted"),
    ],
)
def test_an_error_is_told_once(detail: str, result: str, head: str) -> None:
    block = ToolBlock("t1", "read_file", "a.txt", "error", detail=detail, result=result)
    rows = [row.text.rstrip() for row in render_block(block, 78, DARK)]
    assert rows == [head, *(f"  {line}" for line in result.split("\n"))]
    assert render_block(block, 78, DARK, short=True)[0].text.startswith(f"◇ Read a.txt   failed · {detail}")


def test_a_change_with_a_remark_names_its_file_once() -> None:
    diff, remark = DiffBlock("src/a.py", "a\n", "b\n"), TextBlock("basedpyright reports 1 new error:", "warning")
    for blocks, times in (((diff,), 1), ((diff, remark), 1), ((diff, DiffBlock("b.py", "a\n", "b\n")), 2)):
        block = ToolBlock("t1", "edit_file", "src/a.py", "ok", detail="+1 -1", blocks=blocks)
        text = "\n".join(row.text for row in render_block(block, 78, DARK))
        assert text.count("src/a.py") == times


def test_arguments_that_were_refused_are_one_line_until_it_is_opened() -> None:
    text = "Invalid arguments for update_todos; nothing was run.\n- todos: is required\nParameters: todos"
    part = ToolCallPart("c", "update_todos", "{}")
    result = (ToolResultPart("c", "update_todos", text),)
    ended = ItemCompleted("t", "error", result, detail=text.partition("\n")[0])
    block = _block((ItemStarted("t", "tool", "update_todos"), ItemCheckpointed("t", part), ended))
    folded = [row.text for row in render_block(block, 78, DARK, expanded=False)]
    assert folded == ["☑ Todos   failed · Invalid arguments for update_todos; nothing was run."]
    opened = "\n".join(row.text for row in render_block(block, 78, DARK, expanded=True))
    assert "todos: is required" in opened


def test_a_todo_list_is_shown_once_and_its_updates_as_one_line_each() -> None:
    first = ToolBlock(
        "t", "update_todos", "look", "ok", blocks=(TodoBlock((Todo("look"), Todo("mend"))),), detail="2 to do"
    )
    assert [row.text.strip() for row in render_block(first, 78, DARK)][1:] == ["☐ look", "☐ mend"]
    update = replace(
        first, title="mend", blocks=(TodoBlock((Todo("look", "completed"), Todo("mend"))),), detail="1 done"
    )
    assert [row.text.strip() for row in render_block(update, 78, DARK)] == ["☑ Todos mend   1 done"]
    assert [row.text.strip() for row in render_block(update, 78, DARK, expanded=True)][1:] == ["☑ look", "☐ mend"]
