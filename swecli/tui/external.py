"""Programs that get the terminal for a while: the user's editor. The screen comes back when they end."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

USUAL = ("sensible-editor", "nano", "vim", "vi")
"""Editors that are looked for when neither VISUAL nor EDITOR names one."""


class ExternalError(Exception):
    """The program could not be run, or failed; one sentence."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """The user's editor with its arguments.

    Raises:
        ExternalError: there is none, or its command can't be read.
    """
    for name in ("VISUAL", "EDITOR"):
        if text := environ.get(name, "").strip():
            try:
                return shlex.split(text)
            except ValueError as error:
                raise ExternalError(f"{name} is not a valid command: {error}") from None
    for name in USUAL:
        if shutil.which(name, path=environ.get("PATH")):
            return [name]
    raise ExternalError("No editor found; set VISUAL or EDITOR")


async def edit(app: App[Any], text: str, suffix: str = ".md") -> str:
    """Let the user edit a text in their editor. Returns it without the line end that editors add, otherwise as it was
    left: with its line ends, and with what stands for bytes that are no text.

    Raises:
        ExternalError: there is no editor, it failed, or what it left is no text.
    """
    command = editor_command(os.environ)
    folder = Path(tempfile.mkdtemp(prefix="swecli-"))
    path = folder / f"text{suffix}"
    try:
        path.write_bytes(_written(text))
        await run(app, [*command, str(path)])
        try:
            edited = path.read_bytes().decode("utf-8", "surrogateescape" if _has_raw_bytes(text) else "strict")
        except (OSError, UnicodeDecodeError) as error:
            raise ExternalError(f"Cannot read the file {command[0]} wrote: {error}") from None
    except OSError as error:
        raise ExternalError(f"Cannot pass the text to the editor: {error.strerror or error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return edited if text.endswith("\n") else edited.removesuffix("\n")


def _written(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _has_raw_bytes(text: str) -> bool:
    return any("\udc80" <= char <= "\udcff" for char in text)


async def open_file(app: App[Any], path: Path, line: int | None = None) -> None:
    """Open a file in the user's editor, at a line where the editor is known to take one.

    Raises:
        ExternalError: there is no editor, or it failed.
    """
    command = editor_command(os.environ)
    takes_line = Path(command[0]).name in ("vi", "vim", "nvim", "nano", "emacs", "micro", "kak", "hx")
    await run(app, [*command, *([f"+{line}"] if line and takes_line else []), str(path)])


async def run(app: App[Any], command: Sequence[str]) -> None:
    """Run a program in the terminal while the screen is away. The session goes on meanwhile.

    Raises:
        ExternalError: it could not be started, or it failed.
    """
    code, refused = 0, ""
    try:
        with app.suspend():
            try:
                code = await asyncio.to_thread(_run, command)
            except OSError as error:  # must not leave the block: the screen would not come back
                refused = error.strerror or str(error)
    except SuspendNotSupported:
        raise ExternalError("The interface cannot be suspended here") from None
    if refused:
        raise ExternalError(f"Cannot start {command[0]}: {refused}")
    if code:
        raise ExternalError(f"{command[0]} ended with status {code}")


def _run(command: Sequence[str]) -> int:
    # While the interface runs, descriptors 1 and 2 are not the terminal; what it draws on is.
    screen = sys.__stdout__
    terminal = screen.fileno() if screen is not None else None
    return subprocess.run(command, stdin=0, stdout=terminal, stderr=terminal, check=False).returncode
