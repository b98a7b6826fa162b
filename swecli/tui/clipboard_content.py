"""What is on the desktop's clipboard, for pasting it into the prompt: an image, or text."""

from __future__ import annotations

import base64
import binascii
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swecli.tui.clipboard import TIMEOUT, is_remote

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
_APPLE_DATA = re.compile(rb"data PNGf([0-9A-Fa-f]+)")


@dataclass(frozen=True, slots=True)
class ClipboardContent:
    """An image's bytes, or else text; both empty where nothing can be read."""

    image: bytes = b""
    text: str = ""


def read_clipboard(environ: Mapping[str, str]) -> ClipboardContent:
    """Ask the helper programs of the desktop. Blocks for a few times ``TIMEOUT`` seconds at the most. Nothing in a
    remote session, whose desktop is elsewhere."""
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
    """By the two programs that list the kinds that there are."""
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
    found = _APPLE_DATA.search(_output(("osascript", "-e", "the clipboard as «class PNGf»")))
    return bytes.fromhex(found[1].decode()) if found and len(found[1]) % 2 == 0 else b""


def _windows(environ: Mapping[str, str]) -> bytes:
    if not environ.get("WSL_DISTRO_NAME"):
        return b""
    try:
        return base64.b64decode(_output((*_POWERSHELL, _WINDOWS_IMAGE)).strip(), validate=True)
    except binascii.Error:
        return b""


def _output(command: Sequence[str]) -> bytes:
    """What a helper writes; empty where it is missing, fails or takes too long."""
    if shutil.which(command[0]) is None:
        return b""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""
