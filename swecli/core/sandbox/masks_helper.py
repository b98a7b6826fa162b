"""Helper process: hides many files in mount and user namespaces of its own, then becomes bubblewrap.

bubblewrap reads the table of all mounts again for each mount, so thousands of them would take it minutes; here each is
one system call. Run by path with ``python -I -S``, so it imports only the standard library and nothing from the
workspace. The arguments: ``DESCRIPTOR -- COMMAND...``; the descriptor has the paths, each ended by a NUL. If any step
fails, the command does not run: the exit status is 126 and the first line of standard error begins with
``swecli sandbox:``.
"""

# The kernel's numbers come from linux/sched.h and linux/mount.h.

import ctypes
import os
import sys

_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
_TIMES = ((os.ST_NOATIME, 1024), (os.ST_NODIRATIME, 2048), (os.ST_RELATIME, 1 << 21))
"""How ``statvfs`` and ``mount`` name the rules about access times, which nobody may loosen."""
_NOTHING = b"/dev/null"
_DEATH_SIGNAL, _SIGKILL = 1, 9
FAILED = 126


def main(arguments: list[str]) -> int:
    """Hide the files and become the command. Returns only on failure."""
    try:
        descriptor, command = int(arguments[0]), arguments[2:]
        with os.fdopen(descriptor, "rb") as stream:
            paths = stream.read().split(b"\0")[:-1]
        libc = ctypes.CDLL(None, use_errno=True)
        _check(libc.prctl(_DEATH_SIGNAL, _SIGKILL, 0, 0, 0), "the death signal")
        _own_namespaces(libc)
        _hide(libc, paths)
        os.execv(command[0], command)
    except (OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"swecli sandbox: {error}\n")
    return FAILED


def _own_namespaces(libc: ctypes.CDLL) -> None:
    user, group = os.geteuid(), os.getegid()
    _check(libc.unshare(_NEW_USER | _NEW_MOUNTS), "a user namespace")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    _check(libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "a mount namespace")


def _hide(libc: ctypes.CDLL, paths: list[bytes]) -> None:
    """Cover each file with a device that can't be opened. The first cover gets that restriction, the others copy it."""
    source, flags = _NOTHING, os.statvfs(_NOTHING).f_flag
    inherited = flags & _NO_PROGRAMS | sum(mount for known, mount in _TIMES if flags & known)
    for path in paths:
        try:
            _check(libc.mount(source, path, None, _BIND, None), f"hiding {os.fsdecode(path)}")
        except FileNotFoundError:
            continue  # it disappeared meanwhile: nothing to hide
        if source is _NOTHING:
            restriction = _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES | inherited
            _check(libc.mount(b"none", path, None, restriction, None), f"closing {os.fsdecode(path)}")
            source = path


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot set up {what}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
