"""What terminals send for the keys that every session needs, byte by byte into the real program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.program import ROOT
from tests.support.terminal import Terminal

pytestmark = pytest.mark.e2e

PROGRAM = str(Path(__file__).with_name("prepared_session.py"))
ESC = "\x1b"
READY = "Ask for a change"
READY_WHILE_BUSY = "Enter steers the running turn"

NEW_LINE = [
    ("xterm", "Alt+Enter", f"{ESC}\r"),
    ("xterm", "Shift+Enter, modifyOtherKeys", f"{ESC}[27;2;13~"),
    ("xterm", "Ctrl+Enter, modifyOtherKeys", f"{ESC}[27;5;13~"),
    ("xterm", "Alt+Enter, modifyOtherKeys", f"{ESC}[27;3;13~"),
    ("xterm", "Ctrl+Shift+Enter, modifyOtherKeys", f"{ESC}[27;6;13~"),
    ("xterm", "Ctrl+J, modifyOtherKeys", f"{ESC}[27;5;106~"),
    ("kitty", "Shift+Enter", f"{ESC}[13;2u"),
    ("kitty", "Alt+Enter", f"{ESC}[13;3u"),
    ("kitty", "Ctrl+Enter", f"{ESC}[13;5u"),
    ("kitty", "Shift+Enter with Num Lock", f"{ESC}[13;130u"),
    ("kitty", "Alt+Shift+Enter", f"{ESC}[13;4u"),
    ("kitty", "Cmd+Enter", f"{ESC}[13;9u"),
    ("kitty", "Ctrl+J", f"{ESC}[106;5u"),
    ("iTerm2", "Option+Enter, or what its key is set up to send", f"{ESC}\r"),
    ("iTerm2", "Shift+Enter, CSI u", f"{ESC}[13;2u"),
    ("iTerm2", "Ctrl+J", "\n"),
    ("Windows Terminal", "Shift+Enter, set up by sendInput", f"{ESC}\r"),
    ("Windows Terminal", "Shift+Enter", f"{ESC}[13;2u"),
    ("Windows Terminal", "Ctrl+Enter", "\n"),
    ("VS Code", "Shift+Enter, set up the older way", "\\\r\n"),
    ("tmux", "Alt+Enter", f"{ESC}\r"),
    ("tmux", "Shift+Enter, csi-u", f"{ESC}[13;2u"),
    ("tmux", "Shift+Enter, xterm", f"{ESC}[27;2;13~"),
    ("VT100", "Esc and Enter", f"{ESC}\r"),
    ("VT100", "Esc and Line Feed", f"{ESC}\n"),
    ("VT100", "Line Feed", "\n"),
    ("VT100", "a backslash and Return", "\\\r"),
]
SEND = [
    ("tmux", "Enter", "\r"),
    ("iTerm2", "Enter", "\r"),
    ("Windows Terminal", "Enter", "\r"),
    ("xterm", "Enter", "\r"),
    ("kitty", "Enter", f"{ESC}[13u"),
    ("kitty", "Enter with Num Lock", f"{ESC}[13;129u"),
    ("kitty", "Enter of the keypad", f"{ESC}[57414u"),
    ("VT100", "Enter of the keypad", f"{ESC}OM"),
]
INTERRUPT = [
    ("tmux", "Esc", ESC),
    ("iTerm2", "Esc, CSI u", f"{ESC}[27u"),
    ("Windows Terminal", "Ctrl+C", "\x03"),
    ("VT100", "Esc", ESC),
    ("xterm", "Esc", ESC),
    ("xterm", "Ctrl+C", "\x03"),
    ("xterm", "Ctrl+C, modifyOtherKeys", f"{ESC}[27;5;99~"),
    ("kitty", "Esc", f"{ESC}[27u"),
    ("kitty", "Ctrl+C", f"{ESC}[99;5u"),
]
MODE = [
    ("tmux", "Shift+Tab", f"{ESC}[Z"),
    ("iTerm2", "Shift+Tab", f"{ESC}[Z"),
    ("Windows Terminal", "Shift+Tab", f"{ESC}[Z"),
    ("xterm", "Shift+Tab", f"{ESC}[Z"),
    ("xterm", "Shift+Tab, modifyOtherKeys", f"{ESC}[27;2;9~"),
    ("kitty", "Shift+Tab", f"{ESC}[9;2u"),
    ("kitty", "Shift+Tab with Num Lock", f"{ESC}[9;130u"),
]
HISTORY = [
    ("tmux", "Up", f"{ESC}[A", f"{ESC}[B"),
    ("iTerm2", "Up, application keys", f"{ESC}OA", f"{ESC}OB"),
    ("Windows Terminal", "Up", f"{ESC}[A", f"{ESC}[B"),
    ("xterm", "Up", f"{ESC}[A", f"{ESC}[B"),
    ("VT100", "Up, application keys", f"{ESC}OA", f"{ESC}OB"),
    ("kitty", "Up", f"{ESC}[1;1A", f"{ESC}[1;1B"),
    ("kitty", "Up with Num Lock", f"{ESC}[1;129A", f"{ESC}[1;129B"),
]


VARIABLES = {
    "xterm": {"TERM": "xterm-256color"},
    "kitty": {"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"},
    "iTerm2": {"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app", "LC_TERMINAL": "iTerm2"},
    "Windows Terminal": {"TERM": "xterm-256color", "WT_SESSION": "5f1d8a3e-0000-4000-8000-000000000000"},
    "VS Code": {"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"},
    "tmux": {"TERM": "tmux-256color", "TERM_PROGRAM": "tmux", "TMUX": "/nowhere,1,0"},
    "VT100": {"TERM": "vt100", "COLORTERM": ""},
}
"""What each terminal says of itself."""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Terminal]]:
    """One program for each kind of terminal; each test leaves an empty prompt and no running turn."""
    found: dict[str, Terminal] = {}

    def start(kind: str) -> Terminal:
        if kind not in found:
            folder = tmp_path_factory.mktemp("bytes")
            (folder / "home" / "prompt").mkdir(parents=True)
            (folder / "home" / "prompt" / "history.jsonl").write_text('"sent long ago"\n')
            command = [sys.executable, PROGRAM, "keys"]
            variables = {"SWECLI_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT), **VARIABLES[kind]}
            found[kind] = Terminal(command, cwd=folder, environment=variables)
            found[kind].shows(READY, "default")
        return found[kind]

    yield start
    for terminal in found.values():
        terminal.close()


@pytest.fixture
def terminal(started: Callable[[str], Terminal], kind: str) -> Terminal:
    return started(kind)


def named(rows: list[tuple[str, ...]]) -> list[object]:
    return [pytest.param(row[0], *row[2:], id=f"{row[0]}: {row[1]}") for row in rows]


def prompt(terminal: Terminal) -> list[str]:
    """The lines of the prompt; none while the program draws it anew."""
    rows = terminal.text.split("\n")
    starts = [number for number, row in enumerate(rows) if row.startswith((" › ", " > "))]
    return [row[3:] for row in rows[starts[-1] : -1]] if starts else []


def mode(terminal: Terminal) -> str:
    """The first word of the status bar; none while the program draws it anew."""
    return "".join(terminal.text.split("\n")[-1].split()[:1])


@pytest.mark.parametrize(("kind", "sent"), named(NEW_LINE))
def test_new_line(terminal: Terminal, sent: str) -> None:
    terminal.send(f"one{sent}two")
    terminal.until(lambda: prompt(terminal) == ["one", "two"], f"{sent!r} is a new line")
    terminal.send("\x03")
    terminal.shows(READY)


@pytest.mark.parametrize(("kind", "sent"), named(SEND))
def test_send(terminal: Terminal, sent: str) -> None:
    terminal.send(f"work{sent}")
    terminal.shows("esc to interrupt")
    terminal.send(ESC)
    terminal.shows(READY, without="esc to interrupt")


@pytest.mark.parametrize(("kind", "sent"), named(INTERRUPT))
def test_interrupt(terminal: Terminal, sent: str) -> None:
    terminal.send("work\r")
    terminal.shows("esc to interrupt")
    terminal.send(sent)
    terminal.shows(READY, without="esc to interrupt")


@pytest.mark.parametrize(("kind", "sent"), named(MODE))
def test_mode(terminal: Terminal, sent: str) -> None:
    terminal.until(lambda: mode(terminal))
    before = mode(terminal)
    terminal.send(sent)
    terminal.until(lambda: mode(terminal) not in {"", before}, f"{sent!r} is the next mode")


@pytest.mark.parametrize(("kind", "up", "down"), named(HISTORY))
def test_history(terminal: Terminal, up: str, down: str) -> None:
    terminal.send(up)
    terminal.hides(READY)
    terminal.send(down)
    terminal.shows(READY)


@pytest.mark.parametrize("kind", ["xterm"])
def test_letters_that_shift_has_made_are_typed(terminal: Terminal) -> None:
    terminal.send(f"{ESC}[27;2;65~{ESC}[27;2;33~b{ESC}[65;;65u")
    terminal.until(lambda: prompt(terminal) == ["A!bA"])
    terminal.send("\x03")
    terminal.shows(READY)


@pytest.mark.parametrize("kind", ["xterm"])
def test_keys_of_one_read_act_in_their_order(terminal: Terminal) -> None:
    terminal.send(f"abcdef{ESC}[D{ESC}[D\x7f!{ESC}[H<{ESC}[F>{ESC}[1;2D{ESC}[1;2D_")
    terminal.until(lambda: prompt(terminal) == ["<abc!e_"])
    terminal.send("\x03")
    terminal.shows(READY)


@pytest.mark.parametrize("kind", ["kitty", "VT100"])
def test_a_question_mark_on_an_empty_prompt_is_help_at_once(terminal: Terminal) -> None:
    for sent in ("?", f"{ESC}[47;2;63u", f"{ESC}[27;2;63~"):
        terminal.send(sent)
        terminal.shows("run a shell command")
        terminal.send(ESC)
        terminal.shows(READY, without="run a shell command")
    terminal.send("why?")
    terminal.until(lambda: prompt(terminal) == ["why?"])
    terminal.send("\x03")
    terminal.shows(READY)


LATE = ["[<65;70;34M", "[I", "[O", "[?62;c", "]11;rgb:1a1a/1b1b/2626\a"]


@pytest.mark.parametrize("kind", ["VT100", "kitty"])
def test_a_report_whose_esc_came_before_it_interrupts_nothing(terminal: Terminal) -> None:
    terminal.send("work\r")
    terminal.shows("esc to interrupt")
    for rest in LATE:
        terminal.send(ESC)
        terminal.shows("Interrupting")  # shown before it is certain
        terminal.send(rest)
        terminal.shows("esc to interrupt", READY_WHILE_BUSY, without="Interrupting")
    terminal.send("x\x7f")
    terminal.shows("esc to interrupt", READY_WHILE_BUSY)
    terminal.send(ESC)
    terminal.shows(READY, without="esc to interrupt")
    terminal.send("[<65;70;34M")
    terminal.send("typed")
    terminal.until(lambda: prompt(terminal) == ["typed"])
    terminal.send("\x03")
    terminal.shows(READY)


@pytest.mark.parametrize("kind", ["xterm", "tmux"])
@pytest.mark.parametrize("begins", ["!", "#", "/"])
def test_a_command_typed_at_once_behind_esc(terminal: Terminal, begins: str) -> None:
    terminal.send(f"{ESC}{begins}x")
    terminal.until(lambda: prompt(terminal)[-1:] == [f"{begins}x"])
    terminal.send(f"{ESC}\x03\x03")
    terminal.shows(READY)


@pytest.mark.parametrize("kind", ["kitty"])
def test_keys_are_typed_whose_terminal_does_not_send_their_text(terminal: Terminal) -> None:
    assert b"\x1b[>1u" in terminal.raw
    terminal.send(f"{ESC}[78;2u{ESC}[101u{ESC}[120;1u{ESC}[116;129u{ESC}[49;2u")
    terminal.until(lambda: prompt(terminal) == ["Next!"])
    terminal.send("\x03")
    terminal.shows(READY)
    assert b"\x1b[<u" not in terminal.raw
    terminal.send(f"{ESC}[?9u")  # it goes on to report all keys, which nobody asked for
    terminal.until(lambda: b"\x1b[<u" in terminal.raw)
