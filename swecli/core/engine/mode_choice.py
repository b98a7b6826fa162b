"""The permission mode of a session: which are available, and the change from one to another."""

from __future__ import annotations

from swecli.core.engine.consent import Requests
from swecli.core.engine.recorder import Recorder
from swecli.core.permissions.decide import mode_refusal
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import SetMode
from swecli.core.protocol.events import CHOSEN, Mode, ModeChanged, Notice


class ModeChoice:
    """Changes the mode of one session, as far as its ``policy`` allows."""

    def __init__(self, policy: Policy, recorder: Recorder, requests: Requests) -> None:
        self._policy = policy
        self._recorder = recorder
        self._requests = requests

    def available(self, mode: Mode) -> Mode:
        """The mode, or the default one if it is not available."""
        return "default" if mode_refusal(self._policy, mode) else mode

    def choose(self, command: SetMode) -> None:
        """Change to the user's mode. An open request that it decides is settled."""
        if self.available(command.mode) != command.mode:
            self.refuse(command.mode)
        elif self.change(command.mode, CHOSEN):
            self._requests.reconsider()

    def change(self, mode: Mode, reason: str) -> bool:
        """Change to an available mode. False if it is the present one."""
        if mode == self._recorder.state.mode:
            return False
        self._recorder.emit(ModeChanged(mode, reason))
        return True

    def refuse(self, mode: Mode) -> None:
        """Tell the user why a mode is not available."""
        declined = self._policy.trust == "declined"
        remedy = (
            "To trust it: /permissions trust (in a shell: swecli permissions trust)."
            if declined
            else "/permissions lists it."
        )
        self._recorder.emit(Notice(mode_refusal(self._policy, mode), "warning", "session", remedy))
