"""What containing a command costs: milliseconds over the same command without a sandbox, medians."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from swecli.core.sandbox.plan import SandboxOptions
from swecli.core.sandbox.probe import Folders, SandboxWorkspace
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.workspace.process import run_process

ROUNDS = 40


def run() -> Iterator[tuple[str, float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(os.path.realpath(folder))
        work = base / "work"
        for name in (".git/hooks", "source"):
            (work / name).mkdir(parents=True)
        (work / ".git" / "config").write_text("[core]\n")
        bare = _median(lambda: _bare(work))
        yield "a command without a sandbox", bare, "ms"
        for name, path in (("bubblewrap", os.environ["PATH"]), ("Landlock", "/nowhere")):
            ground = SandboxWorkspace((str(work),), str(Path.home()), {**os.environ, "PATH": path})
            sandbox = Sandbox(SandboxOptions(mode="on"), ground, Folders(base / "state"))
            started = time.perf_counter()
            state = sandbox.check()
            if state.layer != {"bubblewrap": "bwrap", "Landlock": "landlock"}[name]:
                continue
            yield f"probing {name}", (time.perf_counter() - started) * 1000, "ms"
            yield f"{name}: over the command without", _median(lambda s=sandbox: _contained(s, work)) - bare, "ms"
            sandbox.close()


def _median(action: Callable[[], None]) -> float:
    times: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def _bare(work: Path) -> None:
    asyncio.run(run_process("true", cwd=work, environment=os.environ, timeout=30))


def _contained(sandbox: Sandbox, work: Path) -> None:
    launch = sandbox.begin(work, full=False)
    try:
        asyncio.run(
            run_process(
                "true",
                cwd=work,
                environment={**os.environ, **launch.environment},
                timeout=30,
                prefix=launch.prefix,
                inherited=launch.inherited,
            )
        )
    finally:
        launch.end()
