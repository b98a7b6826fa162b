"""Pastes that are kept as files, so that only their paths are sent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from swecli.core.atomic_text import make_private


def keep_as_files(typed: str, pastes: Sequence[tuple[str, str]], cwd: Path) -> str:
    """The message with the path of a file in place of each paste.

    Raises:
        OSError: a file can't be written.
    """
    from swecli.core.config.paths import PASTES, project_folder  # not needed by the first frame
    from swecli.core.tools.base import plural

    folder = project_folder(cwd) / PASTES
    make_private(folder)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    for placeholder, text in pastes:
        path = _free(folder)
        data = text.encode("utf-8", "replace")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        lines = text.count("\n") + (not text.endswith("\n"))
        before, found, after = typed.partition(placeholder)
        if not found:
            continue
        path_words = f"{path.relative_to(cwd)} (a pasted text of {plural(lines, 'line')})"
        typed = f"{_apart(before)}{path_words}{' ' if after[:1].isalnum() else ''}{after}"
    return typed


def _apart(before: str) -> str:
    """The text before a path, which is a word of its own."""
    return before if not before or before[-1].isspace() else f"{before} "


def _free(folder: Path) -> Path:
    number = 1 + max(
        (int(path.stem[6:]) for path in folder.glob("paste-*.txt") if path.stem[6:].isdecimal()), default=0
    )
    return folder / f"paste-{number}.txt"
