"""What the plan asks of the disk: a small protocol, so that the plan itself stays a pure function."""

from __future__ import annotations

import os
import stat
from typing import Literal, Protocol

Kind = Literal["file", "directory", "link", "other", "missing"]
_HEAD_BYTES = 65_536


class Disk(Protocol):
    """Answers about absolute paths."""

    def kind(self, path: str) -> Kind:
        """What is there; a link is not followed."""
        ...

    def real(self, path: str) -> str:
        """The path with links followed as far as they exist."""
        ...

    def names(self, directory: str) -> tuple[str, ...]:
        """The names in a directory, sorted; none where it can't be read."""
        ...

    def text(self, path: str) -> str:
        """The beginning of a regular file; empty where there is none."""
        ...


class OsDisk:
    """The real one."""

    def kind(self, path: str) -> Kind:
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return "missing"
        if stat.S_ISDIR(mode):
            return "directory"
        if stat.S_ISREG(mode):
            return "file"
        return "link" if stat.S_ISLNK(mode) else "other"

    def real(self, path: str) -> str:
        return os.path.realpath(path)

    def names(self, directory: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(directory)))
        except OSError:
            return ()

    def text(self, path: str) -> str:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return os.read(descriptor, _HEAD_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""
        finally:
            os.close(descriptor)
