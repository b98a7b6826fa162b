"""Whether a bullet helped: the result of its step in the turn in which the model saw it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from swecli.core.playbook.bullet import Bullet
from swecli.core.playbook.commands import begins, parsed, same_intent

Counter = Literal["helpful", "harmful", "neutral", "exposures"]


class Step(Struct, frozen=True):
    """An attempted step. ``error`` is a signature: the command itself failed, not the thing that it checked."""

    kind: Literal["command", "edit", "read"]
    target: str
    ended: Literal["ok", "error", "rejected"]
    error: str = ""


class Count(Struct, frozen=True):
    """An increment of one of a bullet's counters."""

    bullet: str
    counter: Counter


class Trials:
    """The open trials of one session."""

    def __init__(self) -> None:
        self.open: dict[str, Bullet] = {}

    def begin(self, told: Iterable[Bullet]) -> list[Count]:
        """Begin trials of bullets that were shown; each counts once per turn."""
        new = {bullet.id: bullet for bullet in told if bullet.id not in self.open}
        self.open |= new
        return [Count(name, "exposures") for name in new]

    def observe(self, step: Step) -> list[Count]:
        """Counts decided by this step."""
        counts: list[Count] = []
        for name, bullet in list(self.open.items()):
            verdict = verdict_of(bullet, step)
            if verdict is not None:
                del self.open[name]
                counts.append(Count(name, verdict))
        return counts

    def end_turn(self) -> list[Count]:
        """Close undecided trials."""
        left, self.open = self.open, {}
        return [Count(name, "neutral") for name in left]


def verdict_of(bullet: Bullet, step: Step) -> Literal["helpful", "harmful", "neutral"] | None:
    """A step's verdict on a bullet; None if it concerns something else. A correct command that found failing tests
    still counts as correct; one tried against the bullet's advice decides nothing."""
    command, path = bullet.guard.command, bullet.guard.path
    if step.kind == "command" and command:
        if begins(step.target, command):
            if step.ended == "rejected":
                return "harmful"
            wrong = step.ended == "error" and (step.error or parsed(command).intent not in ("test", "lint", "types"))
            return "harmful" if wrong else "helpful"
        tried = any(begins(step.target, known) for known in bullet.trigger.commands)
        return "neutral" if tried or (step.ended == "error" and same_intent(step.target, command)) else None
    if not path or step.target != path:
        return None
    if step.kind == "edit":
        return "helpful" if step.ended == "ok" else "harmful"
    return "helpful" if step.kind == "read" and step.ended == "ok" and bullet.type == "location" else None
