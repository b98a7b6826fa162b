"""What stands in the view for a cleared result or for the arguments of a finished write."""

from __future__ import annotations

import json
from typing import Any, cast

from swecli.core.context_management.ledger import Entry, Ledger
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart

LINE = 120
"""Characters of a first or last line that a stub quotes."""
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
    arguments = arguments_of(part)
    value = next((arguments[name] for name in TARGETS if isinstance(arguments.get(name), str)), "")
    return _line(value)


def result_stub(entry: Entry, ledger: Ledger, tokens: int, reason: str = "cleared to make room") -> str:
    """Tool, target, size, first and last line, and how to get it back."""
    result = next((part for part in entry.parts if isinstance(part, ToolResultPart)), None)
    call = ledger.items[entry.item].call if entry.item in ledger.items else None
    lines = [line for line in result.text.splitlines() if line.strip()] if result else []
    about = f"{entry.source} {target_of(call)}".strip() if call else entry.source
    quoted = f' First line: "{_line(lines[0])}".' if lines else ""
    quoted += f' Last line: "{_line(lines[-1])}".' if len(lines) > 1 else ""
    return f"[{about}: result of {tokens:,} tokens, {len(lines)} lines, {reason}; id {entry.id}.{quoted}]"


def arguments_stub(entry: Entry, ledger: Ledger, tokens: int) -> str:
    """The arguments of a finished write or edit as a JSON object that says what they were about."""
    call = next(part for part in entry.parts if isinstance(part, ToolCallPart))
    record = ledger.items.get(entry.item)
    status = record.status if record else "unknown"
    stub = {"path": target_of(call), "cleared": f"{tokens:,} tokens; this call ended: {status}; id {entry.id}"}
    return json.dumps(stub, ensure_ascii=False)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else line[: LINE - 1] + "…"
