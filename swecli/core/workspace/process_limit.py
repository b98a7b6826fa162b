"""How many processes and threads a command may have at the same time, so that a runaway one can't fill the machine.

The kernel keeps the limit where it can: in a pids cgroup of the command's own, or by RLIMIT_NPROC, which binds
ordinary users only. Everywhere on Linux the command is looked at in between, and ended when it reaches the limit:
one that can start nothing more would only go on trying.
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
"""Seconds between two looks at a command."""
_SPARE = 16
"""What RLIMIT_NPROC allows beyond the limit: other programs of the user count there, too."""
_NAME = "swecli-"
_JOIN = 'echo 0 2>/dev/null >"$0"; exec "$@"'
"""A shell's way into a cgroup before it becomes the command."""


class ProcessLimit:
    """The limit of one command; made before the command, closed after its last process."""

    def __init__(self, most: int) -> None:
        """``most`` is the number of processes and threads."""
        self.most = most
        self._group = _new_group(most)
        self._lowest = _tasks_of_machine()

    @property
    def prefix(self) -> Sequence[str]:
        """A program with its arguments that starts the command inside the limit; empty where that takes none."""
        return ("/bin/sh", "-c", _JOIN, str(self._group / "cgroup.procs")) if self._group is not None else ()

    @contextlib.contextmanager
    def inherited(self) -> Generator[Callable[[int], None]]:
        """What is started in the block inherits the limit of an ordinary user. Its id is to be handed over, so that it
        can't raise it again."""
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
            with contextlib.suppress(OSError, ValueError):  # it may have ended by now
                resource.prlimit(pid, resource.RLIMIT_NPROC, (most, most))

        try:
            yield bind
        finally:
            resource.setrlimit(resource.RLIMIT_NPROC, before)

    def members(self) -> list[tree.Process]:
        """What the kernel counts as the command's; empty where it does not."""
        if self._group is None:
            return []
        try:
            pids = (self._group / "cgroup.procs").read_text(encoding="ascii").split()
        except OSError:
            return []
        return [process for pid in pids if (process := tree.inspect(int(pid))) is not None]

    def reached(self, members: Callable[[], Sequence[tree.Process]]) -> bool:
        """Whether the command tried to have more. Cheap as long as the machine has few new processes; ``members`` are
        looked for only then."""
        if self._group is not None:
            return _refused(self._group)
        now = _tasks_of_machine()
        self._lowest = min(self._lowest, now)
        return now - self._lowest >= self.most and sum(process.threads for process in members()) > self.most

    def shut(self) -> None:
        """Nothing more can be started, where the kernel keeps the limit."""
        if self._group is not None:
            with contextlib.suppress(OSError):
                (self._group / "pids.max").write_text("0", encoding="ascii")

    def close(self) -> None:
        """Let the limit go; what is left behind for a moment is swept by the next one."""
        if self._group is not None:
            with contextlib.suppress(OSError):
                self._group.rmdir()


def pids_folder(memberships: str, root: Path) -> Path | None:
    """Where a cgroup of one's own with a limit of processes could be made: below the one that this process is in, whose
    limits go on holding. ``memberships`` is the text of /proc/self/cgroup."""
    found: Path | None = None
    for line in memberships.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "pids" in controllers.split(","):
            own = root / "pids" / path.lstrip("/")
            return own if own.is_dir() else root / "pids"  # a container sees its own part only
        if number == "0" and not controllers:
            found = root / path.lstrip("/")
    try:
        offered = found is not None and "pids" in (found / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        offered = False
    return found if offered else None


def _new_group(most: int) -> Path | None:
    """A cgroup with this limit; None where none can be made."""
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
    """Whether the kernel refused to start something in this cgroup."""
    try:
        words = (group / "pids.events").read_text(encoding="ascii").split()
    except OSError:
        return False
    return words[:1] == ["max"] and words[1:] != ["0"]


def _tasks_of_machine() -> int:
    """Processes and threads; 0 where that is not known."""
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
