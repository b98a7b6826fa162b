"""The user's own shell commands: they get the terminal while they run, and what they write is taken down."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
import tty
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

KEPT = 1_000_000
"""Bytes of output that are taken down, the newest."""
_LOOK = 0.2
"""Seconds between two looks at the size of the window and at the end of the command."""
_BEGIN = 0.01, 2.0
"""Seconds between two looks at whether the command has its terminal, and until keys don't wait for that any more."""
_ELSEWHERE = re.compile(r"\x1b\[\?(?:1049|1047|47)h.*?(?:\x1b\[\?(?:1049|1047|47)l|\Z)", re.DOTALL)
"""What a program drew on the other screen of the terminal: editors and pagers."""
_MOVES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-ln-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
"""Sequences that are no text and no colour."""


class NoTerminal(Exception):
    """There is no terminal to give away."""


@dataclass(frozen=True, slots=True)
class Ran:
    """``output`` without what was drawn on the terminal's other screen; ``duration`` in seconds."""

    output: str
    exit_status: int
    duration: float


async def run_in_terminal(app: App[Any], command: str, cwd: Path, environment: Mapping[str, str]) -> Ran:
    """Run a shell command in the terminal while the screen is away.

    Raises:
        NoTerminal: the screen can't be left here, or the command could not be started: it has not run.
    """
    screen = sys.__stdout__
    ran: Ran | None = None
    try:
        # No exception may reach the end of the suspension: the screen would not come back.
        with app.suspend(), contextlib.suppress(OSError, ValueError, termios.error):
            if screen is not None and os.isatty(0):
                ran = await asyncio.to_thread(_run, command, cwd, dict(environment), screen.fileno())
    except SuspendNotSupported:
        pass
    if ran is None:
        raise NoTerminal
    return ran


def _run(command: str, cwd: Path, environment: dict[str, str], screen: int) -> Ran:
    began = time.monotonic()
    master, slave = pty.openpty()
    before = termios.tcgetattr(0)
    try:
        termios.tcsetattr(slave, termios.TCSANOW, before)
        tty.setraw(0)
        os.write(screen, f"$ {_shown(command)}\r\n".encode())
        _fit(slave, screen)
        process = _start(command, cwd, environment, slave)
        try:
            output = _relay(process, master, slave, screen)
        except OSError:  # the terminal is gone, and the command with it; it has run, so it is not to be run again
            process.kill()
            output = b""
        status = process.wait()
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        for descriptor in (master, slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)
    text = _MOVES.sub("", _ELSEWHERE.sub("", output.decode("utf-8", "replace"))).replace("\r\n", "\n")
    return Ran(text, status if status >= 0 else 128 - status, time.monotonic() - began)


def _start(command: str, cwd: Path, environment: dict[str, str], slave: int) -> Any:
    import subprocess

    # The helper makes the terminal the command's own, so that Ctrl+C and job control reach it.
    code = (
        "import fcntl, os, signal, sys, termios\n"
        "for name in ('SIGINT', 'SIGQUIT', 'SIGTSTP'): signal.signal(getattr(signal, name), signal.SIG_DFL)\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    argv = [sys.executable, "-I", "-S", "-c", code, _shell(environment), "-c", command]
    return subprocess.Popen(
        argv, cwd=cwd, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )


def _shell(environment: Mapping[str, str]) -> str:
    """The user's own shell, where there is one."""
    named = environment.get("SHELL", "")
    return named if os.path.isabs(named) and os.access(named, os.X_OK) else "/bin/sh"


def _has_terminal(process: Any, master: int) -> bool:
    """Whether Ctrl+C would reach the command."""
    try:
        return os.tcgetpgrp(master) == process.pid
    except OSError:
        return False


def _relay(process: Any, master: int, slave: int, screen: int) -> bytes:
    """Keys in, output out, until the command has ended and all that it wrote is there. Keys that are pressed before the
    command has its terminal wait, so that none of them is lost."""
    taken = bytearray()
    pause, longest = _BEGIN
    latest = time.monotonic() + longest
    begun = False
    while True:
        begun = begun or _has_terminal(process, master) or time.monotonic() > latest
        ready = select.select([0, master] if begun else [master], [], [], _LOOK if begun else pause)[0]
        if 0 in ready and (keys := os.read(0, 65_536)):
            os.write(master, keys)
        if master in ready:
            data = os.read(master, 65_536)
            os.write(screen, data)
            taken += data
            if len(taken) > 2 * KEPT:
                del taken[:-KEPT]
        elif process.poll() is not None:
            return bytes(taken[-KEPT:])
        else:
            _fit(slave, screen)


def _fit(slave: int, screen: int) -> None:
    """Give the command's terminal the size of the real one."""
    with contextlib.suppress(OSError):
        columns, rows = os.get_terminal_size(screen)
        wanted = struct.pack("HHHH", rows, columns, 0, 0)
        if fcntl.ioctl(slave, termios.TIOCGWINSZ, bytes(8))[:4] != wanted[:4]:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, wanted)


def _shown(command: str) -> str:
    from swecli.safe_text import sanitise

    return sanitise(command).replace("\n", "\r\n")


def terminal_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a command gets that runs in the user's terminal."""
    from swecli.core.workspace.process import scrubbed_environment

    environment = scrubbed_environment(environ)
    for name in ("PAGER", "GIT_PAGER", "MANPAGER"):  # there is somebody who can turn pages
        environment.pop(name)
        if name in environ:
            environment[name] = environ[name]
    return environment
