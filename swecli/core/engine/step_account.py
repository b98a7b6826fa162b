"""What each step of a turn used and cost: as reported, or by an estimate where the answer broke off."""

from __future__ import annotations

from dataclasses import dataclass, replace

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import Notice, StepEnded
from swecli.core.protocol.usage import Usage, added

CHARACTERS_PER_TOKEN = 4
"""For the length of an answer that broke off before the provider told it."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """What came of an answer that broke off: the usage that was reported until then, and characters of all parts."""

    usage: Usage | None
    written: int


class StepAccount:
    """Emits one StepEnded for each step that was begun and asked for an answer."""

    def __init__(self, services: Services, recorder: Recorder) -> None:
        self._services = services
        self._recorder = recorder
        self._open: tuple[int, PreparedRequest, ModelInfo] | None = None
        self._reported: Usage | None = None
        self.usage: Usage | None = None
        """Sum over the turn."""

    def begin(self, step: int, prepared: PreparedRequest, info: ModelInfo) -> None:
        """A request goes out."""
        self._open, self._reported = (step, prepared, info), None

    def answered(self, usage: Usage | None) -> None:
        """The whole answer is there; its tools may still run."""
        self._reported = usage

    def end(self) -> None:
        """The step is over."""
        if self._open is not None:
            step, prepared, info = self._open
            if self._reported is not None:
                cleared = self._services.context.update_usage(prepared.request, self._reported, info)
                if cleared:
                    text = f"The provider itself left about {cleared:,} tokens of old tool results out."
                    self._recorder.emit(Notice(text, "info", "context", "They stay in the record of the session."))
            self._emit(step, info, self._reported)

    def refused(self) -> None:
        """There is no answer, so nothing is paid for."""
        if self._open is not None:
            self._recorder.emit(StepEnded(self._open[0], None, "0"))
            self._open = None

    def broke_off(self, fragment: Fragment) -> None:
        """Only a part of the answer came; it is paid for all the same."""
        if self._open is None:
            return
        step, prepared, info = self._open
        usage = fragment.usage or Usage()
        if usage.input_total is None:
            usage = replace(usage, input_total=prepared.budget.used)
        # What providers say of the output while it is under way is no more than a beginning.
        written = max(usage.output_total or 0, fragment.written // CHARACTERS_PER_TOKEN)
        self._emit(step, info, replace(usage, output_total=written), estimated=True)

    def interrupted(self, fragment: Fragment | None) -> None:
        """The turn is over before the step was: account for what came until then."""
        if self._reported is not None:
            self.end()
        elif fragment is not None:
            self.broke_off(fragment)

    def _emit(self, step: int, info: ModelInfo, usage: Usage | None, *, estimated: bool = False) -> None:
        self._open = None
        cost = None
        if usage is not None:
            self.usage = added(self.usage, usage) if self.usage else usage
            cost = self._services.price(info.ref, usage)
        self._recorder.emit(StepEnded(step, usage, cost, estimated=estimated))
