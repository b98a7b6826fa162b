"""Which process holds a session: a process id alone is reused, together with its start time it is not."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process. ``started`` is an opaque text of its start time, empty where the system doesn't tell."""

    pid: int
    started: str

    @classmethod
    def current(cls) -> Process:
        return cls(os.getpid(), _start_time(os.getpid()))

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (a process of another user counts as well)."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        except (OSError, OverflowError):
            return False
        now = _start_time(self.pid)
        return not now or not self.started or now == self.started


def _start_time(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return _start_time_by_ps(pid)
    # The program's name, in parentheses, may itself hold blanks and parentheses.
    fields = stat.rpartition(")")[2].split()
    if fields and fields[0] in ("Z", "X"):
        return "ended"
    return fields[19] if len(fields) > 19 else ""


def _start_time_by_ps(pid: int) -> str:
    try:
        answer = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            timeout=2,
            check=False,
            stdin=subprocess.DEVNULL,
            env={"PATH": os.defpath, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()
