"""How long it takes until there is something to see, until keys are answered, and until a message is worked on.

In a bare terminal and in tmux, beside a bare interpreter that writes a word and a minimal Textual application.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.minimal_app import READY
from benchmarks.played_session import GLYPHS
from benchmarks.terminal import ROOT
from benchmarks.window import Window

Line = tuple[str, float, str]

ROUNDS = 9
SPLASH = "starting"
"""What the first paint says."""
WORD = "plain-write"
OPENED = "for a change"
"""What the empty prompt says once the session is open."""
SWECLI = [sys.executable, "-m", "swecli.cli"]
MINIMAL = [sys.executable, "-m", "benchmarks.minimal_app"]
BARE = [sys.executable, "-c", f"print('{WORD[:5]}' + '{WORD[5:]}')\nimport time; time.sleep(2)"]
EARLY = 40
"""Keys that are typed while the program starts."""
EARLY_GAP = 0.05


@dataclass(frozen=True, slots=True)
class Painted:
    """Seconds from the start until something was seen, and processor seconds by then; each the best of all rounds,
    beside the median of the seconds."""

    median: float
    best: float
    cpu: float


def run() -> Iterator[Line]:
    """What was measured, the value, its unit."""
    yield "load of the machine", os.getloadavg()[0], ""
    version = [_seconds([*SWECLI, "--version"]) for _ in range(ROUNDS)]
    bare = [_seconds([sys.executable, "-c", "pass"]) for _ in range(ROUNDS)]
    yield "--version, to a bare interpreter", statistics.median(version) / statistics.median(bare), "x"
    for tmux in (False, True):
        where = "tmux" if tmux else "pty"
        for name, value, unit in _in_terminal(tmux):
            yield f"{where}: {name}", value, unit


def _in_terminal(tmux: bool) -> list[Line]:
    key = GLYPHS[0]
    bare = _painted(BARE, WORD, tmux)
    minimal = _painted(MINIMAL, READY, tmux)
    splash = _painted(SWECLI, SPLASH, tmux)
    echo = _painted(SWECLI, key, tmux, typed=key)
    opened = _painted(SWECLI, OPENED, tmux)
    early = sorted(delay for _ in range(3) for delay in _early_keys(tmux))
    return [
        ("first paint", splash.median * 1e3, "ms  (goal 30)"),
        ("first paint, best", splash.best * 1e3, "ms"),
        ("first paint, processor time", splash.cpu * 1e3, "ms"),
        ("first paint, to a plain write by a bare interpreter", splash.median / bare.median, "x"),
        ("key typed at the first paint is answered", echo.median * 1e3, "ms"),
        ("  to the first frame of a minimal Textual app", echo.median / minimal.median, "x  (goal 1.4)"),
        ("  processor time, to the same", echo.cpu / minimal.cpu, "x  (goal 1.4)"),
        ("key while the rest is loaded, p50", early[len(early) // 2] * 1e3, "ms"),
        ("key while the rest is loaded, p95", early[int(len(early) * 0.95)] * 1e3, "ms"),
        ("a message is worked on, to a minimal Textual app", opened.median / minimal.median, "x"),
    ]


def _painted(command: Sequence[str], marker: str, tmux: bool, typed: str = "") -> Painted:
    seconds, cpu = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as home:
            window = Window(command, tmux=tmux, variables=_variables(home), cwd=Path(home))
            try:
                if typed:  # sooner, the terminal itself would show it
                    window.until(SPLASH)
                    window.send(typed)
                seconds.append(window.until(marker) - window.started)
                cpu.append(window.cpu())
            finally:
                window.close()
    return Painted(statistics.median(seconds), min(seconds), min(cpu))


def _variables(home: str) -> dict[str, str]:
    """A home of its own; a key, so that there is a model to ask, which nobody does."""
    return {"SWECLI_HOME": home, "OPENAI_API_KEY": "none"}


def _early_keys(tmux: bool) -> list[float]:
    """Seconds until keys are answered that are typed from the first frame on."""
    with tempfile.TemporaryDirectory() as home:
        window = Window(SWECLI, tmux=tmux, variables=_variables(home), cwd=Path(home))
        try:
            window.until(SPLASH)
            window.send(GLYPHS[0])
            window.until(GLYPHS[0])
            delays = []
            for glyph in GLYPHS[1 : EARLY + 1]:
                delays.append(-window.send(glyph) + window.until(glyph))
                end = time.monotonic() + EARLY_GAP
                while (left := end - time.monotonic()) > 0:
                    window.read(left)
            return delays
        finally:
            window.close()


def _seconds(command: Sequence[str]) -> float:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
