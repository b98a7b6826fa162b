"""The tools for small context windows: the six that the work can't be done without, described in one line each.

The others can still be called, by a model that is told of them in a result.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from swecli.core.llm.types import ToolSchema
from swecli.core.tools.registry import ToolRegistry

LEAN_TOOLS = ("edit_file", "list_files", "read_file", "run_command", "search", "write_file")
LEFT_OUT = ("apply_patch", "ask_user", "compact_context", "job", "read_result", "recall", "update_todos")


def lean_schemas(registry: ToolRegistry) -> tuple[ToolSchema, ...]:
    """What the model is told in a small window. Tools that did not come with swecli stay as they are."""
    return tuple(
        replace(schema, description=_text(schema.name)) if schema.name in LEAN_TOOLS else schema
        for schema in registry.schemas()
        if schema.name not in LEFT_OUT
    )


def _text(name: str) -> str:
    return (Path(__file__).parent / "descriptions" / "lean" / f"{name}.md").read_text(encoding="utf-8").strip()
