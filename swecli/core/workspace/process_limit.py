"""Limit on a command's simultaneous processes and threads, so that a runaway one can't fill the machine.

The kernel enforces the limit if it can: in a pids cgroup for the command, or by RLIMIT_NPROC, which binds ordinary
users only. On Linux the command is also polled and ended at the limit, because one that can't start anything would only
keep trying.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from swecli.core.workspace import process_tree as tree
from swecli.core.workspace.process_tree import is_running

PROCESSES = 1_024
LOOK = 0.1
"""Seconds between two polls of a command."""
_COUNT_EVERY = 10
"""Polls after which its processes are counted in any case."""
_SPARE = 16
"""RLIMIT_NPROC's allowance beyond the limit: other programs of the user count there, too."""
_NAME = "swecli-"
_JOIN = 'echo 0 2>/dev/null >"$0"; exec "$@"'
"""Joins a cgroup before the shell becomes the command."""


class ProcessLimit:
    """The limit of one command; created before the command, closed after its last process."""

    def __init__(self, most: int) -> None:
        """``most`` is the number of processes and threads."""
        self.most = most
        self._group = _new_group(most)
        self._lowest = _tasks_of_machine()
        self._polls = 0

    @property
    def prefix(self) -> Sequence[str]:
        """A program with arguments that starts the command inside the limit; empty if none is needed."""
        return ("/bin/sh", "-c", _JOIN, str(self._group / "cgroup.procs")) if self._group is not None else ()

    @contextlib.contextmanager
    def inherited(self) -> Generator[Callable[[int], None]]:
        """Programs started in the block inherit an ordinary user's limit. Pass on the process id, so that the program
        can't raise the limit again."""
        if self._group is not None or sys.platform != "linux" or os.geteuid() == 0:
            yield lambda pid: None
            return
        import resource

        before = resource.getrlimit(resource.RLIMIT_NPROC)
        most = _tasks_of_user() + self.most + _SPARE
        if before[0] != resource.RLIM_INFINITY:
            most = min(most, before[0])
        resource.setrlimit(resource.RLIMIT_NPROC, (most, before[1]))

        def bind(pid: int) -> None:
            with contextlib.suppress(OSError, ValueError):  # it may already have ended
                resource.prlimit(pid, resource.RLIMIT_NPROC, (most, most))

        try:
            yield bind
        finally:
            resource.setrlimit(resource.RLIMIT_NPROC, before)

    def members(self) -> list[tree.Process]:
        """Processes that the kernel counts for the command; empty without a cgroup."""
        if self._group is None:
            return []
        try:
            pids = (self._group / "cgroup.procs").read_text(encoding="ascii").split()
        except OSError:
            return []
        return [process for pid in pids if (process := tree.inspect(int(pid))) is not None]

    def reached(self, members: Callable[[], Sequence[tree.Process]]) -> bool:
        """Whether the command tried to exceed the limit. Cheap while the machine has few new processes: ``members`` is
        called otherwise, and now and then, because as many may end elsewhere as the command starts."""
        if self._group is not None:
            return _refused(self._group)
        now = _tasks_of_machine()
        self._lowest = min(self._lowest, now)
        self._polls += 1
        if now - self._lowest < self.most and self._polls % _COUNT_EVERY:
            return False
        return sum(process.threads for process in members()) > self.most

    def shut(self) -> None:
        """Forbid new processes, if the kernel enforces the limit."""
        if self._group is not None:
            with contextlib.suppress(OSError):
                (self._group / "pids.max").write_text("0", encoding="ascii")

    def close(self) -> None:
        """Release the limit; a group that can't be removed yet is swept by the next one."""
        if self._group is not None:
            with contextlib.suppress(OSError):
                self._group.rmdir()


def pids_folder(memberships: str, root: Path) -> Path | None:
    """Where a cgroup with a process limit could be created: below that of this process, so that its limits still apply.
    ``memberships`` is the text of /proc/self/cgroup."""
    folder: Path | None = None
    for line in memberships.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "pids" in controllers.split(","):
            own = root / "pids" / path.lstrip("/")
            return own if own.is_dir() else root / "pids"  # a container sees only its own part
        if number == "0" and not controllers:
            folder = root / path.lstrip("/")
    try:
        offered = folder is not None and "pids" in (folder / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        offered = False
    return folder if offered else None


def _new_group(most: int) -> Path | None:
    """A cgroup with this limit; None if none can be created."""
    if sys.platform != "linux":
        return None
    try:
        parent = pids_folder(Path("/proc/self/cgroup").read_text(encoding="utf-8"), Path("/sys/fs/cgroup"))
    except OSError:
        return None
    if parent is None or not os.access(parent, os.W_OK):
        return None
    _sweep(parent)
    group = parent / f"{_NAME}{os.getpid()}-{os.urandom(4).hex()}"
    try:
        group.mkdir()
    except OSError:
        return None
    try:
        (group / "pids.max").write_text(str(most), encoding="ascii")
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        return None
    return group


def _sweep(parent: Path) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            owner = name.removeprefix(_NAME).partition("-")[0]
            if name.startswith(_NAME) and owner.isdecimal() and not is_running(int(owner)):
                with contextlib.suppress(OSError):
                    (parent / name).rmdir()


def _refused(group: Path) -> bool:
    """Whether the kernel refused a new process in this cgroup."""
    try:
        words = (group / "pids.events").read_text(encoding="ascii").split()
    except OSError:
        return False
    return words[:1] == ["max"] and words[1:] != ["0"]


def _tasks_of_machine() -> int:
    """Processes and threads on the machine; 0 if unknown."""
    try:
        with open("/proc/loadavg", encoding="ascii") as stream:
            return int(stream.read().split()[3].partition("/")[2])
    except (OSError, IndexError, ValueError):
        return 0


def _tasks_of_user() -> int:
    me = os.geteuid()
    count = 0
    with contextlib.suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == me:
                    count += tree.Process(int(entry.name), "").threads
    return count
