"""A change to one file, planned from its present bytes: shown, bound to them, and written only over them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from swecli.core.protocol.blocks import DiffBlock
from swecli.core.tools.base import ChangedFile, ToolContext
from swecli.core.workspace.atomic_write import atomic_delete, atomic_write
from swecli.core.workspace.line_diff import count_changes
from swecli.core.workspace.regular_file import FileState, read_bytes
from swecli.core.workspace.text_file import decode

MAX_FILE = 10_000_000
"""Bytes of a file that the file tools change."""
_WHOLE_DIFF = 200_000
"""Characters up to which both texts are shown whole; of longer ones the region that differs."""
_AROUND = 20


@dataclass(frozen=True, slots=True)
class FileChange:
    """``before`` is None and ``state`` too when the file does not exist; ``after`` is None when it is to go. ``mode``
    is that of a new file, where it comes from another one."""

    path: Path
    before: bytes | None
    after: bytes | None
    state: FileState | None
    note: str = ""
    mode: int | None = None
    tied: bool = False
    """Only together with the change before it: the other half of a move."""
    whole: bool = False
    """Only as a whole: its lines don't mix with those that are there."""

    @property
    def counts(self) -> tuple[int, int]:
        """Added and removed lines."""
        return count_changes(_text(self.before or b""), _text(self.after or b""))

    @property
    def detail(self) -> str:
        added, removed = self.counts
        return f"+{added} -{removed}"

    def block(self, ctx: ToolContext) -> DiffBlock:
        """The change as a diff; of a long text only the region around what differs."""
        old = None if self.before is None else _text(self.before)
        new = None if self.after is None else _text(self.after)
        notes = [self.note] if self.note else []
        if not any(self.path.is_relative_to(root) for root in (ctx.cwd, *ctx.roots)):
            notes.append("outside the workspace")
        if "\0" in (old or "") or "\0" in (new or ""):
            notes.append("binary")
        first = 1
        if old is not None and new is not None and len(old) + len(new) > _WHOLE_DIFF:
            old, new, first = _region(old, new)
            notes.append(f"from line {first} of a long file")
        return DiffBlock(ctx.display(self.path), old, new, ", ".join(notes), first_line=first)

    @property
    def fact(self) -> str:
        """What it does to the file, in bytes."""
        before, after = len(self.before or b""), len(self.after or b"")
        if self.before is None:
            return f"creates a file, {after:,} bytes"
        if self.after is None:
            return f"deletes a file, {before:,} bytes"
        verb = "overwrites" if self.note.startswith("overwrites") else "changes"
        return f"{verb} a file, {before:,} \u2192 {after:,} bytes"

    def write(self) -> ChangedFile:
        """Do it, if the file still is what it was when this was planned.

        Raises:
            StaleFileError: it is not.
            OSError: it can't be written.
        """
        before = self.state.sha256 if self.state else None
        if self.after is None:
            return ChangedFile(str(atomic_delete(self.path, before or "")), before, None)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        written = atomic_write(self.path, self.after, before)
        if self.mode is not None:
            written.path.chmod(self.mode)
        return ChangedFile(str(written.path), before, written.sha256)

    @property
    def changes_nothing(self) -> bool:
        return self.before == self.after


def present(path: Path) -> tuple[bytes, FileState] | None:
    """The file's bytes and state; None when there is no file.

    Raises:
        OSError: it is no regular file, too large, or can't be read.
    """
    try:
        return read_bytes(path, MAX_FILE)
    except FileNotFoundError:
        return None


def _text(data: bytes) -> str:
    return decode(data).text


def _region(old: str, new: str) -> tuple[str, str, int]:
    """Both texts from shortly before the first differing line to shortly after the last, and its first line."""
    before, after = old.split("\n"), new.split("\n")
    limit = min(len(before), len(after))
    start = next((index for index in range(limit) if before[index] != after[index]), limit)
    end = next((index for index in range(limit - start) if before[-1 - index] != after[-1 - index]), limit - start)
    start, end = max(0, start - _AROUND), max(0, end - _AROUND)
    return "\n".join(before[start : len(before) - end]), "\n".join(after[start : len(after) - end]), start + 1
