"""Names of swecli's tools, modes and texts in the protocol. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

from swecli.core.llm.foreign_calls import stored_arguments
from swecli.core.protocol.messages import ToolCallPart
from swecli.figures import cut
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line, sanitise, without_sequences

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]

TOOLS: Final[Mapping[str, tuple[ToolKind, str]]] = {
    "read_file": ("read", "Read"),
    "list_files": ("search", "List"),
    "search": ("search", "Search"),
    "symbols": ("search", "Symbols"),
    "locate": ("search", "Locate"),
    "edit_file": ("edit", "Edit"),
    "write_file": ("edit", "Write"),
    "apply_patch": ("edit", "Patch"),
    "run_command": ("execute", "Run"),
    "shell": ("execute", "Run"),
    "job": ("execute", "Job"),
    "web_fetch": ("fetch", "Fetch"),
    "web_search": ("fetch", "Search the web"),
    "cited_sources": ("fetch", "Sources"),
    "update_todos": ("think", "Todos"),
    "scratchpad": ("think", "Scratchpad"),
    "memory": ("edit", "Memory"),
    "compact_context": ("think", "Compact the context"),
    "recall": ("search", "Recall"),
    "read_result": ("read", "Read result"),
    "ask_user": ("other", "Ask"),
}

LONGEST_TITLE = 300
LONGEST_TEXT = 30_000
"""Characters of one text in a tool call; the rest is in the session."""

_COLOURS = lazy_pattern(r"(\x1b\[[0-9;:]*m|\r)")
_CUT_OFF = lazy_pattern(r"\x1b(?:\[[0-9;:]*)?\Z")


def tool_kind(name: str) -> ToolKind:
    return TOOLS.get(name, ("other", ""))[0]


def tool_title(name: str, target: str) -> str:
    """One line: action and target. A command appears alone, as code."""
    kind, verb = TOOLS.get(name, ("other", name.replace("__", " ").replace("_", " ")))
    line = one_line(target)
    if kind == "execute" and line and name != "job":
        return f"`{line.replace('`', chr(0x2BB))}`"
    return f"{verb} {line}".strip()


def one_line(text: str) -> str:
    return cut(str(safe_line(without_sequences(text.strip()))), LONGEST_TITLE)


def shown(text: str) -> str:
    """Text for people without escape sequences; control characters become visible stand-ins."""
    return "\t".join(sanitise(part) for part in without_sequences(text).split("\t"))


def coloured(text: str) -> str:
    """Text for a terminal of the client: colours and returns to the line's start stay, no other sequence does."""
    parts = _COLOURS.split(text.replace("\r\n", "\n"))  # every second one is a separator
    return "".join(part if at % 2 else shown(part) for at, part in enumerate(parts))


def whole_sequences(text: str) -> tuple[str, str]:
    """The text up to an escape sequence that its end cuts off, and that."""
    cut = _CUT_OFF.search(text)
    return (text, "") if cut is None else (text[: cut.start()], cut.group())


def fenced(text: str, language: str = "") -> str:
    """The text as a code block that nothing in it can end."""
    runs = "".join(mark if mark == "`" else " " for mark in text).split()
    longest = max(map(len, runs), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def arguments_of(call: ToolCallPart) -> dict[str, Any]:
    """The arguments of a call; empty if they are not a JSON object."""
    return {key: clean(value) for key, value in stored_arguments(call.name, call.arguments).items()}


def clean(value: Any) -> Any:
    """The value without lone surrogates, which are invalid on the wire."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {clean(str(key)): clean(entry) for key, entry in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [clean(entry) for entry in cast("list[Any]", value)]
    return value


def absolute(path: str, cwd: Path) -> str:
    return clean(str(cwd / path))
