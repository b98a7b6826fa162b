"""The real program in a real terminal."""

from __future__ import annotations

import contextlib
import os
import signal
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
    """Start the program (or the prepared one) with a home of its own in an empty folder."""
    opened: list[Terminal] = []
    (tmp_path / "work").mkdir()

    def begin(*arguments: str, prepared: bool = False, **more: object) -> Terminal:
        command = [sys.executable, PROGRAM, *arguments] if prepared else [SWECLI, *arguments]
        environment = {"SWECLI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PYTHONPATH": ROOT}
        extra = more.pop("environment", {})
        assert isinstance(extra, dict)
        terminal = Terminal(command, cwd=tmp_path / "work", environment={**environment, **extra}, **more)  # type: ignore[arg-type]
        opened.append(terminal)
        return terminal

    yield begin
    for terminal in opened:
        terminal.close()


def restored(terminal: Terminal) -> bool:
    """Whether the terminal is as it was before."""
    return not terminal.alternate and terminal.settings == terminal.before and b"\x1b[?25h" in terminal.raw[-4000:]


def test_the_demonstration_from_the_first_frame_to_the_last(start: Start) -> None:
    terminal = start("demo", fresh=True)
    terminal.shows("Make this change?", "1 yes")
    terminal.takes_keys()
    terminal.send("y")
    terminal.shows("Run this command?")
    terminal.takes_keys()
    terminal.send("y")
    terminal.shows("5 passed, 0 failed", "all five tests pass", READY)
    terminal.send("\x03\x03")  # at once: there is a second for the other one
    assert terminal.wait() == 0
    assert restored(terminal)
    assert "all five tests pass" in terminal.text
    assert "Continue with:" in terminal.text
    assert "Changed: " in terminal.text
    assert "pricing.py" in terminal.text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)])
def test_signals_end_it_while_it_asks_and_restore_the_terminal(start: Start, number: int, code: int) -> None:
    terminal = start("asks", prepared=True)
    terminal.shows(READY)
    terminal.send("go\r")
    terminal.shows("Run this command?")
    terminal.kill(number)
    assert terminal.wait() == code
    assert restored(terminal)


def test_a_signal_ends_it_although_nobody_reads_what_it_draws(start: Start) -> None:
    terminal = start(prepared=True)
    terminal.shows(READY)
    with open(os.open(f"/proc/{terminal.pid}/fd/0", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY), "wb", 0) as full:
        while full.write(b"x" * 100) is not None:
            pass
    terminal.kill(signal.SIGTERM)
    terminal.wait_unread()
    assert terminal.status == 143


def test_an_interrupt_signal_is_control_c(start: Start) -> None:
    terminal = start(prepared=True)
    terminal.shows(READY)
    terminal.send("go\r")
    terminal.shows("esc to interrupt")
    terminal.kill(signal.SIGINT)
    terminal.shows("interrupted", READY, without="esc to interrupt")
    terminal.kill(signal.SIGINT)
    assert terminal.wait() == 0
    assert restored(terminal)


def test_control_c_twice_ends_it(start: Start) -> None:
    terminal = start(prepared=True)
    terminal.shows(READY)
    terminal.send("\x03")
    terminal.shows("Press Ctrl+C again to quit")
    terminal.send("\x03")
    assert terminal.wait() == 0
    assert restored(terminal)


def test_control_c_held_down_ends_it_without_an_error(start: Start) -> None:
    terminal = start(prepared=True, fresh=True)
    terminal.shows(READY)
    presses = iter(range(40))

    def pressed() -> bool:
        with contextlib.suppress(ProcessLookupError, OSError):
            terminal.send("\x03")
            terminal.kill(signal.SIGINT)
        return next(presses, None) is None

    terminal.until(pressed)
    assert terminal.wait() == 0
    assert b"Traceback" not in terminal.raw


def test_what_was_typed_before_the_first_frame_is_in_the_editor(start: Start) -> None:
    terminal = start(prepared=True, type_ahead="early wörds", fresh=True)
    terminal.shows("› early wörds")


def test_a_message_sent_before_the_session_is_open_is_worked_on(start: Start) -> None:
    terminal = start("slow", prepared=True, type_ahead="go\r", fresh=True)
    terminal.shows("Starting…")
    terminal.shows("esc to interrupt")


