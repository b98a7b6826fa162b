"""The files that the agent works on, attached fresh from disk after a compaction so that it need not read again."""

from __future__ import annotations

import os
from hashlib import sha256
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
        attached = _attached(file.path, cwd)
        size = sizes.text(attached.text) if attached else 0
        if attached and size <= left:
            chosen.append(attached)
            left -= size
    return tuple(chosen)


def _attached(path: str, cwd: Path) -> Attachment | None:
    """The file as it is now; None where it is gone, empty, special, too large or no text."""
    try:
        place = (cwd / Path(os.path.expanduser(path))).resolve()
        data, _ = read_bytes(place, MOST_BYTES)
    except (OSError, NotRegularError, TooLargeError, ValueError, RuntimeError):
        return None
    if not data or b"\0" in data[:4096]:
        return None
    return Attachment(path, decode(data).text, str(place), sha256(data).hexdigest())
