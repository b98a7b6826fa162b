"""Atomic writing: at every moment the file holds either the old bytes or the new ones.

A temporary file in the same directory is written, synced and renamed over the target. If a rename would lose something
(other hard links, an owner that can't be kept) or is impossible (directory not writable, the file is a mount point),
the file is written in place, with its space reserved first and the old bytes restored on failure.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from swecli.core.workspace.text_file import READ_FLAGS, open_folder, read_all, require_regular


class Folder:
    """Context manager around one directory; names are those of its entries.

    The path must be resolved: each component is opened from its parent without following links. Platforms without such
    calls use paths.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Folder:
        self._descriptor = open_folder(self.path)
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
        return self.access(".", os.W_OK | os.X_OK)

    def access(self, name: str, mode: int) -> bool:
        return os.access(self._name(name), mode, dir_fd=self._descriptor)

    def status(self, name: str) -> os.stat_result:
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
        descriptor = self._descriptor
        os.link(
            self._name(name), self._name(other), src_dir_fd=descriptor, dst_dir_fd=descriptor, follow_symlinks=False
        )

    def rename(self, name: str, other: str) -> None:
        os.replace(self._name(name), self._name(other), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name(name), dir_fd=self._descriptor)

    def make_folder(self, name: str) -> None:
        """Create a directory, which must not exist, private to the user until its mode is set."""
        os.mkdir(self._name(name), 0o700, dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        os.rmdir(self._name(name), dir_fd=self._descriptor)

    def make_link(self, name: str, target: str) -> None:
        os.symlink(target, self._name(name), dir_fd=self._descriptor)

    def names(self, limit: int) -> list[str]:
        """Up to ``limit`` entries; empty if the directory can't be listed."""
        names: list[str] = []
        with contextlib.suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) >= limit:
                    break
        return names

    def sync(self) -> None:
        """Make renames durable, if the platform can."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self._name("."), os.O_RDONLY, dir_fd=self._descriptor)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


PREFIX = ".swecli-tmp-"
READ_ONLY = "is read-only"
"""Error text for a file protected by its mode; a rename would bypass that."""
_WRITE_FLAGS = os.O_WRONLY | (READ_FLAGS & ~os.O_RDONLY)
_SWEEP_AGE = 60.0
"""Seconds. A younger temporary file may belong to a process invisible from here."""
_SWEEP_ENTRIES = 5_000
_RENAME_REFUSED = frozenset((errno.EBUSY, errno.EPERM, errno.EACCES, errno.EXDEV))
_IN_PLACE_INSTEAD = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))


class StaleFileError(Exception):
    """The file is not in the state the caller expects. Nothing was changed."""


class Written(Struct, frozen=True):
    """Result of a write. ``sha256`` is that of the new bytes; ``in_place`` marks the weaker method."""

    path: Path
    sha256: str
    in_place: bool


class _Old(Struct, frozen=True):
    data: bytes
    status: os.stat_result


def atomic_write(path: Path, data: bytes, expected: str | None, *, follow: bool = True) -> Written:
    """Make ``data`` the content of ``path``, following symbolic links; without ``follow`` no part of the path may be
    one. The directory must exist.

    ``expected`` is the SHA-256 (hex) of the file's current bytes, None if there must be no file. Mode, owner and
    extended attributes are kept. Blocks while the disk syncs.

    Raises:
        StaleFileError: the file is not as expected, or changed meanwhile.
        NotRegularError: the path is a directory, a pipe, a socket or a device.
        OSError: it can't be written; the file is unchanged.
    """
    target = path.resolve() if follow else path
    with Folder(target.parent) as folder:
        old = _read_old(folder, target, expected)
        if old is None:
            _sweep_beside(folder)
            _create(folder, target, data)
            return Written(target, sha256(data).hexdigest(), False)
        if not folder.access(target.name, os.W_OK):
            raise PermissionError(errno.EACCES, READ_ONLY, str(target))
        in_place = old.status.st_nlink > 1 or not folder.writable
        if not in_place:
            _sweep_beside(folder)
            in_place = not _replace(folder, target, data, old)
        if in_place:
            _overwrite(folder, target, data, old)
        return Written(target, sha256(data).hexdigest(), in_place)


def atomic_delete(path: Path, expected: str) -> None:
    """Remove a file whose bytes have the SHA-256 ``expected``. No part of the path may be a link.

    Raises:
        StaleFileError: the file is not as expected.
        NotRegularError: not a regular file.
        OSError: it can't be removed.
    """
    with Folder(path.parent) as folder:
        old = _read_old(folder, path, expected)
        if old is not None:
            _require_unchanged(folder, path, old)
            folder.remove(path.name)
            folder.sync()


def sweep_temporary(directory: Path, writer: int | None = None) -> tuple[Path, ...]:
    """Remove temporary files in ``directory`` left by dead writers; returns them. With ``writer``, the id of a dead
    process, only its files are removed, however young."""
    try:
        with Folder(directory) as folder:
            return tuple(directory / name for name in _sweep_beside(folder, writer))
    except OSError:
        return ()


def _read_old(folder: Folder, target: Path, expected: str | None) -> _Old | None:
    try:
        require_regular(target, folder.status(target.name))
        descriptor = folder.open(target.name, READ_FLAGS)
    except FileNotFoundError:
        if expected is not None:
            raise StaleFileError(f"{target} no longer exists") from None
        return None
    try:
        status = os.fstat(descriptor)
        require_regular(target, status)
        data = read_all(descriptor, status.st_size)
    finally:
        os.close(descriptor)
    if expected is None:
        raise StaleFileError(f"{target} now exists")
    if sha256(data).hexdigest() != expected:
        raise StaleFileError(f"{target} changed on disk")
    return _Old(data, status)


def _require_unchanged(folder: Folder, target: Path, old: _Old) -> None:
    try:
        now = folder.status(target.name)
    except FileNotFoundError:
        raise StaleFileError(f"{target} no longer exists") from None
    before = old.status
    same = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_mode, now.st_nlink) == (
        (before.st_dev, before.st_ino, before.st_size, before.st_mtime_ns, before.st_mode, before.st_nlink)
    )
    if not same:
        raise StaleFileError(f"{target} changed on disk")


def _create(folder: Folder, target: Path, data: bytes) -> None:
    # The kernel applies umask and default ACL to 0666; a new file has no mode to protect.
    name, descriptor = _temporary(folder, 0o666)
    try:
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            folder.link(name, target.name)
        except FileExistsError:
            raise StaleFileError(f"{target} now exists") from None
        except OSError:
            # A file system without hard links: check, then rename.
            if folder.exists(target.name):
                raise StaleFileError(f"{target} now exists") from None
            folder.rename(name, target.name)
            name = ""
    finally:
        if name:
            folder.remove(name)
    folder.sync()


def _replace(folder: Folder, target: Path, data: bytes, old: _Old) -> bool:
    """Rename a finished copy over the target. False: the copy can't match it in everything but its bytes."""
    try:
        name, descriptor = _temporary(folder, 0o600)
    except OSError as error:
        if error.errno in _IN_PLACE_INSTEAD:
            return False
        raise
    try:
        try:
            if not _copy_owner(descriptor, old.status):
                return False
            _write_all(descriptor, data)
            _copy_attributes(folder, target.name, descriptor)
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, stat.S_IMODE(old.status.st_mode))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _require_unchanged(folder, target, old)
        try:
            folder.rename(name, target.name)
        except OSError as error:
            if error.errno in _RENAME_REFUSED:
                return False
            raise
        name = ""
    finally:
        if name:
            folder.remove(name)
    folder.sync()
    return True


