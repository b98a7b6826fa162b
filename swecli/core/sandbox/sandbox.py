"""The sandbox of a session: what the machine offers, found out once, and a launch for each command."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from swecli.core.sandbox.launch import Launch, SandboxError
from swecli.core.sandbox.machine import Folders, Ground, Machine, off, planned
from swecli.core.sandbox.placeholders import Placeholders
from swecli.core.sandbox.temporary import PrivateTemporary
from swecli.core.sandbox.values import Options, Plan, Request, SandboxState

OFF_BY_SETTING = SandboxState(reason="switched off in the settings", checked=True)


class CommandSandbox(Protocol):
    """What engine and tools need of a sandbox. The methods may take a while: not for the event loop."""

    @property
    def options(self) -> Options: ...

    @property
    def state(self) -> SandboxState:
        """As far as it is known; cheap."""
        ...

    def check(self) -> SandboxState:
        """Find out how far commands are contained. Later calls know it already."""
        ...

    def begin(self, cwd: Path, *, full: bool) -> Launch:
        """A launch for one command; ``full`` if it may run only where it is wholly contained.

        Raises:
            SandboxError: there is none.
        """
        ...

    def failed(self, reason: str) -> None:
        """A launch did not come about: what was known no longer holds."""
        ...

    def close(self) -> None:
        """Remove what was made."""
        ...


class NoSandbox:
    """None at all."""

    def __init__(self, reason: str = "there is none here") -> None:
        self.options = Options(mode="off")
        self.state = SandboxState(reason=reason, checked=True)

    def check(self) -> SandboxState:
        return self.state

    def begin(self, cwd: Path, *, full: bool) -> Launch:
        del cwd, full
        raise SandboxError(self.state.reason)

    def failed(self, reason: str) -> None:
        del reason

    def close(self) -> None:
        return None


class Sandbox:
    """Implements ``CommandSandbox`` with what the machine offers."""

    def __init__(self, options: Options, ground: Ground, folders: Folders) -> None:
        self._options = options
        self._ground = ground
        self._machine = Machine(ground, folders)
        self._placeholders = Placeholders(folders.state / "sandbox" / ground.key)
        self._temporary = PrivateTemporary()
        self._state = OFF_BY_SETTING if options.mode == "off" else SandboxState()
        self._checking = threading.Lock()
        self._counting = threading.Lock()
        self._running = 0
        self._shared: Plan | None = None
        """The plan of the commands that run now."""

    @property
    def options(self) -> Options:
        return self._options

    @property
    def state(self) -> SandboxState:
        return self._state

    def check(self) -> SandboxState:
        """Look for a layer that holds. What earlier runs left behind is taken away first."""
        with self._checking:
            if not self._state.checked:
                self._placeholders.sweep()
                try:
                    self._state = self._machine.examine(self._request())
                except OSError as error:
                    self._state = off(f"it can't be set up: {error}")
            return self._state

    def begin(self, cwd: Path, *, full: bool) -> Launch:
        state = self.check()
        if state.level == "off":
            raise SandboxError(f"the sandbox is off: {state.reason}")
        plan = self._enter()
        try:
            return self._begun(plan, state, cwd, full)
        except BaseException:
            self._leave()
            raise

    def _enter(self) -> Plan:
        """The plan for one more command. While one runs it stays the same: what that command made since could be
        exchanged for a link between the look at it and the mount."""
        with self._counting:
            if self._running == 0 or self._shared is None:
                try:
                    self._shared = planned(self._request())
                except OSError as error:
                    raise SandboxError(f"there is no temporary directory: {error}") from error
            self._running += 1
            return self._shared

    def _leave(self) -> None:
        with self._counting:
            self._running -= 1

    def _begun(self, plan: Plan, state: SandboxState, cwd: Path, full: bool) -> Launch:
        if plan.uncovered and state.level == "full":
            self._state = state = replace(state, level="partial", uncovered=plan.uncovered)
        if full and state.level != "full":
            raise SandboxError(f"the sandbox is {state.text}")
        launch = self._machine.launch(state.layer, plan, str(cwd), self._placeholders)
        launch.release = _both(launch.release, self._leave)
        return launch

    def failed(self, reason: str) -> None:
        self._machine.forget()
        self._state = off(f"it could not be set up: {reason}")

    def close(self) -> None:
        self._placeholders.sweep()
        self._temporary.close()

    # --- one command ----------------------------------------------------------------------------------------------

    def _request(self) -> Request:
        ground = self._ground
        return Request(
            ground.roots,
            ground.home,
            self._temporary.path,
            ground.own_dirs,
            ground.own_code,
            ground.environment,
            self._options,
        )


def _both(first: Callable[[], object], second: Callable[[], object]) -> Callable[[], object]:
    def release() -> None:
        try:
            first()
        finally:
            second()

    return release


def own_code() -> Sequence[str]:
    """Where swecli itself and its interpreter's packages are."""
    package = Path(__file__).resolve().parents[2]
    return tuple(dict.fromkeys((str(package), os.path.realpath(sys.prefix))))
