"""Starts the program in a fork of a process that has imported its modules: two thirds of a short run are imports.

Each run is a process of its own with its own environment, folder and streams, begins in ``swecli/cli.py`` as
``python -m swecli.cli`` does and ends as the interpreter ends. What a fork can't show, Python's own start and the order
of imports, is left to runs with ``Program(fresh=True)`` and to the tests of the start.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("swecli.tui", "swecli.cli", "swecli.demo.project")
"""What no run without a terminal loads, and what is run anew each time."""
LONGEST = 1 << 20
"""Bytes of a message: arguments and environment."""


class Preloaded(subprocess.Popen[bytes]):
    """A run of the program: a ``Popen`` whose process was forked elsewhere and whose end is told through a pipe."""

    def __init__(self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], **streams: Any) -> None:
        super().__init__(list(arguments), cwd=cwd, env=dict(env), **streams)

    def _execute_child(self, *given: Any) -> None:
        # The order of the arguments is that of ``Popen.__init__``: program, ..., streams, and the same in all versions.
        arguments, cwd, environment = given[0], given[5], given[6]
        p2cread, _, _, c2pwrite, _, errwrite = given[10:16]
        self._ended, ended = os.pipe()
        request = json.dumps([arguments, os.fspath(cwd), environment]).encode()
        wanted = [p2cread, c2pwrite, errwrite]
        fds = [own if fd == -1 else fd for own, fd in enumerate(wanted)]
        try:
            server = _server()
            socket.send_fds(server, [len(request).to_bytes(4, "big")], [*fds, ended])
            server.sendall(request)
        finally:
            os.close(ended)
            self._close_pipe_fds(*given[10:16])  # type: ignore[attr-defined]
        self._child_created = True
        self.pid = int(self._line())

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self._ended, 1)
            if not byte:
                break
            line += byte
        return line

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        return self._await(0.0)

    def _wait(self, timeout: float | None) -> int:
        status = self._await(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return status

    def _await(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            line = self._line()
            self.returncode = os.waitstatus_to_exitcode(int(line)) if line else -signal.SIGKILL
            os.close(self._ended)
        return self.returncode


@cache
def _server() -> socket.socket:
    """The process that forks, started once for each worker. It ends when this process does."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    hidden = ("PYTHON", "SWECLI")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    process = subprocess.Popen(
        [sys.executable, "-c", "from tests.support.preloaded import main; main()", str(there.fileno())],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        pass_fds=[there.fileno()],
        stdin=subprocess.DEVNULL,
    )
    there.close()
    atexit.register(_end, here, process)
    return here


def _end(server: socket.socket, process: subprocess.Popen[bytes]) -> None:
    server.close()
    process.wait(10)


# --- in the other process ---


def main() -> None:
    """Fork for every request; in the fork, run the program and end."""
    import gc

    _load()
    gc.freeze()
    server = socket.socket(fileno=int(sys.argv[1]))
    if _requests(server):
        runpy.run_module("swecli.cli", run_name="__main__", alter_sys=True)


def _load() -> None:
    import swecli

    for module in pkgutil.walk_packages(swecli.__path__, "swecli.", onerror=lambda _: None):
        if not module.name.startswith(LEFT_OUT):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    for name in ("httpx", "anyio._backends._asyncio", "httpcore._async.connection_pool", "pydantic.type_adapter"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _requests(server: socket.socket) -> bool:
    """Whether this is a fork that is to run the program, with everything of the request in force."""
    while True:
        head, fds, _, _ = socket.recv_fds(server, 4, 4)
        if not head:
            return False
        left = int.from_bytes(head, "big")
        parts: list[bytes] = []
        while left:
            parts.append(server.recv(min(left, LONGEST)))
            left -= len(parts[-1])
        arguments, cwd, environment = json.loads(b"".join(parts))
        if os.fork() == 0:
            server.close()
            if _watched(fds.pop()):
                _prepare(arguments, cwd, environment, fds)
                return True
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _watched(ended: int) -> bool:
    """True in the process of the program; the other one tells its number and how it ended, then is no more."""
    pid = os.fork()
    if pid == 0:
        os.close(ended)
        return True
    for fd in range(3, 32):
        if fd != ended:
            with contextlib.suppress(OSError):
                os.close(fd)
    os.write(ended, b"%d\n" % pid)
    while True:
        with contextlib.suppress(InterruptedError):
            status = os.waitpid(pid, 0)[1]
            break
    os.write(ended, b"%d\n" % status)
    os._exit(0)


def _prepare(arguments: list[str], cwd: str, environment: dict[str, str], fds: list[int]) -> None:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(3, 256)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["swecli", *arguments]
    sys.path[0] = cwd
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin)
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.stdout)
    sys.stderr = sys.__stderr__ = _stream(2, "w", sys.stderr)


def _stream(fd: int, mode: str, like: Any) -> Any:
    """As Python opens its own streams."""
    raw = open(fd, mode + "b", closefd=False)  # noqa: SIM115 - for as long as the process lives
    return io.TextIOWrapper(raw, encoding=like.encoding, errors=like.errors, line_buffering=fd == 2 or os.isatty(fd))
