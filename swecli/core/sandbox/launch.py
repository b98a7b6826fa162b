"""One sandboxed command: its prefix, the descriptors it inherits, and its outcome."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.permissions.paths import inside
from swecli.core.sandbox import landlock, seatbelt
from swecli.core.sandbox.bubblewrap import bwrap_argv, version_of
from swecli.core.sandbox.plan import Disk, Layer, Plan
from swecli.lazy_pattern import lazy_pattern

_TAIL = 20_000
"""Characters of output that are examined."""
_READ_ONLY = lazy_pattern(r"read-only file system|\bEROFS\b|errno 30\b", re.IGNORECASE)
_NETWORK = lazy_pattern(
    r"network is unreachable|could not resolve host|temporary failure in name resolution|name or service not known|"
    r"\b(EAI_AGAIN|ENETUNREACH|ENOTFOUND|EAI_NONAME)\b|failed to resolve|name resolution|"
    r"no address associated with hostname|dial (tcp|udp)|unable to resolve|could not connect to server|"
    r"failed to lookup address|getaddrinfo|nodename nor servname",
    re.IGNORECASE,
)
_NOT_PERMITTED = lazy_pattern(r"operation not permitted|\bEPERM\b|errno 1\]", re.IGNORECASE)
_DENIED = lazy_pattern(r"permission denied|\bEACCES\b|errno 13\b|invalid cross-device link|\bEXDEV\b", re.IGNORECASE)
_BUSY = lazy_pattern(r"device or resource busy|\bEBUSY\b|is a directory|\bEISDIR\b", re.IGNORECASE)


def blocked(output: str, status: int | None, plan: Plan, layer: Layer) -> str:
    """The blocked action, as a clause such as "it writes outside the workspace"; empty if the command succeeded or the
    sandbox does not explain its failure."""
    if not status or plan.masks_only:
        return ""
    text = output[-_TAIL:]
    if _READ_ONLY.search(text):
        return "it writes to a read-only path"
    if not plan.network and _NETWORK.search(text):
        return "it needs the network"
    lines = text.splitlines()
    names = {posixpath.basename(path) for path in plan.paths("read", "hidden", "denied")}
    names |= {posixpath.basename(placeholder.path) for placeholder in plan.placeholders}
    for line in lines:
        if (_DENIED.search(line) or _BUSY.search(line)) and any(name in line for name in names):
            return "it touches a protected or secret file"
    if not plan.unix_sockets and any(_NOT_PERMITTED.search(line) and "socket" in line.lower() for line in lines):
        return "it opens a Unix socket (sandbox.unix_sockets)"
    if _NOT_PERMITTED.search(text):
        return "it does something the sandbox does not permit"
    if layer == "landlock" and _DENIED.search(text):
        return "it writes or connects where Landlock does not allow it, such as a new file in the top folder"
    if layer != "bwrap" and _DENIED.search(text):
        return "it writes or connects where the sandbox does not allow it"
    return ""


_RAN = lazy_pattern(rb'"exit-code"\s*:')
_HELPER_FAILED = "swecli sandbox:"


class SandboxError(Exception):
    """The command did not run because the sandbox can't contain it; the message says why."""


class Launch(Struct):
    """``prefix`` precedes the command, ``inherited`` descriptors are open in it, ``environment`` adds to its own. Call
    ``end`` once, after the command has ended or if it was never started."""

    layer: Layer
    plan: Plan
    prefix: Sequence[str]
    descriptors: Sequence[int] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: {})
    status: int | None = None
    """Descriptor on which bubblewrap reports the outcome."""
    lock: int | None = None
    """Inherited too: it marks the command as running. ``release`` closes it."""
    release: Callable[[], object] = lambda: None
    undo: Callable[[], Sequence[str]] = tuple
    """Removes control files (files that control other programs) made by the command, and names them."""

    @property
    def inherited(self) -> tuple[int, ...]:
        return (*self.descriptors, *(() if self.lock is None else (self.lock,)))

    def end(self) -> None:
        for descriptor in {*self.descriptors, *(() if self.status is None else (self.status,))}:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.descriptors, self.status, self.lock = (), None, None
        self.undone()
        release, self.release = self.release, lambda: None
        release()

    def undone(self) -> Sequence[str]:
        """Paths undone since the previous call."""
        undo, self.undo = self.undo, tuple
        return undo()

    def failure(self, output: str, status: int | None) -> str:
        """Why the sandbox could not be set up, so that the command never ran; empty if it ran. Call it before ``end``;
        a killed command counts as run."""
        if status is None or status == 0:
            return ""
        line = output.strip().partition("\n")[0][:300]
        if self.layer == "landlock":
            return line if status == 126 and output.startswith(_HELPER_FAILED) else ""
        if self.layer != "bwrap" or self.status is None or not output.startswith(("bwrap: ", _HELPER_FAILED)):
            return ""
        try:
            outcome = os.read(self.status, 65_536)
        except BlockingIOError:
            outcome = b""
        return "" if _RAN.search(outcome) else line

    def blocked(self, output: str, status: int | None) -> str:
        """What the sandbox stopped or undid, as a clause; empty if nothing indicates it. Takes a moment."""
        undone = self.undone()
        if undone:
            more = f" and {len(undone) - 1} more" if len(undone) > 1 else ""
            return f"it writes {undone[0]}{more}, which controls other programs; swecli reverted that"
        return blocked(output, status, self.plan, self.layer)


