"""Counts what one Enter costs in the real program: functions and files of ``swecli`` that run on the event loop.

    python -m scripts.trace_turn           both ways, as a table
    python -m scripts.trace_turn --files   also which functions ran, and how often

A message (``first`` of a session, or ``second``) counts from the key to the first byte of the request on the socket,
``/help`` from the key until its list is on the screen. The program runs in a pseudo-terminal against a server of this
script. ``way`` leaves out what only draws: functions that Textual called to compose, measure or render, and those that
show a batch of events meanwhile, which is already the way back. It leaves out the definitions of modules, too, which
run once when a part of the program is first used.
"""

from __future__ import annotations

import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

import swecli

PACKAGE = str(Path(swecli.__file__).parent) + os.sep
ROWS, COLUMNS = 40, 120
QUIET = 1.5
"""Seconds without output after which the program waits for a key."""
DEADLINE = 60.0
READY = b"%"
"""Stands in the status bar as soon as the session is open and measured."""
GOALS = {"first": (58, 205), "second": (58, 205), "help": (15, None)}
"""Files and functions at the most."""
_DRAWING = ("render", "_render", "render_line", "render_lines", "get_content_height", "get_content_width", "compose")
_DRAWING += ("on_resize", "_display", "_compositor_refresh")
_BESIDE = (*_DRAWING, "<module>")
_DRAWING_FILES = ("_compositor.py", "_styles_cache.py", "_layout.py")
_SHOWING = "SessionController._apply"


