"""What this machine offers to contain commands with."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swecli.core.permissions.paths import inside
from swecli.core.sandbox import landlock, seatbelt, seccomp
from swecli.core.sandbox.bubblewrap import bwrap_argv, version_of
from swecli.core.sandbox.disk import OsDisk
from swecli.core.sandbox.launch import Launch, SandboxError
from swecli.core.sandbox.values import Plan

HELPER = Path(__file__).with_name("landlock_helper.py")
_CREATE_RULESET, _VERSION_FLAG = 444, 1
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program, as it was found. ``identity`` changes when another one takes its place."""

    path: str
    version: tuple[int, int, int]
    identity: str

    @property
    def name(self) -> str:
        return f"bubblewrap {'.'.join(str(part) for part in self.version)}"


def find_bubblewrap(environment: Mapping[str, str], roots: Sequence[str]) -> Bubblewrap | str:
    """The system's bubblewrap by PATH, never one of the workspace; or why there is none, as a clause."""
    entries = [
        entry
        for entry in environment.get("PATH", os.defpath).split(os.pathsep)
        if entry.startswith("/") and not inside(os.path.realpath(entry), roots)
    ]
    found = shutil.which("bwrap", path=os.pathsep.join(entries)) if entries else None
    if found is None:
        return "bubblewrap (bwrap) is not installed"
    path = os.path.realpath(found)
    if inside(path, roots):
        return f"{found} is a program of the workspace"
    try:
        told = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
        stat = os.stat(path)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} can't be run: {error}"
    version = version_of(told.stdout) if told.returncode == 0 else None
    if version is None:
        return f"{path} does not tell its version"
    return Bubblewrap(path, version, f"{stat.st_dev}:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}")


def landlock_abi() -> int:
    """The version of Landlock that the kernel offers; 0 for none."""
    if sys.platform != "linux":
        return 0
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        version = int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG))
    except (OSError, AttributeError):
        return 0
    return max(0, version)


@functools.cache
def filter_program(machine: str, layer: str, network: bool) -> bytes:
    """The system call filter for a layer; empty where the machine's calls are not known. Inside a network of their own
    commands may talk to themselves; without one they may not open a network socket at all."""
    known = seccomp.machine(machine)
    if known is None:
        return b""
    families = (seccomp.AF_UNIX, seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK)
    return seccomp.program(known, families if layer == "bwrap" or network else families[:1])


def launch_bubblewrap(found: Bubblewrap, plan: Plan, cwd: str, lock: int | None) -> Launch:
    """A command in bubblewrap. ``lock`` is held open by it.

    Raises:
        SandboxError: a descriptor can't be had.
    """
    opened: list[int] = []
    try:
        code = filter_program(os.uname().machine, "bwrap", plan.network)
        filter_ = None
        if code:
            filter_ = os.memfd_create("filter", os.MFD_CLOEXEC)
            opened.append(filter_)
            os.write(filter_, code)
            os.lseek(filter_, 0, os.SEEK_SET)
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        for descriptor in opened:
            os.close(descriptor)
        raise SandboxError(f"the sandbox can't be set up: {error.strerror}") from error
    opened.append(writer)
    argv = bwrap_argv(
        found.path,
        plan,
        cwd,
        version=found.version,
        seccomp=filter_,
        status=writer,
        lock=lock,
        root=os.geteuid() == 0,
    )
    return Launch("bwrap", plan, argv, tuple(opened), _changes("bwrap", plan.temporary), reader, lock)


def launch_landlock(plan: Plan, abi: int) -> Launch:
    """A command under Landlock and the filter, through the helper.

    Raises:
        SandboxError: the interpreter or the helper could be changed by what runs in the sandbox.
    """
    interpreter = os.path.realpath(sys.executable)
    rules = landlock.ruleset(plan, OsDisk(), abi)
    code = filter_program(os.uname().machine, "landlock", plan.network)
    argv = [interpreter, "-I", "-S", "-B", str(HELPER)]
    argv += [str(rules.files), str(rules.net), str(rules.scope), str(abi), code.hex()]
    for grant in rules.grants:
        argv += [str(grant.rights), grant.path]
    return Launch("landlock", plan, [*argv, "--"], (), _changes("landlock", plan.private))


def launch_seatbelt(plan: Plan) -> Launch:
    """A command under a seatbelt profile."""
    return Launch("seatbelt", plan, seatbelt.seatbelt_argv(plan), (), _changes("seatbelt", plan.private))


def _changes(layer: str, temporary: str) -> dict[str, str]:
    return {"SWECLI_SANDBOX": layer, "TMPDIR": temporary, "TMP": temporary, "TEMP": temporary}