HELPER = Path(__file__).with_name("landlock_helper.py")
MASKS_HELPER = Path(__file__).with_name("masks_helper.py")
_FEW_MASKED = 100
"""Hidden files from which on the helper, which takes 40 ms to start, is faster than bubblewrap."""
_CREATE_RULESET, _VERSION_FLAG = 444, 1
_SECONDS = 5.0


async def begun(begin: Callable[[], Launch]) -> Launch:
    """A launch begun in a thread; one that a cancelled caller no longer waits for ends as soon as it has begun.

    Raises:
        SandboxError: it can't be sandboxed.
    """
    starting = asyncio.ensure_future(asyncio.to_thread(begin))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_abandon)
        raise


def _abandon(starting: asyncio.Future[Launch]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().end()


class Bubblewrap(Struct, frozen=True):
    """The installed program. ``identity`` changes if another one replaces it."""

    path: str
    version: tuple[int, int, int]
    identity: str

    @property
    def name(self) -> str:
        return f"bubblewrap {'.'.join(str(part) for part in self.version)}"


def find_bubblewrap(environment: Mapping[str, str], roots: Sequence[str]) -> Bubblewrap | str:
    """The system's bubblewrap on PATH, never one from the workspace; or why there is none, as a clause."""
    entries = [
        entry
        for entry in environment.get("PATH", os.defpath).split(os.pathsep)
        if entry.startswith("/") and not inside(os.path.realpath(entry), roots)
    ]
    program = shutil.which("bwrap", path=os.pathsep.join(entries)) if entries else None
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    path = os.path.realpath(program)
    if inside(path, roots):
        return f"{program} is a program in the workspace"
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
        stat = os.stat(path)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot run {path}: {error}"
    version = version_of(answer.stdout) if answer.returncode == 0 else None
    if version is None:
        return f"{path} reports no version"
    return Bubblewrap(path, version, f"{stat.st_dev}:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}")


_INSTALLERS = (
    ("apt install", "debian ubuntu linuxmint pop raspbian kali"),
    ("dnf install", "fedora rhel centos rocky almalinux amzn ol"),
    ("pacman -S", "arch manjaro endeavouros cachyos"),
    ("zypper install", "suse opensuse sles"),
    ("apk add", "alpine"),
    ("xbps-install -S", "void"),
    ("emerge", "gentoo"),
    ("nix-env -iA nixos.", "nixos"),
)


def install_hint(os_release: str) -> str:
    """The command that installs bubblewrap on the system that ``/etc/os-release`` describes."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    ids = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".replace('"', "").replace("'", "").casefold().split()
    for name in ids:
        for command, systems in _INSTALLERS:
            if name in systems.split() or any(name.startswith(f"{system}-") for system in systems.split()):
                return f"sudo {command}{'' if command.endswith('.') else ' '}bubblewrap"
    return "install the package bubblewrap"


def advice() -> str:
    """How to install bubblewrap here, as a sentence."""
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return f"A full sandbox asks less: {install_hint(text)}."


def landlock_abi() -> int:
    """The kernel's Landlock version; 0 for none."""
    if sys.platform != "linux":
        return 0
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        version = int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG))
    except (OSError, AttributeError):
        return 0
    return max(0, version)


