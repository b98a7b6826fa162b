"""What leaves too little room in the context is told when it is first measured."""

from __future__ import annotations

from swecli.core.context_management.budget import Limits, edge
from swecli.core.context_management.component_limits import no_room, over_limit
from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.events import Budget, Notice


class LimitNotices:
    """Tells once for each model and component."""

    def __init__(self, recorder: Recorder, limits: Limits) -> None:
        self._recorder = recorder
        self._limits = limits
        self._told: set[tuple[str, str]] = set()

    def check(self, budget: Budget, model: str) -> None:
        """Look at a measure of a request to ``model``."""
        trouble = no_room(budget, edge(self._limits.block, budget.effective))
        if trouble:
            self._tell((model, ""), Notice(trouble, "error", "context"))
            return
        for text in over_limit(budget):
            self._tell((model, text.partition(":")[0]), Notice(text, "warning", "context"))

    def _tell(self, about: tuple[str, str], notice: Notice) -> None:
        if about not in self._told:
            self._told.add(about)
            self._recorder.emit(notice)
