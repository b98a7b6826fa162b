"""A workspace with things to protect around it, and commands that run in a real sandbox."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swecli.core.sandbox.plan import SandboxOptions
from swecli.core.sandbox.probe import Folders, SandboxWorkspace
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.workspace.process import ProcessResult, run_process
from tests.support.waiting import PATIENCE

SECRET = "s3cret-canary"
PYTHON = os.path.realpath(sys.executable)
_BUILD = Path(__file__).parents[3] / "build"


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory that is not below /tmp: contained commands have another /tmp."""
    _BUILD.mkdir(exist_ok=True)
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="sandbox-", dir=_BUILD)))
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


class Grounds:
    """Workspace, home and outside below ``base``, with services that listen and a process that a command must not
    reach."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.work, self.outside, self.home = base / "work", base / "outside", base / "home"
        self.own, self.state = base / "own", base / "state"
        self.agent_socket = base / "agent.sock"
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.abstract = f"swecli-test-{os.getpid()}-{base.name}"
        self.listeners = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
        self.listeners[0].bind(f"\0{self.abstract}")
        self.listeners[1].bind(str(self.agent_socket))
        for listener in self.listeners:
            listener.listen()
        self.datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.datagrams.bind(f"{self.agent_socket}d")
        for each in (self.tcp, self.udp, self.datagrams, *self.listeners):
            each.setblocking(False)
        self.key = os.getpid() | 0x5000_0000
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._memory = int(self._libc.shmget(self.key, 1, 0o1600))
        """Memory that processes share by this key."""
        self.bystander = subprocess.Popen(
            [PYTHON, "-I", "-S", "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            env={"CANARY": SECRET},
        )

    def close(self) -> None:
        self.bystander.kill()
        self.bystander.communicate()
        for each in (self.tcp, self.udp, self.datagrams, *self.listeners):
            each.close()
        self._libc.shmctl(self._memory, 0, None)

    def lay_out(self) -> None:
        """Everything anew."""
        for folder in (self.work, self.outside, self.home, self.own):
            shutil.rmtree(folder, ignore_errors=True)
        for name in (".git/hooks", ".git/objects", ".git/refs/heads", ".swecli", "source", "nested/.git/hooks"):
            (self.work / name).mkdir(parents=True)
        for folder, files in {
            self.work: {
                ".git/config": "[core]\n",
                ".git/HEAD": "ref: refs/heads/main\n",
                ".swecli/config.toml": "# mine\n",
                ".env": f"KEY={SECRET}\n",
                "source/a.txt": "a\n",
                "nested/.git/config": "[core]\n",
                "nested/.git/HEAD": "ref: refs/heads/main\n",
            },
            self.outside: {"victim": "keep\n", "folder/deep": "keep\n"},
            self.home: {".ssh/id_ed25519": SECRET, ".netrc": SECRET, ".bashrc": "# start\n", ".cache/pip/x": "x"},
            self.own: {"log": SECRET},
        }.items():
            for name, text in files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def sandbox(self, *, path: str | None = None, options: SandboxOptions | None = None) -> Sandbox:
        """``path`` stands in for PATH where the sandbox looks for bubblewrap."""
        environment = {**os.environ, "SSH_AUTH_SOCK": str(self.agent_socket)}
        ground = SandboxWorkspace(
            (str(self.work),),
            str(self.home),
            {**environment, "PATH": os.environ["PATH"] if path is None else path},
            (str(self.own),),
        )
        return Sandbox(options or SandboxOptions(mode="on"), ground, Folders(self.state, self.state / "cache"))

    def fingerprint(self) -> dict[str, object]:
        """What a contained command must not have changed, by path."""
        work = self.work
        guarded = [work / name for name in (".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir")]
        guarded += [
            work / name
            for name in (
                ".git/modules",
                ".git/worktrees",
                ".git/info",
                ".swecli",
                ".mcp.json",
                ".vscode",
                ".idea",
                ".envrc",
            )
        ]
        guarded += [work / name for name in (".env", "nested/.git/hooks", "nested/.git/config")]
        found: dict[str, object] = {}
        for top in (self.outside, self.home / ".ssh", self.home / ".netrc", self.home / ".bashrc", self.own, *guarded):
            for path in (top, *(sorted(top.rglob("*")) if top.is_dir() and not top.is_symlink() else ())):
                found[str(path)] = _look(path)
        return found

    def heard(self) -> list[str]:
        """Which services somebody reached."""
        found: list[str] = []
        for name, listener in (("tcp", self.tcp), ("abstract", self.listeners[0]), ("unix", self.listeners[1])):
            try:
                listener.accept()[0].close()
                found.append(name)
            except BlockingIOError:
                pass
        for name, datagrams in (("udp", self.udp), ("unix datagrams", self.datagrams)):
            try:
                datagrams.recv(100)
                found.append(name)
            except BlockingIOError:
                pass
        return found


def _look(path: Path) -> object:
    try:
        stat = path.lstat()
    except OSError:
        return None
    if path.is_symlink():
        return ("link", os.readlink(path))
    attributes = tuple(os.listxattr(path)) if hasattr(os, "listxattr") else ()
    if path.is_dir():
        return ("directory", stat.st_mode, attributes)
    return (stat.st_mode, path.read_bytes(), stat.st_mtime_ns, stat.st_nlink, attributes)


def contained(sandbox: Sandbox, command: str, cwd: Path, *, full: bool = False) -> ProcessResult:
    """Run a command in the sandbox as the tool does."""
    launch = sandbox.begin(cwd, full=full)
    try:
        return asyncio.run(
            run_process(
                command,
                cwd=cwd,
                environment={**os.environ, **launch.environment},
                timeout=PATIENCE,
                prefix=launch.prefix,
                inherited=launch.inherited,
            )
        )
    finally:
        launch.end()
        sandbox.tidy()


@contextmanager
def laid_out() -> Iterator[Grounds]:
    """Grounds in a directory of their own, closed and removed afterwards."""
    with scratch() as base:
        grounds = Grounds(base)
        grounds.lay_out()
        yield grounds
        grounds.close()
