"""Aliases for tools: models that learned other agents' tool names call ours by them."""

from __future__ import annotations

from types import MappingProxyType

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
        "agent": "task",
        "webfetch": "web_fetch",
        "fetch": "web_fetch",
    }
)
"""Keys are lower case."""


def own_name(name: str) -> str:
    """Our name for the tool that a model calls ``name``."""
    name = name.strip()
    return ALIASES.get(name.lower(), name)
