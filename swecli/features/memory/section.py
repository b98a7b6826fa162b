"""The memories in the system prompt: read once for a session, whole within a budget, the rest by name."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from swecli.core.context_management.counter import CountsTokens, PieceEstimator
from swecli.core.context_management.prompt import MemoryText
from swecli.core.context_management.prompts import framed, read_prompt
from swecli.core.protocol.budget import MEMORY
from swecli.core.protocol.context_events import PromptPart
from swecli.core.workspace.command_output import as_read
from swecli.features.memory.places import NOTES, ROOT, MemoryFile
from swecli.features.memory.session_notes import NotesDocument

LEAN_TOKENS = 250
"""Limit of all memories together for a small window."""
MARGIN = 1.3
"""Largest ratio of a model's tokens to estimated ones."""
_NAMED = 12


def memory_text(files: Sequence[MemoryFile], tokens: int) -> MemoryText:
    """The section for these files. It takes at most ``tokens`` tokens of any model."""
    usual, lean = (memory_section(files, most) for most in (tokens, min(tokens, LEAN_TOKENS)))
    return MemoryText(usual, lean, memory_sources(files))


def memory_sources(files: Sequence[MemoryFile]) -> tuple[PromptPart, ...]:
    """The files with their digests, except swecli's own notes, which change with every step."""
    counted = [file for file in files if file.text is not None and file.place.path != f"{ROOT}/{NOTES}"]
    return tuple(
        PromptPart(file.place.path, sha256((file.text or "").encode("utf-8", "replace")).hexdigest(), MEMORY)
        for file in counted
    )


def memory_section(files: Sequence[MemoryFile], tokens: int) -> str:
    """The session notes first, shortened if long, then whole files as far as they fit; the rest is named. Empty without
    files, or if not even a name fits. Equal files give equal bytes."""
    files = [file for file in files if file.text is None or _says_something(file.text)]
    if not files:
        return ""
    counter = PieceEstimator()
    left = int(tokens / MARGIN) - counter.count(read_prompt("memory"))
    ordered = sorted(files, key=lambda file: file.place.path != f"{ROOT}/{NOTES}")
    pointer = _pointer(ordered)
    reserve = counter.count(pointer)
    parts: list[str] = []
    others: list[MemoryFile] = []
    for file in ordered:
        part = _quoted(file, left - reserve, counter)
        if part:
            parts.append(part)
            left -= counter.count(part) + 2
        if not part or _CUT in part:
            others.append(file)
    while others and counter.count(_pointer(others)) > left:
        others.pop()
    if not parts and not others:
        return ""
    return "\n\n".join([read_prompt("memory"), *parts, *([_pointer(others)] if others else [])])


def _says_something(text: str) -> bool:
    """Whether a text has more than headings and comments."""
    return any(line.strip() and not line.startswith(("#", "<!--")) for line in text.splitlines())


_CUT = "(shortened; the memory tool shows all of it)"


def _quoted(file: MemoryFile, tokens: int, counter: CountsTokens) -> str:
    """The file in its frame, or empty if it does not fit."""
    if file.text is None:
        return ""
    if file.place.path != f"{ROOT}/{NOTES}":
        part = _framed(file, file.text)
        return part if counter.count(part) <= tokens else ""
    notes = NotesDocument(file.text).without_empty()
    part = _framed(file, notes.plain())
    most = notes.longest
    while counter.count(part) > tokens:
        most = most * 3 // 4 if most > 12 else most - 1
        if most <= 0:
            return ""
        notes.limit(most)
        part = _framed(file, f"{notes.without_empty().plain()}\n{_CUT}")
    return part


def _framed(file: MemoryFile, text: str) -> str:
    quoted = framed(as_read(text).strip())
    path = framed(file.place.path).replace('"', "'")
    return f'<memory path="{path}">\n{quoted}\n</memory>'


def _pointer(files: Sequence[MemoryFile]) -> str:
    names = [file.place.path for file in files[:_NAMED]]
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return f"Read these with the memory tool when they matter: {', '.join(names)}{more}." if names else ""
