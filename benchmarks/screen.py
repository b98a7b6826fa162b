"""What the whole program costs in a terminal: streaming, and a long session."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import minimal_app, screen_run
from benchmarks.terminal import ROOT, paint

ROUNDS = 3


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    ours = statistics.median(_ours("stream")["cpu"] for _ in range(ROUNDS))
    minimal = statistics.median(_minimal()["cpu"] for _ in range(ROUNDS))
    turns = _ours("turns")
    seconds: list[float] = turns["seconds"]
    early, late = statistics.median(seconds[:20]), statistics.median(seconds[-20:])
    return [
        (f"processor time for streaming {screen_run.WORDS:,} words", ours, "s"),
        ("the same to a minimal Textual app", ours / minimal, "x"),
        (f"tool turn on screen, median of {screen_run.TURNS}", statistics.median(seconds) * 1e3, "ms"),
        ("growth from the first 20 turns to the last 20", (late - early) * 1e3, "ms"),
        (f"memory after {screen_run.TURNS} turns", turns["rss"] / 2**20, "MiB (goal 100)"),
    ]


def _ours(scenario: str) -> Any:
    return _measured(["-m", "benchmarks.screen_run", scenario], screen_run.OVER)


def _minimal() -> Any:
    return _measured(["-m", "benchmarks.minimal_app"], minimal_app.OVER)


def _measured(arguments: list[str], marker: str) -> Any:
    with tempfile.TemporaryDirectory() as name:
        result = Path(name) / "result.json"
        paint([sys.executable, *arguments, str(result)], marker, ROOT, {"SWECLI_HOME": name})
        return json.loads(result.read_text(encoding="utf-8"))
