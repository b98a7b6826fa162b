"""Translation of a plan to Landlock rules, for systems without bubblewrap.

Landlock only ever adds rights, and a right on a directory applies to everything below it. A place inside a directory
can therefore only be excluded by naming all its siblings. As a result, no new name can be created directly in a
directory with something protected, above all the top of the workspace.
"""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Sequence

from msgspec import Struct

from swecli.core.permissions.paths import inside
from swecli.core.sandbox.plan import Disk, Plan

_LOAD, _AND, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS, EOPNOTSUPP = 1, 38, 95
_NUMBER, _ARCH, _ARGUMENT = 0, 4, 16
"""Offsets in ``struct seccomp_data``; each argument has eight bytes, the low half first."""
_X32_BIT = 0x40000000
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_SOCKET_TYPE, _STREAM, _SEQUENCED = 0xF, 1, 5
"""The bits of a socket's type, and the types of which a pair stays connected to itself: a datagram socket of a pair can
be sent to any address."""
_CLONE_NEWUSER = 0x10000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


class Architecture(Struct, frozen=True):
    audit: int
    x32: bool
    calls: dict[str, int]


_COMMON = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "clone3": 435,
    "pidfd_getfd": 438,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
}
_NAMES = (
    *("socket", "socketpair", "clone", "unshare", "setns", "ioctl", "add_key", "request_key", "keyctl", "bpf"),
    *("userfaultfd", "perf_event_open", "open_by_handle_at", "kexec_load", "kexec_file_load"),
    *("init_module", "finit_module", "delete_module", "reboot", "ptrace", "process_vm_readv", "process_vm_writev"),
    *("fchmod", "fchmodat", "fchown", "fchownat", "utimensat"),
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink", "prlimit64", "setpriority", "ioprio_set"),
    *("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"),
)
_X86_64 = (
    *(41, 53, 56, 272, 308, 16, 248, 249, 250, 321, 323, 298, 304, 246, 320, 175, 313, 176, 169),
    *(101, 310, 311, 91, 268, 93, 260, 280, 188, 189, 190, 197, 198, 199),
    *(29, 30, 31, 64, 65, 66, 220, 68, 69, 70, 71, 240, 241, 302, 141, 251, 203, 144, 142, 314),
)
_AARCH64 = (
    *(198, 199, 220, 97, 268, 29, 217, 218, 219, 280, 282, 241, 265, 104, 294, 105, 273, 106, 142),
    *(117, 270, 271, 52, 53, 55, 54, 88, 5, 6, 7, 14, 15, 16),
    *(194, 196, 195, 190, 193, 191, 192, 186, 189, 188, 187, 180, 181, 261, 140, 30, 122, 119, 118, 274),
)
_OLD = {"chmod": 90, "chown": 92, "lchown": 94, "utime": 132, "utimes": 235, "futimesat": 261}
"""System calls that newer architectures lack."""
ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, True, {**_COMMON, **_OLD, **dict(zip(_NAMES, _X86_64, strict=True))}),
    "aarch64": Architecture(0xC00000B7, False, {**_COMMON, **dict(zip(_NAMES, _AARCH64, strict=True))}),
}
_REFUSED = (
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl", "bpf"),
    *("userfaultfd", "perf_event_open", "open_by_handle_at", "kexec_load", "kexec_file_load", "init_module"),
    *("finit_module", "delete_module", "reboot", "setns", "pidfd_getfd", "ptrace"),
    *("process_vm_readv", "process_vm_writev"),
)
_MODES = (
    """chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat file_setattr"""
)
_ATTRIBUTES = """setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"""
_SHARED = """shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink"""
_OF_PROCESSES = {
    **dict.fromkeys(("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"), 0),
    **dict.fromkeys(("setpriority", "ioprio_set"), 1),
}
"""Calls that change limits and priorities of a process, and the argument that names it; 0 is the calling one."""
_FLAGS = (0x40086602, 0x401C5820)
"""Requests of ``ioctl`` that set a file's flags or its project: FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR."""


def machine(name: str) -> Architecture | None:
    """The tables for ``os.uname().machine``; None for an unknown one."""
    return ARCHITECTURES.get({"amd64": "x86_64", "arm64": "aarch64"}.get(name, name))


def program(architecture: Architecture, families: Sequence[int], *, namespaces: bool = True) -> bytes:
    """The filter. ``families`` are the address families that sockets may use. Without ``namespaces`` around the command
    no mode, owner, time or attribute of a file can be changed, no limit or priority of another process, and no memory,
    semaphore or queue that processes share by a key or name can be used."""
    calls = architecture.calls
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, architecture.audit),
        _fail(EPERM),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if architecture.x32:
        code += [(_JUMP_AT_LEAST, 0, 1, _X32_BIT), _fail(ENOSYS)]
    for name in _REFUSED:
        code += [(_JUMP_EQUAL, 0, 1, calls[name]), _fail(EPERM)]
    for names, error in () if namespaces else ((_MODES, EPERM), (_ATTRIBUTES, EOPNOTSUPP), (_SHARED, EPERM)):
        for name in names.split():
            code += [(_JUMP_EQUAL, 0, 1, calls[name]), _fail(error)] if name in calls else []
    code += [(_JUMP_EQUAL, 0, 1, calls["clone3"]), _fail(ENOSYS)]
    for name in ("clone", "unshare"):
        code += _when(calls[name], [(_LOAD, 0, 0, _ARGUMENT), (_JUMP_ANY_BIT, 0, 1, _CLONE_NEWUSER), _fail(EPERM)])
    for name, at in () if namespaces else _OF_PROCESSES.items():
        code += _when(calls[name], [(_LOAD, 0, 0, _ARGUMENT + 8 * at), (_JUMP_EQUAL, 1, 0, 0), _fail(EPERM)])
    request = [(_LOAD, 0, 0, _ARGUMENT + 8)]
    requests = (_TIOCSTI, _TIOCLINUX, *(() if namespaces else _FLAGS))
    request += [line for number in requests for line in ((_JUMP_EQUAL, 0, 1, number), _fail(EPERM))]
    code += _when(calls["ioctl"], request)
    code += _when(calls["socket"], [(_LOAD, 0, 0, _ARGUMENT), *_one_of(tuple(families)), _fail(EPERM)])
    pair = [(_LOAD, 0, 0, _ARGUMENT), *_one_of((AF_UNIX,)), _fail(EPERM)]
    if AF_UNIX not in families:
        pair += [(_LOAD, 0, 0, _ARGUMENT + 8), (_AND, 0, 0, _SOCKET_TYPE)]
        pair += [*_one_of((_STREAM, _SEQUENCED)), _fail(EPERM)]
    code += _when(calls["socketpair"], pair)
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in code)


