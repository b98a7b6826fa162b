"""/recall over a session whose tool answers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from swecli.core.engine.command_tools import ToolRun
from swecli.core.tools.read_result import NOTHING_RECALLED
from tests.commands.support import CommandSession


class RecallTool:
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.recalled: list[tuple[str, dict[str, object]]] = []

    async def run(self, name: str, arguments: Mapping[str, object], *, typed: bool = False) -> ToolRun:
        self.recalled.append((name, dict(arguments)))
        if "broken" in arguments.values():
            return ToolRun("No entry in this session has the id.", is_error=True)
        if "unheard" in arguments.values():
            return ToolRun(NOTHING_RECALLED, is_error=False)
        return ToolRun(
            "[u1] user, turn 1, summarised\nthe port is 5433\n\nrecall(id=…) returns one in full.", is_error=False
        )


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("/recall database port", {"query": "database port"}),
        ("/recall t12.result", {"id": "t12.result"}),
        ("/recall u1-t4", {"id": "u1-t4"}),
        ("/recall [m41–m47, t12]", {"id": "[m41–m47, t12]"}),
        ("/recall r0123456789ab", {"id": "r0123456789ab"}),
        ("/recall r2d2 robot", {"query": "r2d2 robot"}),
    ],
)
async def test_words_and_ids(line: str, arguments: dict[str, object]) -> None:
    session = CommandSession()
    tool = session.command_tools = RecallTool()
    text = await session.slash(line)
    assert tool.recalled == [("recall", arguments)]
    assert "the port is 5433" in text
    assert text.endswith("/recall with an id shows one in full.")


async def test_without_words_it_says_what_it_wants_and_errors_are_shown() -> None:
    session = CommandSession()
    tool = session.command_tools = RecallTool()
    assert "Search words" in await session.slash("/recall")
    assert tool.recalled == []
    assert await session.slash("/recall broken") == "No entry in this session has the id."


async def test_where_nothing_matches_the_user_is_told_where_else_to_look() -> None:
    session = CommandSession()
    session.command_tools = RecallTool()
    said = await session.slash("/recall unheard")
    assert said == "No match among removed items. /find searches everything."
