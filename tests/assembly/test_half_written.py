"""A kill in the middle of an edit leaves no temporary file to the user."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.app import open_session
from swecli.launch import LaunchOptions
from tests.support.program import Program
from tests.support.waiting import PATIENCE, until

KILLED = """
import asyncio, os, signal
from pathlib import Path
from swecli.assembly.checkpoints import open_checkpoints
from swecli.assembly.startup import startup_of
from swecli.core.permissions.types import Effects
from swecli.core.workspace import atomic_write
from swecli.launch import LaunchOptions

options = LaunchOptions(cwd=Path.cwd())
made = open_checkpoints(options, startup_of(options, dict(os.environ)), "s1")

async def edit():
    effects = Effects(writes=(str(Path("build/f").absolute()),))
    async with made.around("s1", 1, "t1", "f", effects):
        atomic_write.os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
        atomic_write.atomic_write(Path("build/f"), b"new", None)

asyncio.run(edit())
"""


def test_a_temporary_file_of_a_killed_edit_is_gone_after_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "build").mkdir(parents=True)
    (work / ".gitignore").write_text("build/\n")
    program = Program(work, tmp_path / "home")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=work, env=program.environment, check=False, timeout=PATIENCE
    )
    assert killed.returncode == -9
    (left,) = os.listdir(work / "build")
    assert left.startswith(".swecli-tmp-")
    (tmp_path / "script.toml").write_text('[[step]]\ntext = "hi"\n')
    monkeypatch.setenv("SWECLI_HOME", str(program.home))
    asyncio.run(_start(LaunchOptions(cwd=work, script=tmp_path / "script.toml")))


async def _start(options: LaunchOptions) -> None:
    session = await open_session(options)
    try:
        await until(lambda: os.listdir(options.cwd / "build") == [])
    finally:
        await session.close()
