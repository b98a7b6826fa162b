"""The terminal before and after the interface: splash, kept type-ahead, guarded output, guaranteed restore.

This module makes the first paint before anything else is loaded, so it imports only modules that the interpreter has
already loaded; slower imports follow the splash.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports] - signal without its imports, which take longer than the splash
import os
import sys
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:  # the typing module alone takes a third of the time until the first paint
    from collections.abc import Mapping
    from typing import IO, Any

RESET = (
    "\x1b[?2026l"  # end an interrupted synchronised frame
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # mouse reports
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l"  # focus reports, bracketed paste, in-band resize
    "\x1b[<u\x1b[>4;0m"  # keyboard protocols
    "\x1b[?7h\x1b[0m\x1b[?1049l\x1b[?25h"  # line wrap, colours, normal screen, cursor
)
"""Returns a terminal to the state that a shell expects. Harmless if it is already there."""

KEYS_ON, KEYS_OFF = "\x1b[>4;2m", "\x1b[>4;0m"
"""Request modified keys in xterm's form; without it tmux misreports Shift+Enter and Shift+Tab."""

BACKGROUND_QUERY = "\x1b]11;?\x1b\\"
"""Queries the background colour; the reply arrives as input. The Linux console has none."""

MAX_STRAY = 4000
"""Characters of stray output shown after the interface ends."""


class TerminalUnusable(Exception):
    """The interface can't run here; the message says why and what to do instead."""


def require_terminal(environ: Mapping[str, str]) -> None:
    """Check for a usable terminal.

    Raises:
        TerminalUnusable: standard input or output is no terminal, or the terminal can't position a cursor.
    """
    hint = 'Use `swecli -p "your request"` to get the answer as plain text.'
    if not (_is_tty(0) and _is_tty(1)):
        raise TerminalUnusable(f"The interactive interface needs a terminal for standard input and output. {hint}")
    if environ.get("TERM", "").lower() == "dumb":
        raise TerminalUnusable(f"TERM=dumb: this terminal cannot show the interactive interface. {hint}")


