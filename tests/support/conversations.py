"""A conversation with the real program through each of its front ends: one run for each message (``-p -c``), one run
over pipes, and the screen in a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from tests.support.program import Program
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE

FrontEnd = Literal["runs", "pipes", "screen"]
SWECLI = str(Path(sys.executable).with_name("swecli"))
READY = "Ask for a change"


class Conversation(Protocol):
    """``say`` sends a message and waits for the end of the turn, which shows ``ends``."""

    program: Program

    def say(self, text: str, ends: str = "") -> None: ...

    def again(self, *options: str) -> None:
        """End the program and start it again."""
        ...

    def close(self) -> None: ...

    def kill(self) -> None:
        """End the program after a failure."""
        ...


class Runs:
    """A run for each message."""

    def __init__(self, program: Program, *options: str) -> None:
        self.program = program
        self._options = options
        self._continued: tuple[str, ...] = ()
        self.ended: list[str] = []

    def say(self, text: str, ends: str = "") -> None:
        ended = self.program.run("-p", *self._continued, *self._options, "--", text)
        assert ended.code == 0, (ended.stdout, ended.stderr)
        assert ends in ended.stdout, ended.stdout
        self.ended.append(ended.stderr)
        self._continued = ("-c",)

    def again(self, *options: str) -> None:
        self._continued = options or ("-c",)

    def close(self) -> None:
        pass

    kill = close


class Pipes:
    """One run whose input are commands."""

    def __init__(self, program: Program, *options: str) -> None:
        self.program = program
        self._options = options
        self.events: list[dict[str, Any]] = []
        self._process = self._start()

    def _start(self, *options: str) -> subprocess.Popen[bytes]:
        form = ("--input-format", "stream-json", "--output-format", "stream-json")
        return self.program.start("-p", *form, *self._options, *options)

    def send(self, **command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()

    def until(self, condition: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
        """The first event, from here on, that fulfils a condition."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            event = json.loads(line)
            if "body" not in event:
                continue
            self.events.append(event["body"])
            if event["agent"] in ("", "main") and condition(event["body"]):
                return event["body"]
        assert self._process.stderr is not None
        raise AssertionError(f"the program ended: {self._process.stderr.read().decode()} {self.events[-5:]}")

    def ended(self) -> None:
        body = self.until(lambda body: body["type"] == "turn_ended")
        assert body["outcome"] == "done", (body, self.events[-10:])

    def say(self, text: str, ends: str = "") -> None:
        self.send(type="submit", text=text)
        self.ended()

    def again(self, *options: str) -> None:
        self.close()
        self._process = self._start(*(options or ("-c",)))

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)

    def kill(self) -> None:
        self._process.kill()


class Screen:
    """The interface in a terminal."""

    def __init__(self, program: Program, *options: str) -> None:
        self.program = program
        self._options = options
        self.terminal = self._start()

    def _start(self, *options: str) -> Terminal:
        home = self.program.home
        environment = {"SWECLI_HOME": str(home), "HOME": str(home.parent), **self.program.variables, "IS_SANDBOX": "1"}
        command = [SWECLI, *self._options, *options]
        terminal = Terminal(command, cwd=self.program.folder, environment=environment, columns=100, rows=40)
        terminal.shows(READY)
        return terminal

    def say(self, text: str, ends: str = "") -> None:
        self.terminal.send(text)
        self.terminal.shows(text)
        self.terminal.send("\r")
        self.terminal.shows(ends, READY, without="esc to interrupt")

    def again(self, *options: str) -> None:
        self.close()
        self.terminal = self._start(*(options or ("-c",)))

    def close(self) -> None:
        self.terminal.send("\x04")
        self.terminal.wait()
        self.terminal.close()

    def kill(self) -> None:
        self.terminal.close()


FRONT_ENDS: Mapping[FrontEnd, Callable[..., Any]] = {"runs": Runs, "pipes": Pipes, "screen": Screen}
