"""What an undo or a redo did, as data for the screen, for scripts and for events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from swecli.core.checkpoints.journal import Operation
from swecli.core.checkpoints.plan import Listed, Plan, Step

How = Literal["restored", "brought back", "removed", "mode restored", "link restored"]


@dataclass(frozen=True, slots=True)
class RestoredPath:
    """One path (absolute) that was changed, and how."""

    path: str
    how: How


@dataclass(frozen=True, slots=True)
class Restored:
    """``operations`` are the edits and commands in question. Paths in ``conflicts`` and ``not_covered`` were left as
    they are. ``reason`` says why nothing was done, where nothing could be done at all."""

    direction: Literal["undo", "redo"]
    operations: tuple[str, ...] = ()
    paths: tuple[RestoredPath, ...] = ()
    conflicts: tuple[Listed, ...] = ()
    not_covered: tuple[Listed, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Recent:
    """What can be taken back. ``not_covered`` is what commands here are not covered for, as path and reason."""

    operations: tuple[Operation, ...] = ()
    not_covered: tuple[Listed, ...] = ()
    reason: str = ""


def named(operation: Operation) -> str:
    """An operation on one line: its id and what it was."""
    title = " ".join(operation.origin.title.split())
    short = title if len(title) <= 60 else title[:59] + "…"
    return f"{operation.origin.item} {short}".strip()


def outcome(
    direction: Literal["undo", "redo"], chosen: tuple[Operation, ...], made: Plan, failed: tuple[Listed, ...]
) -> Restored:
    """The report of a plan that was carried out but for ``failed``."""
    missed = {listed.path for listed in failed}
    done = [step for step in made.steps if step.path not in missed]
    return Restored(
        direction,
        tuple(named(operation) for operation in chosen),
        tuple(RestoredPath(step.path, _how(step)) for step in done),
        (*made.conflicts, *failed),
        made.not_covered,
    )


def _how(step: Step) -> How:
    if step.then.kind == "absent":
        return "removed"
    if step.now.kind == "absent":
        return "brought back"
    if step.then.kind == step.now.kind and step.then.content == step.now.content and step.then.kind != "link":
        return "mode restored" if step.then.mode != step.now.mode else "link restored"
    return "restored"