def _is_tty(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def nameless_file() -> IO[bytes]:
    """A file that ends with the process; in memory, or nowhere, if no folder for temporary files can be written, as on
    a full disk."""
    import tempfile

    try:
        return tempfile.TemporaryFile(prefix="swecli-")
    except OSError:
        if hasattr(os, "memfd_create"):
            return os.fdopen(os.memfd_create("swecli"), "w+b")
        return open(os.devnull, "w+b")


def splash(columns: int, rows: int) -> str:
    """First paint: alternate screen, name, and the prompt at its final position."""
    cursor = f"\x1b[{max(1, rows - 1)};2H\x1b[2m›\x1b[0m " if rows > 3 else ""
    name = "\x1b[2;2H\x1b[1mswecli\x1b[0m \x1b[2mstarting…\x1b[0m" if columns > 20 and rows > 4 else ""
    return f"\x1b[?1049h\x1b[?25l\x1b[2J{name}{cursor}"


class Terminal:
    """The terminal while the interface owns it. ``restore`` may be called repeatedly, also from a signal handler; only
    the first call acts."""

    __slots__ = ("_early", "_saved", "_streams", "attributes", "display", "restored", "stray")

    def __init__(self, attributes: list[Any], display: IO[str]) -> None:
        self.attributes = attributes
        """Original line settings."""
        self.display = display
        """Where the interface draws."""
        self.stray: IO[bytes] | None = None
        """Captures other code's writes to standard output and error."""
        self.restored = False
        self._early = 0
        """Bytes that were typed before the take-over."""
        self._saved: dict[int, int] = {}
        self._streams: tuple[Any, Any] | None = None

    @classmethod
    def take(cls) -> Terminal:
        """Take over the terminal: draw the splash, keep typed keys unechoed for the editor, and redirect file
        descriptors 1 and 2 away from the screen. A terminating signal restores the terminal first."""
        attributes = termios.tcgetattr(0)
        quiet = termios.tcgetattr(0)
        quiet[0] &= ~termios.ICRNL
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        # Suspending now would leave the screen taken; the interface handles the key.
        quiet[6][termios.VSUSP] = bytes([os.fpathconf(0, "PC_VDISABLE") & 0xFF])
        fd = os.dup(1)
        os.set_inheritable(fd, False)
        display = open(fd, "w", encoding="utf-8", errors="replace", newline="")  # noqa: SIM115 - lives to the end
        terminal = cls(attributes, display)
        try:
            columns, rows = os.get_terminal_size(fd)
        except OSError:
            columns, rows = 80, 24
        terminal._watch_signals()  # before the first change
        try:
            termios.tcsetattr(0, termios.TCSANOW, quiet)  # not FLUSH: keeps type-ahead
            terminal._early = _waiting()
            terminal.write(splash(columns, rows))
            terminal._guard()
        except BaseException:
            terminal.abandon()
            raise
        return terminal

    @classmethod
    def take_if_usable(cls, environ: Mapping[str, str]) -> Terminal | None:
        """Take over the terminal if it is usable."""
        try:
            require_terminal(environ)
        except TerminalUnusable:
            return None
        return cls.take()

    def typed(self) -> bytes:
        """Keys typed before the take-over. Call once, when the program is certain to continue: until then they belong
        to the shell."""
        import select

        early, self._early = self._early, 0
        if not early or not select.select([0], [], [], 0)[0]:
            return b""
        # The terminal turned Enter into a newline, a different key in the editor.
        return os.read(0, early).replace(b"\n", b"\r")

    def ask_background(self) -> None:
        """Query the background colour if the terminal replies on standard input."""
        if os.environ.get("TERM", "") not in ("", "linux"):
            self.write(BACKGROUND_QUERY)

    def _watch_signals(self) -> None:
        ending = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)

        def end(number: int, frame: object) -> None:
            for each in ending:  # a second one must not cut this short
                _signal.signal(each, _signal.SIG_IGN)
            self.restore()
            _signal.signal(number, _signal.SIG_DFL)
            os.kill(os.getpid(), number)

        for number in ending:
            if _signal.getsignal(number) == _signal.SIG_DFL:
                _signal.signal(number, end)

    def _guard(self) -> None:
        self.stray = nameless_file()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for fd in (1, 2):
            if _is_tty(fd):
                self._saved[fd] = os.dup(fd)
                os.dup2(self.stray.fileno(), fd)
        self._streams = (sys.__stdout__, sys.__stderr__)
        # The interface draws on sys.__stderr__ and asks sys.__stdout__ for the size.
        sys.__stdout__ = sys.__stderr__ = self.display  # pyright: ignore[reportAttributeAccessIssue]

    def write(self, text: str) -> None:
        """Write straight to the terminal; ignore a closed one."""
        try:
            os.write(self.display.fileno(), text.encode())
        except (OSError, ValueError):
            return

    def restore(self, more: str = "") -> None:
        """Restore the terminal; ``more`` is written in addition to the usual sequences."""
        if self.restored:
            return
        self._give_back(more, flush=True)

    def abandon(self) -> None:
        """Restore the terminal before the interface has begun: leave type-ahead to the shell and print the captured
        output, such as why the program can't start. No effect after ``restore``."""
        if self.restored:
            return
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._give_back("", flush=False)
        if self.stray is not None:
            self.stray.seek(0)
            self.write(self.stray.read().decode("utf-8", "replace"))

    def _give_back(self, more: str, *, flush: bool) -> None:
        self.write(RESET + more)
        try:
            if flush:
                termios.tcflush(0, termios.TCIFLUSH)  # keep late replies from the shell
            termios.tcsetattr(0, termios.TCSANOW, self.attributes)
        except (OSError, termios.error):
            pass
        while self._saved:
            fd, saved = self._saved.popitem()
            try:
                os.dup2(saved, fd)
                os.close(saved)
            except OSError:
                continue
        if self._streams is not None:
            sys.__stdout__, sys.__stderr__ = self._streams  # pyright: ignore[reportAttributeAccessIssue]
        self.restored = True  # only now: a signal that comes in between does it again, as a whole

    def stray_output(self) -> str:
        """The end of the captured standard output and error."""
        if self.stray is None:
            return ""
        try:
            size = self.stray.seek(0, os.SEEK_END)
            self.stray.seek(max(0, size - MAX_STRAY))
            return self.stray.read().decode("utf-8", "replace").strip()
        except (OSError, ValueError):
            return ""


def _waiting() -> int:
    """Number of bytes readable from standard input."""
    import fcntl

    try:
        return int.from_bytes(fcntl.ioctl(0, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)
    except OSError:
        return 0
