"""Commands about files: /undo, /redo, /diff, /add-dir."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TableBlock, TextBlock
from swecli.core.protocol.events import FilesRestored, LeftFile
from swecli.core.workspace.text_file import usable_folder

if TYPE_CHECKING:
    from swecli.core.checkpoints.journal import Operation
    from swecli.core.checkpoints.restore import Recent, Target
    from swecli.core.engine.session import Session


SHOWN = 50
"""Files of one kind that are listed."""


def restored_result(done: FilesRestored, cwd: Path) -> CommandResult:
    blocks: list[DisplayBlock] = []
    verb = "Undid" if done.direction == "undo" else "Redid"
    if done.files:
        more = f" and {len(done.operations) - 3} more" if len(done.operations) > 3 else ""
        blocks.append(TextBlock(f"{verb}: {'; '.join(done.operations[:3])}{more}"))
        rows = tuple((shown_path(file.path, cwd), file.how) for file in done.files[:SHOWN])
        blocks.append(TableBlock(("file", "now"), rows, _count(len(done.files), "file changed", "files changed")))
        if len(done.files) > SHOWN:
            blocks.append(TextBlock(f"and {len(done.files) - SHOWN:,} more files", "dim"))
    if done.conflicts:
        head = _count(len(done.conflicts), "file was left alone", "files were left alone")
        blocks.append(TextBlock(f"{head}:\n{_left(done.conflicts, cwd)}", "warning"))
    if done.not_covered:
        blocks.append(TextBlock(f"Not tracked:\n{_left(done.not_covered, cwd)}", "warning"))
    if done.reason:
        blocks.append(TextBlock(done.reason, "plain" if not done.not_covered else "dim"))
    elif done.files:
        other = "/redo reapplies it" if done.direction == "undo" else "/undo reverts it again"
        blocks.append(TextBlock(f"{other}. The conversation is unchanged.", "dim"))
    else:
        hint = "/undo list shows what else can be undone." if done.direction == "undo" else ""
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


async def _run_redo(session: Session, arguments: str) -> CommandResult:
    return restored_result(await session.files.redo(), session.view.cwd)


REDO = SlashCommand("redo", "Reapply what /undo reverted", _run_redo, while_busy=False)


async def _run_diff(session: Session, arguments: str) -> CommandResult:
    found = await session.files.difference()
    if found.reason:
        return CommandResult.text(found.reason, "warning")
    cwd = session.view.cwd
    chosen = [block for block in found.files if not arguments or _below(block.path, arguments, cwd)]
    if not chosen:
        where = f" below {arguments}" if arguments else ""
        return CommandResult.text(f"This session changed no file{where}, or everything was undone.")
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
    return f"{len(files):,} file{'' if len(files) == 1 else 's'} changed in this session{detail}; /undo reverts it."


DIFF = SlashCommand("diff", "Show what this session changed", _run_diff, arguments="[path]")


async def _run_add_dir(session: Session, arguments: str) -> CommandResult:
    view = session.view
    name = arguments.strip()
    if not name:
        return CommandResult.text(f"Folders of this session: {', '.join(map(str, view.roots))}.")
    try:
        path = usable_folder(name, view.cwd)
    except ValueError as error:
        return CommandResult.text(f"{name}: {error}. Nothing was added.", "error")
    if any(path.is_relative_to(root) for root in view.roots):
        return CommandResult.text(f"{path} is already part of this session.")
    if any(job.status == "running" for job in view.jobs):
        return CommandResult.text(
            "Adding a folder reopens the session, which would end its background jobs. /jobs lists and stops them.",
            "error",
        )
    instead = TextBlock(f"Add folders at the start: --add-dir {path}", "warning")
    return CommandResult(screen="add_folder", argument=str(path), instead=(instead,))


ADD_DIR = SlashCommand(
    "add-dir",
    "Add a folder to work in, for this run",
    _run_add_dir,
    arguments="[folder]",
    while_busy=False,
)


USAGE = "/undo reverts the newest edit or command; also: turn, turn 3, t12 (a call), a path, list."
_SHOWN = 20
_NAMED = 6
USUAL = frozenset(("generated folder", "ignored folder", "git's own data", "swecli's own data"))
"""Why a path is not tracked where nobody expects it to be: one line for all of them."""
_CALL = re.compile(r"t\d+")
_TURN = re.compile(r"turn(?:\s+(\d+))?", re.IGNORECASE)


async def _run_undo(session: Session, arguments: str) -> CommandResult:
    wanted = arguments.strip()
    if wanted.lower() in ("list", "ls"):
        return _listed(await session.files.changes(), session.view.cwd)
    if wanted in ("help", "?", "-h", "--help"):
        return CommandResult.text(USAGE)
    return restored_result(await session.files.undo(target(wanted, session.view.cwd)), session.view.cwd)


def target(wanted: str, cwd: Path) -> Target:
    """What the words after /undo mean. A file that is called like a call is given as ./t12."""
    from swecli.core.checkpoints.restore import Target

    if wanted.lower() in ("", "last"):
        return Target()
    turn = _TURN.fullmatch(wanted)
    if turn:
        return Target("turn", int(turn.group(1) or 0))
    if _CALL.fullmatch(wanted):
        return Target("call", name=wanted)
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(wanted.strip("\"'").removeprefix("@"))))
    # The last part may be a link that was changed itself; what is above it is where it really is.
    return Target("path", name=os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))


def _listed(recent: Recent, cwd: Path) -> CommandResult:
    if recent.reason:
        return CommandResult.text(recent.reason, "warning")
    blocks: list[DisplayBlock] = []
    if recent.operations:
        rows = tuple(_row(operation, cwd) for operation in recent.operations[:_SHOWN])
        blocks.append(TableBlock(("call", "turn", "at", "files", "what"), rows, "Can be undone, newest first"))
        if len(recent.operations) > _SHOWN:
            blocks.append(TextBlock("and older ones", "dim"))
    else:
        blocks.append(TextBlock("This session has no file changes to undo."))
    usual = [one for one in recent.not_covered if one.why in USUAL]
    others = [one for one in recent.not_covered if one.why not in USUAL]
    if usual:
        names = ", ".join(dict.fromkeys(shown_path(one.path, cwd) for one in usual[:_NAMED]))
        more = f" and {len(usual) - _NAMED:,} more" if len(usual) > _NAMED else ""
        blocks.append(TextBlock(f"Not tracked, as usual: {names}{more}", "dim"))
    if others:
        lines = [f"  {shown_path(one.path, cwd)}: {one.why}" for one in others[:_SHOWN]]
        more = [f"  and {len(others) - _SHOWN:,} more"] if len(others) > _SHOWN else []
        blocks.append(TextBlock("\n".join(["Not tracked when a command changes it:", *lines, *more]), "dim"))
    return CommandResult(tuple(blocks))


def _row(operation: Operation, cwd: Path) -> tuple[str, ...]:
    title = " ".join(operation.origin.title.split())
    unsure = " (swecli was killed during it)" if operation.state == "unsure" else ""
    names = ", ".join(shown_path(change.path, cwd) for change in operation.active[:3])
    more = f" +{len(operation.active) - 3}" if len(operation.active) > 3 else ""
    shown = title if len(title) <= 50 else f"{title[:49]}…"
    clock = time.strftime("%H:%M", time.localtime(operation.started))
    return operation.origin.item, str(operation.origin.turn), clock, names + more, shown + unsure


UNDO = SlashCommand(
    "undo",
    "Undo file changes by edits and commands",
    _run_undo,
    arguments="[turn [n] | call | path | list]",
    while_busy=False,
)
