"""Which processes a command started, and ending all of them.

A child that opened a session of its own leaves the command's process group but keeps its environment. Every
command carries a mark there (``SWECLI_JOB``), so that on Linux such children are found as long as they live, by
this process and by a later one. Elsewhere only the process group is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path


def is_running(pid: int) -> bool:
    """Whether some process has this id; in doubt it has. Ids are reused, so it may be another one by now."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


MARK = "SWECLI_JOB"
PLACE = "SWECLI_PLACE"
"""Says from which folder and with which data home a command was started."""
_OWN = b"-own"
_PROC = Path("/proc")
_POLL = 0.5
"""Seconds between two looks at a process where its end can't be waited for."""
_LOOKS = 50
"""How often all processes are looked through for such as were started while others were being stopped."""
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""


@dataclass(frozen=True, slots=True)
class Running:
    """A live process. ``started`` tells it from a later one with the same id (clock ticks since boot)."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    name: str
    threads: int = field(default=1, compare=False)

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        now = inspect(self.pid)
        return now is not None and now.started == self.started


def inspect(pid: int) -> Running | None:
    """The process with this id; None when there is none, when it is a zombie, or outside of Linux."""
    found = _inspect(pid)
    return None if found is None or found[0] in (b"Z", b"X") else found[1]


def _inspect(pid: int) -> tuple[bytes, Running] | None:
    """State letter and process, zombies included."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            before, _, after = stream.read().rpartition(b")")
    except OSError:
        return None
    fields = after.split()
    if len(fields) < 20:
        return None
    name = before.partition(b"(")[2].decode("utf-8", "replace")
    parent, group, session = (int(field) for field in fields[1:4])
    return fields[0], Running(pid, parent, group, session, int(fields[19]), name, int(fields[17]))


def new_mark(*, own: bool = False) -> str:
    """A value of ``SWECLI_JOB`` that no other command has: this process's id and start, and a random part. ``own``:
    what runs is no command of the user or the model."""
    me = inspect(os.getpid())
    return f"{os.getpid()}-{me.started if me else 0}-{os.urandom(4).hex()}{_OWN.decode() if own else ''}"


def members(leader: int, mark: str, *, gone: bool = False) -> list[Running]:
    """Live processes of the command besides its leader: by session, by mark, and all their descendants. ``gone``: the
    leader's status was taken, so that another process may have its id by now."""
    if sys.platform != "linux":
        return []
    everyone = [process for pid in _pids() if (process := inspect(pid)) is not None]
    wanted = f"{MARK}={mark}".encode()
    found = {process.pid: process for process in everyone if wanted in _environment(process.pid)}
    # An id is not given anew as long as a group or a session is called by it.
    if not gone or any(leader in (process.session, process.group) for process in found.values()):
        found |= {process.pid: process for process in everyone if leader in (process.session, process.group)}
    parents = set(found) if gone else {*found, leader}
    while below := [process for process in everyone if process.pid not in found and process.parent in parents]:
        found.update((process.pid, process) for process in below)
        parents.update(found)
    found.pop(leader, None)
    found.pop(os.getpid(), None)
    return list(found.values())


async def all_ended(processes: Iterable[Running]) -> None:
    """Wait until each of these very processes has ended."""
    for process in processes:
        await _ended(process)


async def _ended(process: Running) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        while process.alive:  # noqa: ASYNC110 - a system without descriptors of processes has no event for it
            await asyncio.sleep(_POLL)
        return
    try:
        if process.alive:  # else the descriptor may be that of a later process with this id
            loop.add_reader(descriptor, ended.set)
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def leftovers(place: str = "") -> list[Running]:
    """Live processes of commands whose swecli is gone: it was killed before it could end them. With ``place`` only
    those of commands that were started there. Its own, which nobody asked for, are ended on the way."""
    abandoned = list(_abandoned())
    signal_each([process for process, mark in abandoned if mark.endswith(_OWN)], signal.SIGKILL)
    wanted = f"{PLACE}={place}".encode()
    return [
        process
        for process, mark in abandoned
        if not mark.endswith(_OWN) and (not place or wanted in _environment(process.pid).split(b"\0"))
    ]


def _abandoned() -> Iterator[tuple[Running, bytes]]:
    """With their marks."""
    if sys.platform != "linux":
        return
    for pid in _pids():
        mark = next(
            (item[len(MARK) + 1 :] for item in _environment(pid).split(b"\0") if item.startswith(b"SWECLI_JOB=")), b""
        )
        owner, _, rest = mark.partition(b"-")
        started = rest.partition(b"-")[0]
        if owner.isdigit() and started.isdigit():
            now = inspect(int(owner))
            process = inspect(pid)
            if process is not None and (now is None or now.started != int(started)):
                yield process, mark


def owned() -> list[Running]:
    """Live processes of commands that this process started, background ones included."""
    if sys.platform != "linux":
        return []
    me = inspect(os.getpid())
    wanted = f"{MARK}={os.getpid()}-{me.started if me else 0}-".encode()
    return [
        process
        for pid in _pids()
        if pid != os.getpid() and wanted in _environment(pid) and (process := inspect(pid)) is not None
    ]


def end_owned() -> list[Running]:
    """Kill what commands of this process left running; for the exit of swecli. Returns what was killed."""
    processes = stopped(owned)
    signal_each(processes, signal.SIGKILL)
    return processes


def stopped(members: Callable[[], list[Running]]) -> list[Running]:
    """Stop the ``members``, look again, and go on until there are no others: what is stopped starts nothing. Returns
    them all. Bounded, as somebody else may set them going again."""
    found: dict[Running, None] = {}
    for _ in range(_LOOKS):
        fresh = [process for process in members() if process not in found]
        if not fresh:
            break
        found.update(dict.fromkeys(fresh))
        for group in {process.group for process in fresh}:
            if group in {process.pid for process in found}:  # theirs, and not that of whoever started them
                signal_group(group, signal.SIGSTOP)
        signal_each(fresh, signal.SIGSTOP)
    return list(found)


def adopt_orphans(on: bool) -> None:
    """Make orphaned descendants children of this process (Linux), so that they can be waited for.

    Only switched on while a tree is being ended: whoever adopts must also collect every orphan that ends.
    """
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, int(on), 0, 0, 0)


def signal_group(group: int, number: signal.Signals) -> None:
    """Signal a process group, if it is still there and ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def signal_each(processes: list[Running], number: signal.Signals) -> None:
    """Signal those that still run as the process they were."""
    for process in processes:
        if process.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def collect(processes: list[Running]) -> None:
    """Take the exit status of those that ended as our children, so that no zombie stays."""
    for process in processes:
        with contextlib.suppress(ChildProcessError, OSError):
            os.waitpid(process.pid, os.WNOHANG)


def is_ours(pid: int) -> bool:
    """Whether there is a child of this process with this id, a zombie for example."""
    found = _inspect(pid)
    return found is not None and found[1].parent == os.getpid()


def collect_session(leader: int) -> None:
    """The same for orphans that nobody knew: what ended in the leader's session while we adopted. The leader's
    own status is left to whoever started it."""
    if sys.platform != "linux":
        return
    for pid in _pids():
        found = _inspect(pid) if pid != leader else None
        if found and found[0] == b"Z" and found[1].parent == os.getpid() and found[1].session == leader:
            collect([found[1]])


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return []


def _environment(pid: int) -> bytes:
    """The environment a process was started with; empty where it may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return stream.read(1 << 20)
    except OSError:
        return b""
