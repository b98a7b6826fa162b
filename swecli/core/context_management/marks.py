"""Marks that mean something to the model, made harmless where they come from outside: a summary, a file or the output
of a command must not close its frame, nor speak as the user or as the program. Pure."""

from __future__ import annotations

import re

_NOTE = re.compile(r"<(?=\s*/?\s*swecli-note\b)", re.IGNORECASE)
_FRAME = re.compile(
    r"<(?=\s*/?\s*(?:compacted|swecli-note|summary-so-far)\b|/?(?:file|environment|conversation)(?:[\s>/]|$))",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"^(\s*)\[(?=[a-z]\d+\])", re.MULTILINE)
_HEADING = re.compile(
    r"^#(?=\s+(?:Earlier messages of the user|Summary|What the user asked|State, from the record)\b)",
    re.MULTILINE | re.IGNORECASE,
)


def without_notes(text: str) -> str:
    """The text without marks of the program's own notes, which the model trusts at the end of a conversation."""
    if "note" not in text and "NOTE" not in text and "Note" not in text:  # quicker than to look for all cases
        return text
    return _NOTE.sub(r"<\\", text) if _NOTE.search(text) else text


def harmless(text: str) -> str:
    """The text without anything that a package of a compaction gives a meaning: its frames and headings, and the ids
    that stand before messages of the user."""
    if "<" in text:
        text = _FRAME.sub(r"<\\", text)
    return _HEADING.sub(r"\\#", _QUOTE.sub(r"\1\\[", text))
