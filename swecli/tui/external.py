"""Programs that take over the terminal: the user's editor and shell commands, with recorded output. The screen returns
when they end."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from textual.app import App, SuspendNotSupported

from swecli.lazy_pattern import lazy_pattern

USUAL = ("sensible-editor", "nano", "vim", "vi")
"""Editors to look for if neither VISUAL nor EDITOR is set."""


class ExternalError(Exception):
    """The program could not be run, or failed; the message is one sentence."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """The user's editor with its arguments.

    Raises:
        ExternalError: there is none, or its command can't be parsed.
    """
    for name in ("VISUAL", "EDITOR"):
        if text := environ.get(name, "").strip():
            try:
                return shlex.split(text)
            except ValueError as error:
                raise ExternalError(f"{name} is not a valid command: {error}") from None
    for name in USUAL:
        if shutil.which(name, path=environ.get("PATH")):
            return [name]
    raise ExternalError("No editor found; set VISUAL or EDITOR")


async def edit(app: App[Any], text: str, suffix: str = ".md") -> str:
    """Let the user edit a text in their editor. Returns it without the final line end that editors add, otherwise
    unchanged: line ends and stand-ins for undecodable bytes are kept.

    Raises:
        ExternalError: there is no editor, it failed, or the result is no text.
    """
    command = editor_command(os.environ)
    try:
        folder = Path(tempfile.mkdtemp(prefix="swecli-"))
    except OSError as error:
        raise ExternalError(f"Cannot pass the text to the editor: {error.strerror or error}") from None
    path = folder / f"text{suffix}"
    try:
        path.write_bytes(_written(text))
        await run(app, [*command, str(path)])
        try:
            has_raw_bytes = any("\udc80" <= char <= "\udcff" for char in text)
            edited = path.read_bytes().decode("utf-8", "surrogateescape" if has_raw_bytes else "strict")
        except (OSError, UnicodeDecodeError) as error:
            raise ExternalError(f"Cannot read the file {command[0]} wrote: {error}") from None
    except OSError as error:
        raise ExternalError(f"Cannot pass the text to the editor: {error.strerror or error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return edited if text.endswith("\n") else edited.removesuffix("\n")


def _written(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


async def open_file(app: App[Any], path: Path) -> None:
    """Open a file in the user's editor.

    Raises:
        ExternalError: there is no editor, or it failed.
    """
    await run(app, [*editor_command(os.environ), str(path)])


async def run(app: App[Any], command: Sequence[str]) -> None:
    """Run a program in the terminal while the screen is suspended. The session continues.

    Raises:
        ExternalError: it could not be started, or it failed.
    """
    code, refused = 0, ""
    try:
        with app.suspend():
            try:
                code = await asyncio.to_thread(_run, command)
            except OSError as error:  # must not leave the block, or the screen would not return
                refused = error.strerror or str(error)
    except SuspendNotSupported:
        raise ExternalError("The interface cannot be suspended here") from None
    if refused:
        raise ExternalError(f"Cannot start {command[0]}: {refused}")
    if code:
        raise ExternalError(f"{command[0]} ended with status {code}")


def _run(command: Sequence[str]) -> int:
    # While the interface runs, its display is the terminal; descriptors 1 and 2 are not.
    screen = sys.__stdout__
    terminal = screen.fileno() if screen is not None else None
    return subprocess.run(command, stdin=0, stdout=terminal, stderr=terminal, check=False).returncode


KEPT = 1_000_000
"""Bytes of output to keep, the newest."""
_LOOK = 0.2
"""Seconds between checks of the window size and the command's end."""
_BEGIN = 0.01, 2.0
"""Seconds between checks whether the command owns its terminal; seconds after which keys no longer wait for that."""
_REST = 1 << 17
"""Bytes read after a command's end: more than a terminal holds, so what follows comes from something left running."""
_ELSEWHERE = lazy_pattern(r"\x1b\[\?(?:1049|1047|47)h.*?(?:\x1b\[\?(?:1049|1047|47)l|\Z)", re.DOTALL)
"""Output on the alternate screen, as drawn by editors and pagers."""
_MOVES = lazy_pattern(
    r"\x1b\[[0-?]*[ -/]*[@-IL-ln-~]|\x1b\[[<-?][0-?]*[ -/]*m|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"
    r"|\x1b[ -/]+[0-~]|\x1b[0-Z\\^-~]|\x1b\Z|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\x80-\x9f]"
)
"""Sequences that are neither text nor colour, nor erase a part of a line."""


def as_text(output: bytes) -> str:
    """Output as text with colours: without the alternate screen, cursor movement, queries and control characters."""
    text = output.decode("utf-8", "replace").replace("\r\n", "\n")
    return _MOVES.sub("", _ELSEWHERE.sub("", text))


class NoTerminal(Exception):
    """No terminal is available to hand over."""


class Ran(Struct, frozen=True):
    """Result of a command: ``output`` without the alternate screen, ``duration`` in seconds."""

    output: str
    exit_status: int
    duration: float


