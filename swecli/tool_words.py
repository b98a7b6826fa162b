"""Display words for tools: on their transcript line, while they run, and in approval questions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct


class ToolWords(Struct, frozen=True):
    """``sign`` and ``verb`` begin the tool's line, ``doing`` describes it while it runs. ``question`` starts its
    approval question, including the object; if empty, the tool's name is used."""

    sign: str
    verb: str
    doing: str
    question: str = ""


OWN_COMMAND: Final = "!"
"""Key of the user's own command, which is no tool."""

TOOL_WORDS: Final[Mapping[str, ToolWords]] = MappingProxyType(
    {
        "read_file": ToolWords("◇", "Read", "Reading", "Read this file?"),
        "write_file": ToolWords("✎", "Write", "Writing", "Write this file?"),
        "edit_file": ToolWords("✎", "Edit", "Editing", "Make this change?"),
        "apply_patch": ToolWords("✎", "Patch", "Editing", "Make these changes?"),
        "list_files": ToolWords("▤", "List", "Listing", "List these files?"),
        "search": ToolWords("⌕", "Search", "Searching", "Search here?"),
        "symbols": ToolWords("⌕", "Symbols", "Looking up"),
        "locate": ToolWords("⌕", "Locate", "Locating"),
        "run_command": ToolWords("$", "Run", "Running", "Run this command?"),
        "update_todos": ToolWords("☑", "Todos", "Planning"),
        "ask_user": ToolWords("?", "Ask", "Asking"),
        "web_fetch": ToolWords("⇣", "Fetch", "Fetching"),
        "web_search": ToolWords("⌕", "Search the web", "Searching the web", "Search the web?"),
        "cited_sources": ToolWords("⌕", "Sources", "Collecting sources"),
        "job": ToolWords("&", "Job", "Looking at job"),
        "read_result": ToolWords("◇", "Read result", "Reading result"),
        "recall": ToolWords("↺", "Recall", "Recalling"),
        "task": ToolWords("◆", "Task", "Working on task"),
        "tool_search": ToolWords("⌕", "Find tools", "Finding tools"),
        "skill": ToolWords("✦", "Skill", "Reading skill"),
        "memory": ToolWords("✦", "Memory", "Remembering", "Change the memory?"),
        "scratchpad": ToolWords("✎", "Scratchpad", "Noting"),
        OWN_COMMAND: ToolWords("!", "", "Running"),
        "compact_context": ToolWords("⊟", "Compact", "Compacting"),
    }
)


def words_for(tool: str) -> ToolWords:
    """Words for a tool; a tool without any is called by its name."""
    return TOOL_WORDS.get(tool) or ToolWords("•", tool or "Tool", tool)


def call_title(tool: str, title: str) -> str:
    """Verb and target in one phrase."""
    return f"{words_for(tool).verb} {title}".strip()
