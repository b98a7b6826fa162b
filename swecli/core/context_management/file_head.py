"""The beginning of a file of the project, whatever the project put there."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from swecli.core.workspace.regular_file import open_regular


@dataclass(frozen=True, slots=True)
class FileHead:
    """``text`` is decoded as UTF-8, undecodable bytes replaced, line ends as ``\\n``. ``size`` is the bytes of
    the whole file; ``whole`` says whether ``text`` is all of it. ``digest`` is the SHA-256 of what was read."""

    text: str
    size: int
    whole: bool
    digest: str


class OutsideError(OSError):
    """A symbolic link leads out of the project."""


def read_head(path: Path, limit: int, within: Path | None = None) -> FileHead:
    """Read at most ``limit`` bytes of a regular file. A link may not lead out of ``within``.

    Raises:
        OutsideError: the file is outside of ``within``.
        OSError: there is no such file, or it can't be read.
    """
    resolved = Path(os.path.realpath(path))
    if within is not None and not resolved.is_relative_to(os.path.realpath(within)):
        raise OutsideError(f"{path.name} is a link to a file outside of the project")
    with open_regular(resolved) as (descriptor, status):
        data = _read(descriptor, limit + 1)
    whole = len(data) <= limit
    data = data[:limit]
    text = data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8", "replace")
    if not whole:
        # The cut may be inside a character or a line; only whole lines are of use.
        text = text[: text.rfind("\n") + 1] or text.rstrip("\ufffd")
    return FileHead(
        text.replace("\r\n", "\n").replace("\r", "\n"), status.st_size, whole, hashlib.sha256(data).hexdigest()
    )


def _read(descriptor: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(descriptor, min(limit, 65_536))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)
