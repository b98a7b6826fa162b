"""Processor time of a headless task of three steps, and memory of the idle interface: the program, started anew.

The task searches, reads and edits a file; the server is in this process and not counted. The interface stands idle in a
terminal of 80x24 with an open session that has said nothing yet: once where the server was asked about the model, once
where the model's provider is one that is not asked.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.terminal import Terminal

RUNS = 9
SETTLED = 8.0
"""Seconds after which the interface has loaded everything."""
SWECLI = str(Path(sys.executable).with_name("swecli"))
STEPS = """
name = "m"
[[step]]
call = [{ tool = "search", arguments = { pattern = "PRICE" } }]
[[step]]
call = [{ tool = "read_file", arguments = { path = "shop.py" } }]
[[step]]
[[step.call]]
tool = "edit_file"
arguments = { path = "shop.py", old_string = "PRICE = 3", new_string = "PRICE = 4" }
[[step]]
text = "Done."
"""
TASK = ("-p", "Change the price.", "-m", "openai/m", "--permission-mode", "acceptEdits", "--output-format", "json")


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    with tempfile.TemporaryDirectory() as home:
        times = [_task(Path(home), number) for number in range(RUNS)]
        memory = [*_idle(Path(home)), *_idle(Path(home), asks=False)]
    return [
        ("headless, three steps: processor time, median", statistics.median(times), "s"),
        ("headless, three steps: processor time, least", min(times), "s"),
        *((f"idle interface: {name}", value, "MiB") for name, value in memory),
    ]


def _environment(home: Path, server: LoopbackServer) -> dict[str, str]:
    own = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "HOME": str(home)}
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SWECLI_HOME": str(home / "swecli"), **own}


def _task(home: Path, number: int) -> float:
    folder = home / f"work{number}"
    folder.mkdir()
    (folder / "shop.py").write_text("PRICE = 3\n")
    with LoopbackServer(parse_script(STEPS), manners=Manners(window=128_000)) as server:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = _environment(home, server)
        subprocess.run([SWECLI, *TASK], cwd=folder, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (folder / "shop.py").read_text() == "PRICE = 4\n"
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _idle(home: Path, *, asks: bool = True) -> list[tuple[str, float]]:
    with LoopbackServer(parse_script(STEPS), manners=Manners(window=128_000)) as server:
        environment = _environment(home, server)
        if not asks:
            del environment["OPENAI_BASE_URL"]
        terminal = Terminal([SWECLI, "-m", "openai/m"], cwd=home, environment=environment, fresh=True)
        try:
            terminal.shows("Ask for a change")
            end = time.monotonic() + SETTLED
            terminal.until(lambda: time.monotonic() > end)
            text = Path(f"/proc/{terminal.pid}/smaps_rollup").read_text()
        finally:
            terminal.close()
    sizes = {line.partition(":")[0]: int(line.split()[1]) / 1024 for line in text.splitlines()[1:]}
    how = "" if asks else ", no server asked"
    return [
        (f"resident{how}", sizes["Rss"]),
        (f"shared with other programs counted by its part{how}", sizes["Pss"]),
    ]
