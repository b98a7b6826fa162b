"""The sandbox of a session: what the machine offers, found out once, and a launch for each command."""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from swecli.core.permissions.paths import inside
from swecli.core.sandbox import landlock, seatbelt
from swecli.core.sandbox.disk import OsDisk
from swecli.core.sandbox.launch import Launch, SandboxError
from swecli.core.sandbox.layers import (
    HELPER,
    Bubblewrap,
    filter_program,
    find_bubblewrap,
    landlock_abi,
    launch_bubblewrap,
    launch_landlock,
    launch_seatbelt,
)
from swecli.core.sandbox.placeholders import PlaceholderError, Placeholders
from swecli.core.sandbox.plan import mount_plan
from swecli.core.sandbox.probe import Probed, probe
from swecli.core.sandbox.temporary import PrivateTemporary
from swecli.core.sandbox.values import Options, Plan, Request, SandboxState
from swecli.core.sandbox.verdict_cache import VerdictCache

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


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the sandbox keeps its own: ``state`` for locks and scratch, ``cache`` for the verdict (None: nowhere)."""

    state: Path
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class Ground:
    """The session's surroundings. ``environment`` is what commands get; ``key`` names the workspace."""

    roots: tuple[str, ...]
    home: str
    environment: Mapping[str, str]
    own_dirs: tuple[str, ...] = ()
    own_code: tuple[str, ...] = ()
    key: str = "workspace"


class Sandbox:
    """Implements ``CommandSandbox`` with bubblewrap, else Landlock, else seatbelt, whatever proves to hold."""

    def __init__(self, options: Options, ground: Ground, folders: Folders) -> None:
        self._options = options
        self._ground = ground
        self._folders = folders
        self._cache = VerdictCache(folders.cache)
        self._placeholders = Placeholders(folders.state / "sandbox" / ground.key)
        self._temporary = PrivateTemporary()
        self._state = OFF_BY_SETTING if options.mode == "off" else SandboxState()
        self._bubblewrap: Bubblewrap | None = None
        self._abi = 0
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
                    self._state = self._examine()
                except OSError as error:
                    self._state = _off(f"it can't be set up: {error}")
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
                    self._shared = self._plan(self._request())
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
        launch = self._launch(state.layer, plan, str(cwd), self._placeholders)
        launch.release = _both(launch.release, self._leave)
        return launch

    def failed(self, reason: str) -> None:
        self._cache.forget()
        self._state = _off(f"it could not be set up: {reason}")

    def close(self) -> None:
        self._placeholders.sweep()
        self._temporary.close()

    # --- the verdict ----------------------------------------------------------------------------------------------

    def _examine(self) -> SandboxState:
        request = self._request()
        if sys.platform == "darwin":
            return self._examine_seatbelt(request)
        if sys.platform != "linux":
            return _off(f"there is none for {platform.system()}")
        found = find_bubblewrap(self._ground.environment, self._ground.roots)
        if isinstance(found, Bubblewrap):
            self._bubblewrap = found
            why = self._examine_bubblewrap(found, request)
            if isinstance(why, SandboxState):
                return why
        else:
            why = found
        return self._examine_landlock(request, why)

    def _examine_bubblewrap(self, found: Bubblewrap, request: Request) -> SandboxState | str:
        """The state under bubblewrap, or why it is of no use here."""
        uncovered = self._plan(request).uncovered
        if not filter_program(os.uname().machine, "bwrap", request.options.network):
            uncovered += (f"sockets of special kinds (no call table for {os.uname().machine})",)
        facts = (
            *(platform.release(), platform.version(), found.path, str(found.version), found.identity),
            *(str(os.geteuid()), str(request.options.network), *request.options.writable, *request.options.hide),
        )
        if not self._cache.holds(facts):
            probed = self._probe(request, "bwrap")
            if not probed.held:
                return f"{found.name} {_why(probed)}"
            self._cache.keep(facts)
        return SandboxState("partial" if uncovered else "full", "bwrap", "", uncovered, checked=True)

    def _examine_landlock(self, request: Request, why: str) -> SandboxState:
        self._abi = landlock_abi()
        if self._abi < 1:
            return _off(f"{why}, and this kernel has no Landlock")
        if any(inside(path, request.roots) for path in (os.path.realpath(sys.executable), str(HELPER))):
            return _off(f"{why}, and Landlock needs a swecli that is installed outside of the workspace")
        probed = self._probe(request, "landlock")
        if not probed.held:
            return _off(f"{why}, and Landlock {_why(probed)}")
        open_ = (
            *landlock.uncovered(self._abi, network=request.options.network),
            *self._plan(request).uncovered,
        )
        return SandboxState("partial", "landlock", why, open_, checked=True)

    def _examine_seatbelt(self, request: Request) -> SandboxState:
        if not os.access(seatbelt.PROGRAM, os.X_OK):
            return _off(f"{seatbelt.PROGRAM} is missing")
        probed = self._probe(request, "seatbelt")
        if not probed.held:
            return _off(f"seatbelt {_why(probed)}")
        open_ = (*seatbelt.UNCOVERED, *self._plan(request).uncovered)
        return SandboxState("partial", "seatbelt", "", open_, checked=True)

    def _probe(self, request: Request, layer: str) -> Probed:
        folder = self._folders.state / "sandbox"

        def start(scratch: Request, cwd: str) -> Launch:
            held = Placeholders(Path(cwd).parent / "held")
            return self._launch(layer, self._plan(scratch), cwd, held)

        # The scratch workspace lies among swecli's own files, which are out of sight otherwise.
        return probe(replace(request, own_dirs=(), own_code=()), start, folder)

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

    def _plan(self, request: Request) -> Plan:
        return mount_plan(request, OsDisk())

    def _launch(self, layer: str, plan: Plan, cwd: str, placeholders: Placeholders) -> Launch:
        if layer == "landlock":
            return launch_landlock(plan, self._abi)
        if layer == "seatbelt":
            return launch_seatbelt(plan)
        assert self._bubblewrap is not None
        try:
            lock = placeholders.hold(plan.placeholders)
        except PlaceholderError as error:
            raise SandboxError(str(error)) from error
        try:
            launch = launch_bubblewrap(self._bubblewrap, plan, cwd, lock)
        except SandboxError:
            placeholders.release(lock)
            raise
        launch.release = _releasing(placeholders, lock)
        return launch


def _releasing(placeholders: Placeholders, lock: int) -> Callable[[], object]:
    return lambda: placeholders.release(lock)


def _both(first: Callable[[], object], second: Callable[[], object]) -> Callable[[], object]:
    def release() -> None:
        try:
            first()
        finally:
            second()

    return release


def _off(reason: str) -> SandboxState:
    return SandboxState(reason=reason, checked=True)


def _why(probed: Probed) -> str:
    if probed.escaped:
        return f"does not hold here ({', '.join(probed.escaped)} was possible)"
    return f"is refused here ({probed.reason})"


def own_code() -> Sequence[str]:
    """Where swecli itself and its interpreter's packages are."""
    package = Path(__file__).resolve().parents[2]
    return tuple(dict.fromkeys((str(package), os.path.realpath(sys.prefix))))
