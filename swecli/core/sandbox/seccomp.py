"""The system call filter: a classic BPF program as bytes.

It refuses what namespaces and Landlock leave open: sockets of families that no namespace separates, io_uring, kernel
keyrings, new user namespaces, input injected into a terminal. Refused calls fail with EPERM; ``clone3`` says ENOSYS,
because its flags are in memory that a filter can't read, and C libraries then use ``clone``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
_NUMBER, _ARCH, _ARGUMENT = 0, 4, 16
"""Offsets in ``struct seccomp_data``; each argument has eight bytes, the low half first."""
_X32_BIT = 0x40000000
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_CLONE_NEWUSER = 0x10000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


@dataclass(frozen=True, slots=True)
class Architecture:
    """Audit number of a machine and its system call numbers."""

    audit: int
    x32: bool
    calls: dict[str, int]


_COMMON = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435, "pidfd_getfd": 438}
_NAMES = (
    *("socket", "socketpair", "clone", "unshare", "setns", "ioctl", "add_key", "request_key", "keyctl", "bpf"),
    *("userfaultfd", "perf_event_open", "open_by_handle_at", "kexec_load", "kexec_file_load"),
    *("init_module", "finit_module", "delete_module", "reboot"),
)
_X86_64 = (41, 53, 56, 272, 308, 16, 248, 249, 250, 321, 323, 298, 304, 246, 320, 175, 313, 176, 169)
_AARCH64 = (198, 199, 220, 97, 268, 29, 217, 218, 219, 280, 282, 241, 265, 104, 294, 105, 273, 106, 142)
ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, True, {**_COMMON, **dict(zip(_NAMES, _X86_64, strict=True))}),
    "aarch64": Architecture(0xC00000B7, False, {**_COMMON, **dict(zip(_NAMES, _AARCH64, strict=True))}),
}
_REFUSED = (
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl", "bpf"),
    *("userfaultfd", "perf_event_open", "open_by_handle_at", "kexec_load", "kexec_file_load", "init_module"),
    *("finit_module", "delete_module", "reboot", "setns", "pidfd_getfd"),
)


def machine(name: str) -> Architecture | None:
    """The tables for ``os.uname().machine``; None for one that is not known here."""
    return ARCHITECTURES.get({"amd64": "x86_64", "arm64": "aarch64"}.get(name, name))


def program(architecture: Architecture, families: Sequence[int]) -> bytes:
    """The filter. ``families`` are the address families that sockets may have."""
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
    code += [(_JUMP_EQUAL, 0, 1, calls["clone3"]), _fail(ENOSYS)]
    for name in ("clone", "unshare"):
        code += _when(calls[name], [(_LOAD, 0, 0, _ARGUMENT), (_JUMP_ANY_BIT, 0, 1, _CLONE_NEWUSER), _fail(EPERM)])
    request = [(_LOAD, 0, 0, _ARGUMENT + 8)]
    request += [line for number in (_TIOCSTI, _TIOCLINUX) for line in ((_JUMP_EQUAL, 0, 1, number), _fail(EPERM))]
    code += _when(calls["ioctl"], request)
    for name, allowed in (("socket", tuple(families)), ("socketpair", (AF_UNIX,))):
        code += _when(calls[name], [(_LOAD, 0, 0, _ARGUMENT), *_one_of(allowed), _fail(EPERM)])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in code)


def _fail(number: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERRNO | number)


def _when(number: int, body: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """``body`` for one system call; it ends with an allowing return, so that the number need not be loaded again."""
    body = [*body, (_RETURN, 0, 0, _ALLOW)]
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _one_of(values: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Skips the next instruction (a refusal) if the loaded value is one of these."""
    last = len(values) - 1
    return [(_JUMP_EQUAL, last - index + 1, 0, value) for index, value in enumerate(values)]
