"""Where swecli keeps its files, and the private ones among them."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from swecli.core.atomic_text import make_private, write_whole

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


PROJECT_FOLDER = ".swecli"


@dataclass(frozen=True, slots=True)
class Paths:
    """Directories of the user, absolute. With ``SWECLI_HOME`` all of them are inside it."""

    config: Path
    data: Path
    cache: Path
    state: Path

    @property
    def all(self) -> tuple[Path, ...]:
        """Every directory once, resolved: no tool may write below any of them."""
        return tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in self._fields()))

    def _fields(self) -> tuple[Path, ...]:
        return (self.config, self.data, self.cache, self.state)

    def workspace_data(self, workspace: Path) -> Path:
        """The data directory of one workspace."""
        return self.data / "workspaces" / workspace_key(workspace)


def user_paths(environment: Mapping[str, str]) -> Paths:
    """The directories by the rules of the platform, or all inside ``SWECLI_HOME``."""
    home = environment.get("SWECLI_HOME", "")
    if home:
        base = Path(os.path.expanduser(home)).absolute()
        return Paths(base, base / "data", base / "cache", base / "state")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("swecli", appauthor=False)
    return Paths(
        Path(dirs.user_config_dir).absolute(),
        Path(dirs.user_data_dir).absolute(),
        Path(dirs.user_cache_dir).absolute(),
        Path(dirs.user_state_dir).absolute(),
    )


def workspace_key(workspace: Path) -> str:
    """A short name for a workspace that stays the same through symbolic links: hex of a hash of its real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:20]


def project_folder(workspace: Path) -> Path:
    """The project's own settings folder."""
    return workspace / PROJECT_FOLDER
