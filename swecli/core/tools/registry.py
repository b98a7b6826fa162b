"""The tools of a session, by name, with their schemas for the model."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from swecli.core.llm.foreign_calls import advice_for, own_name
from swecli.core.llm.types import Profile, ToolSchema
from swecli.core.tools.apply_patch import ApplyPatch
from swecli.core.tools.base import AnyTool
from swecli.core.tools.edit_file import EditFile, WriteFile
from swecli.core.tools.read_file import ReadFile
from swecli.core.tools.read_result import ReadResult, Recall
from swecli.core.tools.run_command import TIMEOUT, JobTool, RunCommand
from swecli.core.tools.search import ListFiles, Search
from swecli.core.tools.session_tools import AskUser, CompactContextTool, UpdateTodos
from swecli.core.tools.web_fetch import WebFetch


def builtin_tools(command_timeout: float = TIMEOUT) -> tuple[AnyTool, ...]:
    """One of each tool. ``command_timeout``: default time limit of a command in seconds."""
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


@cache
def _families() -> Mapping[str, tuple[str, ...]]:
    text = Path(__file__).with_name("families.toml").read_text(encoding="utf-8")
    return {tool: tuple(str(pattern) for pattern in table["models"]) for tool, table in tomllib.loads(text).items()}


MOST_NAMED = 60
"""Maximum number of tool names in one sentence."""


def schema_of(tool: AnyTool) -> ToolSchema:
    return ToolSchema(tool.name, tool.description(), tool.schema(), tool.source)


class ToolRegistry:
    """The tools that a session begins with, and those of sources (an MCP server, a folder of skills) that come and go.
    A source is expected, then settled or dropped; the engine's ``OfferedTools`` records changes of its tools before the
    next request."""

    def __init__(
        self, tools: Iterable[AnyTool], spare: Iterable[AnyTool] = (), unoffered: Collection[str] = ()
    ) -> None:
        """``spare`` tools are available only to a session that began with them. The model does not see ``unoffered``
        ones, because this run can't use them; the user's commands can still call them."""
        self._unoffered = frozenset(unoffered)
        self._begin(tools)
        self._spare = {tool.name: tool for tool in spare if tool.name not in self._tools}
        self._sources: dict[str, dict[str, AnyTool]] = {}
        self._pending: dict[str, Callable[[], str]] = {}
        self._settled = asyncio.Event()
        self.revision = 0
        """Changes whenever a source changes."""

    def _begin(self, tools: Iterable[AnyTool]) -> None:
        self._tools = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        schemas = [schema_of(tool) for tool in self._tools.values() if tool.name not in self._unoffered]
        self._schemas = tuple(schema for schema in schemas if not is_special(schema.name))
        self._special = tuple(schema for schema in schemas if is_special(schema.name))

    def restore(self, names: Collection[str]) -> bool:
        """Offer a resumed session those of the ``CONDITIONAL`` tools that it began with, wherever it continues, so that
        its prefix stays byte-identical. A tool of a source that it began without is left out; the source brings it.
        True if that changes what is offered."""
        if not any(name in LEFT_OUT for name in names):
            return False  # the newest request was for a small window and tells nothing about the others
        present = [self._spare.pop(name) for name in names if name in self._spare]
        remaining = [tool for name, tool in self._tools.items() if not tool.source or name in names]
        unoffered = CONDITIONAL.difference(names)
        same = unoffered.intersection(self._tools) == self._unoffered.intersection(self._tools)
        if not present and same and len(remaining) == len(self._tools):
            return False
        self._unoffered = unoffered
        self._begin((*remaining, *present))
        return True

    # --- sources ----------------------------------------------------------------------------------------------

    @property
    def pending(self) -> frozenset[str]:
        """Expected sources whose tools are not known yet."""
        return frozenset(self._pending)

    def expect(self, source: str, wrote: Callable[[], str] = str) -> None:
        """Announce a source: the first request waits for it, and its tools from an earlier run stay known. ``wrote`` is
        what is known of its silence, as the end of a sentence."""
        self._pending[source] = wrote
        self._settled.clear()
        self.revision += 1

    def silence(self, source: str) -> str:
        """What is known of the silence of an expected source, as the end of a sentence."""
        wrote = self._pending.get(source)
        return wrote() if wrote is not None else ""

    def settle(self, source: str, tools: Iterable[AnyTool]) -> tuple[str, ...]:
        """Replace the tools of a source. Returns the names that other sources already have; those tools are left
        out."""
        by_name = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        taken = [name for name in by_name if name in self._tools or self._owner(name) not in (None, source)]
        for name in taken:
            del by_name[name]
        self._sources[source] = by_name
        self._arrived(source)
        return tuple(taken)

    def keep(self, source: str) -> None:
        """Expect nothing new of a source: its tools stay as they are."""
        self._arrived(source)

    def drop(self, source: str) -> None:
        """Remove a source and its tools."""
        self._sources.pop(source, None)
        self._arrived(source)

    def _arrived(self, source: str) -> None:
        self._pending.pop(source, None)
        self.revision += 1
        if not self._pending:
            self._settled.set()

    async def settled(self) -> None:
        """Return once no source is expected."""
        while self._pending:
            await self._settled.wait()

    def _owner(self, name: str) -> str | None:
        return next((source for source, tools in self._sources.items() if name in tools), None)

    def dynamic(self) -> tuple[AnyTool, ...]:
        """The tools of all sources: sources in order of first arrival, then tools by name."""
        return tuple(tool for tools in self._sources.values() for tool in tools.values())

    def selected(self, names: Collection[str]) -> ToolRegistry:
        """A new registry with those of the current tools that have one of these names."""
        registry = ToolRegistry(
            (tool for tool in self._tools.values() if tool.name in names), unoffered=self._unoffered
        )
        for source, tools in self._sources.items():
            if wanted := [tool for tool in tools.values() if tool.name in names]:
                registry.settle(source, wanted)
        return registry

    # --- all tools --------------------------------------------------------------------------------------------

    def get(self, name: str) -> AnyTool | None:
        """The tool with this name, otherwise the one with this alias."""
        own = self._tools.get(name) or self._tools.get(own_name(name))
        return own or next((tools[name] for tools in self._sources.values() if name in tools), None)

    def own_name(self, name: str) -> str:
        """The tool's own name for an alias; other names unchanged."""
        tool = self.get(name)
        return name if tool is None else tool.name

    def names(self) -> tuple[str, ...]:
        return (*self._tools, *(tool.name for tool in self.dynamic()))

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Schemas of the tools that the session began with, sorted by name, so that equal tools give equal bytes."""
        return self._schemas

    def special(self, model: str) -> tuple[ToolSchema, ...]:
        """Schemas of the special tools that a model, named with or without provider, gets."""
        name, families = model.lower().rpartition("/")[2], _families()
        return tuple(
            schema
            for schema in self._special
            if any(fnmatchcase(name, pattern) for pattern in families.get(schema.name, ()))
        )

    def nearest(self, name: str) -> str | None:
        near = get_close_matches(name.lower(), self.names(), 1, 0.5)
        return near[0] if near else None

    def unknown(self, name: str) -> str:
        advice, near = advice_for(name), self.nearest(name)
        hint = f" {advice}" if advice else f" Did you mean {near}?" if near else ""
        names = self.names()
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return f"Unknown tool {name!r}.{hint} Available: {', '.join(names[:MOST_NAMED])}{more}."


LEAN_TOOLS = ("compact_context", "edit_file", "read_file", "read_result", "run_command", "search", "write_file")
MINIMAL_TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "edit_file": ("path", "old_string", "new_string"),
        "read_file": ("path", "offset", "limit"),
        "run_command": ("command",),
        "write_file": ("path", "content"),
    }
)
"""The tools of the minimal profile with their parameters. A reference to a stored result names the tool that reads it,
which a model may call all the same."""
LEFT_OUT = (
    *("apply_patch", "ask_user", "job", "list_files", "locate", "memory", "recall"),
    *("scratchpad", "symbols", "task", "update_todos", "web_fetch", "web_search"),
)
CONDITIONAL = frozenset(("ask_user", "locate", "memory", "symbols"))
"""Tools that only some runs can use: with a user to answer, in a trusted folder, with an index or a language server. A
session keeps those that it began with."""
WITHOUT: Mapping[str, tuple[str, ...]] = MappingProxyType({"edit_file": ("edits",), "run_command": ("background",)})
"""Parameters not offered to the model: a second form of others, or ones that require another tool."""
REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType({"edit_file": ("path", "old_string", "new_string")})
"""Parameters that become required without the alternative forms."""


def small_schemas(registry: ToolRegistry) -> Mapping[Profile, tuple[ToolSchema, ...]]:
    """Schemas for the smaller profiles. Tools from other sources stay as they are."""
    lean = tuple(
        replace(schema, description=_text("lean", schema.name), parameters=_parameters(schema))
        if schema.name in LEAN_TOOLS
        else schema
        for schema in registry.schemas()
        if schema.name not in LEFT_OUT
    )
    minimal = (
        replace(schema, description=_text("minimal", schema.name), parameters=_named_only(schema, MINIMAL_TOOLS))
        if schema.name in MINIMAL_TOOLS
        else schema
        for schema in lean
        if schema.name in MINIMAL_TOOLS or schema.name not in LEAN_TOOLS
    )
    return {"lean": lean, "minimal": tuple(minimal)}


def _text(profile: Profile, name: str) -> str:
    return (Path(__file__).parent / "descriptions" / profile / f"{name}.md").read_text(encoding="utf-8").strip()


def _named_only(schema: ToolSchema, names: Mapping[str, tuple[str, ...]]) -> Mapping[str, Any]:
    """The parameters with these names, by their types alone."""
    known: Mapping[str, Any] = schema.parameters["properties"]
    properties = {name: {"type": known[name]["type"]} for name in names[schema.name]}
    return {**schema.parameters, "properties": properties}


def _parameters(schema: ToolSchema) -> Mapping[str, Any]:
    without = WITHOUT.get(schema.name, ())
    if not without:
        return schema.parameters
    known: Mapping[str, Any] = schema.parameters["properties"]
    properties = {name: known[name] for name in known if name not in without}
    required = REQUIRED.get(schema.name, schema.parameters.get("required", ()))
    return {**schema.parameters, "properties": properties, "required": list(required)}
