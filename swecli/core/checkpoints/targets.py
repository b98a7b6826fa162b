"""Which operations an undo is about."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from swecli.core.checkpoints.journal import Operation

Scope = Literal["last", "turn", "call", "path"]


@dataclass(frozen=True, slots=True)
class Target:
    """``last`` is the newest edit or command that changed files. ``turn``: all of one turn, the newest where
    ``turn`` is 0. ``call``: one tool call by its id. ``path``: the newest change of a file, or of what is below a
    folder; an absolute path."""

    scope: Scope = "last"
    turn: int = 0
    name: str = ""


def chosen(operations: Sequence[Operation], target: Target) -> list[Operation]:
    """The operations in question, newest first, with the changes in question. For ``last`` all: the first of them
    that can be taken back is meant."""
    match target.scope:
        case "last":
            return list(operations)
        case "turn":
            turn = target.turn or (operations[0].origin.turn if operations else 0)
            return [one for one in operations if one.origin.turn == turn]
        case "call":
            return [one for one in operations if one.origin.item == target.name]
        case "path":
            for one in operations:
                inside = tuple(change for change in one.active if _within(change.path, target.name))
                if inside:
                    return [replace(one, active=inside)]
            return []


def nothing(target: Target) -> str:
    """The sentence for a target that nothing belongs to."""
    match target.scope:
        case "turn" if target.turn:
            return f"Turn {target.turn} changed no files, or its changes were taken back already."
        case "call":
            return f"Call {target.name} changed no files of this session, or its changes were taken back already."
        case "path":
            return f"This session has no change of {target.name} to take back."
        case _:
            return "This session has no change of files to take back."


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
