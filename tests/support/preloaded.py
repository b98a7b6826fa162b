"""Starts the program in a fork of a process that has imported its modules: two thirds of a short run are imports.

Each run is a process of its own with its own environment, folder and streams, begins in ``swecli/cli.py`` as
``python -m swecli.cli`` does and ends as the interpreter ends. What a fork can't show, Python's own start and the order
of imports, is left to runs with ``Program(fresh=True)`` and to the tests of the start.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import inspect
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
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import usual_ports
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("swecli.cli", "swecli.demo.project")
"""What is run anew each time."""
PARTS = {"terminal": "swecli.tui", "acp": "swecli.acp"}
"""What only runs of these kinds load: the interface, and the protocol of editors with its SDK (0.8 s). All else is
loaded once, in the process from which those for the other kinds are forked."""
MORE = {
    "run": ("httpx", "httpcore", "anyio._backends._asyncio", "httpcore._async.connection_pool"),
    "terminal": ("textual.drivers.linux_driver", "textual._animator", "tests.support.fake_session"),
    "sdk": ("mcp.server.mcpserver", "uvicorn", "uvicorn.protocols.http.h11_impl", "sse_starlette.sse"),
}
"""What runs of these kinds load in any case. One of the last kind is no run of the program, but of a file that makes a
server with the SDK of MCP, whose own start takes a second."""
TABLES = ("swecli.core.permissions", "swecli.core.llm", "swecli.core.tools")
"""Packages that keep what they have read from their own files."""
LONGEST = 1 << 20
"""Bytes of a message: arguments and environment."""


class Preloaded(subprocess.Popen[bytes]):
    """A run of the program, or of a Python file with the SDK of MCP (``kind`` "sdk"): a ``Popen`` whose process was
    forked elsewhere and whose end is told through a pipe."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], kind: str = "run", **streams: Any
    ) -> None:
        self._kind = "acp" if arguments[:1] == ["acp"] else kind
        super().__init__(list(arguments), cwd=cwd, env=dict(env), **streams)

    def _execute_child(self, *given: Any) -> None:
        # The order of the arguments is that of ``Popen.__init__``: program, ..., streams, and the same in all versions.
        arguments, cwd, environment = given[0], given[5], given[6]
        p2cread, _, _, c2pwrite, _, errwrite = given[10:16]
        self._ended, ended = os.pipe()
        wanted = [p2cread, c2pwrite, errwrite]
        fds = [own if fd == -1 else fd for own, fd in enumerate(wanted)]
        try:
            command = arguments if self._kind == "sdk" else ["swecli", *arguments]
            _ask(self._kind, command, os.fspath(cwd), environment, [*fds, ended])
        finally:
            os.close(ended)
            self._close_pipe_fds(*given[10:16])  # type: ignore[attr-defined]
        self._child_created = True
        self.pid = int(_line(self._ended))

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        return self._await(0.0)

    def _wait(self, timeout: float | None) -> int:
        status = self._await(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return status

    def _await(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            line = _line(self._ended)
            self.returncode = os.waitstatus_to_exitcode(int(line)) if line else -signal.SIGKILL
            os.close(self._ended)
        return self.returncode


class InTerminal:
    """A Python file run in a terminal of which it is given the inner end, as the leader of a session of its own."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], terminal: int) -> None:
        self._changes, told = os.pipe()
        try:
            _ask("terminal", list(command), os.fspath(cwd), env, [terminal] * 3 + [told])
        finally:
            os.close(told)
        self.pid = int(_line(self._changes))

    def poll(self, timeout: float | None = 0.0) -> int | None:
        """How it has stopped or ended since the last call, as ``os.waitpid`` tells it."""
        if not select.select([self._changes], [], [], timeout)[0]:
            return None
        line = _line(self._changes)
        return int(line) if line else int(signal.SIGKILL)

    def close(self, *, kill: bool) -> None:
        """Wait for its end."""
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        while _line(self._changes):
            pass
        os.close(self._changes)


def _line(source: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(source, 1)
        if not byte:
            break
        line += byte
    return line


_ASKING = threading.Lock()
"""Held for a whole message: tests start runs in several threads, and a message is sent in two pieces."""


def _ask(kind: str, arguments: list[str], cwd: str, environment: Mapping[str, str], fds: list[int]) -> None:
    with _ASKING:
        _send(_server(kind), [arguments, cwd, dict(environment)], fds)


def _send(server: socket.socket, message: Any, fds: list[int]) -> None:
    request = json.dumps(message).encode()
    socket.send_fds(server, [len(request).to_bytes(4, "big")], fds)
    server.sendall(request)


@cache
def _server(kind: str) -> socket.socket:
    """The process that forks, once for each worker and kind. It ends when this process does."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    if kind != "run":
        _send(_server("run"), kind, [there.fileno()])
        there.close()
        return here
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
    process.wait(PATIENCE)


# --- in the other process ---


def main() -> None:
    """Fork for every request; in the fork, run the program and end."""
    usual_ports.close()
    _load("run")
    server = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects the forks that have ended
    if kind := _requests(server):
        try:
            if kind in ("terminal", "sdk"):
                runpy.run_path(sys.argv[0], run_name="__main__")
            else:
                runpy.run_module("swecli.cli", run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            if isinstance(ended.code, int):
                _end_now(ended.code)
            raise


def _end_now(code: int) -> None:
    """End as the interpreter does, but do not take apart modules: that would copy each page that the fork shares. What
    only that shows is left to fresh runs."""
    gc.collect()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):  # what can't be written is for the interpreter to report
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _load(kind: str) -> None:
    import swecli

    parts = ("swecli.",) if kind == "run" else tuple(part for name, part in PARTS.items() if name == kind)
    left_out = (*LEFT_OUT, *PARTS.values()) if kind == "run" else LEFT_OUT
    modules = (one.name for one in pkgutil.walk_packages(swecli.__path__, "swecli.", onerror=lambda _: None))
    names = [name for name in modules if name.startswith(parts) and not name.startswith(left_out)]
    for name in (*names, *MORE.get(kind, ())):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if name.startswith(TABLES):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_info") and not inspect.signature(value).parameters:
                    value()
    from swecli.core.tools.base import Params, compact_schema
    from swecli.lazy_pattern import LazyPattern

    for pattern in [one for one in gc.get_objects() if isinstance(one, LazyPattern)]:
        if "pattern" not in vars(pattern):
            pattern.compile()
    rest = Params.__subclasses__()
    while rest:
        one = rest.pop()
        compact_schema(one)
        rest += one.__subclasses__()
    gc.freeze()


def _requests(server: socket.socket) -> str:
    """The kind of run that this fork is to be, with everything of the request in force; none at the end."""
    kind = "run"
    while True:
        head, fds, _, _ = socket.recv_fds(server, 4, 4)
        if not head:
            return ""
        left = int.from_bytes(head, "big")
        parts: list[bytes] = []
        while left:
            parts.append(server.recv(min(left, LONGEST)))
            left -= len(parts[-1])
        message = json.loads(b"".join(parts))
        if os.fork() == 0:
            server.close()
            if isinstance(message, str):
                kind = message
                server = socket.socket(fileno=fds.pop())
                _load(kind)
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if _watched(fds.pop(), os.WUNTRACED if kind == "terminal" else 0):
                arguments, cwd, environment = message
                _prepare(arguments, cwd, environment, fds, kind)
                return kind
        for fd in fds:
            os.close(fd)


def _watched(ended: int, also: int) -> bool:
    """True in the process of the program; the other one tells its number and how it ended, then is no more. ``also``:
    what else ``os.waitpid`` is to tell."""
    pid = os.fork()
    if pid == 0:
        os.close(ended)
        return True
    for fd in range(3, 32):
        if fd != ended:
            with contextlib.suppress(OSError):
                os.close(fd)
    os.write(ended, b"%d\n" % pid)
    stopped = True
    while stopped:
        with contextlib.suppress(InterruptedError):
            status = os.waitpid(pid, also)[1]
            stopped = os.WIFSTOPPED(status)
            with contextlib.suppress(BrokenPipeError):
                os.write(ended, b"%d\n" % status)
    os._exit(0)


def _prepare(arguments: list[str], cwd: str, environment: dict[str, str], fds: list[int], kind: str) -> None:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    if kind == "terminal":
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    os.closerange(3, 256)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = arguments
    sys.path[0] = os.path.dirname(arguments[0]) if kind in ("terminal", "sdk") else cwd
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin)
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.stdout)
    sys.stderr = sys.__stderr__ = _stream(2, "w", sys.stderr)
    if kind == "terminal":
        _read_textual_settings()


def _read_textual_settings() -> None:
    """Textual reads them once, where it is loaded; here it has been loaded with another environment."""
    from swecli.tui.launch import textual_settings

    with textual_settings():
        importlib.reload(sys.modules["textual.constants"])


def _stream(fd: int, mode: str, like: Any) -> Any:
    """As Python opens its own streams."""
    raw = open(fd, mode + "b", closefd=False)  # noqa: SIM115 - for as long as the process lives
    return io.TextIOWrapper(raw, encoding=like.encoding, errors=like.errors, line_buffering=fd == 2 or os.isatty(fd))
