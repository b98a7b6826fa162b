"""What stands in the view for a cleared result or for the arguments of a finished call."""

from __future__ import annotations

import json
from typing import Any, cast

from swecli.core.context_management.ledger import Entry
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart

LINE = 120
"""Characters of what a call was about."""
QUOTED = 60
"""Characters that a stub quotes of a line or an argument: long sessions hold thousands of stubs."""
QUOTED_FROM = 300
"""Tokens of a result from which on its stub quotes it."""
NEWLINE = "\n"
TARGETS = ("path", "command", "pattern", "query", "url")
"""Arguments that tell what a call was about, in order of preference."""


def arguments_of(part: ToolCallPart) -> dict[str, Any]:
    """The call's arguments; empty where they are no JSON object."""
    try:
        data = json.loads(part.arguments)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def target_of(part: ToolCallPart) -> str:
    """What the call was about, on one line."""
    return next(iter(_target(part).values()), "")


def result_stub(entry: Entry, tokens: int, reason: str = "cleared") -> str:
    """Size and how to get it back, lines and both ends of a longer one. The call before it tells what it was about."""
    result = next((part for part in entry.parts if isinstance(part, ToolResultPart)), None)
    if result is None or tokens < QUOTED_FROM:
        return f"[{reason}: {tokens:,} tokens; id {entry.id}]"
    text = result.text.strip()
    ends = f'"{_line(text.partition(NEWLINE)[0], QUOTED)}"'
    lines = text.count(NEWLINE) + 1
    if lines > 1:
        ends += f' … "{_line(text.rpartition(NEWLINE)[2], QUOTED)}"'
    return f"[{reason}: {tokens:,} tokens, {lines:,} lines; id {entry.id}: {ends}]"


def arguments_stub(entry: Entry, tokens: int) -> str:
    """The arguments of a finished call as a JSON object that says what they were about. Its result tells the rest."""
    call = next(part for part in entry.parts if isinstance(part, ToolCallPart))
    return json.dumps({**_target(call, QUOTED), "cleared": f"{tokens:,} tokens; id {entry.id}"}, ensure_ascii=False)


def _target(part: ToolCallPart, longest: int = LINE) -> dict[str, str]:
    """The argument that tells what the call was about, on one line; empty where none does."""
    arguments = arguments_of(part)
    name = next((name for name in TARGETS if isinstance(arguments.get(name), str)), None)
    return {name: _line(arguments[name], longest)} if name else {}


def _line(text: str, longest: int = LINE) -> str:
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
