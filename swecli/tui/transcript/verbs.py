"""What a tool call is called on the screen: a sign, a verb and its target."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_VERBS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "read_file": ("◇", "Read"),
        "write_file": ("✎", "Write"),
        "edit_file": ("✎", "Edit"),
        "apply_patch": ("✎", "Patch"),
        "list_files": ("▤", "List"),
        "search": ("⌕", "Search"),
        "run_command": ("$", "Run"),
        "update_todos": ("☑", "Todos"),
        "ask_user": ("?", "Ask"),
        "web_fetch": ("⇣", "Fetch"),
        "job": ("&", "Job"),
        "read_result": ("◇", "Read result"),
        "recall": ("↺", "Recall"),
        "compact_context": ("⊟", "Compact"),
    }
)
_TARGETS: Final = ("command", "path", "pattern", "query", "url", "question", "ref_id", "id", "name")
"""Arguments that tell best what a call is about, in this order."""
_PARTIAL: Final = re.compile(r'"(' + "|".join(_TARGETS) + r')"\s*:\s*("(?:[^"\\]|\\.)*"?)')
MAX_PARSED: Final = 100_000


def sign_and_verb(name: str) -> tuple[str, str]:
    """The sign and the verb of a tool; a tool without a verb is called by its name."""
    return _VERBS.get(name, ("•", name or "Tool"))


def call_title(name: str, title: str) -> str:
    """Verb and target in one phrase."""
    return f"{sign_and_verb(name)[1]} {title}".strip()


def target_of(arguments: str) -> str:
    """What a call is about, from its arguments' JSON text, which may be unfinished or invalid."""
    head = arguments[:MAX_PARSED]
    found: dict[str, str] = {}
    for match in _PARTIAL.finditer(head):
        value = match[2] if len(match[2]) > 1 and match[2].endswith('"') else match[2] + '"'
        try:
            found.setdefault(match[1], str(json.loads(value)))
        except ValueError:
            continue
    for key in _TARGETS:
        if found.get(key):
            return found[key]
    return ""
