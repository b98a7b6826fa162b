"""Small files of swecli's own, replaced as a whole: a reader sees the old content or the new one, never half."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast


def make_private(folder: Path) -> None:
    """Make a folder, and its missing parents, for the user alone. ``Path.mkdir`` applies its mode to the last one only.

    Raises:
        OSError: it can't be made, or something else is there.
    """
    if os.path.isdir(folder):
        return
    if folder.parent != folder:
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def close_to_others(folder: Path) -> None:
    """Remove others' rights from a folder of the user's that an earlier version left open. Failures are ignored."""
    try:
        state = os.lstat(folder)
        if stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and state.st_mode & 0o077:
            os.chmod(folder, stat.S_IMODE(state.st_mode) & 0o700)
    except (OSError, AttributeError):
        return


def write_whole(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace the file in one step, by default readable by the user alone; its folder exists. Characters invalid in
    UTF-8 become "?".

    Raises:
        OSError: it can't be written; the old content is kept.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            if mode != 0o600:
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # an interrupt leaves no temporary file behind either
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


ASIDE = ".corrupt-"
"""Part of a damaged file's new name, between the old name and the time."""


def name_aside(path: Path, mark: str = ASIDE) -> Path:
    """An unused name beside ``path``, with ``mark`` between the old name and the time."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    target, number = path.with_name(f"{path.name}{mark}{stamp}"), 1
    while os.path.lexists(target):
        number += 1
        target = path.with_name(f"{path.name}{mark}{stamp}-{number}")
    return target


def put_aside(path: Path) -> Path:
    """Rename a damaged or foreign file so that nothing in it is lost. Returns the new path.

    Raises:
        OSError: it can't be renamed.
    """
    target = name_aside(path)
    path.rename(target)
    return target


T = TypeVar("T", dict[str, Any], list[Any])
MAX_JSON_BYTES = 16_000_000


class DamagedFile(Exception):
    """The file could not be parsed and was renamed; the text has the new name."""


def read_json(path: Path, part: str, kind: type[T]) -> T:
    """``part`` of the file's object, which is a ``kind``; an empty one without a file.

    Raises:
        DamagedFile: it is something else; the file has another name now.
        OSError: it can't be read.
    """
    try:
        raw = path.read_bytes() if path.stat().st_size <= MAX_JSON_BYTES else b""
    except FileNotFoundError:
        return kind()
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        content = None
    value = cast("dict[str, object]", content).get(part) if isinstance(content, dict) else None
    if isinstance(value, kind):
        return value
    raise DamagedFile(f"{path} was damaged; it was kept as {put_aside(path).name}")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace the file in one step that survives a loss of power.

    Raises:
        OSError: it can't be written; the old content is kept.
    """
    write_whole(path, json.dumps(content, indent=1, sort_keys=True))
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def one_writer(path: Path) -> Generator[None]:
    """Lock the file for one writing process, and make its folder; without file locks (Windows) the last writer wins."""
    make_private(path.parent)
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone_in(folder: Path) -> Generator[None]:
    """Let processes that change the same file of a folder take turns, if there are locks. Leaves no file.

    Raises:
        OSError: the folder can't be opened.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
