"""The processes that a command started, and ending all of them.

A child with its own session leaves the command's process group but keeps its environment. Every command carries a mark
there (``SWECLI_JOB``) by which this process and a later one find such children. psutil is imported on first use,
because it slows the start.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

if TYPE_CHECKING:
    import psutil

MARK = "SWECLI_JOB"
PLACE = "SWECLI_PLACE"
"""Variable with the folder and data home from which a command was started."""
_OWN = "-own"
_POLL = 0.5
"""Seconds between two polls of a process on systems without an event for its end."""
_MAX_SEARCHES = 50
"""Limit on searches for processes started while others were being stopped."""
_MOST_STARTS = 50_000
"""Processes that any machine starts in a second at most."""
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""


class Process(Struct, frozen=True, eq=False):
    """A process. ``started`` distinguishes it from a later one with the same id; it is opaque, and empty if the system
    does not report it."""

    pid: int
    started: str
    parent: int = 0
    group: int = 0
    session: int = 0

    def __eq__(self, other: object) -> bool:
        return (self.pid, self.started) == (other.pid, other.started) if isinstance(other, Process) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other  # a struct's own does not call __eq__

    def __hash__(self) -> int:
        return hash((self.pid, self.started))

    @classmethod
    def current(cls) -> Process:
        return cls(os.getpid(), _start_time(os.getpid()) or "")

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (false for a zombie, true for another user's process)."""
        now = _start_time(self.pid)
        return now is not None and (not now or not self.started or now == self.started)

    @property
    def name(self) -> str:
        """The program's name; empty if it is gone."""
        import psutil

        with contextlib.suppress(psutil.Error):
            return psutil.Process(self.pid).name()
        return ""

    @property
    def threads(self) -> int:
        """Current number of threads; 0 if it is gone."""
        if (listed := _listed(self.pid)) is not None:
            return listed.threads

        import psutil

        with contextlib.suppress(psutil.Error):
            return psutil.Process(self.pid).num_threads()
        return 0


def is_running(pid: int) -> bool:
    """Whether some process has this id. Ids are reused, so it may be another one by now."""
    if os.name != "posix":
        import psutil

        return psutil.pid_exists(pid)
    if pid <= 0:
        return False  # these stand for groups
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def inspect(pid: int) -> Process | None:
    """The process with this id; None if it is missing or a zombie."""
    if (listed := _listed(pid)) is not None:
        return None if listed.ended else listed.process

    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            return None if process.status() in _ENDED else _process(process)
    except (psutil.Error, OSError):
        return None


_ENDED = ("zombie", "dead")
"""``psutil.STATUS_ZOMBIE`` and ``psutil.STATUS_DEAD``."""


def _process(process: psutil.Process) -> Process:
    """The details of an existing process, including a zombie."""
    pid = process.pid
    return Process(pid, _stamp(process), process.ppid(), os.getpgid(pid), os.getsid(pid))


class _Listed(Struct, frozen=True):
    """A process as Linux lists it; ``ended``: a zombie."""

    process: Process
    threads: int
    ended: bool


def _listed(pid: int) -> _Listed | None:
    """What psutil reads on Linux, in a tenth of its time and without its 0.8 MiB. None leaves the answer to psutil."""
    if sys.platform != "linux":
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # proc(5), from the third on
        parent, group, session, threads = (int(fields[index]) for index in (1, 2, 3, 17))
        started = str(round(int(fields[19]) / os.sysconf("SC_CLK_TCK") * 100))
    except (OSError, IndexError, ValueError):
        return None
    return _Listed(Process(pid, started, parent, group, session), threads, fields[0] in b"ZX")


def _start_time(pid: int) -> str | None:
    """``Process.started``; None if no such process runs."""
    if (listed := _listed(pid)) is not None and not listed.ended:
        return listed.process.started

    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() in _ENDED else _stamp(process)
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return ""


def _stamp(process: psutil.Process) -> str:
    """The start in hundredths of a second. ``create_time()`` changes when the system's clock is set; psutil's own
    identity does not."""
    started: float | None = cast("Any", process)._ident[1]
    return "" if started is None else str(round(started * 100))


