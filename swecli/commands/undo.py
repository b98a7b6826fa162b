"""/undo: take back what edits and commands did to files."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.restored import restored_result, shown_path
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock

if TYPE_CHECKING:  # the commands are listed before the first frame, and the record of files brings its database
    from swecli.core.checkpoints.journal import Operation
    from swecli.core.checkpoints.report import Recent
    from swecli.core.checkpoints.targets import Target

USAGE = "/undo takes back the newest edit or command; also: turn, turn 3, t12 (a call), a path, list."
_SHOWN = 20
_CALL = re.compile(r"t\d+")
_TURN = re.compile(r"turn(?:\s+(\d+))?", re.IGNORECASE)


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    wanted = arguments.strip()
    if wanted.lower() in ("list", "ls"):
        return _listed(await port.files.changes(), port.view.cwd)
    if wanted in ("help", "?", "-h", "--help"):
        return CommandResult.text(USAGE)
    return restored_result(await port.files.undo(target(wanted, port.view.cwd)), port.view.cwd)


def target(wanted: str, cwd: Path) -> Target:
    """What the words after /undo mean. A file that is called like a call is given as ./t12."""
    from swecli.core.checkpoints.targets import Target

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
        blocks.append(TableBlock(("call", "turn", "at", "files", "what"), rows, "Can be taken back, newest first"))
        if len(recent.operations) > _SHOWN:
            blocks.append(TextBlock("and older ones", "dim"))
    else:
        blocks.append(TextBlock("This session has no change of files to take back."))
    if recent.not_covered:
        lines = [f"  {shown_path(one.path, cwd)}: {one.why}" for one in recent.not_covered[:_SHOWN]]
        more = [f"  and {len(recent.not_covered) - _SHOWN:,} more"] if len(recent.not_covered) > _SHOWN else []
        blocks.append(TextBlock("\n".join(["Not covered when a command changes it:", *lines, *more]), "dim"))
    return CommandResult(tuple(blocks))


def _row(operation: Operation, cwd: Path) -> tuple[str, ...]:
    title = " ".join(operation.origin.title.split())
    unsure = " (swecli was killed meanwhile)" if operation.state == "unsure" else ""
    names = ", ".join(shown_path(change.path, cwd) for change in operation.active[:3])
    more = f" +{len(operation.active) - 3}" if len(operation.active) > 3 else ""
    shown = title if len(title) <= 50 else f"{title[:49]}…"
    clock = time.strftime("%H:%M", time.localtime(operation.started))
    return operation.origin.item, str(operation.origin.turn), clock, names + more, shown + unsure


UNDO = SlashCommand(
    "undo",
    "Take back what edits and commands did to files",
    _run,
    arguments="[turn [n] | call | path | list]",
    while_busy=False,
)