@functools.cache
def filter_program(machine: str, layer: str, network: bool, unix_sockets: bool = False) -> bytes:
    """The system call filter for a layer; empty on an unknown machine. In their own network namespace commands may
    connect to themselves; without one only socket pairs are allowed. A Unix socket of another program can be connected
    wherever its name is visible: neither a read-only mount nor Landlock keeps a command from that, and the filter does
    not see the address. Therefore none can be opened, except by ``unix_sockets``. Landlock covers neither metadata nor
    what processes share, so there no command may change that."""
    known = landlock.machine(machine)
    if known is None:
        return b""
    internet = (landlock.AF_INET, landlock.AF_INET6, landlock.AF_NETLINK)
    families = internet if layer == "bwrap" or network else ()
    if unix_sockets or (layer != "bwrap" and network):
        families = (landlock.AF_UNIX, *families)
    return landlock.program(known, families, namespaces=layer == "bwrap")


def can_mask_many(roots: Sequence[str]) -> bool:
    """Whether the helper that hides many files works here; never if a command could change it or its interpreter."""
    interpreter = os.path.realpath(sys.executable)
    return not any(inside(path, roots) for path in (interpreter, str(MASKS_HELPER))) and _masks_work(interpreter)


@functools.cache
def _masks_work(interpreter: str) -> bool:
    """Try it with a file: it must run the command, and the command must not be able to open the file."""
    with tempfile.NamedTemporaryFile() as file:
        descriptor = _listed([file.name])
        command = [*_helper(interpreter, descriptor), interpreter, "-I", "-S", "-c", _OPENS, file.name]
        try:
            answer = subprocess.run(
                command,
                pass_fds=(descriptor,),
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        finally:
            os.close(descriptor)
    return answer.returncode == _REFUSED


_REFUSED = 77
_OPENS = f"""
import sys
try:
    open(sys.argv[1])
except PermissionError:
    sys.exit({_REFUSED})
"""


def _helper(interpreter: str, descriptor: int) -> list[str]:
    return [interpreter, "-I", "-S", "-B", str(MASKS_HELPER), str(descriptor), "--"]


def _listed(paths: Sequence[str]) -> int:
    """A descriptor to read the paths from."""
    descriptor = os.memfd_create("masks", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.write(b"".join(os.fsencode(path) + b"\0" for path in paths))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def launch_bubblewrap(found: Bubblewrap, plan: Plan, cwd: str, lock: int | None) -> Launch:
    """A command in bubblewrap, which keeps ``lock`` open.

    Raises:
        SandboxError: no descriptor is available.
    """
    opened: list[int] = []
    denied = plan.paths("denied")
    apart = len(denied) > _FEW_MASKED and can_mask_many(plan.roots)
    try:
        if apart:
            opened.append(_listed(denied))
        code = b"" if plan.masks_only else filter_program(os.uname().machine, "bwrap", plan.network, plan.unix_sockets)
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
        raise SandboxError(f"cannot set up the sandbox: {error.strerror}") from error
    opened.append(writer)
    visible = replace(plan, mounts=tuple(mount for mount in plan.mounts if mount.access != "denied")) if apart else plan
    argv = bwrap_argv(
        found.path,
        visible,
        cwd,
        version=found.version,
        seccomp=filter_,
        status=writer,
        lock=lock,
        root=os.geteuid() == 0,
    )
    if apart:
        argv = [*_helper(os.path.realpath(sys.executable), opened[0]), *argv]
    changes = {} if plan.masks_only else _changes("bwrap", plan.temporary)
    return Launch("bwrap", plan, argv, tuple(opened), changes, reader, lock)


def launch_landlock(plan: Plan, abi: int) -> Launch:
    """A command under Landlock and the filter, through the helper.

    Raises:
        SandboxError: a sandboxed command could change the interpreter or the helper.
    """
    interpreter = os.path.realpath(sys.executable)
    rules = landlock.ruleset(plan, Disk(), abi)
    code = filter_program(os.uname().machine, "landlock", plan.network, plan.unix_sockets)
    argv = [interpreter, "-I", "-S", "-B", str(HELPER)]
    argv += [str(rules.files), str(rules.net), str(rules.scope), str(abi), code.hex()]
    for grant in rules.grants:
        argv += [str(grant.rights), grant.path]
    return Launch("landlock", plan, [*argv, "--"], (), _changes("landlock", plan.private))


def launch_seatbelt(plan: Plan) -> Launch:
    return Launch("seatbelt", plan, seatbelt.seatbelt_argv(plan), (), _changes("seatbelt", plan.private))


def _changes(layer: str, temporary: str) -> dict[str, str]:
    return {"SWECLI_SANDBOX": layer, "TMPDIR": temporary, "TMP": temporary, "TEMP": temporary}
