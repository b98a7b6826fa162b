"""What a submitted line means: a message, a slash command, or the user's own shell command."""

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, get_args

from textual.app import App, SuspendNotSupported

from swecli.commands.base import Clip, Offer, Screen, SlashCommand, run_command
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.commands import Command, RunShell, SetEffort, SetMode, SetModel, Steer, Submit
from swecli.core.protocol.events import Mode
from swecli.core.protocol.messages import ImagePart
from swecli.safe_text import safe_line
from swecli.tui.session_link import SessionLink


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty line."""


@dataclass(frozen=True, slots=True)
class Say:
    """A message for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Shell:
    """The user's own command."""

    command: str


@dataclass(frozen=True, slots=True)
class Slash:
    """A known slash command and the text after its name."""

    command: SlashCommand
    arguments: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing that can be done, as a slash command that does not exist; ``message`` says so and names the nearest."""

    message: str


Submission = Nothing | Say | Shell | Slash | NotSent


def interpret(
    text: str, commands: Sequence[SlashCommand], exists: Callable[[str], bool] = os.path.exists
) -> Submission:
    """The meaning of ``text``. A line that begins with a path (one with a second slash, or one that
    ``exists``) is a message."""
    from swecli.commands.base import SHELL_USE
    from swecli.commands.registry import Invocation, parse

    stripped = text.strip()
    if not stripped:
        return Nothing()
    if stripped == "?":
        stripped = "/help"
    if stripped.startswith("!") and stripped[1:].strip():
        return Shell(stripped[1:].strip())
    if stripped == "!":
        return NotSent(SHELL_USE)
    parsed = parse(stripped, commands)
    if parsed is None:
        return Say(text)
    if isinstance(parsed, Invocation):
        return Slash(parsed.command, parsed.arguments)
    return Say(text) if exists("/" + parsed.name) else NotSent(parsed.message)


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
    pause, patience = _BEGIN
    latest = time.monotonic() + patience
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


class Desk(Protocol):
    """What talking needs of the screen."""

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None: ...
    def flash(self, text: str) -> None: ...
    def offer(self, offer: Offer) -> None: ...
    def copy(self, clip: Clip) -> None: ...
    def open(self, name: Screen, words: str = "") -> None: ...
    def put_back(self, text: str) -> None: ...
    async def run_in_terminal(self, command: str, cwd: Path) -> tuple[str, int, float] | None: ...


class Talk:
    """Interprets one submission after the other. ``commands`` is the registry's list, once it is loaded."""

    def __init__(self, link: SessionLink, desk: Desk, busy: Callable[[], bool]) -> None:
        self._link = link
        self.commands: Sequence[SlashCommand] = ()
        self._desk = desk
        self._busy = busy
        self._early = asyncio.Lock()
        """Held by what was sent before the session was open; waiting for it is in order."""

    async def submit(
        self,
        text: str,
        *,
        queue: bool = False,
        images: tuple[ImagePart, ...] = (),
        mentions: tuple[str, ...] | None = None,
    ) -> None:
        """Do what the text asks for. ``queue`` keeps a message for after the running turn, as do images. ``mentions``
        are the files that it attaches; None: those that it mentions. What comes while the session still opens is done
        in order once it is open, each when the one before is done."""
        meaning = interpret(text, self.commands)
        leaves = isinstance(meaning, Slash) and meaning.command.name == "quit"
        at_once = leaves or isinstance(meaning, Nothing | NotSent)
        if self._link.port is not None or at_once:
            await self._do(meaning, text, queue, images, mentions)
            return
        self._desk.flash("The session is still opening; your input is queued")
        async with self._early:
            await self._link.opened()
            await self._do(meaning, text, queue, images, mentions)

    async def _do(
        self,
        meaning: Submission,
        text: str,
        queue: bool,
        images: tuple[ImagePart, ...],
        mentions: tuple[str, ...] | None,
    ) -> None:
        match meaning:
            case Nothing():
                pass
            case Say():
                self._link.send(self._message(text, queue, images, mentions))
                if self._link.view is not None and self._link.view.model is None:
                    self._desk.put_back(text)  # the session says that it was not sent
            case Shell(command):
                await self._shell(command)
            case NotSent(message):
                self._desk.show((TextBlock(message, "warning"),))
            case Slash(command, arguments):
                await self._run(command, arguments)

    async def _shell(self, command: str) -> None:
        """Run the user's command in their terminal; not while a turn runs, whose work it would get in the way of."""
        if self._busy():
            self._desk.put_back(f"!{command}")
            self._desk.flash("Your command waits until the turn ends; Esc interrupts the turn")
            return
        view = self._link.view
        ran = None if view is None else await self._desk.run_in_terminal(command, view.cwd)
        self._link.send(RunShell(command) if ran is None else RunShell(command, *ran))

    def _message(
        self, text: str, queue: bool, images: tuple[ImagePart, ...], mentions: tuple[str, ...] | None
    ) -> Command:
        if self._busy() and not queue and not images:
            return Steer(text, mentions)
        return Submit(text, images, mentions)

    def blind(self) -> str:
        """Why the model can't be sent images; empty where it can, or may."""
        model = None if self._link.view is None else self._link.view.model
        if model is None or model.images is not False:
            return ""
        return f"{model.ref} does not accept images; the path was pasted as text"

    async def _run(self, command: SlashCommand, arguments: str) -> None:
        title = f"/{command.name} {arguments}".rstrip()
        port = self._link.port
        if port is None:
            self._desk.open("quit")  # the one command that needs no session
            return
        if self._busy() and not command.while_busy:
            self._desk.put_back(title)
            self._desk.flash(f"/{command.name} waits until the turn ends; Esc interrupts the turn")
            return
        result = await run_command(command, port, arguments)
        if result.blocks:
            self._desk.show(result.blocks, title)
        if result.offer is not None:
            self._desk.offer(result.offer)
        if result.clip is not None:
            self._desk.copy(result.clip)
        if result.screen is not None:
            self._desk.open(result.screen, result.argument)

    def next_mode(self) -> None:
        """Shift+Tab: the mode after the present one."""
        modes: tuple[Mode, ...] = get_args(Mode)
        view = self._link.view
        if view is None:
            self._desk.flash("The session is still opening")
            return
        self.set_mode(modes[(modes.index(view.mode) + 1) % len(modes)])

    def set_mode(self, name: str) -> None:
        """Ask the session for a mode."""
        from swecli.commands.session import MODE_MEANINGS

        for mode, meaning in MODE_MEANINGS.items():
            if mode == name:
                self._link.send(SetMode(mode))
                self._desk.flash(f"Mode: {mode} ({meaning})")

    def set_effort(self, word: str) -> None:
        """Ask the session for an effort: one of the model's words, or what it does by itself."""
        from swecli.commands.models import DEFAULT

        self._link.send(SetEffort(None if word == DEFAULT else word))
        self._desk.flash(f"Effort {safe_line(word)}, from the next request on")

    def set_model(self, ref: str) -> None:
        """Ask the session for a model (``provider/name``)."""
        self._link.send(SetModel(ref))
        self._desk.flash(f"Model {safe_line(ref)}")
