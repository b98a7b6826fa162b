"""What a long session keeps in memory: 2,000 turns whose tool prints 50 KB each, without a screen and with one.

Long output is stored beside the conversation, so that the program must not grow with it. `python -m benchmarks.memory`
runs the turns in this process without a screen and prints what was measured as JSON; with the name of a file for that
it does the same in the terminal that it is started in.
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

from benchmarks.screen_run import OVER, one_turn
from benchmarks.terminal import ROOT, paint
from swecli.app import open_session
from swecli.core.engine.view import SessionPort
from swecli.launch import LaunchOptions

TURNS, EARLY = 2_000, 200
OUTPUT = 50_000
"""Bytes of one output."""
DEADLINE = 3_600.0
"""Seconds after which the run on a screen counts as stuck."""


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    with tempfile.TemporaryDirectory() as home:
        variables = {"SWECLI_HOME": home}
        command = [sys.executable, "-m", "benchmarks.memory"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        plain = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
        result = Path(home) / "result.json"
        paint([*command, str(result)], OVER, ROOT, variables, deadline=DEADLINE)
        shown = json.loads(result.read_text())
    return [*_lines("without a screen", plain), *_lines("with a screen", shown)]


def _lines(how: str, found: Sequence[int]) -> list[tuple[str, float, str]]:
    early, late = found
    return [
        (f"memory at turn {EARLY:,} {how}, {OUTPUT // 1_000} KB of output each", early / 2**20, "MiB"),
        (f"memory at turn {TURNS:,} {how}", late / 2**20, "MiB"),
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


async def measure(session: SessionPort, turns: int, early: int) -> Sequence[int]:
    """Resident bytes after ``early`` turns and after all of them."""
    found: list[int] = []
    events = session.subscribe()
    for number in range(1, turns + 1):
        await one_turn(session, events, f"Run part {number}.")
        if number in (early, turns):
            found.append(psutil.Process().memory_info().rss)
    return found


def options(folder: Path, turns: int, *, headless: bool) -> LaunchOptions:
    """A session with a script of so many turns, in a folder made for it."""
    work, play = folder / "work", folder / "bench.toml"
    work.mkdir()
    (work / "long.txt").write_text("a line of some output, like many\n" * 2_000)
    play.write_text(script(turns))
    return LaunchOptions(cwd=work, script=play, headless=headless, mode="auto")


async def without_screen(launch: LaunchOptions, turns: int, early: int) -> Sequence[int]:
    """The same, of a session in this process."""
    session = await open_session(launch)
    try:
        return await measure(session, turns, early)
    finally:
        await session.close()


def with_screen(launch: LaunchOptions, turns: int, early: int, result: Path) -> int:
    """The same, of the whole program in this terminal; ``result`` gets the figures."""
    from swecli.tui.launch import run as run_interface
    from swecli.tui.options import Options

    tasks: list[asyncio.Task[None]] = []

    async def work(session: SessionPort) -> None:
        await asyncio.sleep(0.5)  # the interface settles
        found = await measure(session, turns, early)
        await asyncio.to_thread(result.write_text, json.dumps(found))
        session.notice(OVER)  # type: ignore[attr-defined]

    async def opened() -> SessionPort:
        session = await open_session(launch)
        tasks.append(asyncio.create_task(work(session)))
        return session

    return run_interface(Options(opened))


def main(arguments: Sequence[str]) -> int:
    """``[RESULT.json] [TURNS EARLY]``"""
    names = [argument for argument in arguments if not argument.isdecimal()]
    turns, early = [int(argument) for argument in arguments if argument.isdecimal()] or (TURNS, EARLY)
    with tempfile.TemporaryDirectory() as name:
        launch = options(Path(name), turns, headless=not names)
        if names:
            return with_screen(launch, turns, early, Path(names[0]))
        print(json.dumps(asyncio.run(without_screen(launch, turns, early))))
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
