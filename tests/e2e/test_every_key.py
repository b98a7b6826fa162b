"""Every key of the prompt and of the screen as a plain VT100 sends it, in a terminal of its own and in tmux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.program import ROOT
from tests.support.terminal import PATIENCE, Terminal

pytestmark = pytest.mark.e2e

ESC = "\x1b"


def ctrl(letter: str) -> str:
    return chr(ord(letter.upper()) & 0x1F)


class Window(Protocol):
    @property
    def text(self) -> str: ...
    def send(self, text: str) -> None: ...
    def until(self, condition: Callable[[], object], about: str = "") -> None: ...
    def close(self) -> None: ...


class Tmux:
    """A window of a tmux server of its own."""

    def __init__(self, command: list[str], cwd: Path, environment: dict[str, str]) -> None:
        self._socket = f"swecli-{uuid.uuid4().hex[:12]}"
        words = [f"{name}={value}" for name, value in environment.items()]
        self._run(
            "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", str(cwd), "env", *words, *command
        )

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-L", self._socket, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    @property
    def text(self) -> str:
        try:
            return self._run("capture-pane", "-p")
        except subprocess.CalledProcessError:
            return ""

    def send(self, text: str) -> None:
        self._run("send-keys", "-H", *(f"{byte:02x}" for byte in text.encode()))

    def until(self, condition: Callable[[], object], about: str = "") -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{about}\n{self.text}"
            time.sleep(0.03)  # between two looks at another program

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False)


@pytest.fixture(params=["terminal", "tmux"])
def window(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Window]:
    home = tmp_path / "home"
    environment = {"SWECLI_HOME": str(home), "PYTHONPATH": str(ROOT), "EDITOR": f"sh {tmp_path / 'editor'}"}
    (tmp_path / "editor").write_text('printf "from the editor" > "$1"\n')
    (home / "prompt").mkdir(parents=True)
    (home / "prompt" / "history.jsonl").write_text('"sent long ago"\n')
    command = [sys.executable, "-m", "tests.e2e.prepared_session"]
    found: Window
    if request.param == "tmux":
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        found = Tmux(command, tmp_path, {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment})
    else:
        found = Terminal(command, cwd=tmp_path, environment={**environment, "TERM": "vt100"})
    try:
        found.until(lambda: "Ask for a change" in found.text, "the start")
        yield found
    finally:
        found.close()


def line(window: Window) -> str:
    """The prompt's line with the cursor's end, without its mark."""
    return next((row[2:].rstrip() for row in window.text.split("\n") if row.startswith("› ")), "")


def expect(window: Window, keys: str, text: str) -> None:
    window.send(keys)
    window.until(lambda: line(window) == text, f"{keys!r} should leave {text!r}")


def test_line_editing(window: Window) -> None:
    expect(window, "one two three", "one two three")
    expect(window, ctrl("W"), "one two")
    expect(window, ctrl("Y"), "one two three")
    expect(window, ctrl("A") + "0", "0one two three")
    expect(window, ctrl("E") + "9", "0one two three9")
    expect(window, f"{ESC}b{ctrl('K')}", "0one two")
    expect(window, f"{ESC}b{ESC}d", "0one")
    expect(window, f"{ctrl('A')}{ESC}f{ctrl('U')}", "")
    expect(window, ctrl("Y"), "0one")
    expect(window, ESC + "y", "two")
    expect(window, ctrl("_"), "0one")
    expect(window, "\x7f", "0on")


def test_new_lines_history_and_the_editor(window: Window) -> None:
    window.send(f"first{ctrl('J')}second\\\rthird")
    window.until(lambda: all(word in window.text for word in ("first", "second", "third")), "three lines")
    assert "second\\" not in window.text
    window.send(ctrl("C"))
    window.until(lambda: "third" not in window.text, "cleared")
    expect(window, f"{ESC}[A", "sent long ago")
    expect(window, f"{ESC}[B", "Ask for a change · / commands · @ files · ? help")
    window.send(ctrl("R") + "long")
    window.until(lambda: "search history: long" in window.text and "sent long ago" in window.text, "history search")
    expect(window, "\r", "sent long ago")
    expect(window, ctrl("G"), "from the editor")


def test_screens_modes_and_the_end(window: Window) -> None:
    window.send(f"{ESC}[Z")
    window.until(
        lambda: "accept-edits" in window.text.split("\n")[-1] or "Mode accept-edits" in window.text, "the mode"
    )
    window.send(ctrl("F"))
    window.until(lambda: "Find in the transcript" in window.text, "the search")
    window.send(ESC)
    window.until(lambda: "Find in the transcript" not in window.text, "the search closed")
    window.send(ctrl("T"))
    window.until(lambda: "There are no todos yet" in window.text, "todos")
    window.send("?\r")
    window.until(lambda: "your own shell command" in window.text, "the help")
    window.send(ESC)
    window.until(lambda: "your own shell command" not in window.text, "the help closed")
    window.send("work\r")
    window.until(lambda: "esc to interrupt" in window.text, "a turn")
    window.send(ESC)
    window.until(lambda: "interrupted" in window.text, "the interrupt")
    window.send(ctrl("C"))
    window.until(lambda: "Ctrl+C again to quit" in window.text, "the warning")
    window.send(ctrl("D"))
    window.until(lambda: "Ask for a change" not in window.text, "the end")
