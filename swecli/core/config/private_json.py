"""A JSON file that only the user can read, changed by several processes at once and never torn.

A damaged file is put aside under another name and counts as empty.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from swecli.core.whole_file import write_whole

MAX_BYTES = 16_000_000

T = TypeVar("T", dict[str, Any], list[Any])


class DamagedFile(Exception):
    """The file was not understood and has been put aside; the text says where."""


def read_private(path: Path, part: str, kind: type[T]) -> T:
    """``part`` of the file's object, which is a ``kind``; an empty one where there is no file.

    Raises:
        DamagedFile: it is none; it has another name now.
        OSError: it can't be read.
    """
    try:
        raw = path.read_bytes() if path.stat().st_size <= MAX_BYTES else b""
    except FileNotFoundError:
        return kind()
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        content = None
    found = cast("dict[str, object]", content).get(part) if isinstance(content, dict) else None
    if isinstance(found, kind):
        return found
    aside = path.with_name(f"{path.name}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}")
    os.replace(path, aside)
    raise DamagedFile(f"{path} was damaged. It is kept as {aside.name}")


def write_private(path: Path, content: dict[str, Any]) -> None:
    """Replace the file in one step.

    Raises:
        OSError: it can't be written; what was there is kept.
    """
    write_whole(path, json.dumps(content, indent=1, sort_keys=True))
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def one_writer(path: Path) -> Generator[None]:
    """One process at a time may change the file, whose folder is made; without file locks (Windows) the last writer
    wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
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
