"""The tools of a session: found by name, described for the model."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from swecli.core.llm.types import ToolSchema
from swecli.core.tools.apply_patch import ApplyPatch
from swecli.core.tools.base import AnyTool, compact_schema
from swecli.core.tools.edit_file import EditFile, WriteFile
from swecli.core.tools.read_file import ReadFile
from swecli.core.tools.read_result import ReadResult, Recall
from swecli.core.tools.run_command import TIMEOUT, JobTool, RunCommand
from swecli.core.tools.search import ListFiles, Search
from swecli.core.tools.session_tools import AskUser, CompactContextTool, UpdateTodos
from swecli.core.tools.web_fetch import WebFetch


def builtin_tools(command_timeout: float = TIMEOUT) -> tuple[AnyTool, ...]:
    """One of each. ``command_timeout``: seconds that a command may run unless the model asks for another limit."""
    return (
        ApplyPatch(),
        AskUser(),
        CompactContextTool(),
        EditFile(),
        JobTool(),
        ListFiles(),
        ReadFile(),
        ReadResult(),
        Recall(),
        RunCommand(command_timeout),
        Search(),
        UpdateTodos(),
        WebFetch(),
        WriteFile(),
    )


def is_special(tool: str) -> bool:
    return tool in _families()


def is_offered(tool: str, model: str) -> bool:
    """Whether a model, given by its name with or without provider, is told of a special tool."""
    name = model.lower().rpartition("/")[2]
    return any(fnmatchcase(name, pattern) for pattern in _families().get(tool, ()))


@cache
def _families() -> Mapping[str, tuple[str, ...]]:
    text = files("swecli.core.tools").joinpath("families.toml").read_text(encoding="utf-8")
    return {tool: tuple(str(pattern) for pattern in table["models"]) for tool, table in tomllib.loads(text).items()}


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
    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        schemas = [
            ToolSchema(tool.name, tool.description(), compact_schema(tool.params), tool.source)
            for tool in self._tools.values()
        ]
        self._schemas = tuple(schema for schema in schemas if not is_special(schema.name))
        self._special = tuple(schema for schema in schemas if is_special(schema.name))

    def get(self, name: str) -> AnyTool | None:
        """The tool of this name, or of this alias where no tool has the name itself."""
        return self._tools.get(name) or self._tools.get(ALIASES.get(name.strip().lower(), name.strip()))

    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """What the model is told, sorted by name: the same tools always give the same bytes."""
        return self._schemas

    def special(self, model: str) -> tuple[ToolSchema, ...]:
        return tuple(schema for schema in self._special if is_offered(schema.name, model))

    def nearest(self, name: str) -> str | None:
        near = get_close_matches(name.lower(), self._tools, 1, 0.5)
        return near[0] if near else None

    def unknown(self, name: str) -> str:
        near = self.nearest(name)
        hint = f" Did you mean {near}?" if near else ""
        return f"There is no tool named {name!r}.{hint} Available: {', '.join(self._tools)}."


LEAN_TOOLS = ("compact_context", "edit_file", "read_file", "read_result", "run_command", "search", "write_file")
LEFT_OUT = ("apply_patch", "ask_user", "job", "list_files", "recall", "update_todos", "web_fetch")
WITHOUT: Mapping[str, tuple[str, ...]] = MappingProxyType({"edit_file": ("edits",), "run_command": ("background",)})
"""Parameters that the model is not told of: a second form of the same, and what would need one more tool."""
REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType({"edit_file": ("path", "old_string", "new_string")})
"""Where fewer forms make more parameters necessary."""


def lean_schemas(registry: ToolRegistry) -> tuple[ToolSchema, ...]:
    """What the model is told in a small window. Tools that did not come with swecli stay as they are."""
    return tuple(
        replace(schema, description=_text(schema.name), parameters=_parameters(schema))
        if schema.name in LEAN_TOOLS
        else schema
        for schema in registry.schemas()
        if schema.name not in LEFT_OUT
    )


def _text(name: str) -> str:
    return (Path(__file__).parent / "descriptions" / "lean" / f"{name}.md").read_text(encoding="utf-8").strip()


def _parameters(schema: ToolSchema) -> Mapping[str, Any]:
    without = WITHOUT.get(schema.name, ())
    if not without:
        return schema.parameters
    known: Mapping[str, Any] = schema.parameters["properties"]
    properties = {name: known[name] for name in known if name not in without}
    required = REQUIRED.get(schema.name, schema.parameters.get("required", ()))
    return {**schema.parameters, "properties": properties, "required": list(required)}
