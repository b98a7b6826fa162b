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
LOOKS = (
    (BARE, WORD, ""),
    (MINIMAL, READY, ""),
    (SWECLI, SPLASH, ""),
    (SWECLI, GLYPHS[0], GLYPHS[0]),
    (SWECLI, OPENED, ""),
)
"""What is started, what is waited for, and what is typed at the first paint."""
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
    for tmux in (False, True):
        where = "tmux" if tmux else "pty"
        for name, value, unit in _in_terminal(tmux):
            yield f"{where}: {name}", value, unit
    pairs = [(_seconds([*SWECLI, "--version"]), _seconds([sys.executable, "-c", "pass"])) for _ in range(ROUNDS)]
    version, bare = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    yield "--version, to a bare interpreter", version / bare, "x"


def _in_terminal(tmux: bool) -> list[Line]:
    rounds = [[_painted(*look, tmux) for look in LOOKS] for _ in range(ROUNDS)]  # in turn: the load changes
    bare, minimal, splash, echo, opened = (_of(painted) for painted in zip(*rounds, strict=True))
    early = sorted(delay for _ in range(3) for delay in _early_keys(tmux))
    return [
        ("first paint", splash.median * 1e3, "ms  (goal 30)"),
        ("first paint, best", splash.best * 1e3, "ms"),
        ("first paint, processor time", splash.cpu * 1e3, "ms"),
        ("first paint, to a plain write by a bare interpreter", splash.median / bare.median, "x"),
        ("first frame of a minimal Textual app", minimal.median * 1e3, "ms"),
        ("key typed at the first paint is answered", echo.median * 1e3, "ms"),
        ("  to the first frame of a minimal Textual app", echo.median / minimal.median, "x  (goal 1.4)"),
        ("  processor time, to the same", echo.cpu / minimal.cpu, "x  (goal 1.4)"),
        ("key while the rest is loaded, p50", early[len(early) // 2] * 1e3, "ms"),
        ("key while the rest is loaded, p95", early[int(len(early) * 0.95)] * 1e3, "ms"),
        ("session open, to a minimal Textual app", opened.median / minimal.median, "x"),
    ]


def _painted(command: Sequence[str], marker: str, typed: str, tmux: bool) -> tuple[float, float]:
    """Seconds from the start until the marker is seen, and processor seconds by then."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        window = Window(command, tmux=tmux, variables=_variables(home), cwd=Path(home))
        try:
            if typed:  # sooner, the terminal itself would show it
                window.until(SPLASH)
                window.send(typed)
            return window.until(marker) - window.started, window.cpu()
        finally:
            window.close()


def _of(painted: Sequence[tuple[float, float]]) -> Painted:
    seconds, cpu = zip(*painted, strict=True)
    return Painted(statistics.median(seconds), min(seconds), min(cpu))


def _variables(home: str) -> dict[str, str]:
    """A home of its own; a key, so that there is a model to ask, which nobody does."""
    return {"SWECLI_HOME": home, "OPENAI_API_KEY": "none"}


def _early_keys(tmux: bool) -> list[float]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        window = Window(SWECLI, tmux=tmux, variables=_variables(home), cwd=Path(home))
        try:
            return early_keys(window)
        finally:
            window.close()


def early_keys(window: Window) -> list[float]:
    """Seconds until keys are answered that are typed from the first frame on."""
    window.until(SPLASH)
    window.send(GLYPHS[0])
    window.until(GLYPHS[0])
    delays: list[float] = []
    for glyph in GLYPHS[1 : EARLY + 1]:
        delays.append(-window.send(glyph) + window.until(glyph))
        end = time.monotonic() + EARLY_GAP
        while (left := end - time.monotonic()) > 0:
            window.read(left)
    return delays


def _seconds(command: Sequence[str]) -> float:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
