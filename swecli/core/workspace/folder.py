"""A directory held open, so that what is done in it can't be led elsewhere by a link put into its path."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType

_PATH_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_AT = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd


class Folder:
    """A context manager around one directory; names are those of its entries.

    The path must be resolved: each component is opened from the one before it without following links. Where
    the platform has no such calls, paths are used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Folder:
        if not _AT:
            return self
        descriptor = os.open(self.path.anchor, _PATH_FLAGS)
        try:
            for part in self.path.parts[1:]:
                deeper = os.open(part, _PATH_FLAGS, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = deeper
        except OSError as error:
            os.close(descriptor)
            error.filename = str(self.path)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _name(self, name: str) -> str:
        return name if self._descriptor is not None else str(self.path / name)

    @property
    def writable(self) -> bool:
        """Whether entries can be added and replaced."""
        return self.access(".", os.W_OK | os.X_OK)

    def access(self, name: str, mode: int) -> bool:
        return os.access(self._name(name), mode, dir_fd=self._descriptor)

    def status(self, name: str) -> os.stat_result:
        """Status of the entry itself, a link included."""
        return os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)

    def exists(self, name: str) -> bool:
        try:
            self.status(name)
        except FileNotFoundError:
            return False
        return True

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        try:
            return os.open(self._name(name), flags, mode, dir_fd=self._descriptor)
        except OSError as error:
            error.filename = str(self.path / name)
            raise

    def link(self, name: str, other: str) -> None:
        """Give an entry a second name, which must be free."""
        here = self._descriptor
        os.link(self._name(name), self._name(other), src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)

    def rename(self, name: str, other: str) -> None:
        """Put an entry in the place of another."""
        os.replace(self._name(name), self._name(other), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove an entry if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name(name), dir_fd=self._descriptor)

    def make_folder(self, name: str) -> None:
        """Make a directory that must not exist, for the user alone until its mode is set."""
        os.mkdir(self._name(name), 0o700, dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove an empty directory."""
        os.rmdir(self._name(name), dir_fd=self._descriptor)

    def make_link(self, name: str, target: str) -> None:
        """Make a symbolic link where nothing is."""
        os.symlink(target, self._name(name), dir_fd=self._descriptor)

    def names(self, limit: int) -> list[str]:
        """Up to ``limit`` entries; none where the directory can't be listed."""
        found: list[str] = []
        with contextlib.suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) >= limit:
                    break
        return found

    def sync(self) -> None:
        """Make renames durable, where the platform can."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self._name("."), os.O_RDONLY, dir_fd=self._descriptor)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
