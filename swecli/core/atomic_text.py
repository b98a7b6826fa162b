"""Small files of swecli's own that are replaced whole: a reader sees the old content or the new one, never half."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the user alone. ``Path.mkdir`` gives its mode to the last
    one only.

    Raises:
        OSError: it can't be made, or something else is there.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def close_to_others(folder: Path) -> None:
    """Take the rights of others from a folder of the user's that an earlier version left open. What can't be changed
    stays."""
    try:
        state = os.lstat(folder)
        if stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and state.st_mode & 0o077:
            os.chmod(folder, stat.S_IMODE(state.st_mode) & 0o700)
    except (OSError, AttributeError):
        return


def write_whole(path: Path, text: str) -> None:
    """Replace the file in one step, readable by the user alone; its folder exists. What UTF-8 can't hold becomes "?".

    Raises:
        OSError: it can't be written; what was there is kept.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # an interrupt leaves no temporary file behind either
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def put_aside(path: Path) -> Path | None:
    """Give a file that is none of ours another name, so that nothing in it is lost. Returns where it is now; None
    where no name was free.

    Raises:
        OSError: it can't be renamed.
    """
    places = (path.with_name(f"{path.name}.broken-{number}") for number in range(1, 1_000))
    place = next((place for place in places if not place.exists()), None)
    if place is not None:
        path.rename(place)
    return place