def _fail(number: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERRNO | number)


def _when(number: int, body: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """``body`` for one system call; it ends by allowing, so that the number need not be loaded again."""
    body = [*body, (_RETURN, 0, 0, _ALLOW)]
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _one_of(values: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Skip the next instruction (a refusal) if the loaded value is one of these."""
    last = len(values) - 1
    return [(_JUMP_EQUAL, last - index + 1, 0, value) for index, value in enumerate(values)]


EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in range(13, 16))
_ABI_1_RIGHTS = (1 << 13) - 1
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""Rights that a rule on a single file may have."""
_READ = EXECUTE | READ_FILE | READ_DIR
_CHANGE = (
    WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_MAX_ENTRIES = 2_000
_NET_BIND, _NET_CONNECT = 1, 2
_SCOPE_ABSTRACT, _SCOPE_SIGNAL = 1, 2


class Grant(Struct, frozen=True):
    """Rights on a path and, for a directory, on everything below it."""

    path: str
    rights: int


class Ruleset(Struct, frozen=True):
    """Rights refused by default (``files``, ``net``, ``scope`` as the kernel's bits) and the grants."""

    files: int
    net: int
    scope: int
    grants: tuple[Grant, ...]


def handled(abi: int, *, network: bool) -> tuple[int, int, int]:
    """Rights that this version of the interface can refuse: files, network, scope."""
    files = _ABI_1_RIGHTS
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        files |= right if abi >= since else 0
    net = _NET_BIND | _NET_CONNECT if abi >= 4 and not network else 0
    return files, net, _SCOPE_ABSTRACT | _SCOPE_SIGNAL if abi >= 6 else 0


def uncovered(abi: int, *, network: bool, filtered: bool) -> tuple[str, ...]:
    gaps = [] if filtered else ["modes, owners, times and attributes of your files"]
    gaps += ["names of hidden files", "command lines of other processes"]
    gaps += ["truncating files outside"] if abi < 3 else []
    gaps += ["signals to other programs"] if abi < 6 else []
    return (*gaps, *(("the network", "Unix sockets of other programs") if network else ()))


def holds(abi: int, *, network: bool, filtered: bool) -> bool:
    """Whether commands can write and connect only where allowed: the filter refuses every socket except socket pairs,
    and the kernel supports the right to truncate."""
    return abi >= 3 and filtered and not network


def ruleset(plan: Plan, disk: Disk, abi: int) -> Ruleset:
    """The rules for one command. Entries created later next to something protected have no rights."""
    files, net, scope = handled(abi, network=plan.network)
    grants: dict[str, int] = {}

    def grant(path: str, rights: int) -> None:
        kind = disk.kind(path)
        if kind not in ("missing", "link"):
            allowed = rights & files & (-1 if kind == "directory" else _FILE_RIGHTS)
            grants[path] = grants.get(path, 0) | allowed

    unseen = (*plan.paths("hidden", "denied", "private"), "/dev")
    grant("/", READ_DIR)
    for path in _excluding("/", unseen, disk):
        grant(path, _READ)
    for path in plan.paths("read"):
        grant(path, _READ)
    writable = plan.paths("write")
    spared = (*plan.paths("read", "hidden", "denied"), *(placeholder.path for placeholder in plan.placeholders))
    for path in writable:
        # A folder above something protected is written through its other entries.
        for entry in _excluding(path, spared, disk):
            grant(entry, _READ | _CHANGE)
        grant(path, READ_DIR)
    grant(plan.private, _READ | _CHANGE)
    for path in _DEVICES:
        grant(path, READ_FILE | WRITE_FILE | IOCTL_DEV)
    return Ruleset(files, net, scope, tuple(Grant(path, grants[path]) for path in sorted(grants) if grants[path]))


def _excluding(path: str, left_out: tuple[str, ...], disk: Disk) -> list[str]:
    """Places that together cover ``path`` except the excluded ones: ``path`` itself if it contains none of them."""
    if inside(path, left_out):
        return []
    prefix = path.rstrip("/") + "/"
    below = tuple(excluded for excluded in left_out if excluded.startswith(prefix))
    if not below:
        return [path]
    names = disk.names(path)
    if len(names) > _MAX_ENTRIES:
        return []
    paths: list[str] = []
    for name in names:
        entry = posixpath.join(path, name)
        kind = disk.kind(entry)
        if kind == "directory":
            paths += _excluding(entry, below, disk)
        elif kind in ("file", "other") and entry not in below:
            paths.append(entry)
    return paths
