"""/diff: what this session changed in files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.restored import shown_path
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    found = await port.files.difference()
    if found.reason:
        return CommandResult.text(found.reason, "warning")
    cwd = port.view.cwd
    chosen = [block for block in found.files if not arguments or _below(block.path, arguments, cwd)]
    if not chosen:
        where = f" below {arguments}" if arguments else ""
        return CommandResult.text(f"This session changed no file{where}, or everything was taken back.")
    blocks: list[DisplayBlock] = [replace(block, path=shown_path(block.path, cwd)) for block in chosen]
    blocks.append(TextBlock(_sum(chosen), "dim"))
    if found.more:
        blocks.append(TextBlock(f"and {found.more:,} more files; /diff PATH shows those below a folder", "dim"))
    return CommandResult(tuple(blocks))


def _below(path: str, wanted: str, cwd: Path) -> bool:
    typed = os.path.expanduser(wanted.strip("\"'").removeprefix("@"))
    place = os.path.realpath(os.path.join(cwd, typed))
    return path == place or path.startswith(place.rstrip(os.sep) + os.sep)


def _sum(files: list[DiffBlock]) -> str:
    new = sum(block.old is None and block.new is not None for block in files)
    gone = sum(block.new is None and block.old is not None for block in files)
    kinds = [f"{count:,} {what}" for count, what in ((new, "new"), (gone, "removed")) if count]
    detail = f" ({', '.join(kinds)})" if kinds else ""
    return f"{len(files):,} file{'' if len(files) == 1 else 's'} changed in this session{detail}; /undo takes back."


DIFF = SlashCommand("diff", "What this session changed in files", _run, arguments="[path]")
