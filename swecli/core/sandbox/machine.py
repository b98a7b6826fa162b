"""What this machine contains commands with for one workspace: looked for, tried out, and used."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

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
from swecli.core.sandbox.values import Plan, Request, SandboxState
from swecli.core.sandbox.verdict_cache import VerdictCache


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


class Machine:
    """Finds the first layer that proves to hold: bubblewrap, else Landlock, else seatbelt."""

    def __init__(self, ground: Ground, folders: Folders) -> None:
        self._ground = ground
        self._folders = folders
        self._cache = VerdictCache(folders.cache)
        self._bubblewrap: Bubblewrap | None = None
        self._abi = 0

    def forget(self) -> None:
        """A remembered verdict turned out to be wrong."""
        self._cache.forget()

    def examine(self, request: Request) -> SandboxState:
        """How far commands under this request are contained. Raises ``OSError`` where that can't be found out."""
        if sys.platform == "darwin":
            return self._examine_seatbelt(request)
        if sys.platform != "linux":
            return off(f"there is none for {platform.system()}")
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
        uncovered = planned(request).uncovered
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
            return off(f"{why}, and this kernel has no Landlock")
        if any(inside(path, request.roots) for path in (os.path.realpath(sys.executable), str(HELPER))):
            return off(f"{why}, and Landlock needs a swecli that is installed outside of the workspace")
        probed = self._probe(request, "landlock")
        if not probed.held:
            return off(f"{why}, and Landlock {_why(probed)}")
        open_ = (
            *landlock.uncovered(self._abi, network=request.options.network),
            *planned(request).uncovered,
        )
        return SandboxState("partial", "landlock", why, open_, checked=True)

    def _examine_seatbelt(self, request: Request) -> SandboxState:
        if not os.access(seatbelt.PROGRAM, os.X_OK):
            return off(f"{seatbelt.PROGRAM} is missing")
        probed = self._probe(request, "seatbelt")
        if not probed.held:
            return off(f"seatbelt {_why(probed)}")
        open_ = (*seatbelt.UNCOVERED, *planned(request).uncovered)
        return SandboxState("partial", "seatbelt", "", open_, checked=True)

    def _probe(self, request: Request, layer: str) -> Probed:
        folder = self._folders.state / "sandbox"

        def start(scratch: Request, cwd: str) -> Launch:
            held = Placeholders(Path(cwd).parent / "held")
            return self.launch(layer, planned(scratch), cwd, held)

        # The scratch workspace lies among swecli's own files, which are out of sight otherwise.
        return probe(replace(request, own_dirs=(), own_code=()), start, folder)

    def launch(self, layer: str, plan: Plan, cwd: str, placeholders: Placeholders) -> Launch:
        """A command in the layer that was found.

        Raises:
            SandboxError: it can't be set up.
        """
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


def planned(request: Request) -> Plan:
    """The plan on the real disk."""
    return mount_plan(request, OsDisk())


def _releasing(placeholders: Placeholders, lock: int) -> Callable[[], object]:
    return lambda: placeholders.release(lock)


def off(reason: str) -> SandboxState:
    return SandboxState(reason=reason, checked=True)


def _why(probed: Probed) -> str:
    if probed.escaped:
        return f"does not hold here ({', '.join(probed.escaped)} was possible)"
    return f"is refused here ({probed.reason})"