async def run_in_terminal(app: App[Any], command: str, cwd: Path, environment: Mapping[str, str]) -> Ran:
    """Run a shell command in the terminal while the screen is suspended.

    Raises:
        NoTerminal: the screen can't be suspended or the command could not be started; it has not run.
    """
    screen = sys.__stdout__
    ran: Ran | None = None
    try:
        # No exception may reach the end of the suspension, or the screen would not return.
        with app.suspend(), contextlib.suppress(OSError, ValueError, termios.error):
            if screen is not None and os.isatty(0):
                ran = await asyncio.to_thread(_run_shell, command, cwd, dict(environment), screen.fileno())
    except SuspendNotSupported:
        pass
    if ran is None:
        raise NoTerminal
    return ran


def _run_shell(command: str, cwd: Path, environment: dict[str, str], screen: int) -> Ran:
    began = time.monotonic()
    master, slave = pty.openpty()
    before = termios.tcgetattr(0)
    try:
        termios.tcsetattr(slave, termios.TCSANOW, before)
        tty.setraw(0, termios.TCSADRAIN)  # not FLUSH: keeps type-ahead
        os.write(screen, f"$ {_shown(command)}\r\n".encode())
        _fit(slave, screen)
        process = _start(command, cwd, environment, slave)
        try:
            output = _relay(process, master, slave, screen)
        except OSError:  # terminal and command are gone; the command has run, so don't repeat it
            process.kill()
            output = b""
        status = process.wait()
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        for descriptor in (master, slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)
    return Ran(as_text(output), status if status >= 0 else 128 - status, time.monotonic() - began)


def _start(command: str, cwd: Path, environment: dict[str, str], slave: int) -> subprocess.Popen[bytes]:
    from swecli.core.workspace.process import user_shell

    # The helper makes the terminal the command's own, so that Ctrl+C and job control reach it.
    code = (
        "import fcntl, os, signal, sys, termios\n"
        "for name in ('SIGINT', 'SIGQUIT', 'SIGTSTP'): signal.signal(getattr(signal, name), signal.SIG_DFL)\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    argv = [sys.executable, "-I", "-S", "-c", code, user_shell(environment) or "/bin/sh", "-c", command]
    return subprocess.Popen(
        argv, cwd=cwd, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )


def _has_terminal(process: subprocess.Popen[bytes], master: int) -> bool:
    """Whether Ctrl+C would reach the command."""
    try:
        return os.tcgetpgrp(master) == process.pid
    except OSError:
        return False


def _relay(process: subprocess.Popen[bytes], master: int, slave: int, screen: int) -> bytes:
    """Relay keys and output until the command has ended and all output is read. Keys pressed before the command owns
    its terminal, or that its terminal has no room for, wait: none is lost, and output is read meanwhile."""
    taken, keys = bytearray(), b""
    os.set_blocking(master, False)
    pause, latest = _BEGIN[0], time.monotonic() + _BEGIN[1]
    begun = False
    rest = _REST
    while True:
        # Asked before looking for output: what a command wrote before its end is there then.
        ended = process.poll() is not None
        begun = begun or _has_terminal(process, master) or time.monotonic() > latest
        sources = [0, master] if begun and not ended and not keys else [master]
        longest = 0 if ended else _LOOK if begun else pause
        ready, takes, _ = select.select(sources, [master] if keys else [], [], longest)
        if 0 in ready:
            keys = os.read(0, 65_536)
        if takes:
            with contextlib.suppress(BlockingIOError):  # room for a part only
                keys = keys[os.write(master, keys) :]
        if master in ready and rest > 0:
            data = os.read(master, 65_536)
            os.write(screen, data)
            taken += data
            rest -= len(data) if ended else 0
            if len(taken) > 2 * KEPT:
                del taken[:-KEPT]
        elif ended:
            return bytes(taken[-KEPT:])
        else:
            _fit(slave, screen)


def _fit(slave: int, screen: int) -> None:
    """Copy the real terminal's size to the command's terminal."""
    with contextlib.suppress(OSError):
        columns, rows = os.get_terminal_size(screen)
        wanted = struct.pack("HHHH", rows, columns, 0, 0)
        if fcntl.ioctl(slave, termios.TIOCGWINSZ, bytes(8))[:4] != wanted[:4]:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, wanted)


def _shown(command: str) -> str:
    from swecli.safe_text import sanitise

    return sanitise(command).replace("\n", "\r\n")


def terminal_environment(environ: Mapping[str, str], keys: Collection[str] = ()) -> dict[str, str]:
    """Environment of a command that runs in the user's terminal, without the variables ``keys``."""
    from swecli.core.workspace.process import scrubbed_environment

    environment = scrubbed_environment(environ, keys=keys)
    for name in ("PAGER", "GIT_PAGER", "MANPAGER"):  # a user can page
        environment.pop(name)
        if name in environ:
            environment[name] = environ[name]
    return environment
