"""What the whole program writes to its terminal while an answer of 2,000 words streams in at 50 words a second.

Bytes are what a user on a slow line waits for. They are counted from the message's first paint until the turn is over,
in true colour. One answer is prose, lists and code of ever new words; the other repeats one passage, in which a line
that moved is hard to tell from one that came anew.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.screen_run import OVER, PROMPT, WORDS
from benchmarks.window import FRAME, Window

SIZES = ((80, 24), (120, 40), (200, 60))
ANSWERS = (("stream", "new words"), ("repeated", "one passage again and again"))
MEGABYTE = 1e6


def run() -> Iterator[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    for scenario, text in ANSWERS:
        for columns, rows in SIZES:
            painted = _painted(scenario, columns, rows)
            yield f"{WORDS:,} words, {text}, {columns}x{rows}", len(painted) / MEGABYTE, "MB  (goal 2)"
            yield "  frames", painted.count(FRAME), ""


def _painted(scenario: str, columns: int, rows: int) -> bytes:
    """Everything written to the terminal while the answer came."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        command = [sys.executable, "-m", "benchmarks.screen_run", scenario, str(Path(name) / "result.json")]
        variables = {"HOME": name, "SWECLI_HOME": str(home)}
        window = Window(command, tmux=False, variables=variables, size=(columns, rows))
        try:
            begun = window.until(PROMPT)
            window.until(OVER)
            return window.painted(begun)
        finally:
            window.close()
