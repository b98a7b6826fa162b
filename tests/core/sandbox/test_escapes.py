"""Ways out of the sandbox, tried for real. What is reached is looked at from outside.

Under bubblewrap none may succeed. Under Landlock exactly those that the documentation names do.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.workspace import process_tree
from tests.core.sandbox.support import PYTHON, SECRET, Grounds, contained, laid_out
from tests.support.waiting import PATIENCE

PRELUDE = """
import ctypes, os, signal, socket, stat, subprocess, sys
sys.tracebacklimit = 0  # from Python 3.13 on a traceback quotes this code, and with it the word that tells of success
WORK, OUT, HOME, OWN, SOCK, ABSTRACT, TCP, UDP, PID = sys.argv[1:10]
TCP, UDP, PID = int(TCP), int(UDP), int(PID)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
CLONE, KEYCTL, HANDLE, USERFAULT = (56, 250, 304, 323) if os.uname().machine == "x86_64" else (220, 219, 265, 282)
KEY = int(sys.argv[10])
os.chdir(WORK)
def write(path, text="pwned"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as stream:
        stream.write(text)
def opened(result):
    if result >= 0:
        print("OPENED")
def try_(action, *arguments):
    try:
        return action(*arguments)
    except OSError:
        return None
"""

ESCAPES = {
    # writing outside
    "create a file": 'write(OUT + "/new")',
    "overwrite a file": 'write(OUT + "/victim")',
    "append to a file": 'open(OUT + "/victim", "a").write("x")',
    "truncate a file": 'os.truncate(OUT + "/victim", 0)',
    "remove a file": 'os.unlink(OUT + "/victim")',
    "make a directory": 'os.mkdir(OUT + "/d")',
    "move a file out": 'os.rename("source/a.txt", OUT + "/a.txt")',
    "move a file in": 'os.rename(OUT + "/victim", "source/victim")',
    "exchange two names": 'libc.renameat2(-100, (OUT + "/victim").encode(), -100, b"source/a.txt", 2)',
    "write through a hard link": 'os.link(OUT + "/victim", "source/link"); write("source/link")',
    "write through a symbolic link": 'os.symlink(OUT + "/victim", "source/link"); write("source/link")',
    "write through a linked directory": 'os.symlink(OUT, "source/link"); write("source/link/new")',
    "leave by parent directories": 'write("source/../../outside/new")',
    "write start-up files of the shell": 'write(HOME + "/.bashrc")',
    "make a device": 'os.mknod("source/disk", stat.S_IFBLK | 0o600, os.makedev(8, 0)); print("OPENED")',
    "write kernel settings": 'open("/proc/sys/kernel/core_pattern", "r+"); print("OPENED")',
    "write settings of devices": "places = ('/sys/kernel/uevent_helper', '/sys/kernel/mm/ksm/run', '/sys/power/state', "
    "'/sys/fs/cgroup/cgroup.procs', '/proc/sysrq-trigger')\n"
    "[print('OPENED') for path in places if try_(open, path, 'r+')]",
    # metadata
    "change a mode": 'os.chmod(OUT + "/victim", 0o777)',
    "change a mode by a descriptor": 'os.fchmod(os.open(OUT + "/victim", os.O_RDONLY), 0o777)',
    "change an owner": 'os.chown(OUT + "/victim", 1234, 1234)',
    "change a time": 'os.utime(OUT + "/victim", (1, 1))',
    "change a time by a descriptor": 'os.utime(os.open(OUT + "/victim", os.O_RDONLY), (1, 1))',
    "change an attribute": 'os.setxattr(OUT + "/victim", "user.x", b"1")',
    "change an attribute by a descriptor": 'os.setxattr(os.open(OUT + "/victim", os.O_RDONLY), "user.x", b"1")',
    "change a flag": "import fcntl; flags = bytearray(8)\n"
    'fcntl.ioctl(os.open(OUT + "/victim", os.O_RDONLY), 0x40086602, flags); print("OPENED")',
    # what other programs obey
    "plant a hook": 'write(".git/hooks/pre-commit")',
    "change git's configuration": 'write(".git/config", "[core]\\nfsmonitor=/bin/x\\n")',
    "replace git's configuration": 'write(".git/new"); os.rename(".git/new", ".git/config")',
    "move .git away": 'os.rename(".git", "gone"); write(".git/hooks/pre-commit")',
    "make a common directory": 'write(".git/commondir", "../source")',
    "make attributes": 'write(".git/info/attributes", "* filter=x")',
    "make a second configuration": 'write(".git/config.worktree")',
    "exchange .git": 'os.mkdir("source/.git"); libc.renameat2(-100, b".git", -100, b"source/.git", 2); '
    'write(".git/hooks/pre-commit")',
    "change swecli's configuration": 'write(".swecli/config.toml")',
    "replace swecli's folder": 'os.rename(".swecli", "gone"); write(".swecli/config.toml")',
    "make a server configuration": 'write(".mcp.json")',
    "make editor tasks": 'write(".vscode/tasks.json")',
    "make a link in place of an editor's folder": 'os.symlink("source", ".idea")',
    "plant a submodule's settings": 'try_(os.makedirs, ".git/modules/x"); write(".git/modules/x/config")',
    "plant a work tree": 'try_(os.makedirs, ".git/worktrees/x"); write(".git/worktrees/x/commondir")',
    "make an environment file": 'try_(os.rmdir, ".envrc"); write(".envrc")',
    "plant a hook in a repository inside": 'write("nested/.git/hooks/pre-commit")',
    "move the folder of a repository inside": 'os.rename("nested", "gone"); write("nested/.git/hooks/pre-commit")',
    # secrets
    "read the project's secrets": 'print(open(".env").read())',
    "move secrets aside and read them": 'os.rename(".env", "env"); print(open("env").read())',
    "link secrets and read them": 'os.link(".env", "source/env"); print(open("source/env").read())',
    "read keys": 'print(open(HOME + "/.ssh/id_ed25519").read())',
    "read passwords": 'print(open(HOME + "/.netrc").read())',
    "read swecli's own data": 'print(open(OWN + "/log").read())',
    # the network and other programs
    "connect": 'socket.create_connection(("127.0.0.1", TCP), 2)',
    "send a datagram": 'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", UDP))',
    "use an abstract socket": 's = socket.socket(socket.AF_UNIX); s.connect("\\0" + ABSTRACT)',
    "use the socket of a service": "s = socket.socket(socket.AF_UNIX); s.connect(SOCK)",
    "send a datagram by a pair": "s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
    "s.sendto(b'x', SOCK + 'd')",
    "connect a pair elsewhere": "s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
    "s.connect(SOCK + 'd'); s.send(b'x')",
    "send by a raw pair": "s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW); s.sendto(b'x', SOCK + 'd')",
    "connect a stream of a pair again": "s, _ = socket.socketpair(); s.connect(SOCK)",
    "pass on a descriptor and write by it": "a, b = socket.socketpair()\n"
    "socket.send_fds(a, [b'x'], [os.open(OUT + '/victim', os.O_RDONLY)])\n"
    "os.write(socket.recv_fds(b, 1, 1)[1][0], b'x')",
    "reopen a descriptor for writing": "f = os.open(OUT + '/victim', os.O_RDONLY)\n"
    "os.write(os.open(f'/proc/self/fd/{f}', os.O_WRONLY), b'x')",
    "go through the own root": 'write("/proc/self/root" + OUT + "/new")',
    "run from memory": "f = os.memfd_create('x', 0)\n"
    "os.write(f, f'#!/bin/sh\\ntouch {OUT}/new\\n'.encode())\n"
    "subprocess.run([f'/proc/self/fd/{f}'], close_fds=False, stderr=subprocess.DEVNULL)",
    "talk to the hypervisor": 'socket.socket(40, socket.SOCK_STREAM); print("OPENED")',
    "open a packet socket": 'socket.socket(17, socket.SOCK_RAW, 3); print("OPENED")',
    "signal a process": "os.kill(PID, signal.SIGKILL)",
    "trace a process": "opened(libc.ptrace(16, PID, 0, 0))",
    "be traced": "opened(libc.ptrace(0, 0, 0, 0))",
    "trace a child": "child = os.fork()\nif child == 0: signal.pause()\n"
    "result = libc.ptrace(0x4206, child, 0, 0); os.kill(child, 9); opened(result)",
    "read a child's memory": "child = os.fork()\nif child == 0: signal.pause()\n"
    "buffer = ctypes.create_string_buffer(8); vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)\n"
    "result = libc.process_vm_readv(child, vector, 1, vector, 1, 0); os.kill(child, 9); opened(result)",
    "write a child's memory": "child = os.fork()\nif child == 0: signal.pause()\n"
    "buffer = ctypes.create_string_buffer(8); vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)\n"
    "result = libc.process_vm_writev(child, vector, 1, vector, 1, 0); os.kill(child, 9); opened(result)",
    "limit a process": "import resource; resource.prlimit(PID, resource.RLIMIT_CORE, (0, 0)); print('OPENED')",
    "slow a process": "os.setpriority(os.PRIO_PROCESS, PID, 19); print('OPENED')",
    "pin a process": "os.sched_setaffinity(PID, {0}); print('OPENED')",
    "open shared memory": "opened(libc.shmget(KEY, 1, 0))",
    "type into the terminal": "import fcntl, termios; _, tty = os.openpty()\n"
    "fcntl.ioctl(tty, termios.TIOCSTI, b'x'); print('OPENED')",
    "read a process's environment": 'print(open(f"/proc/{PID}/environ").read())',
    "write a process's memory": 'open(f"/proc/{PID}/mem", "r+b"); print("OPENED")',
    "go through a process's root": 'write(f"/proc/{PID}/root{OUT}/new")',
    "enter a process's namespaces": 'opened(libc.setns(os.open(f"/proc/{PID}/ns/mnt", os.O_RDONLY), 0))',
    # the kernel
    "make a user namespace": "opened(libc.unshare(0x10000000))",
    "clone into a user namespace": "pid = libc.syscall(CLONE, 0x10000000 | 17, 0, 0, 0, 0)\n"
    "if pid == 0: os._exit(0)\nopened(pid)",
    "mount over what is protected": 'opened(libc.mount(b"tmpfs", b".git", b"tmpfs", 0, None))',
    "make a read-only mount writable": 'opened(libc.mount(None, b".git/config", None, 0x1020, None))',
    "unmount a mask": "opened(libc.umount2(HOME.encode() + b'/.ssh', 2))",
    "use io_uring": "opened(libc.syscall(425, 8, ctypes.create_string_buffer(200)))",
    "watch page faults": "opened(libc.syscall(USERFAULT, 1))",
    "use the kernel's keyring": "opened(libc.syscall(KEYCTL, 0, -3, 1))",
    "open a file by its handle": "opened(libc.syscall(HANDLE, -100, ctypes.create_string_buffer(200), 0))",
    "regain powers by a program": 'subprocess.run(["sudo", "-n", "touch", OUT + "/new"], stderr=subprocess.DEVNULL)',
    # afterwards
    "survive the command": "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        signal.pause()\n"
    "    os._exit(0)\nos.wait()",
    "leave something in the shared temporary directory": 'write("/tmp/swecli-escape-" + ABSTRACT)',
    "use a descriptor that was left open": '[print("OPENED") for fd in range(3, 200) '
    'if try_(os.fstat, fd) and "lock" in os.readlink(f"/proc/self/fd/{fd}")]',
}

UNDER_LANDLOCK = {"survive the command"}
"""The documented limits (docs/sandbox.md)."""


@pytest.fixture(scope="module")
def grounds() -> Iterator[Grounds]:
    with laid_out() as made:
        yield made


@pytest.fixture(scope="module")
def bubblewrap(grounds: Grounds) -> Sandbox:
    sandbox = grounds.sandbox()
    state = sandbox.check()
    if state.layer != "bwrap":
        pytest.skip(f"no bubblewrap here: {state.text}")
    assert state.level == "full", state.text
    return sandbox


@pytest.fixture(scope="module")
def landlocked(grounds: Grounds) -> Sandbox:
    sandbox = grounds.sandbox(path="/nowhere")
    state = sandbox.check()
    if state.layer != "landlock":
        pytest.skip(f"no Landlock here: {state.text}")
    assert state.level == "partial"
    if "abstract sockets" in state.uncovered:
        pytest.skip("this kernel's Landlock is older than the list")
    return sandbox


DYING = PATIENCE
"""Seconds in which the kernel ends what was in a sandbox whose first process is gone; what lives on has survived."""


def escapes(grounds: Grounds, sandbox: Sandbox, code: str, dying: float = DYING) -> str:
    """What the code reached, as a word; empty for nothing."""
    grounds.lay_out()
    grounds.heard()
    before = grounds.fingerprint()
    arguments = [str(path) for path in (grounds.work, grounds.outside, grounds.home, grounds.own, grounds.agent_socket)]
    arguments += [grounds.abstract, *(str(each.getsockname()[1]) for each in (grounds.tcp, grounds.udp))]
    arguments += [str(grounds.bystander.pid), str(grounds.key)]
    command = shlex.join([PYTHON, "-I", "-S", "-c", PRELUDE + code, *arguments])
    result = contained(sandbox, command, grounds.work)
    shared = Path(f"/tmp/swecli-escape-{grounds.abstract}")
    try:
        if "OPENED" in result.output:
            return "the kernel let it"
        if SECRET in result.output:
            return "a secret was read"
        if shared.exists():
            return "the shared directory was written"
    finally:
        shared.unlink(missing_ok=True)
    if grounds.bystander.poll() is not None:
        return "another process was ended"
    end = time.monotonic() + dying
    while (left := [process for process in result.background if process.alive]) and time.monotonic() < end:
        time.sleep(0.01)
    process_tree.signal_each(left, 9)
    if left:
        return "a process survived"
    return ", ".join(grounds.heard()) or ("changed" if grounds.fingerprint() != before else "")


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_gets_out_of_bubblewrap(name: str, grounds: Grounds, bubblewrap: Sandbox) -> None:
    assert escapes(grounds, bubblewrap, ESCAPES[name]) == ""


@pytest.mark.parametrize("name", ESCAPES)
def test_only_what_is_documented_gets_out_of_landlock(name: str, grounds: Grounds, landlocked: Sandbox) -> None:
    found = escapes(grounds, landlocked, ESCAPES[name], dying=0.0 if name in UNDER_LANDLOCK else DYING)
    assert bool(found) == (name in UNDER_LANDLOCK), found or "contained"


def test_the_canaries_work_without_a_sandbox(grounds: Grounds) -> None:
    """The list proves nothing if its attempts fail for other reasons."""
    import subprocess

    grounds.lay_out()
    for name in (
        *("create a file", "plant a hook", "connect", "use an abstract socket", "send a datagram"),
        *("send a datagram by a pair", "connect a pair elsewhere", "send by a raw pair", "run from memory"),
    ):
        before = grounds.fingerprint()
        arguments = [str(path) for path in (grounds.work, grounds.outside, grounds.home, grounds.own)]
        arguments += [str(grounds.agent_socket), grounds.abstract]
        arguments += [*(str(each.getsockname()[1]) for each in (grounds.tcp, grounds.udp)), str(grounds.bystander.pid)]
        arguments.append(str(grounds.key))
        subprocess.run([PYTHON, "-I", "-S", "-c", PRELUDE + ESCAPES[name], *arguments], check=True)
        assert grounds.heard() or grounds.fingerprint() != before, name


def test_useful_work_goes_on_in_there(grounds: Grounds, bubblewrap: Sandbox) -> None:
    grounds.lay_out()
    command = (
        "echo new > made.txt && mkdir dir && mv made.txt dir/ && chmod 700 dir && echo x >> source/a.txt && "
        "echo cached > $HOME_/.cache/pip/y && echo t > $TMPDIR/t && cat $TMPDIR/t && "
        'python3 -c \'import socket; s=socket.create_server(("127.0.0.1", 0)); '
        'socket.create_connection(s.getsockname()); print("local network")\''
    ).replace("$HOME_", str(grounds.home))
    result = contained(bubblewrap, command, grounds.work, full=True)
    assert result.exit_status == 0, result.output
    assert "local network" in result.output
    assert (grounds.work / "dir" / "made.txt").read_text() == "new\n"
    assert (grounds.home / ".cache" / "pip" / "y").exists()
    assert sorted(path.name for path in grounds.work.iterdir()) == [
        ".env",
        ".git",
        ".swecli",
        "dir",
        "nested",
        "source",
    ]
