"""What a long session keeps in memory, and whether keys stay quick: 2,000 turns whose tool prints 50 KB each.

Long output is stored beside the conversation, so that the program must not grow with it. `python -m benchmarks.memory`
runs the turns in this process without a screen and prints what was measured as JSON; with the name of a file for that
it does the same in the terminal that it is started in, with the transcript on the screen. Two numbers beside that take
the place of 2,000 turns, and of 200 for the first look.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.screen_run import OVER, one_turn
from benchmarks.terminal import ROOT, paint
from swecli.app import open_session
from swecli.core.engine.session import Session
from swecli.launch import LaunchOptions

TURNS, EARLY = 2_000, 200
OUTPUT = 50_000
"""Bytes of one output."""
DEADLINE = 3_600.0
"""Seconds after which the run on a screen counts as stuck."""
KEYS = 15
"""Keys that are typed and taken back at each look."""
SETTLING = 1.0
"""Seconds before keys are timed, in which the transcript measures what it only estimated."""
PAINTING = 0.05
"""Seconds in which a key has been painted for sure: a frame takes a third of that."""


@dataclass(frozen=True)
class Look:
    """What was found after so many turns: resident bytes, the processor seconds of one turn since the look before,
    and those from a key to its paint, the median; 0 without a screen."""

    turn: int
    rss: int
    cpu: float
    key: float = 0.0


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


def _lines(how: str, found: Sequence[dict[str, float]]) -> list[tuple[str, float, str]]:
    looks = [Look(**one) for one in found]  # type: ignore[arg-type]
    first, last = looks[0], looks[-1]
    lines: list[tuple[str, float, str]] = []
    for look in looks:
        lines.append((f"memory at turn {look.turn:,} {how}, {OUTPUT // 1_000} KB each", look.rss / 2**20, "MiB"))
        lines.append(("  processor time of a turn until then", look.cpu * 1e3, "ms"))
        if look.key:
            lines.append(("  from a key to its paint, processor time", look.key * 1e3, "ms"))
    lines.append(("  memory of the last to the first", last.rss / first.rss, "x (goal 1.5)"))
    if first.key:
        lines.append(("  key to paint of the last to the first", last.key / first.key, "x (goal 1)"))
    return lines


def script(turns: int) -> str:
    """A script whose every turn runs one command."""
    steps = ['window = 200000\nchunk = "whole"\n']
    for number in range(turns):
        command = f"head -c {OUTPUT} long.txt; echo {number}"
        call = f"{{ tool = 'run_command', arguments = {{ command = '{command}' }} }}"
        steps.append(f"[[step]]\ntext = 'I run it.'\ncall = [{call}]\n[[step]]\ntext = 'Turn {number} is done.'\n")
    return "\n".join(steps)


async def no_keys() -> float:
    """Where nobody types."""
    return 0.0


async def measure(
    session: Session, turns: int, early: int, key: Callable[[], Awaitable[float]] = no_keys
) -> list[dict[str, float]]:
    """Looks at the session after ``early`` turns, at a quarter, at half and at the end of all of them. ``key`` types,
    and gives processor seconds."""
    looks: list[Look] = []
    points = {early, turns // 4, turns // 2, turns}
    events = session.subscribe()
    begun, since = time.process_time(), 0
    for number in range(1, turns + 1):
        await one_turn(session, events, f"Run part {number}.")
        if number in points:
            cpu = (time.process_time() - begun) / (number - since)
            rss = psutil.Process().memory_info().rss
            looks.append(Look(number, rss, cpu, await key()))
            begun, since = time.process_time(), number
    return [asdict(look) for look in looks]


def options(folder: Path, turns: int, *, headless: bool) -> LaunchOptions:
    """A session with a script of so many turns, in a folder made for it."""
    work, play = folder / "work", folder / "bench.toml"
    work.mkdir()
    (work / "long.txt").write_text("a line of some output, like many\n" * 2_000)
    play.write_text(script(turns))
    return LaunchOptions(cwd=work, script=play, headless=headless, mode="auto")


async def without_screen(launch: LaunchOptions, turns: int, early: int) -> list[dict[str, float]]:
    """The same, of a session in this process."""
    session = await open_session(launch)
    try:
        return await measure(session, turns, early)
    finally:
        await session.close()


async def typed() -> float:
    """Processor seconds from a key to its paint in the program that runs here: a letter, then Backspace."""
    from textual._context import active_app  # the program runs in this task
    from textual.pilot import Pilot

    pilot = Pilot[None](active_app.get())
    await asyncio.sleep(SETTLING)
    seconds: list[float] = []
    for key in ["x", "backspace"] * KEYS:
        start = time.process_time()
        await pilot.press(key)
        await asyncio.sleep(PAINTING)
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def with_screen(launch: LaunchOptions, turns: int, early: int, result: Path) -> int:
    """The same, of the whole program in this terminal; ``result`` gets the figures."""
    from swecli.assembly.succession import Succession
    from swecli.tui.launch import run as run_interface
    from swecli.tui.program import Program

    tasks: list[asyncio.Task[None]] = []

    async def work(session: Session) -> None:
        await asyncio.sleep(0.5)  # the interface settles
        found = await measure(session, turns, early, typed)
        await asyncio.to_thread(result.write_text, json.dumps(found))
        session.notice(OVER)  # type: ignore[attr-defined]

    async def measured(options: LaunchOptions) -> Session:
        session = await open_session(options)
        tasks.append(asyncio.create_task(work(session)))
        return session

    return run_interface(Program(open=Succession(launch, measured)))


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
