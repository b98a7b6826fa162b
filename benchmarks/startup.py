"""How long it takes until there is something to see."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.minimal_app import READY
from benchmarks.terminal import ROOT, Painted, paint

ROUNDS = 11
FIRST_FRAME = "can type already"
"""What the empty prompt of the first frame says; the cursor is on its first letter."""
SPLASH = "starting"
"""What the first paint says."""
OPENED = "for a change"
"""What it says once the session is open."""


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    with tempfile.TemporaryDirectory() as name:
        variables = {"SWECLI_HOME": name}
        bare, version, opened = [], [], []
        splash: list[Painted] = []
        ours: list[Painted] = []
        minimal: list[Painted] = []
        for _ in range(ROUNDS):
            bare.append(_seconds([sys.executable, "-c", "pass"]))
            version.append(_seconds([sys.executable, "-m", "swecli.cli", "--version"]))
            splash.append(paint([sys.executable, "-m", "swecli.cli"], SPLASH, Path(name), variables))
            ours.append(paint([sys.executable, "-m", "swecli.cli"], FIRST_FRAME, Path(name), variables))
            opened.append(paint([sys.executable, "-m", "swecli.cli"], OPENED, Path(name), variables).seconds)
            minimal.append(paint([sys.executable, "-m", "benchmarks.minimal_app"], READY, ROOT, {}))
    frame, yardstick = statistics.median(p.seconds for p in ours), statistics.median(p.seconds for p in minimal)
    worked = statistics.median(p.cpu for p in ours) / statistics.median(p.cpu for p in minimal)
    return [
        ("--version, to a bare interpreter", statistics.median(version) / statistics.median(bare), "x"),
        ("first paint", statistics.median(p.seconds for p in splash) * 1e3, "ms  (goal 30)"),
        ("first paint, processor time", statistics.median(p.cpu for p in splash) * 1e3, "ms"),
        ("first frame", frame * 1e3, "ms"),
        ("first frame, processor time to a minimal Textual app", worked, "x  (goal 1.4)"),
        ("first frame, to a minimal Textual app", frame / yardstick, "x  (goal 1.4)"),
        ("first frame, to a bare interpreter", frame / statistics.median(bare), "x"),
        ("session open, to a minimal Textual app", statistics.median(opened) / yardstick, "x"),
    ]


def _seconds(command: Sequence[str]) -> float:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
