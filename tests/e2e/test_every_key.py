"""Every key of the prompt and of the screen as a plain VT100 sends it: in a VT100, which has no signs but ASCII, and in
tmux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pyte
import pytest

from swecli.tui.glyphs import plain
from tests.support.program import ROOT
from tests.support.terminal import Terminal, takes_keys
from tests.support.waiting import Condition, wait_until

pytestmark = pytest.mark.e2e

ESC = "\x1b"
PROGRAM = str(Path(__file__).with_name("prepared_session.py"))
SWECLI = str(Path(sys.executable).with_name("swecli"))
READY = "Ask for a change"
PLACEHOLDER = "Ask for a change · / commands · @ files · ? help"
STEERING = "Enter steers the running turn · Tab queues for after it"


def ctrl(letter: str) -> str:
    return chr(ord(letter.upper()) & 0x1F)


class Window(Protocol):
    ascii: bool
    """Whether signs are shown as ASCII characters."""

    @property
    def text(self) -> str: ...
    @property
    def colours(self) -> str: ...
    def send(self, text: str) -> None: ...
    def until(self, condition: Condition, about: str = "") -> None: ...
    def takes_keys(self) -> None: ...
    def damage(self) -> None: ...
    def close(self) -> None: ...


class Vt100(Terminal):
    ascii = True
    has_frames = False


class Tmux:
    """A window of a tmux server of its own."""

    ascii = False

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

    @property
    def colours(self) -> str:
        return self._run("capture-pane", "-p", "-e")

    def send(self, text: str) -> None:
        self._run("send-keys", "-H", *(f"{byte:02x}" for byte in text.encode()))

    def until(self, condition: Condition, about: str = "") -> None:
        wait_until(condition, lambda: f"{about}\n{self.text}", between=0.03)

    def takes_keys(self) -> None:
        takes_keys(self.until, self._screen)

    def _screen(self) -> pyte.Screen:
        screen = pyte.Screen(80, 24)
        pyte.Stream(screen).feed(self.colours.replace("\n", "\r\n"))
        return screen

    def damage(self) -> None:
        self._run("send-keys", "-R")

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False)


def opened(kind: str, command: list[str], folder: Path, variables: dict[str, str]) -> Window:
    """A window of this kind in which the command runs, with a home of its own."""
    if kind == "vt100":
        return Vt100(command, cwd=folder, environment={"TERM": "vt100", "COLORTERM": "", **variables})
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    return Tmux(command, folder, {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables})


@pytest.fixture(params=["vt100", "tmux"], scope="module")
def window(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """One program for all tests; each leaves an empty prompt and no running turn."""
    folder = tmp_path_factory.mktemp("keys")
    variables = {"SWECLI_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT), "EDITOR": f"sh {folder / 'editor'}"}
    (folder / "editor").write_text('printf "from the editor" > "$1"\n')
    (folder / "home" / "prompt").mkdir(parents=True)
    (folder / "home" / "prompt" / "history.jsonl").write_text('"sent long ago"\n')
    found = opened(request.param, [sys.executable, PROGRAM, "keys"], folder, variables)
    try:
        found.until(lambda: READY in found.text, "the start")
        yield found
    finally:
        found.close()


def drawn(window: Window, text: str) -> str:
    """The text with the signs that this window has."""
    return plain(text) if window.ascii else text


def line(window: Window) -> str:
    """The prompt's line with the cursor's end, without its mark."""
    mark = drawn(window, " › ")
    return next((row[3:].rstrip() for row in reversed(window.text.split("\n")) if row.startswith(mark)), "")


def expect(window: Window, keys: str, text: str) -> None:
    window.send(keys)
    window.until(lambda: line(window) == drawn(window, text), f"{keys!r} should leave {text!r}")


def shows(window: Window, keys: str, *texts: str) -> None:
    window.send(keys)
    wanted = [drawn(window, text) for text in texts]
    window.until(lambda: all(text in window.text for text in wanted), f"{keys!r} should show {texts}")


def idles(window: Window, keys: str = "") -> None:
    """Nothing runs any more, and the prompt is empty."""
    window.send(keys)
    window.until(lambda: READY in window.text and "esc to interrupt" not in window.text, f"{keys!r} should end all")


def hides(window: Window, keys: str, text: str) -> None:
    window.send(keys)
    window.until(lambda: drawn(window, text) not in window.text, f"{keys!r} should hide {text!r}")


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
    expect(window, ctrl("C"), PLACEHOLDER)


def test_new_lines_history_and_the_editor(window: Window) -> None:
    shows(window, f"first{ctrl('J')}second\\\rthird{ESC}[13;2ufourth", "first", "second", "third", "fourth")
    rows = window.text.split("\n")
    assert [row.strip("›> ") for row in rows if row[2:8].strip() in ("first", "second", "third", "fourth")]
    assert "second\\" not in window.text
    assert not any("third" in row and "fourth" in row for row in rows)
    hides(window, ctrl("C"), "third")
    expect(window, f"{ESC}[A", "sent long ago")
    expect(window, f"{ESC}[B", PLACEHOLDER)
    shows(window, ctrl("R") + "long", "search history: long", "sent long ago")
    expect(window, "\r", "sent long ago")
    expect(window, ctrl("G"), "from the editor")
    expect(window, ctrl("U"), PLACEHOLDER)


def test_completion_of_commands_and_files(window: Window) -> None:
    shows(window, "/comp", "/compact")
    expect(window, "\t", "/compact")
    expect(window, ctrl("U"), PLACEHOLDER)
    shows(window, "see @sho", "src/shop.py")
    expect(window, "\t", "see @src/shop.py")
    expect(window, ctrl("U"), PLACEHOLDER)


def test_screens_and_what_escape_closes(window: Window) -> None:
    shows(window, "?", "run a shell command")
    hides(window, ESC, "run a shell command")
    shows(window, ctrl("P"), "Command palette")
    hides(window, ESC, "Command palette")
    shows(window, ctrl("F"), "Find in the transcript")
    hides(window, ESC, "Find in the transcript")
    shows(window, f"{ESC}[Z", "accept-edits")
    shows(window, ctrl("O"), "Details on")
    shows(window, ctrl("O"), "Short view")
    shows(window, ctrl("O"), "Normal view")
    shows(window, f"{ESC}m", "The terminal handles the mouse")
    shows(window, f"{ESC}m", "swecli handles the mouse")
    shows(window, ctrl("T"), "No todos yet")


def test_copying_what_is_selected(window: Window) -> None:
    expect(window, "abc", "abc")
    before = window.colours
    window.send(f"{ESC}[1;2D")
    window.until(lambda: window.colours != before, "something is selected")
    shows(window, ctrl("C"), "Copied the selection; also in")
    assert line(window) == "abc"
    expect(window, ctrl("C"), PLACEHOLDER)


def test_a_turn_and_its_transcript(window: Window) -> None:
    last = "answer line 120"
    shows(window, "work\r", last, "Run sleep 100", "esc to interrupt")
    hides(window, f"{ESC}[5~", last)
    shows(window, f"{ESC}[6~", last)
    shows(window, f"{ESC}[H", "New session")
    hides(window, f"{ESC}[<65;10;5M" * 3, "New session")
    shows(window, f"{ESC}[<64;10;5M" * 3, "New session")
    shows(window, f"{ESC}[F", last)
    shows(window, ctrl("F"), "Find in the transcript")
    shows(window, "line 7\r", "answer line 7")
    hides(window, ESC, "esc close")
    shows(window, f"{ESC}[F", last, "esc to interrupt")
    shows(window, ctrl("T"), "Todos 1/2", "mend it")
    hides(window, ctrl("T"), "Todos 1/2")
    shows(window, "sooner\r", "next step: sooner")
    shows(window, "later\t", "after this turn: later")
    expect(window, f"{ESC}[A", "later")
    hides(window, "", "after this turn")
    expect(window, ctrl("U"), STEERING)
    shows(window, ctrl("B"), "Job j1")
    window.damage()
    shows(window, ctrl("L"), last, "esc to interrupt")
    expect(window, ESC, "sooner")  # what waited is in the prompt again
    shows(window, "", "interrupted")
    expect(window, ctrl("U"), PLACEHOLDER)
    shows(window, "work\r", "esc to interrupt")
    idles(window, ctrl("C"))


def test_an_approval_by_keys(window: Window) -> None:
    shows(window, "work\r", "esc to interrupt")  # leaves todos
    idles(window, ctrl("C"))
    shows(window, "ask\r", "Run this command?", "make test")
    window.takes_keys()
    window.send("\r \t")  # these never approve
    shows(window, ctrl("T"), "Todos 1/2", "Run this command?")  # and nothing else is blocked
    hides(window, ctrl("T"), "Todos 1/2")
    hides(window, ESC, "Run this command?")
    idles(window)
    shows(window, "ask\r", "Run this command?")
    window.takes_keys()
    hides(window, "y", "Run this command?")
    idles(window)


@pytest.mark.parametrize("kind", ["vt100", "tmux"])
def test_in_a_shell_it_is_suspended_lends_the_terminal_and_ends(kind: str, tmp_path: Path) -> None:
    variables = {"SWECLI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    shell = ["/bin/bash", "--noprofile", "--norc", "-i"]
    window = opened(kind, shell, tmp_path, {**variables, "PS1": "shell> ", "OPENAI_API_KEY": "k"})
    try:
        window.until(lambda: "shell>" in window.text, "the shell")
        shows(window, f"{SWECLI} -m openai/none\r", READY, "default")
        expect(window, "a draft", "a draft")
        shows(window, ctrl("Z"), "Stopped")
        shows(window, "echo $((40 + 2))\r", "42")
        shows(window, "fg\r", "› a draft", "default")
        expect(window, ctrl("U"), PLACEHOLDER)
        shows(window, "!echo asked; read word; echo got=$word > got; cat got\r", "$ echo asked", "\nasked")
        assert "default" not in window.text
        shows(window, "hello\r", READY, "got=hello")
        assert (tmp_path / "got").read_text() == "got=hello\n"
        shows(window, "!!echo begun; exec sleep 100\r", "\nbegun")
        shows(window, ctrl("C"), READY, "exit 130")
        shows(window, "!echo inside; exec sleep 100\r", "  inside", "Running echo inside")
        expect(window, "meanwhile", "meanwhile")
        shows(window, "\x1b", "interrupted", "› meanwhile")
        expect(window, ctrl("U"), PLACEHOLDER)
        hides(window, ctrl("C") * 2, READY)  # at once: there is a second for the other one
        window.until(lambda: window.text.rstrip().endswith("shell>"), "the shell again")
        shows(window, "echo $?-$((40 + 3))\r", "0-43")
    finally:
        window.close()
