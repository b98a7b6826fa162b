"""Commands: what a flood of output costs in memory and in responsiveness."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from swecli.core.workspace.jobs import Jobs, RunOptions
from swecli.core.workspace.process import CommandSpec

GIGABYTE = 1_000_000_000
BEAT = 0.005


def run() -> Iterable[tuple[str, float, str]]:
    """Figures of 1 GB on standard output, of `&`, and of an empty command."""
    return asyncio.run(_run())


async def _run() -> list[tuple[str, float, str]]:
    with tempfile.TemporaryDirectory() as name:
        jobs = Jobs(lambda _info: None, Path(name) / "output")
        await _command(jobs, "true", name)
        gaps: list[float] = []
        beat = asyncio.create_task(_beat(gaps))
        before = psutil.Process().memory_info().rss
        flood = await _command(jobs, f"head -c {GIGABYTE} /dev/zero | tr '\\0' x", name)
        grown = psutil.Process().memory_info().rss - before
        beat.cancel()
        left = await _command(jobs, "sleep 4 & echo hi", name)
        started = time.perf_counter()
        for _ in range(50):
            await _command(jobs, "true", name)
        each = (time.perf_counter() - started) / 50
        await jobs.close()
    gaps.sort()
    return [
        ("1 GB of output: memory grows by", grown / 1e6, "MB"),
        ("1 GB of output: longest gap of the event loop", gaps[-1] * 1000, "ms"),
        ("1 GB of output: gap that 99 % stay below", gaps[len(gaps) * 99 // 100] * 1000, "ms"),
        ("1 GB of output: rate", GIGABYTE / 1e6 / flood, "MB/s"),
        ("`sleep 4 & echo hi` returns after", left * 1000, "ms"),
        ("an empty command", each * 1000, "ms"),
    ]


async def _command(jobs: Jobs, command: str, folder: str) -> float:
    spec = CommandSpec(command, Path(folder), {"PATH": os.environ["PATH"]})
    shown = 0

    def show(text: str) -> None:
        nonlocal shown
        shown += len(text)

    return (await jobs.run(spec, RunOptions("t1"), lambda _output, _status: "", show)).duration


async def _beat(gaps: list[float]) -> None:
    while True:
        before = time.perf_counter()
        await asyncio.sleep(BEAT)
        gaps.append(time.perf_counter() - before - BEAT)
