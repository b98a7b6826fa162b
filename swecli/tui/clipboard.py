"""Copying to the clipboard, and pasting images and text from it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from textual.app import App
from textual.widgets import TextArea

from swecli.core.atomic_text import make_private, write_whole
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line
from swecli.tui.terminal import through

_HELPERS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
)

TIMEOUT = 2.0
"""Seconds that a helper program may take."""

MAX_OSC = 75_000
"""Largest base64 sequence that terminals accept, in bytes."""


def terminal_sequence(text: str, environ: Mapping[str, str]) -> str | None:
    """OSC 52 sequence that copies the text, wrapped for tmux if needed; None if the text is too long."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    if len(data) > MAX_OSC:
        return None
    sequence = f"\x1b]52;c;{data}\x07"
    if environ.get("TMUX"):
        return through(sequence, environ) + sequence  # plain too, for the buffer of tmux itself
    return sequence


def is_remote(environ: Mapping[str, str]) -> bool:
    """Whether this is a remote session, so this machine's clipboard is not the user's."""
    return bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))


def keep_in_file(text: str, folder: Path) -> Path | None:
    """Write copied text to a file as a fallback; None if that fails."""
    path = folder / "copied.txt"
    try:
        make_private(folder)
        write_whole(path, text)
    except OSError:
        return None
    return path


def copy_with_helper(text: str, environ: Mapping[str, str]) -> bool:
    """Copy with a desktop helper; returns whether one succeeded. Blocks for at most ``TIMEOUT`` seconds; skipped in a
    remote session."""
    if is_remote(environ):
        return False
    for variable, command in _HELPERS:
        if (variable and not environ.get(variable)) or shutil.which(command[0]) is None:
            continue
        try:
            done = subprocess.run(
                command,
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return True
    return False


_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
_POWERSHELL = ("powershell.exe", "-NoProfile", "-NonInteractive", "-Command")
_WINDOWS_IMAGE = (
    "Add-Type -AssemblyName System.Windows.Forms; $i = [Windows.Forms.Clipboard]::GetImage(); if ($i) "
    "{ $s = New-Object IO.MemoryStream; $i.Save($s, 'Png'); [Convert]::ToBase64String($s.ToArray()) }"
)
_TEXT = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-o")),
    ("DISPLAY", ("xsel", "--clipboard", "--output")),
    ("", ("pbpaste",)),
    ("WSL_DISTRO_NAME", (*_POWERSHELL, "Get-Clipboard -Raw")),
)
_APPLE_DATA = lazy_pattern(rb"data PNGf([0-9A-Fa-f]+)")


class ClipboardContent(Struct, frozen=True):
    """An image's bytes, or else text; both empty if nothing is readable."""

    image: bytes = b""
    text: str = ""


def read_clipboard(environ: Mapping[str, str]) -> ClipboardContent:
    """Read the clipboard with desktop helpers. Blocks for at most a few times ``TIMEOUT`` seconds; empty in a remote
    session."""
    if is_remote(environ):
        return ClipboardContent()
    for image in (_offered, _apple, _windows):
        if data := image(environ):
            return ClipboardContent(image=data)
    for variable, command in _TEXT:
        if not variable or environ.get(variable):
            text = _output(command)
            if text:
                return ClipboardContent(text=text.decode("utf-8", "replace"))
    return ClipboardContent()


def _offered(environ: Mapping[str, str]) -> bytes:
    """An image, from the helpers that list available types."""
    x11 = ("xclip", "-selection", "clipboard", "-o", "-t")
    for variable, listing, reading in (
        ("WAYLAND_DISPLAY", ("wl-paste", "--list-types"), ("wl-paste", "--type")),
        ("DISPLAY", (*x11, "TARGETS"), x11),
    ):
        if environ.get(variable):
            kinds = _output(listing).decode("utf-8", "replace").split()
            kind = next((kind for kind in _KINDS if kind in kinds), None)
            data = _output((*reading, kind)) if kind else b""
            if data:
                return data
    return b""


def _apple(_environ: Mapping[str, str]) -> bytes:
    data = _output(("pngpaste", "-"))
    if data:
        return data
    match = _APPLE_DATA.search(_output(("osascript", "-e", "the clipboard as «class PNGf»")))
    return bytes.fromhex(match[1].decode()) if match and len(match[1]) % 2 == 0 else b""


def _windows(environ: Mapping[str, str]) -> bytes:
    if not environ.get("WSL_DISTRO_NAME"):
        return b""
    try:
        return base64.b64decode(_output((*_POWERSHELL, _WINDOWS_IMAGE)).strip(), validate=True)
    except binascii.Error:
        return b""


def _output(command: Sequence[str]) -> bytes:
    """Output of a helper; empty if it is missing, fails or times out."""
    if shutil.which(command[0]) is None:
        return b""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""


class Copier:
    """Copies the screen's or the editor's selection. ``write`` sends a sequence to the terminal, ``flash`` shows a
    short message; text that the terminal may have rejected is kept below ``state``."""

    def __init__(
        self,
        app: App[Any],
        editor: TextArea,
        write: Callable[[str], None],
        flash: Callable[[str], None],
        state: Path | None,
    ) -> None:
        self._app = app
        self._editor = editor
        self._write = write
        self._flash = flash
        self._state = state

    def unselect(self) -> None:
        self._app.screen.clear_selection()
        self._editor.move_cursor(self._editor.cursor_location)

    def copy_selection(self) -> None:
        text = self._app.screen.get_selected_text() or self._editor.selected_text
        self.unselect()
        self.copy(text, "selection")

    def copy(self, text: str, what: str) -> None:
        """Copy a text; ``what`` names it in the message."""
        self._app.run_worker(self._copy(text, what), group="copy")

    async def _copy(self, text: str, what: str) -> None:
        from swecli.tui.greeting import short

        size = plural(len(text), "character")
        if await asyncio.to_thread(copy_with_helper, text, os.environ):
            self._flash(f"Copied the {what} ({size})")
            return
        file = await asyncio.to_thread(keep_in_file, text, self._state) if self._state is not None else None
        location = safe_line(short(file, str(Path.home()))) if file is not None else ""
        sequence = terminal_sequence(text, os.environ)
        if sequence is not None:
            self._write(sequence)
            self._flash(f"Copied the {what}{f'; also in {location}' if location else f' ({size})'}")
        elif location:
            self._flash(f"Too long for the terminal; the {what} is in {location}")
        else:
            self._flash(f"The {what} is too long for the terminal's clipboard; Shift+drag selects in the terminal")
