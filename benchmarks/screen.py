"""What the interface costs: keys, pages, appended items, streams, on 10,000 items, in a bare terminal and in tmux.

Times are what is seen from outside, from what was sent until what it leads to is painted. Beside them stands the
processor time, which says the same on a busy machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks import minimal_app
from benchmarks.played_session import APPENDED_GLYPHS, DIFF_END, GLYPHS, READY, STREAM_END, TOKENS
from benchmarks.window import COLUMNS, FRAME, ROWS, Window

Line = tuple[str, float, str]

ITEMS, MANY = 10_000, 100_000
KEYS = 60
PAGES = 30
SETTLED = 2.0
"""Seconds after which the start is over."""
IDLE = 5.0
"""Seconds in which nothing happens."""
PAGE_UP, PAGE_DOWN, END, CLEAR, FULL = "\x1b[5~", "\x1b[6~", "\x1b[1;5F", "\x15", "\x0f"
BLUR, FOCUS = "\x1b[O", "\x1b[I"


def run() -> Iterator[Line]:
    """What was measured, the value, its unit."""
    yield "load of the machine", os.getloadavg()[0], ""
    for tmux in (False, True):
        where = "tmux" if tmux else "pty"
        for name, value, unit in _in_terminal(tmux):
            yield f"{where}: {name}", value, unit
    yield "load of the machine", os.getloadavg()[0], ""


def _in_terminal(tmux: bool) -> Iterator[Line]:
    yardstick = _minimal_key(tmux)
    plain, minimal = _baseline("plain", tmux), _baseline("stream", tmux)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with contextlib.closing(Session(ITEMS, folder, tmux)) as session:
            yield "memory, 10,000 items", session.rss(), "MiB  (goal 60)"
            yield from session.idle()
            keys = session.keys()
            yield from keys.lines("key to paint, 10,000 items", 16)
            yield "  to one in a minimal Textual app, processor time", keys.cpu / yardstick.cpu, "x"
            pages, appended = session.pages(), session.appended()
            yield from pages.lines("page, 10,000 items", 16)
            yield from appended.lines("appended item, 10,000 items", 16)
            resizes = session.resizes()
            yield from resizes.lines("change of size", 120)
            yield from session.focus().lines("change of focus", 20, wall=False)
            yield from session.stream(plain, minimal)
            yield from session.keys_while_streaming().lines("key to paint while 2,000 tokens a second come", 50)
            yield from session.diff()
        if tmux:
            return
        with contextlib.closing(Session(MANY, folder, tmux)) as session:
            many = [
                ("key to paint", keys, session.keys()),
                ("page", pages, session.pages()),
                ("appended item", appended, session.appended()),
                ("change of size", resizes, session.resizes()),
            ]
            for what, few, more in many:
                yield f"{what}, 100,000 items to 10,000, processor time", more.cpu / few.cpu, "x  (goal 2)"
            yield "memory, 100,000 items", session.rss(), "MiB"


class Timed:
    """Seconds of something that was done again and again, as seen from outside, and the mean processor seconds."""

    def __init__(self, seconds: Sequence[float], cpu: float) -> None:
        self.seconds = sorted(seconds)
        self.cpu = cpu / len(seconds)

    @property
    def p50(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        return self.seconds[min(len(self.seconds) - 1, int(len(self.seconds) * 0.95))]

    def lines(self, what: str, goal: float, *, wall: bool = True) -> list[Line]:
        seen: list[Line] = [
            (f"{what}, p50", self.p50 * 1e3, "ms"),
            (f"{what}, p95", self.p95 * 1e3, f"ms  (goal {goal:g})"),
        ]
        cpu = f"ms  (goal {goal:g})" if not wall else "ms"
        return [*(seen if wall else []), (f"{what}, processor time", self.cpu * 1e3, cpu)]


class Session:
    """The interface on a session of so many items, shown."""

    def __init__(self, items: int, folder: Path, tmux: bool) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        command = [sys.executable, "-m", "benchmarks.played_session", str(items), str(self._folder)]
        self.window = Window(command, tmux=tmux, variables={"SWECLI_HOME": str(self._folder)})
        self._tmux = tmux
        self.window.until(READY)
        self.window.settle(1.0)
        time.sleep(SETTLED)

    def close(self) -> None:
        self.window.close()

    def rss(self) -> float:
        """MiB."""
        return psutil.Process(self.window.pid).memory_info().rss / 2**20

    def idle(self) -> list[Line]:
        since, cpu = time.monotonic(), self.window.cpu()
        self.window.burst(IDLE, IDLE)
        spent = time.monotonic() - since
        share = (self.window.cpu() - cpu) / spent * 100
        painted = len(self.window.painted(since))
        return [("idle, of a core", share, "%  (goal 0.5)"), ("idle, bytes painted", painted, "(goal 0)")]

    def keys(self) -> Timed:
        cpu, seconds = self.window.cpu(), []
        for glyph in GLYPHS[:KEYS]:
            seconds.append(-self.window.send(glyph) + self.window.until(glyph))
            self.window.settle(0.05)
        timed = Timed(seconds, self.window.cpu() - cpu)
        self._clear()
        return timed

    def pages(self) -> Timed:
        timed = self._each([PAGE_UP] * PAGES + [PAGE_DOWN] * (PAGES // 2), 0.06)
        self.window.send(END)
        self.window.settle()
        return timed

    def _each(self, keys: Sequence[str], quiet: float) -> Timed:
        cpu, seconds = self.window.cpu(), []
        for key in keys:
            seconds.append(-self.window.send(key) + self.window.burst(quiet))
        return Timed(seconds, self.window.cpu() - cpu)

    def appended(self) -> Timed:
        self._say("append")
        seen = [self.window.until(glyph) for glyph in APPENDED_GLYPHS]
        found = self._result("append")
        return Timed([at - given for at, given in zip(seen, found["times"], strict=True)], found["cpu"])

    def resizes(self) -> Timed:
        cpu, seconds = self.window.cpu(), []
        for number in range(8):
            rows = ROWS - 6 * (number % 2 == 0)
            seconds.append(-self.window.resize(COLUMNS - 20 * (number % 2 == 0), rows) + self.window.burst(0.25))
        return Timed(seconds, self.window.cpu() - cpu)

    def focus(self) -> Timed:
        self.window.settle()
        cpu, changes = self.window.cpu(), [BLUR, FOCUS] * 5
        for change in changes:
            self.window.send(change)
            self.window.settle(0.1)
        return Timed([0.0] * len(changes), self.window.cpu() - cpu)

    def stream(self, plain: float, minimal: float) -> list[Line]:
        since = time.monotonic()
        self._say("stream")
        seen = self.window.until(STREAM_END)
        found = self._result("stream")
        begun, ideal, given = found["times"]
        frames = self.window.painted(since).count(FRAME) / (seen - begun)
        lines = [
            (f"{TOKENS:,} tokens, painted after the last was due", (seen - ideal) * 1e3, "ms  (goal: on time)"),
            ("  of these, the giving itself was late by", (given - ideal) * 1e3, "ms"),
            (f"{TOKENS:,} tokens, processor time", found["cpu"], "s"),
            ("  to a plain write", found["cpu"] / plain, "x  (goal 7)"),
            ("  to a minimal Textual app", found["cpu"] / minimal, "x"),
        ]
        return lines if self._tmux else [*lines, ("  frames a second", frames, "(goal 30)")]

    def keys_while_streaming(self) -> Timed:
        self._say("stream")
        time.sleep(0.3)
        cpu, seconds = self.window.cpu(), []
        for glyph in GLYPHS[:KEYS]:
            seconds.append(-self.window.send(glyph) + self.window.until(glyph))
            pause = time.monotonic() + 0.06
            while (left := pause - time.monotonic()) > 0:
                self.window.read(left)
        timed = Timed(seconds, self.window.cpu() - cpu)
        self._result("stream")
        self._clear()
        return timed

    def diff(self) -> list[Line]:
        self.window.send(FULL)
        self.window.settle()
        self._say("diff")
        seen = self.window.until(DIFF_END)
        found = self._result("diff")
        given, spent = found["times"]
        lines = [
            ("2,000-line diff to paint", (seen - given) * 1e3, "ms  (goal 16)"),
            ("2,000-line diff, processor time", spent * 1e3, "ms"),
        ]
        return [*lines, *self._each([PAGE_UP] * 20, 0.06).lines("page in the diff", 16)]

    def _say(self, text: str) -> None:
        """Send a message, in two parts: what is pasted isn't sent by itself."""
        (self._folder / f"{text}.json").unlink(missing_ok=True)
        self.window.send(text)
        self.window.settle(0.2)
        self.window.send("\r")

    def _result(self, name: str) -> Any:
        file = self._folder / f"{name}.json"
        end = time.monotonic() + 60
        while not file.exists():
            if time.monotonic() > end:
                raise RuntimeError(f"{name} did not end")
            self.window.read(0.1)
        self.window.settle()
        return json.loads(file.read_text())

    def _clear(self) -> None:
        self.window.send(CLEAR)
        self.window.settle()


def _minimal_key(tmux: bool) -> Timed:
    """A key in the minimal application."""
    window = Window([sys.executable, "-m", "benchmarks.minimal_app", "edit"], tmux=tmux)
    try:
        window.until(minimal_app.READY)
        window.settle(1.0)
        cpu, seconds = window.cpu(), []
        for glyph in GLYPHS[:KEYS]:
            seconds.append(-window.send(glyph) + window.until(glyph))
            window.settle(0.05)
        return Timed(seconds, window.cpu() - cpu)
    finally:
        window.close()


def _baseline(kind: str, tmux: bool) -> float:
    """Processor seconds of writing the tokens: plainly, or in the minimal application."""
    with tempfile.TemporaryDirectory() as name:
        result = Path(name) / "result.json"
        window = Window([sys.executable, "-m", "benchmarks.minimal_app", kind, str(result)], tmux=tmux)
        try:
            window.until(minimal_app.OVER)
            return json.loads(result.read_text())["cpu"]
        finally:
            window.close()
