"""What an undo or a redo did, for the screen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from swecli.commands.base import CommandResult
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.core.protocol.events import FilesRestored, LeftFile

SHOWN = 50
"""Files of one kind that are listed."""


def restored_result(done: FilesRestored, cwd: Path) -> CommandResult:
    """Files that were changed, conflicts, and what is not covered."""
    blocks: list[DisplayBlock] = []
    verb = "Took back" if done.direction == "undo" else "Brought back"
    if done.files:
        more = f" and {len(done.operations) - 3} more" if len(done.operations) > 3 else ""
        blocks.append(TextBlock(f"{verb}: {'; '.join(done.operations[:3])}{more}"))
        rows = tuple((shown_path(file.path, cwd), file.how) for file in done.files[:SHOWN])
        blocks.append(TableBlock(("file", "now"), rows, _count(len(done.files), "file changed", "files changed")))
        if len(done.files) > SHOWN:
            blocks.append(TextBlock(f"and {len(done.files) - SHOWN:,} more files", "dim"))
    if done.conflicts:
        head = _count(len(done.conflicts), "file was left as it is", "files were left as they are")
        blocks.append(TextBlock(f"{head}:\n{_left(done.conflicts, cwd)}", "warning"))
    if done.not_covered:
        blocks.append(TextBlock(f"Not covered:\n{_left(done.not_covered, cwd)}", "warning"))
    if done.reason:
        blocks.append(TextBlock(done.reason, "plain" if not done.not_covered else "dim"))
    elif done.files:
        other = "/redo brings it back" if done.direction == "undo" else "/undo takes it back again"
        blocks.append(TextBlock(f"{other}. The conversation is as it was.", "dim"))
    else:
        hint = "/undo list names what else can be taken back." if done.direction == "undo" else ""
        blocks.append(TextBlock(f"Nothing was changed. {hint}".strip()))
    return CommandResult(tuple(blocks))


def shown_path(path: str, cwd: Path) -> str:
    """``path`` as the user knows it: relative to the working directory where it is inside."""
    inside = path.startswith(f"{cwd}{os.sep}")
    return os.path.relpath(path, cwd) if inside else path


def _left(files: Sequence[LeftFile], cwd: Path) -> str:
    lines = [f"  {shown_path(file.path, cwd)}: {file.why}" for file in files[:SHOWN]]
    more = [f"  and {len(files) - SHOWN:,} more"] if len(files) > SHOWN else []
    return "\n".join([*lines, *more])


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
