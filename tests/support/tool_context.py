"""A tool context for tests: a folder, nobody to ask unless answers are given, and a todo list."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.request_events import Question
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import AnyTool, Params, Preview, ToolContext, ToolOutcome
from swecli.core.tools.registry import ToolRegistry, builtin_tools
from swecli.core.workspace.process import scrubbed_environment


@dataclass
class FixedAnswers:
    """An asker that always gives the same answers."""

    answers: tuple[tuple[str, ...], ...] | None = None
    asked: list[Question] = field(default_factory=list[Question])

    async def ask(self, item: str, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...] | None:
        self.asked.extend(questions)
        return self.answers


class ToolBench:
    """Calls the built-in tools as a session does: raw JSON, effects, preview, run."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.asker = FixedAnswers()
        self.todos: tuple[Todo, ...] = ()
        self.shown: list[str] = []
        self.registry = ToolRegistry(builtin_tools())
        self.context = ToolContext(
            "t1",
            self.folder,
            (self.folder,),
            self.shown.append,
            self.asker,
            self._set_todos,
            scrubbed_environment(os.environ),
        )

    def _set_todos(self, todos: tuple[Todo, ...]) -> None:
        self.todos = todos

    def parsed(self, name: str, **arguments: object) -> tuple[AnyTool, Params]:
        tool = self.registry.get(name)
        assert tool is not None
        return tool, parse_arguments(json.dumps(arguments), tool)

    async def call(self, name: str, **arguments: object) -> ToolOutcome:
        tool, params = self.parsed(name, **arguments)
        return await tool.run(params, self.context)

    async def preview(self, name: str, **arguments: object) -> Preview:
        tool, params = self.parsed(name, **arguments)
        return await tool.preview(params, self.context)

    def file(self, name: str, data: bytes | str = b"") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path
