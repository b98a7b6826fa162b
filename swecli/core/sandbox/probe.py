"""Trying the sandbox out: canaries run inside, and what they reached is looked at from outside.

Nothing that runs inside is believed. A canary that got out shows in a file, or at a socket that listens here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from swecli.core.sandbox.launch import Launch, SandboxError
from swecli.core.sandbox.values import Request
from swecli.core.workspace import process_tree as tree

SECONDS = 15.0
_CANARIES = """
import os, socket, sys
port, mark = int(sys.argv[1]), sys.argv[2]
def write(path, text="x"):
    with open(path, "w") as stream:
        stream.write(text)
def connect():
    socket.create_connection(("127.0.0.1", port), 2).close()
for canary in (
    lambda: write("../outside/written"),
    lambda: write(".git/config"),
    lambda: write(".git/hooks/planted"),
    lambda: os.rename(".git", "moved"),
    connect,
):
    try:
        canary()
    except OSError:
        pass
write("source/finished", mark)
"""

Start = Callable[[Request, str], Launch]
"""Makes a launch for a request and a working directory."""


@dataclass(frozen=True, slots=True)
class Probed:
    """``works``: a command ran inside and could write the workspace. ``escaped`` names the canaries that got out."""

    works: bool
    escaped: tuple[str, ...] = ()
    reason: str = ""

    @property
    def held(self) -> bool:
        return self.works and not self.escaped


def probe(request: Request, start: Start, folder: Path | None) -> Probed:
    """Run the canaries under the request's wishes, in a scratch workspace below ``folder``."""
    try:
        with _scratch(folder) as base, socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            return _run(replace(request, roots=(str(base / "work"),)), start, base, server)
    except OSError as error:
        return Probed(False, reason=f"the probe can't be set up: {error}")
    except SandboxError as error:
        return Probed(False, reason=str(error))


def _run(request: Request, start: Start, base: Path, server: socket.socket) -> Probed:
    work, mark = base / "work", secrets.token_hex(8)
    launch = start(request, str(work))
    argv = [*launch.prefix, os.path.realpath(sys.executable), "-I", "-S", "-c", _CANARIES]
    try:
        process = subprocess.Popen(
            [*argv, str(server.getsockname()[1]), mark],
            cwd=work,
            env={**request.environment, **launch.environment, tree.MARK: tree.new_mark(own=True)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=launch.inherited,
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=SECONDS)[0].decode("utf-8", "replace").strip()
        except subprocess.TimeoutExpired:
            return Probed(False, reason="the probe did not end in time")
        finally:
            if process.poll() is None:  # bubblewrap's child waits for ever where its parent alone is killed
                tree.signal_group(process.pid, signal.SIGKILL)
                process.communicate()
    finally:
        launch.end()
    if _text(work / "source" / "finished") != mark:
        return Probed(False, reason=output.splitlines()[0][:300] if output else "the probe did not run to its end")
    return Probed(True, tuple(_escapes(base, None if request.options.network else server)))


def _escapes(base: Path, server: socket.socket | None) -> Iterator[str]:
    """``server`` None: connecting is allowed."""
    git = base / "work" / ".git"
    if (base / "outside" / "written").exists():
        yield "writing outside the workspace"
    if (base / "work" / "moved").exists() or not git.is_dir():
        yield "moving .git away"
    elif _text(git / "config") != _CONFIG or (git / "hooks" / "planted").exists():
        yield "writing git's configuration and hooks"
    if server is None:
        return
    with contextlib.suppress(BlockingIOError):
        server.accept()[0].close()
        yield "connecting"


_CONFIG = "[core]\n\tbare = false\n"


@contextmanager
def _scratch(folder: Path | None) -> Generator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="probe-", dir=folder)))
    try:
        for name in ("outside", "work/source", "work/.git/hooks"):
            (base / name).mkdir(parents=True)
        (base / "work" / ".git" / "config").write_text(_CONFIG)
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