def new_mark(*, own: bool = False) -> str:
    """A unique value of ``SWECLI_JOB``: this process's id and start, and a random part. ``own``: the program is not a
    command of the user or the model."""
    return f"{_own_marks()}{os.urandom(4).hex()}{_OWN if own else ''}"


def _own_marks() -> str:
    me = Process.current()
    return f"{me.pid}-{me.started or 0}-"


def members(leader: int, mark: str, *, gone: bool = False, seconds: float = math.inf) -> list[Process]:
    """Live processes of the command except its leader: by session, by mark, and all their descendants. ``gone``: the
    leader's status was collected, so another process may have its id. ``seconds`` is how long ago it was started."""
    marks = dict(_everyone(leader, seconds))
    everyone = list(marks)
    by_pid = {process.pid: process for process, each in marks.items() if each == mark}
    # An id is not reused while a group or a session has it.
    if not gone or any(leader in (process.session, process.group) for process in by_pid.values()):
        by_pid |= {process.pid: process for process in everyone if leader in (process.session, process.group)}
    parents = set(by_pid) if gone else {*by_pid, leader}
    while below := [process for process in everyone if process.pid not in by_pid and process.parent in parents]:
        by_pid.update((process.pid, process) for process in below)
        parents.update(by_pid)
    by_pid.pop(leader, None)
    by_pid.pop(os.getpid(), None)
    return list(by_pid.values())


async def all_ended(processes: Iterable[Process]) -> None:
    for process in processes:
        await _ended(process)


async def _ended(process: Process) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        while process.alive:  # noqa: ASYNC110 - a system without descriptors of processes has no event for it
            await asyncio.sleep(_POLL)
        return
    try:
        if process.alive:  # else the descriptor may belong to a later process with this id
            loop.add_reader(descriptor, ended.set)
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def leftovers(place: str = "") -> list[Process]:
    """Live processes of commands whose swecli was killed before it could end them. ``place`` restricts them to commands
    started there. swecli's own helper processes among them are ended on the way."""
    abandoned = [(process, environment) for process, environment in _marked() if _is_abandoned(environment[MARK])]
    signal_each([process for process, environment in abandoned if environment[MARK].endswith(_OWN)], signal.SIGKILL)
    return [
        process
        for process, environment in abandoned
        if not environment[MARK].endswith(_OWN) and (not place or environment.get(PLACE) == place)
    ]


def _is_abandoned(mark: str) -> bool:
    owner, _, rest = mark.partition("-")
    started = rest.partition("-")[0]
    return owner.isdecimal() and started.isdecimal() and not Process(int(owner), started).alive


def owned() -> list[Process]:
    """Live processes of commands that this process started, including background ones."""
    own = _own_marks()
    return [
        process
        for process, environment in _marked()
        if environment[MARK].startswith(own) and process.pid != os.getpid()
    ]


def end_owned() -> list[Process]:
    """Kill the remaining processes of this process's commands at exit. Returns the killed ones."""
    processes = stopped(owned)
    signal_each(processes, signal.SIGKILL)
    return processes


def stopped(members: Callable[[], list[Process]]) -> list[Process]:
    """Stop the ``members``, then search again until no more appear: a stopped process starts none. Returns all.
    Bounded, because another program may continue them."""
    processes: dict[Process, None] = {}
    for _ in range(_MAX_SEARCHES):
        fresh = [process for process in members() if process not in processes]
        if not fresh:
            break
        processes.update(dict.fromkeys(fresh))
        for group in {process.group for process in fresh}:
            if group in {process.pid for process in processes}:  # theirs, not that of their starter
                signal_group(group, signal.SIGSTOP)
        signal_each(fresh, signal.SIGSTOP)
    return list(processes)


def adopt_orphans(on: bool) -> None:
    """Make orphaned descendants children of this process (Linux), so that it can wait for them.

    Enabled only while a tree is being ended: the adopter must also collect every orphan that ends.
    """
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, int(on), 0, 0, 0)


