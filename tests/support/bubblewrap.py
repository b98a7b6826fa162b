"""Whether bubblewrap works here: it may be missing, or the machine may refuse it its namespaces."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache


@cache
def works() -> bool:
    program = shutil.which("bwrap")
    if program is None:
        return False
    trial = [program, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all", "true"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0
