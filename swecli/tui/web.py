"""The interface behind a web page: Textual's web driver, with swecli's own reading of keys.

Standard input and output carry packets (kind, length as four bytes, content): D for the terminal's data, M for JSON.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import threading
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import constants, events
from textual._xterm_parser import XTermParser
from textual.drivers.web_driver import WebDriver
from textual.geometry import Size

from swecli.exit_codes import ExitCode
from swecli.tui.compat import DrawingApp
from swecli.tui.launch import SWITCH_EARLY, settle, textual_settings
from swecli.tui.terminal import ESCAPE_TIME, POLL, InputFilter, is_bound_in, keep_timers_steady, posted
from swecli.tui.way_out import WayOut

if TYPE_CHECKING:
    from textual.app import App

    from swecli.tui.program import Program

LARGEST_PACKET = 32_000_000
"""Bytes; a larger one is no packet."""
MODES = "\x1b[?1049h\x1b[?1000h\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?25l"
"""Normal state of the page's terminal: alternate screen, mouse reports, bracketed paste, no cursor."""


class Packets:
    """Splits a stream of bytes into packets."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Kind and content of each packet that is complete.

        Raises:
            ValueError: the stream holds no packets.
        """
        self._held += data
        while len(self._held) >= 5:
            size = int.from_bytes(self._held[1:5], "big")
            if self._held[:1] not in (b"D", b"M") or size > LARGEST_PACKET:
                raise ValueError("not a packet")
            if len(self._held) < 5 + size:
                return
            packet = self._held[:1], self._held[5 : 5 + size]
            self._held = self._held[5 + size :]
            yield packet


class PageDriver(WebDriver):
    """Draws on a page that may be reloaded at any time, and reads its keys in a thread."""

    columns_and_rows: ClassVar[tuple[int, int]] = (80, 24)
    """Size of the page's terminal when the program starts."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size or self.columns_and_rows)
        self._key_thread = threading.Thread(target=self.run_input_thread, name="page input", daemon=True)
        self._write = self._write_all

    def _write_all(self, data: bytes) -> int:
        whole = len(data)
        while data:  # a signal may interrupt a write
            try:
                data = data[os.write(self.fileno, data) :]
            except OSError:  # the server is gone; the end of the input ends the program
                break
        return whole

    def start_application_mode(self) -> None:
        self._write(b"__GANGLION__\n")  # Textual's sign that packets follow
        self._show()
        self._report(*cast("tuple[int, int]", self._size))
        self._key_thread.start()

    def _show(self) -> None:
        self.write(MODES)
        if isinstance(self._app, DrawingApp):
            self._app.forget_screen()

    def _report(self, columns: int, rows: int) -> None:
        self._size = columns, rows
        size = Size(columns, rows)
        self.send_message(events.Resize(size, size))

    def run_input_thread(self) -> None:
        try:
            self._read_packets()
        except Exception as error:  # noqa: BLE001 - a defect ends the program, with its report, and not only the thread
            defect = error

            def fail() -> None:
                raise defect

            self._app.call_later(fail)

    def _read_packets(self) -> None:
        packets, parser = Packets(), XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        cutter = InputFilter(constants.ESCAPE_DELAY, ESCAPE_TIME, lambda key: is_bound_in(self._app, key))
        idle = 0.0
        reader = self._input_reader
        reader.timeout = POLL
        for data in reader:
            for kind, content in packets.feed(data) if data else ():
                idle = 0.0
                if kind == b"D":
                    for message in posted(cutter.feed(decode(content)), parser):
                        self.process_message(message)
                else:
                    self._on_meta("M", content)
            if not data:
                idle += POLL
                for message in posted(cutter.flush(idle), parser):
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)
        if not self.exit_event.is_set():
            self._leave()  # the server is gone

    def _leave(self) -> None:
        way_out = getattr(self._app, "way_out", None)
        if isinstance(way_out, WayOut):
            way_out.end_soon(int(ExitCode.HANGUP))

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        match packet_type:
            case "resize" | "attach":
                columns, rows = (max(1, int(str(payload.get(key) or 0))) for key in ("width", "height"))
                if packet_type == "attach":
                    self._show()
                self._report(columns, rows)
                if packet_type == "attach" and (redraw := getattr(self._app, "action_redraw", None)) is not None:
                    self._app.call_later(redraw)
            case "quit":
                self._leave()
            case _:
                super().on_meta(packet_type, payload)


def run_page(program: Program) -> int:
    """Run the interface for a page until the user leaves or the server ends. Returns the exit code."""
    packets = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace", newline="")
    os.dup2(2, 1)  # what other code prints is no packet, and goes to standard error
    sys.__stdout__ = packets  # pyright: ignore[reportAttributeAccessIssue] - the web driver writes there
    gc.disable()
    sys.setswitchinterval(SWITCH_EARLY)
    with textual_settings():
        from swecli.steady_clock import SteadyClock
        from swecli.tui.app import SwecliApp
        from swecli.tui.terminal import handled
    with contextlib.suppress(ValueError):
        PageDriver.columns_and_rows = int(os.environ["COLUMNS"]), int(os.environ["ROWS"])
    for name in ("COLUMNS", "ROWS", "LINES"):
        os.environ.pop(name, None)  # they are the page's at its start, and commands would take them for their own
    keep_timers_steady()
    app = SwecliApp(program, clock=SteadyClock(), opened=settle, driver=PageDriver)
    with handled(app.way_out.end_soon, app.way_out.cancel_soon, lambda: None):
        app.run()
    if app.defect is not None:
        from swecli.tui.launch import defect_report

        sys.stderr.write(f"swecli: {defect_report(app.defect, program.state, program.open.resume_hint)}\n")
    elif app.failure is not None:
        sys.stderr.write(f"swecli: {app.failure}\n")
    sys.stderr.write(json.dumps({"resume": program.open.resume_hint}) + "\n")
    return app.return_code or 0
