"""What to do to take changes back, decided from what is on disk now. Pure.

A change is taken back only where the path still is what the change left. Everything else is listed: the user, or
something else, changed it since, or it was never covered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from swecli.core.checkpoints.image import Image
from swecli.core.checkpoints.journal import Change


@dataclass(frozen=True, slots=True)
class Step:
    """Make ``path``, which is ``now``, what it was: ``then``. ``undoes`` are the changes that this takes back."""

    path: str
    now: Image
    then: Image
    undoes: tuple[Change, ...]

    @property
    def relinks(self) -> bool:
        """Whether it was changed which other names the file has."""
        return any(change.before.twin != change.after.twin for change in self.undoes)


@dataclass(frozen=True, slots=True)
class Listed:
    """A path that was left as it is, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """``already`` are changes that somebody has taken back before."""

    steps: tuple[Step, ...] = ()
    conflicts: tuple[Listed, ...] = ()
    not_covered: tuple[Listed, ...] = ()
    already: tuple[Change, ...] = ()


@dataclass(slots=True)
class _Path:
    now: Image
    state: Image
    undoes: list[Change] = field(default_factory=list[Change])
    blocked: bool = False


CHANGED_SINCE = "it is not what the change left: it was changed since"


def plan(changes: Iterable[Change], present: Mapping[str, Image]) -> Plan:
    """How to take ``changes`` (newest first) back. ``present`` says what each of their paths is now."""
    paths: dict[str, _Path] = {}
    conflicts: list[Listed] = []
    uncovered: list[Listed] = []
    already: list[Change] = []
    for change in changes:
        at = paths.setdefault(change.path, _Path(present[change.path], present[change.path]))
        if at.blocked:
            continue
        why = _uncovered(change)
        if why:
            at.blocked = True
            uncovered.append(Listed(change.path, why))
        elif at.state.same(change.after):
            if not at.undoes:
                at.now = change.after  # the same, and it says which other names the file has
            at.state = change.before
            at.undoes.append(change)
        elif at.state.same(change.before):
            already.append(change)
        else:
            at.blocked = True
            conflicts.append(Listed(change.path, _conflict(at.state)))
    steps = tuple(Step(path, at.now, at.state, tuple(at.undoes)) for path, at in paths.items() if at.undoes)
    return Plan(steps, tuple(conflicts), tuple(uncovered), tuple(already))


def _uncovered(change: Change) -> str:
    """Why the change can't be taken back, because of what was not stored of it; empty where it can."""
    before, after = change.before, change.after
    if before.kind == after.kind == "file" and before.content == after.content:
        return ""  # only its mode or its names changed
    if not before.kept:
        return before.note or "its content was not stored"
    if not after.kept:
        return f"what it is now could not be brought back: {after.note or 'its content was not stored'}"
    return ""


def _conflict(state: Image) -> str:
    return "it is gone by now" if state.kind == "absent" else CHANGED_SINCE
