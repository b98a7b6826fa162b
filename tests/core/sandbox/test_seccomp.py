from __future__ import annotations

import errno
import struct

import pytest

from swecli.core.sandbox.landlock import (
    AF_INET,
    AF_NETLINK,
    AF_UNIX,
    ARCHITECTURES,
    EPERM,
    Architecture,
    machine,
    program,
)

ALLOW = 0
ENOSYS = errno.ENOSYS


def judge(code: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Runs the program as the kernel does; 0 for allowed, else the error number."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(*arguments, *([0] * (6 - len(arguments)))))
    lines = list(struct.iter_unpack("<HBBI", code))
    at = value = 0
    while True:
        operation, yes, no, constant = lines[at]
        at += 1
        match operation:
            case 0x20:
                value = struct.unpack_from("<I", data, constant)[0]
            case 0x54:
                value &= constant
            case 0x15:
                at += yes if value == constant else no
            case 0x35:
                at += yes if value >= constant else no
            case 0x45:
                at += yes if value & constant else no
            case 0x06:
                return ALLOW if constant == 0x7FFF0000 else constant & 0xFFFF
            case _:
                raise AssertionError(f"unknown operation {operation:#x}")


@pytest.fixture(params=ARCHITECTURES)
def architecture(request: pytest.FixtureRequest) -> Architecture:
    return ARCHITECTURES[request.param]


def test_sockets_of_the_named_families_only(architecture: Architecture) -> None:
    code, calls = program(architecture, (AF_UNIX, AF_INET)), architecture.calls
    for family in range(50):
        allowed = family in (AF_UNIX, AF_INET)
        assert judge(code, architecture.audit, calls["socket"], family) == (ALLOW if allowed else EPERM)
        assert judge(code, architecture.audit, calls["socketpair"], family) == (ALLOW if family == AF_UNIX else EPERM)


def test_a_pair_can_only_be_connected_to_itself(architecture: Architecture) -> None:
    pair = architecture.calls["socketpair"]
    without, with_unix = (program(architecture, families) for families in ((AF_INET,), (AF_UNIX,)))
    for kind in range(11):
        for flags in (0, 0o2000000, 0o4000):
            expected = ALLOW if kind in (1, 5) else EPERM
            assert judge(without, architecture.audit, pair, AF_UNIX, kind | flags) == expected
            assert judge(with_unix, architecture.audit, pair, AF_UNIX, kind | flags) == ALLOW
    assert judge(without, architecture.audit, pair, AF_INET, 1) == EPERM


def test_without_namespaces_other_processes_and_what_they_share_are_out_of_reach(architecture: Architecture) -> None:
    free, calls = program(architecture, (AF_INET,)), architecture.calls
    shut = program(architecture, (AF_INET,), namespaces=False)
    for name in ("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "msgget", "msgsnd", "mq_open", "mq_unlink"):
        assert judge(free, architecture.audit, calls[name]) == ALLOW, name
        assert judge(shut, architecture.audit, calls[name]) == EPERM, name
    for name, before in (("prlimit64", ()), ("sched_setaffinity", ()), ("setpriority", (2,)), ("ioprio_set", (1,))):
        assert judge(free, architecture.audit, calls[name], *before, 77) == ALLOW, name
        assert judge(shut, architecture.audit, calls[name], *before, 77) == EPERM, name
        assert judge(shut, architecture.audit, calls[name], *before, 0) == ALLOW, name


def test_calls_that_no_namespace_separates_are_refused(architecture: Architecture) -> None:
    code, calls = program(architecture, (AF_UNIX, AF_NETLINK)), architecture.calls
    for name in (
        "io_uring_setup",
        "io_uring_enter",
        "keyctl",
        "add_key",
        "bpf",
        "setns",
        "open_by_handle_at",
        "reboot",
    ):
        assert judge(code, architecture.audit, calls[name]) == EPERM, name
    assert judge(code, architecture.audit, calls["clone3"]) == ENOSYS


def test_new_user_namespaces_and_injected_input_are_refused(architecture: Architecture) -> None:
    code, calls = program(architecture, (AF_UNIX,)), architecture.calls
    for name in ("clone", "unshare"):
        assert judge(code, architecture.audit, calls[name], 0x10000000 | 17) == EPERM
        assert judge(code, architecture.audit, calls[name], 17) == ALLOW
    for request, verdict in ((0x5412, EPERM), (0x541C, EPERM), (0x5413, ALLOW)):
        assert judge(code, architecture.audit, calls["ioctl"], 0, request) == verdict


def test_everyday_calls_pass_and_other_machines_do_not(architecture: Architecture) -> None:
    code = program(architecture, (AF_UNIX,))
    refused = set(architecture.calls.values())
    assert all(judge(code, architecture.audit, number) == ALLOW for number in range(450) if number not in refused)
    assert judge(code, 0x40000003, 1) == EPERM, "32-bit calls have other numbers"
    if architecture.x32:
        assert judge(code, architecture.audit, 0x40000000 | 41, AF_INET) == ENOSYS


def test_names_of_machines() -> None:
    assert machine("arm64") is machine("aarch64") is ARCHITECTURES["aarch64"]
    assert machine("amd64") is ARCHITECTURES["x86_64"]
    assert machine("riscv64") is None


def test_no_metadata_changes_where_nothing_else_prevents_it(architecture: Architecture) -> None:
    free, calls = program(architecture, (AF_UNIX,)), architecture.calls
    shut = program(architecture, (AF_UNIX,), namespaces=False)
    for name in (
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "fchown",
        "fchownat",
        "utimensat",
        "file_setattr",
        "chmod",
        "utime",
    ):
        if name in calls:
            assert judge(free, architecture.audit, calls[name]) == ALLOW, name
            assert judge(shut, architecture.audit, calls[name]) == EPERM, name
    for name in ("setxattr", "fsetxattr", "setxattrat", "removexattr", "fremovexattr", "removexattrat"):
        assert judge(free, architecture.audit, calls[name]) == ALLOW, name
        assert judge(shut, architecture.audit, calls[name]) == errno.EOPNOTSUPP, name
    for request in (0x40086602, 0x401C5820):
        assert judge(free, architecture.audit, calls["ioctl"], 3, request) == ALLOW
        assert judge(shut, architecture.audit, calls["ioctl"], 3, request) == EPERM


def test_no_process_is_traced(architecture: Architecture) -> None:
    code, calls = program(architecture, (AF_UNIX,)), architecture.calls
    for name in ("ptrace", "process_vm_readv", "process_vm_writev"):
        assert judge(code, architecture.audit, calls[name]) == EPERM, name
