"""The terminal driver: Textual's own, with whole pastes, colour reports and the shell's line settings."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from typing import Any, ClassVar

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from swecli.tui.boot import KEYS_OFF, KEYS_ON
from swecli.tui.input_filter import Alt, InputFilter, Keys, Pasted, Piece, Run

READ_SIZE = 1 << 16


class BackgroundReported(Message):
    """The terminal answered which background it has."""

    def __init__(self, dark: bool) -> None:
        super().__init__()
        self.dark = dark


class Driver(LinuxDriver):
    """Reads keys in its thread and posts them to the app."""

    shell_attributes: ClassVar[list[Any] | None] = None
    """Line settings to give back when the program is suspended, as they were before the splash."""

    _away = False

    typed: ClassVar[bytes] = b""
    """What was typed before the program read keys."""

    def start_application_mode(self) -> None:
        super().start_application_mode()
        if self.shell_attributes is not None:
            self.attrs_before = self.shell_attributes
        self.write(KEYS_ON)
        self.flush()

    def stop_application_mode(self) -> None:
        self.write(KEYS_OFF)
        super().stop_application_mode()

    def suspend_application_mode(self) -> None:
        """Another program has the terminal now: what is drawn meanwhile is left out, and drawn afterwards."""
        super().suspend_application_mode()
        self._away = True

    def resume_application_mode(self) -> None:
        self._away = False
        super().resume_application_mode()

    def use_mouse(self, on: bool) -> None:
        """Whether the program hears of the mouse. While it doesn't, the terminal selects text by itself."""
        if on != self._mouse:
            self._disable_mouse_support()
            self._mouse = on
            self._enable_mouse_support()

    def write(self, data: str) -> None:
        if not self._away:
            super().write(data)

    def run_input_thread(self) -> None:
        """Read until the driver stops."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        cutter = InputFilter()

        def handle(pieces: list[Piece]) -> None:
            for piece in pieces:
                if isinstance(piece, Keys):
                    for message in parser.feed(piece.text):
                        self.process_message(message)
                elif isinstance(piece, Alt):
                    self.process_message(events.Key(f"alt+{piece.key}", None))
                elif isinstance(piece, Pasted | Run):
                    self.process_message(events.Paste(piece.text))
                else:
                    self.process_message(BackgroundReported(piece.dark))

        handle(cutter.feed(decode(self._take_typed())))
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(0.05):
                    try:
                        data = os.read(self.fileno, READ_SIZE)
                    except OSError:
                        data = b""
                    if not data:  # the terminal is gone; SIGHUP ends the program
                        self.exit_event.wait(0.1)
                        continue
                    handle(cutter.feed(decode(data)))
                else:
                    handle(cutter.flush())
                for message in parser.tick():
                    self.process_message(message)
        try:
            for _ in parser.feed(""):
                pass
        except (EOFError, ParseError):
            pass

    @classmethod
    def _take_typed(cls) -> bytes:
        typed, cls.typed = cls.typed, b""
        return typed


def prepare(attributes: list[Any], typed: bytes) -> None:
    """Hand over what is known of the terminal before the first driver starts: the shell's line settings, and
    what was typed already."""
    Driver.shell_attributes = [*attributes[:6], list(attributes[6])]
    Driver.typed = typed
