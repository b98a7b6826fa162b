"""What a session changed in files, from the first recorded change of each path to the last."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from swecli.core.checkpoints import journal
from swecli.core.checkpoints.blobs import stored
from swecli.core.checkpoints.image import Image
from swecli.core.checkpoints.journal import Operation
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.workspace.text_file import decode

MOST_FILES = 200
"""Files whose texts are read."""
MOST_BYTES = 1_000_000
"""Bytes of one text that is shown; a larger one is only named."""


@dataclass(frozen=True, slots=True)
class Difference:
    """``files`` are changed files by path (absolute), ``more`` is how many there are beyond them. ``reason`` says why
    nothing is known, where that is so."""

    files: tuple[DiffBlock, ...] = ()
    more: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """One path before the first and after the last change of it."""

    path: str
    before: Image
    after: Image


def spans(operations: Iterable[Operation]) -> list[Span]:
    """``operations`` newest first. Paths that are again what they were are left out, and so are folders: their files
    tell."""
    found: dict[str, Span] = {}
    for operation in operations:
        for change in operation.active:
            later = found.get(change.path)
            found[change.path] = Span(change.path, change.before, later.after if later else change.after)
    changed = (span for span in found.values() if not span.before.same(span.after))
    return sorted(
        (span for span in changed if {span.before.kind, span.after.kind} != {"absent", "folder"}),
        key=lambda span: span.path,
    )


def difference(connection: sqlite3.Connection, session: str) -> Difference:
    """What a session changed and did not take back."""
    found = spans(journal.operations(connection, session, ("edit", "command")))
    files = tuple(_block(connection, span) for span in found[:MOST_FILES])
    return Difference(files, len(found) - len(files))


def _block(connection: sqlite3.Connection, span: Span) -> DiffBlock:
    old, why_old = _text(connection, span.before)
    new, why_new = _text(connection, span.after)
    note = why_new or why_old
    if note:  # without one of the texts no line of the other is known to have changed
        old, new = (None if image.kind == "absent" else "" for image in (span.before, span.after))
    elif old == new:
        note = f"mode {span.before.mode:o} is now {span.after.mode:o}"
    return DiffBlock(span.path, old, new, note)


def _text(connection: sqlite3.Connection, image: Image) -> tuple[str | None, str]:
    """The text of a file, and why it is not shown; None where there was no file."""
    if image.kind == "absent":
        return None, ""
    if image.kind == "link":
        return None, f"a link to {image.target}"
    if image.kind != "file":
        return None, image.note or f"a {image.kind}"
    if not image.kept:
        return None, image.note or "its text was not stored"
    data = stored(connection, image.content)
    if data is None:
        return None, "its text is not stored any more"
    if len(data) > MOST_BYTES:
        return None, f"{len(data):,} bytes, too large to be shown"
    text = decode(data)
    return (None, f"binary, {len(data):,} bytes") if text.looks_binary else (text.text, "")
