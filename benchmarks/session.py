"""What the engine adds to a turn, without a screen: 200 turns with one tool call each.

The model is scripted and answers at once, so that what is left is events, storing, measuring, permissions and the tool.
`python -m benchmarks.session` runs the turns in this process and prints what was measured as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.screen_run import TURNS, many_turns, turns_script, workspace
from benchmarks.terminal import ROOT


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    bare = _child("-c", "import json, psutil; print(json.dumps({'rss': psutil.Process().memory_info().rss}))")
    measured = _child("-m", "benchmarks.session")
    seconds: list[float] = measured["seconds"]
    early, late = statistics.median(seconds[:20]), statistics.median(seconds[-20:])
    return [
        ("tokens of the first request, for 'hi'", measured["tokens"], "    (goal 3,000)"),
        (f"engine per tool turn, median of {TURNS}", statistics.median(seconds) * 1e3, "ms (goal 25)"),
        ("growth from the first 20 turns to the last 20", (late - early) * 1e3, "ms (goal 15)"),
        (f"memory after {TURNS} turns, no screen", measured["rss"] / 2**20, "MiB"),
        ("the same to a bare interpreter", measured["rss"] / bare["rss"], "x"),
    ]


def _child(*arguments: str) -> Any:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SWECLI_HOME": home}
        output = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=True).stdout
    return json.loads(output)


async def _measure() -> dict[str, object]:
    from swecli.app import open_session
    from swecli.launch import LaunchOptions

    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "bench.toml"
        script.write_text(turns_script(TURNS), encoding="utf-8")
        options = LaunchOptions(cwd=workspace(Path(name) / "work"), script=script, headless=True, mode="default")
        session = await open_session(options)
        try:
            return await many_turns(session, TURNS)
        finally:
            await session.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure())))
