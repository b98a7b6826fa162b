"""Texts for the model, as plain text files beside this module, and marks that have a meaning for it.

Marks from outside are neutralised: a summary, a file or the output of a command must not close its frame, nor pass for
the user or the program.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

from swecli.core.llm.types import Profile
from swecli.core.protocol.events import Mode
from swecli.lazy_pattern import lazy_pattern

PromptName = Literal[
    "base",
    "compaction",
    "lean",
    "minimal",
    "mode_plan",
    "mode_auto",
    "headless",
    "instructions",
    "instructions_rules",
    "init_system",
    "retrieval",
    "review",
    "commit_system",
    "memory",
    "subagent",
    "aside",
]

POINTERS = "Places in this project that fit the message by their words (an index, no judgement; look before you rely):"
"""The first line of a note with pointers, which identifies it: it belongs to one message and leaves with it."""
LEAN_WINDOW = 16_384
"""Context windows up to this many tokens get the lean prompt."""
MINIMAL_WINDOW = 4_096
"""Up to this many tokens, the minimal one."""


@cache
def read_prompt(name: PromptName) -> str:
    return Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def profile_for(window: int, chosen: Profile | None = None) -> Profile:
    """The user's profile for a model, otherwise the one for its window in tokens."""
    if chosen is not None:
        return chosen
    return "minimal" if window <= MINIMAL_WINDOW else "lean" if window <= LEAN_WINDOW else "full"


def system_prompt(profile: Profile) -> str:
    return read_prompt("base" if profile == "full" else profile)


def mode_note(mode: Mode) -> str:
    """The tail's note on the permission mode; empty if the model need not know."""
    if mode == "plan":
        return read_prompt("mode_plan")
    return read_prompt("mode_auto") if mode == "auto" else ""


def note(text: str) -> str:
    """``text`` marked as coming from the program rather than from the user."""
    return f"<swecli-note>\n{text}\n</swecli-note>"


SUMMARY_MARK = "<compacted"
"""Beginning of the text that replaces older messages."""
ATTACHED_NOTE = "[Attached by "
"""Beginning of a message's attachment: a file that it names, with or without ``@``."""


def is_pointers(text: str) -> bool:
    """Whether a note has pointers."""
    return text.startswith(_POINTERS)


def is_report(text: str) -> bool:
    """Whether a note is a background subagent's report."""
    return REPORT.match(text) is not None


def unmarked(text: str) -> str:
    """The original text of a ``note``."""
    return text.removeprefix("<swecli-note>\n").removesuffix("\n</swecli-note>")


REPORT = lazy_pattern(r"<swecli-note>\n\[(\S+) \(")
"""Beginning of a background subagent's report in the form of a note, with the subagent's id."""
_POINTERS = note(POINTERS).removesuffix("\n</swecli-note>")
_NOTE = lazy_pattern(r"<(?=\s*/?\s*swecli-note\b)", re.IGNORECASE)
_FRAME = lazy_pattern(
    r"<(?=\s*/?\s*(?:compacted|swecli-note|summary-so-far)\b|/?(?:file|environment|conversation)(?:[\s>/]|$))",
    re.IGNORECASE,
)
_QUOTE = lazy_pattern(r"^(\s*)\[(?=[a-z]\d+\])", re.MULTILINE)
_HEADING = lazy_pattern(
    r"^#(?=\s+(?:Earlier messages of the user|Summary|What the user asked|State, from the record|Notes of swecli)\b)",
    re.MULTILINE | re.IGNORECASE,
)


def without_notes(text: str) -> str:
    """The text without imitations of the program's own notes, which the model trusts at the end of a conversation."""
    if "note" not in text and "NOTE" not in text and "Note" not in text:  # quicker than a search for all cases
        return text
    return _NOTE.sub(r"<\\", text) if _NOTE.search(text) else text


def harmless(text: str) -> str:
    """The text without anything that has a meaning in a compaction's package: its frames and headings, and the ids
    before user messages."""
    if "<" in text:
        text = _FRAME.sub(r"<\\", text)
    return _HEADING.sub(r"\\#", _QUOTE.sub(r"\1\\[", text))


_SECTION_FRAME = lazy_pattern(r"<(?=\s*/?\s*(?:memory|instructions|quoted)\b)", re.IGNORECASE)


def framed(text: str) -> str:
    """The text in safe form for a frame of the system prompt: it can neither end it nor begin another."""
    return _SECTION_FRAME.sub(r"<\\", harmless(text))
