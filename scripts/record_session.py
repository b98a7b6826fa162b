"""Writes docs/images/demo.cast: the demonstration in a real terminal, as an asciicast that `asciinema play` shows."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from scripts import shown_project
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "demo.cast"
COLUMNS, ROWS = 90, 28
STILL = 1.5
"""Longest pause, in seconds, that is kept."""
FRAME = 0.15
"""Seconds between two pictures."""


class Recorder(Terminal):
    """A terminal whose screen is kept a few times a second, as the lines that changed."""

    def __init__(self, *arguments: object, **more: object) -> None:
        self.pieces: list[tuple[float, str]] = []
        self._lines: list[str] = []
        super().__init__(*arguments, **more)  # type: ignore[arg-type]

    def _feed(self, data: bytes) -> None:
        super()._feed(data)
        now = time.monotonic()
        if self.pieces and now - self.pieces[-1][0] < FRAME:
            return
        lines = [self._line(number) for number in range(ROWS)]
        before = self._lines or [""] * ROWS
        changed = [f"\x1b[{n + 1};1H{line}" for n, line in enumerate(lines) if line != before[n]]
        if changed:
            self._lines = lines
            self.pieces.append((now, "\x1b[?25l" + "".join(changed)))

    def _line(self, number: int) -> str:
        """A line of the screen with its colours."""
        out: list[str] = []
        last = ""
        row = self._screen.buffer[number]
        for column in range(COLUMNS):
            cell = row[column]
            codes = [
                "0",
                *(["1"] if cell.bold else []),
                *(["3"] if cell.italics else []),
                *(["7"] if cell.reverse else []),
            ]
            for kind, colour in ((38, cell.fg), (48, cell.bg)):
                if re.fullmatch("[0-9a-f]{6}", colour):
                    codes.append(f"{kind};2;" + ";".join(str(int(colour[n : n + 2], 16)) for n in (0, 2, 4)))
            style = f"\x1b[{';'.join(codes)}m"
            out.append((style if style != last else "") + cell.data)
            last = style
        return "".join(out)

    def rest(self, seconds: float) -> None:
        """Let the viewer read."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end)


def main() -> int:
    with shown_project.prepared() as folder:
        environment = {**shown_project.environment(), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "scripts.shown_project"]
        terminal = Recorder(command, cwd=folder, environment=environment, columns=COLUMNS, rows=ROWS)
        try:
            terminal.shows("Make this change?", "1 yes")
            terminal.rest(2.0)
            terminal.send("y")
            terminal.shows("Run this command?", "1 yes")
            terminal.rest(1.5)
            terminal.send("y")
            terminal.shows("README describes")
            terminal.hides("esc to interrupt")
            terminal.rest(1.5)
            for letter in "/context text\r":
                terminal.send(letter)
                terminal.rest(0.08)
            terminal.shows("kept for the answer")
            terminal.rest(2.0)
            terminal.send("\x04")
            terminal.wait()
        finally:
            terminal.close()
        write(terminal.pieces)
    return 0


def write(pieces: list[tuple[float, str]]) -> None:
    """The recording with long pauses shortened."""
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "swecli demo", "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(header)]
    now, last = 0.0, pieces[0][0]
    for at, text in pieces:
        now += min(at - last, STILL)
        last = at
        lines.append(json.dumps([round(now, 3), "o", text]))
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(TARGET.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
