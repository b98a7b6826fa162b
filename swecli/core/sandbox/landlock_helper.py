"""Helper process: applies Landlock rules and a system call filter to itself, then becomes the command.

Run by path with ``python -I -S``, so it imports only the standard library and nothing from the workspace. The
arguments: ``FILES NET SCOPE AUDIT-ABI FILTER-HEX [RIGHTS PATH]... -- COMMAND...``. If any step fails, the command does
not run: the exit status is 126 and the first line of standard error begins with ``swecli sandbox:``.
"""

# The kernel's names and numbers come from linux/landlock.h, linux/seccomp.h and linux/prctl.h.

import ctypes
import os
import struct
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER, _DROP_BOUNDING, _DEATH_SIGNAL = 38, 22, 2, 24, 1
_LAST_CAPABILITY = 63
_SIGKILL = 9
_CAPABILITY_VERSION = 0x20080522

FAILED = 126


class HelperError(Exception):
    """A step failed; the message names it."""


def main(arguments: list[str]) -> int:
    """Restrict this process and become the command. Returns only on failure."""
    try:
        split = arguments.index("--")
        files, net, scope, abi = (int(word) for word in arguments[:4])
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall.restype = ctypes.c_long
        _check(libc.prctl(_DEATH_SIGNAL, _SIGKILL, 0, 0, 0), "the death signal")
        _drop_capabilities(libc)
        _check(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
        _landlock(libc, (files, net, scope, abi), arguments[5:split])
        _seccomp(libc, bytes.fromhex(arguments[4]))
        command = arguments[split + 1 :]
        os.execvp(command[0], command)
    except (HelperError, OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"swecli sandbox: {error}\n")
    return FAILED


def _landlock(libc: ctypes.CDLL, wanted: tuple[int, int, int, int], grants: list[str]) -> None:
    files, net, scope, abi = wanted
    attributes = struct.pack("=Q", files)
    attributes += struct.pack("=Q", net) if abi >= 4 else b""
    attributes += struct.pack("=Q", scope) if abi >= 6 else b""
    ruleset = libc.syscall(_CREATE, ctypes.c_char_p(attributes), ctypes.c_size_t(len(attributes)), 0)
    _check(ruleset, "the Landlock rules")
    for rights, path in zip(grants[::2], grants[1::2], strict=True):
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # it disappeared meanwhile: nothing to grant
        rule = struct.pack("=Qi", int(rights), descriptor)
        _check(libc.syscall(_ADD, ruleset, _PATH_BENEATH, ctypes.c_char_p(rule), 0), f"the rule for {path}")
        os.close(descriptor)
    _check(libc.syscall(_RESTRICT, ruleset, 0), "Landlock")
    os.close(ruleset)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop root's capabilities from the process and its successors; a no-op for other users."""
    if os.geteuid() != 0:
        return
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    nothing = bytes(24)
    _check(libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(nothing)), "dropping capabilities")


def _seccomp(libc: ctypes.CDLL, code: bytes) -> None:
    if not code:
        return
    memory = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("@HP", len(code) // 8, ctypes.addressof(memory))
    _check(libc.prctl(_SET_SECCOMP, _FILTER, ctypes.c_char_p(filter_), 0, 0), "the system call filter")


def _check(result: int, step: str) -> None:
    if result < 0:
        raise HelperError(f"{step} failed: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