def test_what_was_typed_survives_a_kill(start: Start, tmp_path: Path) -> None:
    terminal = start(prepared=True)
    terminal.shows(READY)
    terminal.send("half a sentence")
    state = tmp_path / "home" / "prompt"

    def saved() -> bool:
        return any("half a sentence" in draft.read_text() for draft in state.glob("draft-*.txt"))

    terminal.until(saved, "waiting for the draft")
    terminal.kill(signal.SIGKILL)
    assert terminal.wait() == 137
    again = start(prepared=True)
    again.shows("› half a sentence")


def test_any_size_is_survived(start: Start) -> None:
    terminal = start(prepared=True)
    terminal.shows(READY)
    for columns, rows in ((1, 1), (500, 200), (2, 40), (300, 2), (40, 10), (0, 0), (7, 7), (80, 24)) * 3:
        terminal.resize(columns, rows)
    terminal.shows(READY, "default · model")
    terminal.send("go\r")
    terminal.shows("esc to interrupt")


def test_control_z_suspends_with_a_usable_terminal_and_comes_back(start: Start) -> None:
    terminal = start(prepared=True)
    terminal.shows(READY)
    terminal.send("draft\x1a")
    terminal.wait_stopped()
    terminal.until(lambda: restored(terminal), "waiting for the terminal as it was")
    terminal.kill(signal.SIGCONT)
    terminal.shows("› draft")
    assert terminal.alternate


def test_output_behind_its_back_never_reaches_the_screen(start: Start) -> None:
    terminal = start("noisy", prepared=True)
    terminal.shows(READY)
    terminal.send("go\r")
    terminal.shows("esc to interrupt")
    assert "STRAY" not in terminal.text
    terminal.send("\x03\x03")
    assert terminal.wait() == 0
    assert "STRAY native write" in terminal.text


def test_five_megabytes_pasted_are_a_placeholder(start: Start) -> None:
    terminal = start(prepared=True)
    terminal.shows(READY)
    terminal.send("\x1b[200~" + "some words of a long text\n" * 200_000 + "\x1b[201~")
    terminal.shows("[Pasted text #1: 200,000 lines, 5.2M")
    terminal.send("\x7f")
    terminal.hides("Pasted text")


@pytest.mark.parametrize("kind", ["broken", "deaf"])
def test_a_defect_restores_the_terminal_and_says_so(start: Start, tmp_path: Path, kind: str) -> None:
    terminal = start(kind, prepared=True)
    assert terminal.wait() == 1
    assert restored(terminal)
    assert "internal error (ZeroDivisionError" in terminal.text
    assert "Traceback" not in terminal.text
    assert "a defect on purpose" in (tmp_path / "home" / "prompt" / "errors.log").read_text()


def test_a_terminal_that_can_not_draw_gets_plain_lines(start: Start) -> None:
    terminal = start(environment={"TERM": "dumb"})
    terminal.shows("Ready. Type a message")
    terminal.send("\x04")
    assert terminal.wait() == 0
    assert b"\x1b" not in terminal.raw


def test_without_a_provider_it_says_how_to_connect_one(start: Start) -> None:
    terminal = start(environment={"OPENAI_API_KEY": ""})
    terminal.shows("No model is connected yet", "swecli demo", "no model", "Connect a model")
    terminal.send("\x1b")
    terminal.shows("Ask for a change")
    terminal.send("\x04")
    assert terminal.wait() == 0
    assert restored(terminal)


def test_the_theme_follows_the_background_that_the_terminal_reports(start: Start) -> None:
    terminal = start(prepared=True)
    terminal.until(lambda: b"\x1b]11;?" in terminal.raw, "waiting for the question")
    terminal.send("\x1b]11;rgb:ffff/ffff/ffff\x1b\\")
    terminal.shows(READY)
    terminal.until(lambda: b"48;2;251;250;247" in terminal.raw, "waiting for the light theme")


def test_no_colour_is_no_colour(start: Start) -> None:
    terminal = start(prepared=True, environment={"NO_COLOR": "1"})
    terminal.shows(READY)
    colours = {part.split(b"m")[0] for part in bytes(terminal.raw).split(b"\x1b[")[1:] if b"m" in part[:20]}
    assert not any(part.startswith((b"38;2", b"48;2")) and len(set(part.split(b";")[2:5])) > 1 for part in colours)
    assert os.environ.get("NO_COLOR") is None