def signal_group(group: int, number: signal.Signals) -> None:
    """Signal a process group, if it still exists and is ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def end_group(process: asyncio.subprocess.Process, grace: float, first: float | None = None) -> None:
    """Wait until a program with closed input has ended, else ask its group to end, else kill it. Each step takes at
    most ``grace`` seconds, the initial wait ``first`` if given."""
    for number, seconds in (
        (None, grace if first is None else first),
        (signal.SIGTERM, grace),
        (signal.SIGKILL, grace),
    ):
        if number is not None:
            signal_group(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)
            break
    signal_group(process.pid, signal.SIGKILL)  # processes it left behind


def signal_each(processes: list[Process], number: signal.Signals) -> None:
    """Signal those that still run as the same process."""
    for process in processes:
        if process.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def collect(processes: list[Process]) -> None:
    """Collect the exit status of ended children, so that no zombie stays."""
    for process in processes:
        with contextlib.suppress(ChildProcessError, OSError):
            os.waitpid(process.pid, os.WNOHANG)


def is_ours(pid: int) -> bool:
    """Whether this process has a child with this id, even a zombie."""
    import psutil

    try:
        return psutil.Process(pid).ppid() == os.getpid()
    except psutil.Error:
        return False


def collect_session(leader: int) -> None:
    """Collect unknown orphans: zombies in the leader's session that this process adopted. The leader's own status is
    left to its starter."""
    if sys.platform != "linux":
        return
    import psutil

    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if (
                pid != leader
                and process.ppid() == os.getpid()
                and process.status() == psutil.STATUS_ZOMBIE
                and os.getsid(pid) == leader
            ):
                collect([_process(process)])


def _marked() -> Iterator[tuple[Process, Mapping[str, str]]]:
    """Live processes of commands of any swecli, with their environments."""
    pids = _perhaps_marked()
    if not pids:
        return

    import psutil

    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            environment = _environment(process)
            if MARK in environment and process.status() not in _ENDED:
                yield _process(process), environment


def _perhaps_marked() -> list[int]:
    """Processes that may have a mark, which at a start is none: on Linux, found without psutil."""
    if sys.platform != "linux":
        import psutil

        return psutil.pids()
    pids: list[int] = []
    mark = f"{MARK}=".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in environment.read_bytes():
                pids.append(int(environment.parent.name))
    return pids


def _everyone(leader: int, seconds: float) -> Iterator[tuple[Process, str]]:
    """All live processes that are not older than this one and may have begun after ``leader``, with their marks. No
    command of this process has older ones, and most processes of a machine are."""
    oldest = int(Process.current().started or 0)
    if sys.platform == "linux":
        for pid in _younger(leader, seconds):
            listed = _listed(pid)
            if listed is not None and not listed.ended and int(listed.process.started) >= oldest:
                yield listed.process, _mark_of(pid)
        return

    import psutil

    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if int(_stamp(process) or oldest) < oldest:
                continue
            with process.oneshot():
                if process.status() not in _ENDED:
                    yield _process(process), _environment(process).get(MARK, "")


def _younger(leader: int, seconds: float) -> list[int]:
    """Ids of the processes that may have begun after one that was started ``seconds`` ago (Linux). Ids are given in
    order, and again from the lowest on after the highest; all processes, if they may have been given more than once
    since then."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    try:
        highest = int(Path("/proc/sys/kernel/pid_max").read_bytes())
        newest = int(Path("/proc/loadavg").read_bytes().split()[4])
    except (OSError, IndexError, ValueError):
        return pids
    if seconds * _MOST_STARTS >= highest:
        return pids
    if leader <= newest:
        return [pid for pid in pids if leader <= pid <= newest]
    return [pid for pid in pids if pid >= leader or pid <= newest]


def _mark_of(pid: int) -> str:
    """The mark in the environment of a process (Linux); empty without one, or if it is unreadable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = b"\0" + file.read()
    except OSError:
        return ""
    _, mark, rest = environment.partition(f"\0{MARK}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]) if mark else ""


def _environment(process: psutil.Process) -> Mapping[str, str]:
    """The environment a process was started with; empty if unreadable."""
    import psutil

    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}
