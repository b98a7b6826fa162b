"""A command of the user in a real (pseudo) terminal, and what happens when it can't be given one."""

from __future__ import annotations

import errno
import io
import os
import pty
import subprocess
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from swecli.tui import boot, external
from swecli.tui.external import ExternalError, NoTerminal, run_in_terminal

ENVIRONMENT = {"PATH": os.environ["PATH"]}


class Screen:
    """Stands for the application. As Textual's own, it comes back only if nothing is raised while it is away."""

    def __init__(self) -> None:
        self.away = False

    @contextmanager
    def suspend(self) -> Iterator[None]:
        self.away = True
        yield
        self.away = False


@contextmanager
def standard_input(descriptor: int) -> Iterator[None]:
    before = os.dup(0)
    os.dup2(descriptor, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.fixture
def terminal() -> Iterator[int]:
    """Standard input is a terminal; the descriptor of its other end."""
    master, slave = pty.openpty()
    with standard_input(slave):
        yield master
    for descriptor in (master, slave):
        os.close(descriptor)


@pytest.fixture
def no_terminal() -> Iterator[None]:
    with Path(os.devnull).open() as nothing, standard_input(nothing.fileno()):
        yield


def app(screen: Screen) -> Any:
    return cast("Any", screen)


async def test_a_command_has_the_terminal_and_its_output_is_taken_down(terminal: int, tmp_path: Path) -> None:
    screen = Screen()
    ran = await run_in_terminal(app(screen), "tty >/dev/null && echo yes; pwd; exit 3", tmp_path, ENVIRONMENT)
    assert ran.output == f"yes\n{tmp_path}\n"
    assert ran.exit_status == 3
    assert not screen.away


async def test_keys_from_before_it_began_are_the_commands(terminal: int, tmp_path: Path) -> None:
    os.write(terminal, b"early\n")
    ran = await run_in_terminal(app(Screen()), "read word; echo got=$word", tmp_path, ENVIRONMENT)
    assert "got=early\n" in ran.output


async def test_what_a_command_writes_at_its_end_is_taken_down(
    terminal: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command answers the keys and ends before they are known to be passed on."""
    started: list[subprocess.Popen[bytes]] = []
    start, write = external._start, os.write

    def starts(*given: Any) -> subprocess.Popen[bytes]:
        started.append(start(*given))
        write(terminal, b"hello\n")
        return started[-1]

    def waits(descriptor: int, data: bytes) -> int:
        written = write(descriptor, data)
        if data == b"hello\n":
            started[-1].wait()
        return written

    monkeypatch.setattr(external, "_start", starts)
    monkeypatch.setattr(external.os, "write", waits)
    ran = await run_in_terminal(app(Screen()), "read word; echo got=$word", tmp_path, ENVIRONMENT)
    assert "got=hello\n" in ran.output
    assert ran.exit_status == 0


async def test_a_paste_that_the_command_has_no_room_for_stops_nothing(
    terminal: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command reads only when what it wrote is read."""
    tty.setraw(0)  # and so is the command's terminal, which would cut long lines
    start, size = external._start, 400_000

    def write() -> None:
        left = size
        while left:
            left -= os.write(terminal, b"x" * min(left, 1000))

    paste = threading.Thread(target=write)

    def starts(*given: Any) -> subprocess.Popen[bytes]:
        paste.start()
        return start(*given)

    monkeypatch.setattr(external, "_start", starts)
    command = f"seq 100000; head -c {size} | wc -c"
    ran = await run_in_terminal(app(Screen()), command, tmp_path, ENVIRONMENT)
    paste.join()
    assert ran.output.split()[-2:] == ["100000", str(size)]


async def test_the_screen_comes_back_from_a_command_that_leaves_something_writing(
    terminal: int, tmp_path: Path
) -> None:
    command = "setsid sh -c 'touch going; exec yes' & until [ -e going ]; do :; done; seq 50000"
    ran = await run_in_terminal(app(Screen()), command, tmp_path, ENVIRONMENT)
    assert ran.exit_status == 0
    assert "y\ny\n" in ran.output


async def test_the_screen_comes_back_when_the_folder_is_gone(terminal: int, tmp_path: Path) -> None:
    screen = Screen()
    before = termios.tcgetattr(0)
    with pytest.raises(NoTerminal):
        await run_in_terminal(app(screen), "ls", tmp_path / "gone", ENVIRONMENT)
    assert not screen.away
    assert termios.tcgetattr(0) == before


async def test_the_screen_comes_back_when_the_command_can_not_be_passed_on(terminal: int, tmp_path: Path) -> None:
    screen = Screen()
    with pytest.raises(NoTerminal):
        await run_in_terminal(app(screen), "echo \0", tmp_path, ENVIRONMENT)
    assert not screen.away


async def test_without_a_terminal_nothing_is_run(no_terminal: None, tmp_path: Path) -> None:
    screen = Screen()
    with pytest.raises(NoTerminal):
        await run_in_terminal(app(screen), f"touch {tmp_path}/ran", tmp_path, ENVIRONMENT)
    assert not screen.away
    assert not (tmp_path / "ran").exists()


async def test_a_command_that_ran_is_not_said_to_have_not_run(
    terminal: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(process: Any, *descriptors: int) -> bytes:
        process.wait()
        raise OSError("the terminal is gone")

    monkeypatch.setattr(external, "_relay", lost)
    screen = Screen()
    ran = await run_in_terminal(app(screen), "echo once >> ran", tmp_path, ENVIRONMENT)
    assert not screen.away
    assert (ran.output, ran.exit_status) == ("", 0)
    assert (tmp_path / "ran").read_text() == "once\n"


def test_no_sequence_of_a_full_screen_program_is_left() -> None:
    from swecli.tui.external import as_text

    vim = (
        b"\x1b[?1000h\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[1;24r\x1b(B\x1b[m~\r\n\x1bP+q436f\x1b\\"
        b"\x1b[?1049l\x1b[23;0;0t\x1b[?25h\x1b[>4;m\x1b[?1l\x1b>\x1b]11;?\x07\x1b[6n\x0e\x07\xc2\x9bdone\x1b"
    )
    assert as_text(vim) == "done"
    assert as_text(b"\x1b[31mred\x1b[0m\tand\r\nmore\x1b[?25l") == "\x1b[31mred\x1b[0m\tand\nmore"


async def test_an_editor_without_room_for_its_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setattr("tempfile.mkdtemp", no_room)
    with pytest.raises(ExternalError, match="Cannot pass the text to the editor: No usable"):
        await external.edit(cast("Any", Screen()), "text")


def test_the_interface_starts_without_room_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", no_room)
    terminal = boot.Terminal([], io.StringIO())
    terminal.stray = boot.nameless_file()
    terminal.stray.write(b"a warning of a library")
    assert terminal.stray_output() in ("a warning of a library", "")  # kept where a file can be in memory


def no_room(*_: object, **__: object) -> None:
    """Stands for functions of ``tempfile`` on a full disk."""
    raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")
