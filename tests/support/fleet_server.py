"""A scripted provider for many tasks at once: each request names its task, and the task's script answers it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from swecli.core.llm.scripted import RequestFacts, Script, ScriptPlayer, Step
from tests.support.loopback import LoopbackServer, Manners

_NAME = re.compile(r"TASK=([\w.:/-]+)")
StepsOf = Callable[[str], Sequence[Step]]


class TaskPlayer(ScriptPlayer):
    """Answers a request with the step of its task that follows the calls it already has. A prompt names its task as
    ``TASK=name``; every step but the last has one call."""

    def __init__(self, script: Script, steps_of: StepsOf) -> None:
        super().__init__(script)
        self._steps_of = steps_of
        self.asked: list[str] = []
        """The task of each request."""

    def take(self, facts: RequestFacts) -> Step:
        name = _NAME.findall(facts.text)[-1]
        self.asked.append(name)
        steps = self._steps_of(name)
        return steps[min(facts.calls, len(steps) - 1)]


class FleetServer(LoopbackServer):
    """``steps_of`` has the script of each task by its name."""

    def __init__(self, steps_of: StepsOf, manners: Manners | None = None) -> None:
        script = Script(name="fleet-model", window=128_000)
        super().__init__(script, "openai", manners)
        self.player = self._player = TaskPlayer(script, steps_of)
