"""A run goes on when the monotonic clock jumps by a month, also back."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.e2e

BEGINS = """
import signal, sys, time
real, offset = time.monotonic, [0.0]
time.monotonic = lambda: real() + offset[0]
signal.signal(signal.SIGUSR1, lambda *_: offset.__setitem__(0, {jump}))
sys.argv[0] = "swecli"
from swecli.cli import main
sys.exit(main())
"""
SCRIPT = """
[[step]]
fault = { kind = "overloaded" }
[[step]]
call = [{ tool = "run_command", arguments = { command = "echo begun >&2; sleep 0.5; echo over" } }]
[[step]]
text = "It is over."
"""


@pytest.mark.parametrize("jump", [2_592_000, -2_592_000])
def test_a_run_goes_on_after_a_jump_in_any_wait(tmp_path: Path, jump: int) -> None:
    with LoopbackServer(parse_script(SCRIPT), manners=Manners(strict=False)) as server:
        variables = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "HOME": str(tmp_path)}
        program = Program(tmp_path, tmp_path / "home", variables)
        process = subprocess.Popen(
            [sys.executable, "-c", BEGINS.format(jump=jump), "-p", "hi", "-m", "openai/m", "--yolo"],
            cwd=tmp_path,
            env=program.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("retry 1"):
                process.send_signal(signal.SIGUSR1)
        assert process.stdout is not None
        answer = process.stdout.read()
        patience.cancel()
        assert (process.wait(), answer) == (0, "It is over.\n"), lines
        assert sum("nothing from the model" in line for line in lines) <= 1
