"""Programs in a terminal of their own, timed by what they paint."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 120.0
"""Seconds after which a program counts as stuck."""


@dataclass(frozen=True, slots=True)
class Painted:
    """Seconds from the start of the process until ``marker`` was painted, and the processor seconds that it had used by
    then, which say the same on a busy machine."""

    seconds: float
    cpu: float


def paint(
    command: Sequence[str],
    marker: str,
    cwd: Path,
    variables: Mapping[str, str],
    goodbye: str = "\x04",
    deadline: float = DEADLINE,
) -> Painted:
    """Run ``command`` in a terminal of 80x24 until it shows ``marker``, then type ``goodbye`` and wait for its end.
    After ``deadline`` seconds it counts as stuck.

    Raises:
        RuntimeError: it never painted the marker, or did not end.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        seen = _read_until(master, marker, start + deadline)
        painted = time.perf_counter() - start if seen else None
        used = cpu_seconds(process.pid)
        os.write(master, goodbye.encode())
        _drain(master, process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(master)
    if painted is None:
        raise RuntimeError(f"{' '.join(command)} never showed {marker!r}")
    return Painted(painted, used)


def cpu_seconds(pid: int) -> float:
    """Processor seconds of a process so far; 0 when it is gone."""
    if sys.platform == "linux":  # its clock counts nanoseconds, its statistics hundredths of a second
        try:
            return time.clock_gettime((~pid << 3) | 2)
        except OSError:
            return 0.0
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


def _read_until(master: int, marker: str, end: float) -> bool:
    wanted, tail = marker.encode(), b""
    while time.perf_counter() < end:
        if not select.select([master], [], [], 1.0)[0]:
            continue
        try:
            data = os.read(master, 65_536)
        except OSError:
            return False
        if wanted in tail + data:
            return True
        tail = (tail + data)[-len(wanted) :]
    return False


def _drain(master: int, process: subprocess.Popen[bytes]) -> None:
    """Read on, so that the program can end, for at most ten seconds."""
    end = time.perf_counter() + 10
    while process.poll() is None and time.perf_counter() < end:
        if select.select([master], [], [], 0.05)[0]:
            try:
                os.read(master, 65_536)
            except OSError:
                break
    try:
        process.wait(timeout=max(0.1, end - time.perf_counter()))
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{sys.argv[0]}: a program did not end after it was asked to") from error
