"""What a long session keeps in memory: 2,000 turns whose tool prints 50 KB each, without a screen.

Long output is stored beside the conversation, so that the program must not grow with it. `python -m benchmarks.memory`
runs the turns in this process and prints what was measured as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.terminal import ROOT

TURNS, EARLY = 2_000, 200
OUTPUT = 50_000
"""Bytes of one output."""


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SWECLI_HOME": home}
        command = [sys.executable, "-m", "benchmarks.memory"]
        output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    early, late = json.loads(output)
    return [
        (f"memory at turn {EARLY:,}, {OUTPUT // 1_000} KB of output each", early / 2**20, "MiB"),
        (f"memory at turn {TURNS:,}", late / 2**20, "MiB"),
        ("  ratio of the two", late / early, "x (goal 1.5)"),
    ]


def script(turns: int) -> str:
    """A script whose every turn runs one command."""
    steps = ['window = 200000\nchunk = "whole"\n']
    for number in range(turns):
        command = f"head -c {OUTPUT} long.txt; echo {number}"
        call = f"{{ tool = 'run_command', arguments = {{ command = '{command}' }} }}"
        steps.append(f"[[step]]\ntext = 'I run it.'\ncall = [{call}]\n[[step]]\ntext = 'Turn {number} is done.'\n")
    return "\n".join(steps)


async def measure(turns: int = TURNS, early: int = EARLY) -> Sequence[int]:
    """Resident bytes after ``early`` turns and after all of them."""
    from benchmarks.screen_run import one_turn
    from swecli.app import open_session
    from swecli.launch import LaunchOptions

    with tempfile.TemporaryDirectory() as name:
        folder, play = Path(name) / "work", Path(name) / "bench.toml"
        await asyncio.to_thread(folder.mkdir)
        await asyncio.to_thread((folder / "long.txt").write_text, "a line of some output, like many\n" * 2_000)
        await asyncio.to_thread(play.write_text, script(turns))
        session = await open_session(LaunchOptions(cwd=folder, script=play, headless=True, mode="auto"))
        found: list[int] = []
        try:
            events = session.subscribe()
            for number in range(1, turns + 1):
                await one_turn(session, events, f"Run part {number}.")
                if number in (early, turns):
                    found.append(psutil.Process().memory_info().rss)
        finally:
            await session.close()
        return found


if __name__ == "__main__":
    print(json.dumps(list(asyncio.run(measure(*map(int, sys.argv[1:]))))))