class Counted:
    """Calls by function, from the key on, with the sequence of files."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.way: Counter[tuple[str, str]] = Counter()
        self.changes = 0
        self._last = ""

    def add(self, frame: FrameType) -> None:
        """A call of a function of the package."""
        code = frame.f_code
        # A comprehension or a function within another counts as the one that it stands in.
        place = (code.co_filename[len(PACKAGE) :], code.co_qualname.partition(".<locals>")[0])
        self.calls[place] += 1
        self.changes += place[0] != self._last
        self._last = place[0]
        if not _is_beside(frame):
            self.way[place] += 1

    def report(self) -> dict[str, Any]:
        """Figures and names, as JSON."""
        return {
            "calls": self.calls.total(),
            "functions": len(self.calls),
            "files": sorted({file for file, _ in self.calls}),
            "changes": self.changes,
            "way_functions": len(self.way),
            "way_files": sorted({file for file, _ in self.way}),
            "names": sorted(f"{file}:{name} {count}" for (file, name), count in self.way.items()),
        }


def _is_beside(frame: FrameType | None) -> bool:
    """Whether this runs, directly or not, to draw, to show events or to define a module."""
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if name in _BESIDE or file.endswith(_DRAWING_FILES) or frame.f_code.co_qualname == _SHOWING:
            return True
        if name == "_run_once":
            return False
        frame = frame.f_back
    return False


# --- in the program -----------------------------------------------------------------------------------------


def traced(ended: Callable[[FrameType, str, Any, dict[str, Any]], bool], report: Path, skipped: int) -> int:
    """Run the program, counting until ``ended`` from the first Enter on that is not ``skipped``."""
    from textual import events
    from textual.app import App

    counted = Counted()
    seen: dict[str, Any] = {}
    enters = 0
    on_event = App.on_event

    def profile(frame: FrameType, kind: str, argument: Any) -> None:
        if kind == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            counted.add(frame)
        if ended(frame, kind, argument, seen):
            sys.setprofile(None)
            report.write_text(json.dumps(counted.report()), encoding="utf-8")

    async def watched(self: App[Any], event: events.Event) -> None:
        nonlocal enters
        if isinstance(event, events.Key) and event.key == "enter":
            enters += 1
            if enters == skipped + 1:
                sys.setprofile(profile)
        await on_event(self, event)

    App.on_event = watched  # type: ignore[method-assign]
    from swecli.cli import main

    return main()


def request_sent(frame: FrameType, kind: str, argument: Any, _seen: dict[str, Any]) -> bool:
    """Whether the first bytes of a request go to the socket."""
    if kind != "c_call" or getattr(argument, "__name__", "") != "send" or frame.f_code.co_name != "write":
        return False
    return bytes(frame.f_locals.get("data", b"")[:4]) == b"POST"


def list_shown(frame: FrameType, kind: str, _argument: Any, seen: dict[str, Any]) -> bool:
    """Whether the screen was drawn after something was put on it."""
    if kind != "call":
        return False
    name = frame.f_code.co_name
    if f"{os.sep}textual{os.sep}" in frame.f_code.co_filename and name in ("push_screen", "mount"):
        seen["mounted"] = True
    return name == "_display" and "mounted" in seen


# --- beside it ----------------------------------------------------------------------------------------------


class _Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer("application/json", b'{"data": [{"id": "traced", "max_model_len": 200000}]}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        word = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}
        self._answer("text/event-stream", f"data: {json.dumps(word)}\n\ndata: [DONE]\n\n".encode())

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def measured(way: str, text: str, address: str) -> dict[str, Any]:
    """One run of the program: ``text``, Enter, and what that cost."""
    with tempfile.TemporaryDirectory() as folder:
        report, home, work = Path(folder) / "report.json", Path(folder) / "home", Path(folder) / "work"
        home.mkdir()
        work.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        arguments = ["-m", "vllm/traced", "--base-url", f"{address}/v1", "-C", str(work)]
        command = [sys.executable, "-m", "scripts.trace_turn", "--in", way, str(report), *arguments]
        master, slave = pty.openpty()
        import fcntl
        import termios

        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        program = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True, close_fds=True
        )
        os.close(slave)
        try:
            shown = _until_quiet(master, READY)
            for keys in (b"Hello.", b"\r", text.encode(), b"\r") if way == "second" else (text.encode(), b"\r"):
                os.write(master, keys)
                shown += _until_quiet(master, done=report.exists)
            end = time.monotonic() + DEADLINE
            while not report.exists() or not report.stat().st_size:
                if time.monotonic() > end:
                    raise SystemExit(f"{way}: the end was never seen; the program wrote\n{shown!r}")
                shown += _read(master, 0.2)
            return json.loads(report.read_text(encoding="utf-8"))
        finally:
            program.kill()
            program.wait()
            os.close(master)


def _until_quiet(master: int, need: bytes = b"", done: Callable[[], bool] = lambda: False) -> bytes:
    shown, end = b"", time.monotonic() + DEADLINE
    while time.monotonic() < end and not done():
        more = _read(master, QUIET)
        shown += more
        if not more and need in shown:
            break
    return shown


def _read(master: int, seconds: float) -> bytes:
    ready, _, _ = select.select([master], [], [], seconds)
    try:
        return os.read(master, 65_536) if ready else b""
    except OSError:
        return b""


def main(arguments: list[str]) -> int:
    """Measure both ways and print them beside their goals."""
    if arguments[:1] == ["--in"]:
        way, report = arguments[1], Path(arguments[2])
        sys.argv = ["swecli", *arguments[3:]]
        return traced(list_shown if way == "help" else request_sent, report, skipped=way == "second")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    print(f"{'':<10}{'calls':>8}{'functions':>11}{'files':>7}{'changes':>9}   on the way: functions, files   goal")
    for way, text in (("first", "Say hello."), ("second", "Say hello."), ("help", "/help")):
        found = measured(way, text, address)
        files, functions = GOALS[way]
        goal = f"<= {files} files" + (f", <= {functions} functions" if functions else "")
        print(
            f"{way:<10}{found['calls']:>8}{found['functions']:>11}{len(found['files']):>7}{found['changes']:>9}"
            f"   {found['way_functions']:>10}, {len(found['way_files']):<18}{goal}"
        )
        if "--files" in arguments:
            print("\n".join(f"    {name}" for name in found["names"]))
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
