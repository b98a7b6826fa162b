"""Terminals and settings that are not as they should be: the program starts, says so, and gives everything back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.terminal import Terminal

pytestmark = pytest.mark.e2e

SWECLI = str(Path(sys.executable).with_name("swecli"))
PROGRAM = str(Path(__file__).with_name("prepared_session.py"))
ROOT = str(Path(__file__).parents[2])
READY = "Ask for a change"

Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the prepared program, or the real one, with a home of its own."""
    opened: list[Terminal] = []
    (tmp_path / "work").mkdir()

    def begin(*command: str, columns: int = 80, rows: int = 24, **environment: str) -> Terminal:
        home = {"SWECLI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PYTHONPATH": ROOT}
        terminal = Terminal(
            command or (sys.executable, PROGRAM),
            cwd=tmp_path / "work",
            environment={**home, **environment},
            columns=columns,
            rows=rows,
        )
        opened.append(terminal)
        return terminal

    yield begin
    for terminal in opened:
        terminal.close()


def restored(terminal: Terminal) -> bool:
    """Whether the terminal is as it was before."""
    return not terminal.alternate and terminal.settings == terminal.before


@pytest.mark.parametrize("term", ["unknown", "vt100", "screen-256color", "xterm-nobody-knows"])
def test_terminals_that_nobody_knows(start: Start, term: str) -> None:
    terminal = start(TERM=term, COLORTERM="")
    terminal.shows(READY)
    terminal.send("\x04")
    assert terminal.wait() == 0
    assert terminal.settings == terminal.before


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1"])
def test_without_a_utf8_locale(start: Start, locale: str) -> None:
    terminal = start(LANG=locale, LC_ALL=locale)
    terminal.shows(READY)
    terminal.send("grüße 日本")
    terminal.shows("grüße")
    terminal.send("\x15\x04")
    assert terminal.wait() == 0


def test_an_exported_width_does_not_hold_for_the_window(start: Start) -> None:
    terminal = start(columns=60, rows=20, COLUMNS="200", LINES="60")
    terminal.shows("Ask for a change", "? help")
    terminal.resize(100, 30)
    terminal.until(lambda: max(map(len, terminal.text.splitlines())) == 100, "waiting for the frame of the new width")
    terminal.send("\x04")
    assert terminal.wait() == 0


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (20, 5), (200, 60)])
def test_sizes_from_the_beginning(start: Start, columns: int, rows: int) -> None:
    terminal = start(columns=columns, rows=rows)
    if columns > 1:
        terminal.shows("Ask")
    else:
        terminal.until(lambda: b"\x1b[?2004h" in terminal.raw, "waiting for the first frame")
        terminal.resize(80, 24)
        terminal.shows(READY)
    terminal.send("\x04")
    assert terminal.wait() == 0


def test_broken_theme_and_status_line_are_named_and_nothing_else_is_lost(start: Start, tmp_path: Path) -> None:
    themes = tmp_path / "home" / "themes"
    themes.mkdir(parents=True)
    (themes / "broken.toml").write_text('background = "no colour"\n')
    (tmp_path / "home" / "config.toml").write_text(
        '[ui]\ntheme = "broken"\nstatus_line = "sleep 50"\nstatus_line_timeout = 0.3\n'
    )
    terminal = start(SWECLI, "-m", "openai/none", OPENAI_API_KEY="k", columns=200)
    terminal.shows("broken.toml:1", "took longer than 0.3 s", READY, "default")
    terminal.send("\x04")
    assert terminal.wait() == 0
    assert restored(terminal)


def test_a_broken_keymap_is_an_error_with_its_line(start: Start, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[keys]\nexpand = ["hyper+q"]\n')
    terminal = start(SWECLI)
    assert terminal.wait() == 52
    assert "hyper+q" in terminal.text
    assert "Traceback" not in terminal.text
    assert terminal.settings == terminal.before


def test_standard_output_that_is_closed(tmp_path: Path) -> None:
    environment = {**os.environ, "SWECLI_HOME": str(tmp_path)}
    for command in ("--help", "--version"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'"{SWECLI}" {command} >&-'], env=environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr


def test_a_terminal_that_goes_away_ends_the_program(start: Start) -> None:
    terminal = start()
    terminal.shows(READY)
    terminal.kill(signal.SIGHUP)
    assert terminal.wait() == 129


def test_a_terminal_that_goes_away_during_a_turn_is_no_other_failure(start: Start) -> None:
    terminal = start(SWECLI, "demo")
    terminal.shows("Make this change?", "1 yes")
    terminal.hang_up()
    terminal.wait_unread()
    assert terminal.status == 129


def test_escape_and_enter_make_a_new_line_and_send_nothing(start: Start) -> None:
    terminal = start()
    terminal.shows(READY)
    terminal.send("half of it")
    terminal.shows("half of it")
    terminal.send("\x1b\r")  # how it is with two reads depends on the time between them, see test_input_filter.py
    terminal.send("the other half")
    terminal.shows("  the other half")
    assert "\u203a half of it" in terminal.text
    terminal.send("\x03\x04")
    assert terminal.wait() == 0
