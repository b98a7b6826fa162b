"""What was at a path at one moment: enough to compare it with what is there now, and to put it back."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Literal

from swecli.core.workspace.regular_file import READ_FLAGS, read_all

Kind = Literal["absent", "file", "link", "folder", "other"]
Keep = Callable[[bytes, str], bool]
"""Stores the bytes of a file under their hash; False where there is no room for them."""


@dataclass(frozen=True, slots=True)
class Image:
    """One path. ``other`` is what is never put back: a pipe, a device, a folder that is not looked into."""

    kind: Kind
    mode: int = 0
    """Permission bits; 0 for links, whose bits mean nothing."""
    content: str = ""
    """Of a file: SHA-256 of its bytes, which are stored under it; or ``?`` and a stamp where they are not stored."""
    target: str = ""
    """Where a link points."""
    twin: str = ""
    """Of a file with several names: those that are known, itself among them, a NUL between two. While trees are
    looked at: device and inode."""
    note: str = ""
    """Why the content is not stored."""

    @property
    def kept(self) -> bool:
        """Whether everything is known that is needed to put it back."""
        return self.kind != "other" and not self.content.startswith("?")

    @property
    def names(self) -> tuple[str, ...]:
        """The known names of a file that has several."""
        return tuple(self.twin.split("\0")) if self.twin else ()

    def same(self, other: Image) -> bool:
        """Whether both are the same to somebody who looks at the path alone."""
        return (self.kind, self.mode, self.content, self.target) == (
            other.kind,
            other.mode,
            other.content,
            other.target,
        )

    def encoded(self) -> str:
        """As JSON text."""
        return json.dumps({key: value for key, value in asdict(self).items() if value})


ABSENT = Image("absent")


def decoded(text: str) -> Image:
    """The image that ``encoded`` wrote."""
    return Image(**json.loads(text))


def capture(path: str, keep: Keep, limit: int, status: os.stat_result | None = None, *, secret: bool = False) -> Image:
    """What is at ``path`` now, links not followed. The content of a file of up to ``limit`` bytes goes to ``keep``,
    unless it may be ``secret``. Never raises for what it finds."""
    try:
        status = status or os.lstat(path)
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            return Image("folder", mode)
        if stat.S_ISLNK(status.st_mode):
            return Image("link", target=os.readlink(path))
        if not stat.S_ISREG(status.st_mode):
            return Image("other", mode, note="a special file")
        return _file(path, keep, limit, status, secret)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        return Image("other", note=f"can't be read ({error.strerror or error})")


def _file(path: str, keep: Keep, limit: int, status: os.stat_result, secret: bool) -> Image:
    twin = f"{status.st_dev}:{status.st_ino}" if status.st_nlink > 1 else ""
    mode = stat.S_IMODE(status.st_mode)
    stamp = f"?{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
    if secret:
        return Image("file", mode, stamp, twin=twin, note="may hold secrets, by its name")
    if status.st_size > limit:
        return Image("file", mode, stamp, twin=twin, note=f"larger than {limit / 1_000_000:g} MB")
    try:
        descriptor = os.open(path, READ_FLAGS)
    except PermissionError:
        return Image("file", mode, stamp, twin=twin, note="can't be read")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Image("other", note="changed while it was looked at")
        data = read_all(descriptor, status.st_size)
    finally:
        os.close(descriptor)
    digest = sha256(data).hexdigest()
    if len(data) > limit or not keep(data, digest):
        large = f"larger than {limit / 1_000_000:g} MB"
        note = large if len(data) > limit else "no room: see checkpoints.max_total_bytes"
        return Image("file", mode, stamp, twin=twin, note=note)
    return Image("file", mode, digest, twin=twin)
