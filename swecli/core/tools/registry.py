"""The tools of a session: found by name, described for the model."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from types import MappingProxyType

from swecli.core.llm.types import ToolSchema
from swecli.core.tools.base import AnyTool
from swecli.core.tools.families import is_offered, is_special
from swecli.core.tools.schema import compact_schema

ALIASES = MappingProxyType(
    {
        "bash": "run_command",
        "shell": "run_command",
        "execute_command": "run_command",
        "exec": "run_command",
        "read": "read_file",
        "view": "read_file",
        "cat": "read_file",
        "edit": "edit_file",
        "str_replace": "edit_file",
        "write": "write_file",
        "create_file": "write_file",
        "grep": "search",
        "search_files": "search",
        "glob": "list_files",
        "ls": "list_files",
        "list": "list_files",
        "list_dir": "list_files",
        "list_directory": "list_files",
        "todowrite": "update_todos",
        "todo_write": "update_todos",
        "askuserquestion": "ask_user",
        "webfetch": "web_fetch",
        "fetch": "web_fetch",
    }
)
"""Names of other agents for our tools, in lower case."""


class ToolRegistry:
    """An immutable set of tools."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        schemas = [
            ToolSchema(tool.name, tool.description(), compact_schema(tool.params)) for tool in self._tools.values()
        ]
        self._schemas = tuple(schema for schema in schemas if not is_special(schema.name))
        self._special = tuple(schema for schema in schemas if is_special(schema.name))

    def get(self, name: str) -> AnyTool | None:
        """The tool of this name, or of this alias where no tool has the name itself."""
        return self._tools.get(name) or self._tools.get(ALIASES.get(name.strip().lower(), name.strip()))

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(self._tools)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """What the model is told, sorted by name: the same tools always give the same bytes."""
        return self._schemas

    def special(self, model: str) -> tuple[ToolSchema, ...]:
        """What only this model is told besides, because it was trained on it."""
        return tuple(schema for schema in self._special if is_offered(schema.name, model))

    def nearest(self, name: str) -> str | None:
        """The known name that is most like ``name``."""
        near = get_close_matches(name.lower(), self._tools, 1, 0.5)
        return near[0] if near else None

    def unknown(self, name: str) -> str:
        """The error for a call of a tool that does not exist."""
        near = self.nearest(name)
        hint = f" Did you mean {near}?" if near else ""
        return f"There is no tool named {name!r}.{hint} Available: {', '.join(self._tools)}."
