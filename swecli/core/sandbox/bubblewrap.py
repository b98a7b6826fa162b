"""Translation of a plan to the arguments of bubblewrap (``bwrap``)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from swecli.core.atomic_text import make_private
from swecli.core.sandbox.plan import Mount, Placeholder, Plan
from swecli.lazy_pattern import lazy_pattern
from swecli.steady_clock import SteadyClock

_LOCK, _RECORD = "lock", "placeholders"


class PlaceholderError(Exception):
    """A protected name can't be blocked; the message says which and why."""


def stands_in(path: Path, state: Path, key: str) -> bool:
    """Whether a path is the folder that stands in for a protected file while a sandboxed command runs. ``state`` is
    the user's state folder, ``key`` that of the workspace."""
    return path.is_dir() and os.path.realpath(path) in Placeholders(placeholders_folder(state, key)).standing()


def placeholders_folder(state: Path, key: str) -> Path:
    return state / "sandbox" / key


class Placeholders:
    """Protected names that are blocked in one workspace. ``folder`` is private to the workspace and outside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hold(self, wanted: Sequence[Placeholder]) -> int:
        """Create the missing names. Returns a locked descriptor; nothing is removed while it or a copy of it is open.

        Raises:
            PlaceholderError: a name can't be created.
        """
        try:
            make_private(self._folder)
            descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise PlaceholderError(f"cannot use {self._folder}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            missing = [placeholder for placeholder in wanted if not os.path.lexists(placeholder.path)]
            if missing:
                self._note(missing)
            for placeholder in missing:
                _make(placeholder)
        except OSError as error:
            os.close(descriptor)
            name = error.filename or self._folder
            raise PlaceholderError(f"cannot block {name}: {error.strerror}") from error
        return descriptor

    def release(self, descriptor: int, seconds: float = 0.2) -> bool:
        """Close the descriptor and remove unused placeholders; False while another command runs."""
        os.close(descriptor)
        clock = SteadyClock()
        deadline = clock() + seconds
        while not (done := self.sweep()) and clock() < deadline:
            time.sleep(0.002)
        return done

    def standing(self) -> tuple[str, ...]:
        """Names that were created and perhaps not removed yet."""
        try:
            return tuple(placeholder.path for placeholder in self._noted())
        except OSError:
            return ()

    def in_use(self) -> bool:
        """Whether a command runs that holds them, if only for a moment because its swecli was just killed."""
        try:
            descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    def sweep(self) -> bool:
        """Remove leftovers. False if a running command needs them."""
        if not os.path.exists(self._folder / _RECORD):
            return True
        try:
            descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for placeholder in reversed(self._noted()):
                _remove(placeholder)
            (self._folder / _RECORD).unlink(missing_ok=True)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)

    def _note(self, made: Sequence[Placeholder]) -> None:
        """Record the names before creating them, so that a later run can remove them."""
        lines = [
            json.dumps([placeholder.path, None if placeholder.content is None else placeholder.content.decode()])
            for placeholder in made
        ]
        with open(self._folder / _RECORD, "a", encoding="utf-8", errors="surrogateescape") as record:
            record.write("".join(f"{line}\n" for line in lines))

    def _noted(self) -> list[Placeholder]:
        placeholders: dict[str, Placeholder] = {}
        text = (self._folder / _RECORD).read_text(encoding="utf-8", errors="surrogateescape")
        for line in text.splitlines():
            with contextlib.suppress(ValueError, TypeError):  # a line cut off by a crash was not acted upon yet
                path, content = cast("tuple[str, str | None]", json.loads(line))
                placeholders.setdefault(path, Placeholder(path, None if content is None else content.encode()))
        return sorted(placeholders.values(), key=lambda placeholder: placeholder.path)


def _make(placeholder: Placeholder) -> None:
    """Create a name; two commands may do so at once, and an existing name is fine."""
    with contextlib.suppress(FileExistsError):
        if placeholder.content is None:
            os.mkdir(placeholder.path, 0o755)
        else:
            descriptor = os.open(placeholder.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            try:
                os.write(descriptor, placeholder.content)
            finally:
                os.close(descriptor)


def _remove(placeholder: Placeholder) -> None:
    """Remove a name only if it is still as created; its folder is opened without following links."""
    folder, name = os.path.split(placeholder.path)
    try:
        if os.path.realpath(folder) != folder:
            return
        parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if placeholder.content is None:
            os.rmdir(name, dir_fd=parent)
        elif _content(name, parent, len(placeholder.content)) == placeholder.content:
            os.unlink(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ELOOP):
            raise
    finally:
        os.close(parent)


def _content(name: str, parent: int, size: int) -> bytes:
    """The file's bytes, at most one more than expected."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    try:
        return os.read(descriptor, size + 1)
    finally:
        os.close(descriptor)


_VERSION = lazy_pattern(r"(\d+)\.(\d+)(?:\.(\d+))?")
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr")
"""Entries of /proc with kernel settings that root may write even without capabilities."""
DISABLE_USERNS = (0, 8, 0)
"""First version that can forbid nested user namespaces."""


def version_of(text: str) -> tuple[int, int, int] | None:
    match = _VERSION.search(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))


def bwrap_argv(
    program: str,
    plan: Plan,
    cwd: str,
    *,
    version: tuple[int, int, int] = DISABLE_USERNS,
    seccomp: int | None = None,
    status: int | None = None,
    lock: int | None = None,
    root: bool = False,
) -> list[str]:
    """All arguments before the command. ``seccomp`` is a descriptor to read the filter from, ``status`` one for the
    outcome as JSON, ``lock`` one that stays open as long as anything runs inside. ``root``: the user is root."""
    # Other processes see the whole disk, so none of them may be visible.
    argv = [program, "--unshare-user", "--unshare-pid"]
    argv += [] if plan.masks_only else ["--unshare-ipc"]
    if not plan.network:
        argv.append("--unshare-net")
    if version >= DISABLE_USERNS:
        argv.append("--disable-userns")
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if plan.masks_only:
        argv += ["--dev-bind", "/", "/", "--proc", "/proc"]
    else:
        argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for name in _KERNEL if root else ():
        argv += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    for mount in plan.mounts:
        argv += _mount(mount, plan)
    # Last, because deeper entries need their mount point first.
    for mount in plan.mounts:
        if mount.access == "hidden" and mount.directory:
            argv += ["--remount-ro", mount.path]
    for option, descriptor in (("--seccomp", seccomp), ("--json-status-fd", status), ("--sync-fd", lock)):
        if descriptor is not None:
            argv += [option, str(descriptor)]
    return [*argv, "--chdir", cwd, "--"]


def _mount(mount: Mount, plan: Plan) -> list[str]:
    match mount.access:
        case "write":
            return ["--bind", mount.path, mount.path]
        case "read":
            return ["--ro-bind", mount.path, mount.path]
        case "private":
            # The other one, /dev/shm, is new already: --dev creates it.
            return ["--bind", plan.private, mount.path] if mount.path == plan.temporary else []
        case "hidden" if mount.directory:
            return ["--tmpfs", mount.path]
        case "hidden":
            return ["--dev-bind", "/dev/null", mount.path]
        case "denied":
            return ["--ro-bind", "/dev/null", mount.path]
