"""The whole first task as lines: by pipe, and by keyboard in a terminal that can do nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import ROOT, Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.e2e


def in_order(text: str, *parts: str) -> None:
    position = 0
    for part in parts:
        found = text.find(part, position)
        assert found >= 0, (part, text)
        position = found + len(part)


TASK = (
    "New session.",
    "Reasoning:",
    "Done: search",
    "Permission needed: edit file basket/pricing.py",
    "+        if quantity >= pieces:",
    "Answer with y once",
    "Done: edit file basket/pricing.py: +1 -1",
    "Permission needed: run command",
    "5 passed, 0 failed",
    "Turn done",
)


def test_by_pipe(tmp_path: Path) -> None:
    program = Program(tmp_path, tmp_path / "home", {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
    process = program.start("demo", "--plain", stderr=subprocess.PIPE)
    out, err = process.communicate(b"y\ny\n", timeout=60)
    assert process.returncode == 0, err
    text = out.decode()
    in_order(text, *TASK, "Continue with:")
    assert "\x1b" not in text
    assert "\r" not in text


def test_by_keyboard_in_a_dumb_terminal(tmp_path: Path) -> None:
    environment = {
        "TERM": "dumb",
        "SWECLI_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    terminal = Terminal(
        [sys.executable, "-m", "swecli.cli", "demo"], cwd=tmp_path, environment=environment, columns=100, rows=60
    )

    def written(count: int, text: bytes) -> bool:
        return terminal.raw.count(text) >= count

    try:
        for number in (1, 2):
            terminal.until(lambda number=number: written(number, b"Permission needed"))
            terminal.until(lambda number=number: written(number, b"Answer with y once"))
            answered = terminal.raw.count(b"Started:")
            while terminal.raw.count(b"Started:") == answered:  # a line typed too soon is asked for again
                asked = terminal.raw.count(b"please answer again")
                terminal.send("y\n")
                terminal.until(
                    lambda answered=answered, asked=asked: (
                        written(answered + 1, b"Started:") or written(asked + 1, b"please answer again")
                    )
                )
        terminal.until(lambda: written(1, b"Turn done"))
        terminal.send("\x04")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    text = terminal.raw.decode().replace("\r\n", "\n")
    in_order(text, *TASK)
    assert not re.search(r"[\x1b\r\b]", text)