def _overwrite(folder: Folder, target: Path, data: bytes, old: _Old) -> None:
    _require_unchanged(folder, target, old)
    descriptor = folder.open(target.name, _WRITE_FLAGS)
    try:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != (old.status.st_dev, old.status.st_ino):
            raise StaleFileError(f"{target} changed on disk")
        try:
            if len(data) > len(old.data) and hasattr(os, "posix_fallocate"):
                _reserve(descriptor, len(data))
            _write_all(descriptor, data)
            os.ftruncate(descriptor, len(data))
            os.fsync(descriptor)
        except OSError:
            os.lseek(descriptor, 0, os.SEEK_SET)
            _write_all(descriptor, old.data)
            os.ftruncate(descriptor, len(old.data))
            raise
    finally:
        os.close(descriptor)


def _reserve(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise


def _temporary(folder: Folder, mode: int) -> tuple[str, int]:
    while True:
        name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        with contextlib.suppress(FileExistsError):
            return name, folder.open(name, _WRITE_FLAGS | os.O_CREAT | os.O_EXCL, mode)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy_owner(descriptor: int, status: os.stat_result) -> bool:
    if not hasattr(os, "fchown"):
        return True
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) == (status.st_uid, status.st_gid):
        return True
    try:
        os.fchown(descriptor, status.st_uid, status.st_gid)
    except OSError:
        return False
    return True


def _copy_attributes(folder: Folder, name: str, descriptor: int) -> None:
    """Copy extended attributes, including access lists; those that the file system or kernel rejects are skipped."""
    if sys.platform != "linux":
        return
    source = folder.open(name, READ_FLAGS)
    try:
        for attribute in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES):
            raise
    finally:
        os.close(source)


def _sweep_beside(folder: Folder, writer: int | None = None) -> list[str]:
    removed: list[str] = []
    age = _SWEEP_AGE if writer is None else 0.0
    for name in folder.names(_SWEEP_ENTRIES):
        owner = name.removeprefix(PREFIX).partition("-")[0] if name.startswith(PREFIX) else ""
        if not owner.isdecimal() or writer not in (None, int(owner)) or _runs(int(owner)):
            continue
        with contextlib.suppress(OSError):
            status = folder.status(name)
            if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime >= age:
                folder.remove(name)
                removed.append(name)
    return removed


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    except OverflowError:
        return False
    return True
