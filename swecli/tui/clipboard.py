"""Copying out of the program: a helper of the desktop where there is one, else the terminal is asked."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from swecli.core.whole_file import write_whole
from swecli.tui.passthrough import through

_HELPERS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
)

TIMEOUT = 2.0
"""Seconds for a helper."""

MAX_OSC = 75_000
"""Bytes of base64 that terminals take at once."""


def terminal_sequence(text: str, environ: Mapping[str, str]) -> str | None:
    """The sequence that asks the terminal to take the text, through tmux where it runs; None if the text is
    too long for it."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    if len(data) > MAX_OSC:
        return None
    sequence = f"\x1b]52;c;{data}\x07"
    if environ.get("TMUX"):
        return through(sequence, environ) + sequence  # tmux may keep it for itself as well
    return sequence


def is_remote(environ: Mapping[str, str]) -> bool:
    """Whether the user sits at another machine, so that this one's clipboard is not theirs."""
    return bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))


def keep_in_file(text: str, folder: Path) -> Path | None:
    """Write what was copied where it can be had if the terminal didn't take it; None where that can't be done."""
    path = folder / "copied.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError:
        return None
    return path


def copy_with_helper(text: str, environ: Mapping[str, str]) -> bool:
    """Copy with a desktop helper; whether one took it. Blocks for at most ``TIMEOUT`` seconds, and is
    skipped in a remote session, whose desktop is elsewhere."""
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
