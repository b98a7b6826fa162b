"""A session for slash commands: values to look up, a model that answers once, a tool that really writes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from swecli.block_text import block_lines
from swecli.commands.registry import CommandCall, parse
from swecli.core.engine.command_tools import ToolRun
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.events import NoticeLevel
from tests.support.fake_session import FakeQuestions, FakeSession, Turn


class WriteFile:
    """The one tool there is. ``refuse`` is the user's word against writing, ``notes`` are those with which the user
    rejects the first calls."""

    def __init__(self) -> None:
        self.refuse = ""
        self.notes: list[str] = []
        self.written: list[tuple[str, str]] = []

    async def run(self, name: str, arguments: Mapping[str, object], *, typed: bool = False) -> ToolRun:
        assert name == "write_file"
        assert set(arguments) == {"path", "content"}
        if self.notes:
            return ToolRun("rejected", is_error=True, said=self.notes.pop(0))
        if self.refuse:
            return ToolRun(self.refuse, is_error=True)
        path, content = str(arguments["path"]), str(arguments["content"])
        await asyncio.to_thread(Path(path).write_text, content, "utf-8")
        self.written.append((path, content))
        return ToolRun("written", is_error=False)


class CommandSession(FakeSession):
    """``answer`` is what the model says (None: it failed)."""

    def __init__(self, cwd: Path = Path("/proj"), *, answer: str | None = None, model: bool = True) -> None:
        super().__init__(model=model)
        self.view.cwd = cwd
        self.questions = FakeQuestions(answer)
        self.inspection: Any = SimpleNamespace(next_removal=lambda: "")
        self.command_tools: Any = WriteFile()
        self.notices: list[str] = []

    def will_play(self, *turns: Turn) -> None:
        """What the model does with messages that commands send."""
        self._turns = list(turns)

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        self.notices.append(text)

    async def slash(self, line: str) -> str:
        """Run a command line; its text, or ``screen:NAME``."""
        invocation = parse(line)
        assert isinstance(invocation, CommandCall)
        result = await invocation.command.run(self, invocation.arguments)
        if result.screen:
            return f"screen:{result.screen}"
        told = [block for block in result.blocks if isinstance(block, TextBlock | TableBlock)]
        return "\n".join(line for block in told for line in block_lines(block))
