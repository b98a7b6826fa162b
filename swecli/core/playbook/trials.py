"""Whether a bullet helped: what became of the step that it is about, in the turn in which the model saw it. Pure.

The same is looked at for bullets that were withheld, so that there is something to compare with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from swecli.core.playbook.bullet import Bullet
from swecli.core.playbook.commands import begins, parsed, same_intent

Counter = Literal["helpful", "harmful", "neutral", "exposures", "withheld", "control"]


class Step(Struct, frozen=True):
    """Something that was tried. ``error`` is a signature: a command failed by itself, and not in what it looked at."""

    kind: Literal["command", "edit", "read"]
    target: str
    ended: Literal["ok", "error", "rejected"]
    error: str = ""


class Count(Struct, frozen=True):
    """One more for a counter of a bullet."""

    bullet: str
    counter: Counter


class _Trial(Struct):
    bullet: Bullet
    withheld: bool


class Trials:
    """The open trials of one session."""

    def __init__(self) -> None:
        self.open: dict[str, _Trial] = {}

    @property
    def known(self) -> frozenset[str]:
        """Bullets that are on trial in this turn."""
        return frozenset(self.open)

    def begin(self, told: Iterable[Bullet], withheld: Iterable[Bullet] = ()) -> list[Count]:
        """The model saw these bullets, and those were kept back. Counted once a turn."""
        counts: list[Count] = []
        for bullets, kept_back in ((told, False), (withheld, True)):
            for bullet in bullets:
                if bullet.id not in self.open:
                    self.open[bullet.id] = _Trial(bullet, kept_back)
                    counts.append(Count(bullet.id, "withheld" if kept_back else "exposures"))
        return counts

    def observe(self, step: Step) -> list[Count]:
        """What this step decides."""
        counts: list[Count] = []
        for name, trial in list(self.open.items()):
            verdict = verdict_of(trial.bullet, step)
            if verdict is None:
                continue
            del self.open[name]
            if not trial.withheld:
                counts.append(Count(name, verdict))
            elif verdict == "helpful":
                counts.append(Count(name, "control"))
        return counts

    def end_turn(self) -> list[Count]:
        """What was not decided stays open no longer."""
        left, self.open = self.open, {}
        return [Count(name, "neutral") for name, trial in left.items() if not trial.withheld]


def verdict_of(bullet: Bullet, step: Step) -> Literal["helpful", "harmful", "neutral"] | None:
    """What a step says about a bullet; None where it is about something else. A command that was right and found
    failing tests was right all the same; one that was tried against the bullet's word decides nothing."""
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
