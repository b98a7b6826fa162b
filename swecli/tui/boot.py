"""The terminal before and after the interface: splash, kept type-ahead, guarded output, certain restore.

Nothing here imports Textual, so the first paint and the refusal of an unusable terminal cost nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from swecli.tui.themes.depth import colour_system, depth

RESET = (
    "\x1b[?2026l"  # end a synchronised frame that was cut
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # mouse reports
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l"  # focus reports, bracketed paste, in-band resize
    "\x1b[<u\x1b[>4;0m"  # keyboard protocols
    "\x1b[?7h\x1b[0m\x1b[?1049l\x1b[?25h"  # line wrap, colours, normal screen, cursor
)
"""Puts a terminal back into the state in which a shell expects it. Harmless when it is there already."""

KEYS_ON, KEYS_OFF = "\x1b[>4;2m", "\x1b[>4;0m"
"""Ask for modified keys in the xterm way: without it tmux sends Shift+Enter and Shift+Tab wrong."""

BACKGROUND_QUERY = "\x1b]11;?\x1b\\"
"""Asks the terminal for its background colour; the answer comes as input. The Linux console has none."""

MAX_STRAY = 4000
"""Characters of stray output that are shown after the interface has ended."""


class TerminalUnusable(Exception):
    """The interface can't run here; the message says why and what to do instead."""


def require_terminal(environ: Mapping[str, str]) -> None:
    """Check that there is a terminal to draw on.

    Raises:
        TerminalUnusable: standard input or output is no terminal, or the terminal can't place a cursor.
    """
    hint = 'Use `swecli -p "your request"` to get the answer as plain text.'
    if not (_is_tty(0) and _is_tty(1)):
        raise TerminalUnusable(f"Standard input and output must be a terminal for the interactive program. {hint}")
    if environ.get("TERM", "").lower() == "dumb":
        raise TerminalUnusable(f"TERM=dumb: this terminal can't show the interactive program. {hint}")


def _is_tty(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def splash(columns: int, rows: int) -> str:
    """The first paint: alternate screen, name, and a prompt where the real one will be."""
    place = f"\x1b[{max(1, rows - 1)};1H\x1b[2m›\x1b[0m " if rows > 3 else ""
    name = "\x1b[2;2H\x1b[1mswecli\x1b[0m \x1b[2mstarting…\x1b[0m" if columns > 20 and rows > 4 else ""
    return f"\x1b[?1049h\x1b[?25l\x1b[2J{name}{place}"


@dataclass(slots=True)
class Terminal:
    """The terminal while the interface owns it. ``restore`` may be called any number of times, from a
    signal handler too; only the first call acts."""

    attributes: list[Any]
    """Line settings as they were found."""
    display: IO[str]
    """Where the interface draws."""
    stray: IO[bytes]
    """Takes what anybody else writes to standard output and error meanwhile."""
    saved: dict[int, int] = field(default_factory=lambda: {})
    streams: tuple[Any, Any] = (None, None)
    restored: bool = False
    typed: bytes = b""
    """What was typed before the terminal was taken."""

    @classmethod
    def take(cls) -> Terminal:
        """Take the terminal over: keys are kept unseen for the editor, the splash is drawn, and file
        descriptors 1 and 2 no longer reach the screen."""
        attributes = termios.tcgetattr(0)
        quiet = termios.tcgetattr(0)
        quiet[0] &= ~termios.ICRNL
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(0, termios.TCSANOW, quiet)
        # Until now the terminal made a newline of Enter, which is another key in the editor.
        typed = os.read(0, 1 << 16).replace(b"\n", b"\r") if select.select([0], [], [], 0)[0] else b""
        fd = os.dup(1)
        os.set_inheritable(fd, False)
        display = open(fd, "w", encoding="utf-8", errors="replace", newline="")  # noqa: SIM115 - lives to the end
        terminal = cls(attributes, display, tempfile.TemporaryFile(prefix="swecli-"), typed=typed)  # noqa: SIM115 - the same
        try:
            columns, rows = os.get_terminal_size(fd)
        except OSError:
            columns, rows = 80, 24
        asks = os.environ.get("TERM", "") not in ("", "linux")
        terminal.write(splash(columns, rows) + (BACKGROUND_QUERY if asks else ""))
        terminal._guard()
        return terminal

    def _guard(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        for fd in (1, 2):
            if _is_tty(fd):
                self.saved[fd] = os.dup(fd)
                os.dup2(self.stray.fileno(), fd)
        self.streams = (sys.__stdout__, sys.__stderr__)
        # The interface draws on sys.__stderr__ and asks sys.__stdout__ for the size.
        sys.__stdout__ = sys.__stderr__ = self.display  # pyright: ignore[reportAttributeAccessIssue]

    def write(self, text: str) -> None:
        """Write straight to the terminal; a terminal that is gone is no error."""
        with contextlib.suppress(OSError, ValueError):
            os.write(self.display.fileno(), text.encode())

    def restore(self, more: str = "") -> None:
        """Give the terminal back as it was found; ``more`` is what it takes besides the usual sequences."""
        if self.restored:
            return
        self.restored = True
        self.write(RESET + more)
        with contextlib.suppress(OSError, termios.error):
            termios.tcflush(0, termios.TCIFLUSH)  # answers that came too late are not for the shell
            termios.tcsetattr(0, termios.TCSANOW, self.attributes)
        for fd, saved in self.saved.items():
            with contextlib.suppress(OSError):
                os.dup2(saved, fd)
                os.close(saved)
        if self.saved or self.streams != (None, None):
            sys.__stdout__, sys.__stderr__ = self.streams  # pyright: ignore[reportAttributeAccessIssue]

    def stray_output(self) -> str:
        """What was written to standard output and error behind the interface's back, cut to its end."""
        with contextlib.suppress(OSError, ValueError):
            size = self.stray.seek(0, os.SEEK_END)
            self.stray.seek(max(0, size - MAX_STRAY))
            return self.stray.read().decode("utf-8", "replace").strip()
        return ""


@contextlib.contextmanager
def textual_settings(environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """Settings that Textual reads from the environment while it is imported. They are taken back afterwards,
    so that no child process inherits them; NO_COLOR, which Textual removes, is put back as well."""
    environ = os.environ if environ is None else environ
    wanted = {
        "TEXTUAL_ANIMATIONS": "none",
        "TEXTUAL_SMOOTH_SCROLL": "0",
        "TEXTUAL_COLOR_SYSTEM": colour_system(depth(environ)),
        "TEXTUAL_THEME": None,
        "TEXTUAL_PRESS": None,
        "TEXTUAL_SCREENSHOT": None,
        "TEXTUAL_ALLOW_SIGNALS": None,
        "ESCDELAY": environ.get("ESCDELAY", "50"),
    }
    kept = {name: os.environ.get(name) for name in (*wanted, "NO_COLOR")}
    _set(wanted)
    try:
        yield
    finally:
        _set(kept)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
