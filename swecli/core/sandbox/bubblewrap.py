"""From a plan to the arguments of bubblewrap (``bwrap``)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from swecli.core.sandbox.values import Mount, Plan

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr")
"""Of /proc: settings of the kernel that root may write even without any of its powers."""
DISABLE_USERNS = (0, 8, 0)
"""First version that can forbid further user namespaces."""


def version_of(text: str) -> tuple[int, int, int] | None:
    """The version in the output of ``bwrap --version``."""
    found = _VERSION.search(text)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3] or 0))


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
    """Everything up to the command. ``seccomp`` is a descriptor to read the filter from, ``status`` one to write the
    outcome to as JSON, ``lock`` one to hold open as long as anything runs inside. ``root``: the user is root."""
    argv = [program, "--unshare-user", "--unshare-ipc", "--unshare-pid"]
    if not plan.network:
        argv.append("--unshare-net")
    if version >= DISABLE_USERNS:
        argv.append("--disable-userns")
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for name in _KERNEL if root else ():
        argv += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    for mount in plan.mounts:
        argv += _mount(mount, plan)
    # Last, because what lies deeper needs its mount point made first.
    argv += _each("--remount-ro", [mount.path for mount in plan.mounts if mount.access == "hidden" and mount.directory])
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
            # The other one, /dev/shm, is new already: --dev makes it.
            return ["--bind", plan.private, mount.path] if mount.path == plan.temporary else []
        case "hidden" if mount.directory:
            return ["--tmpfs", mount.path]
        case "hidden":
            return ["--dev-bind", "/dev/null", mount.path]
        case "denied":
            return ["--ro-bind", "/dev/null", mount.path]


def _each(option: str, paths: Sequence[str]) -> list[str]:
    return [word for path in paths for word in (option, path)]
