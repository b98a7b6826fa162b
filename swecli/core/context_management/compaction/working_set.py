"""The files that the agent works on, attached fresh from disk after a compaction so that it need not read again."""

from __future__ import annotations

from pathlib import Path

from swecli.core.context_management.compaction.package import Attachment
from swecli.core.context_management.compaction.sizes import EntrySizes
from swecli.core.context_management.compaction.state_block import calls, touched_files
from swecli.core.context_management.compaction.stubs import arguments_of
from swecli.core.context_management.ledger import Ledger
from swecli.core.workspace.regular_file import NotRegularError, TooLargeError, read_bytes
from swecli.core.workspace.text_file import decode

MOST_FILES = 3
MOST_BYTES = 200_000


def attachments(ledger: Ledger, cwd: Path, sizes: EntrySizes, allowance: int) -> tuple[Attachment, ...]:
    """Up to three files that were edited, or read more than once, newest first, within ``allowance`` tokens.

    Reads the disk: not for the event loop.
    """
    reads: dict[str, int] = {}
    for record, call in calls(ledger):
        path = arguments_of(call).get("path")
        if record.name == "read_file" and isinstance(path, str):
            reads[path] = reads.get(path, 0) + 1
    chosen: list[Attachment] = []
    left = allowance
    for file in reversed(touched_files(ledger)):
        edited = "edited" in file.operations or "written" in file.operations
        if len(chosen) == MOST_FILES or not (edited or reads.get(file.path, 0) > 1):
            continue
        text = _text(cwd / file.path)
        size = sizes.text(text) if text else 0
        if text and size <= left:
            chosen.append(Attachment(file.path, text))
            left -= size
    return tuple(chosen)


def _text(path: Path) -> str:
    """The file's text; empty where it is gone, special, too large or no text."""
    try:
        data, _ = read_bytes(path, MOST_BYTES)
    except (OSError, NotRegularError, TooLargeError, ValueError):
        return ""
    return "" if b"\0" in data[:4096] else decode(data).text
