"""In and out of the clipboard: images and text come in, and a copy says no more than is known."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from swecli.tui.clipboard import ClipboardContent, read_clipboard
from swecli.tui.terminal import Driver
from tests.tui.support import running

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


def helper(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def helpers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of programs, besides those that scripts need; a desktop without a remote session."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name in ("SSH_CONNECTION", "SSH_TTY", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "image.png").write_bytes(PNG)
    return folder


def wayland(folder: Path) -> None:
    listing, reading = (
        "--list-types) echo text/plain; echo image/png",
        f'"--type image/png") cat {folder.parent}/image.png',
    )
    helper(folder, "wl-paste", f'case "$*" in {listing};; {reading};; *) exit 1;; esac')


def test_an_image_comes_before_text(helpers: Path) -> None:
    wayland(helpers)
    helper(helpers, "pbpaste", "echo text")
    assert read_clipboard({"WAYLAND_DISPLAY": "w"}) == ClipboardContent(image=PNG)
    assert read_clipboard({}) == ClipboardContent(text="text\n")
    assert read_clipboard({"WAYLAND_DISPLAY": "w", "SSH_CONNECTION": "1 2 3 4"}) == ClipboardContent()


def test_images_of_other_systems(helpers: Path) -> None:
    helper(helpers, "osascript", f"echo '«data PNGf{PNG.hex()}»'")
    assert read_clipboard({}).image == PNG
    helper(helpers, "osascript", "exit 1")
    helper(helpers, "powershell.exe", f"echo {base64.b64encode(PNG).decode()}")
    assert read_clipboard({"WSL_DISTRO_NAME": "Debian"}).image == PNG


def test_helpers_that_fail_give_nothing(helpers: Path) -> None:
    for name in ("wl-paste", "xclip", "xsel", "pbpaste", "pngpaste", "osascript", "powershell.exe"):
        helper(helpers, name, "echo wrong; exit 3")
    everywhere = {"WAYLAND_DISPLAY": "w", "DISPLAY": ":0", "WSL_DISTRO_NAME": "Debian"}
    assert read_clipboard(everywhere) == ClipboardContent()


async def test_a_key_pastes_an_image_and_else_text(helpers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "w")
    wayland(helpers)
    async with running() as it:
        await it.press("ctrl+v")
        await it.until(lambda: it.text.startswith("[Image #1: clipboard.png, 108 B"))
        helper(helpers, "wl-paste", "printf 'some\\033[31m text'")
        await it.press("ctrl+u", "ctrl+v")
        await it.until(lambda: it.text.startswith("[Pasted text #1"))
        assert it.editor.message == "some\x1b[31m text"
        helper(helpers, "wl-paste", "exit 1")
        await it.press("ctrl+u", "ctrl+v")
        await it.shows("Nothing to paste")


async def test_what_the_terminal_may_not_have_taken_is_in_a_file(helpers: Path, tmp_path: Path) -> None:
    async with running(state=tmp_path / "state", size=(160, 24)) as it:
        it.app.interface.copier.copy("some words", "answer")
        await it.shows("Copied the answer; also in")
        kept = tmp_path / "state" / "copied.txt"
        assert kept.read_text() == "some words"
        assert kept.stat().st_mode & 0o077 == 0
        it.app.interface.copier.copy("x" * 100_000, "code")
        await it.shows("Too long for the terminal; the code is in")
        assert len(kept.read_text()) == 100_000
        helper(helpers, "pbcopy", "cat > /dev/null")
        it.app.interface.copier.copy("more", "block")
        await it.shows("Copied the block (4 characters)")
        assert len(kept.read_text()) == 100_000


async def test_the_mouse_is_given_away_and_taken_back() -> None:
    written: list[str] = []

    class Quiet(Driver):
        def __init__(self) -> None:
            self._mouse = True

        def write(self, data: str) -> None:
            written.append(data)

        def flush(self) -> None:
            pass

    driver = Quiet()
    driver.use_mouse(True)
    assert written == []
    driver.use_mouse(False)
    assert "\x1b[?1003l" in written
    written.clear()
    driver.use_mouse(True)
    assert "\x1b[?1003h" in written
    async with running() as it:
        await it.press("alt+m")
        await it.shows("The terminal handles the mouse; Alt+M switches")
        assert not it.app.mouse
