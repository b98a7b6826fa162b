"""The tools for small context windows: six, described in one line each and without what the work can do without.

Whatever stands in the context must lead somewhere with these: a reference to a stored result and the stub of what was
cleared are read with ``read_result``, which takes the ids of both. Names of files come from commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from swecli.core.llm.types import ToolSchema
from swecli.core.tools.registry import ToolRegistry

LEAN_TOOLS = ("edit_file", "read_file", "read_result", "run_command", "search", "write_file")
LEFT_OUT = ("apply_patch", "ask_user", "compact_context", "job", "list_files", "recall", "update_todos", "web_fetch")
WITHOUT: Mapping[str, tuple[str, ...]] = MappingProxyType({"edit_file": ("edits",), "run_command": ("background",)})
"""Parameters that the model is not told of: a second form of the same, and what would need a seventh tool."""
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
