"""Values of the sandbox: what is asked for, what is mounted where, and how much of it holds on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from swecli.core.permissions.types import Sandbox as Level

Layer = Literal["bwrap", "landlock", "seatbelt", "none"]
UseMode = Literal["auto", "on", "off"]
Access = Literal["write", "read", "private", "hidden", "denied"]
"""What a command may do with a place: ``private`` is a directory of its own, ``hidden`` looks empty, ``denied``
can't be opened."""


@dataclass(frozen=True, slots=True)
class Options:
    """The user's wishes. ``writable`` and ``hide`` are absolute paths."""

    mode: UseMode = "auto"
    """"auto": where it lets a command run without a question; "on": every command; "off": none."""
    network: bool = False
    writable: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    ask_outside: bool = True
    """Whether the user is asked at once when the sandbox stopped a command."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a plan is made for. All paths are absolute and resolved; ``private`` is a directory on this machine that
    becomes the command's temporary directory."""

    roots: tuple[str, ...]
    home: str
    private: str
    own_dirs: tuple[str, ...] = ()
    """swecli's configuration and data: not to be seen."""
    own_code: tuple[str, ...] = ()
    """Where swecli itself is installed: not to be changed, also where that is inside the workspace."""
    environment: Mapping[str, str] = field(default_factory=lambda: {})
    options: Options = Options()


@dataclass(frozen=True, slots=True)
class Mount:
    """One place and what a command may do there. ``directory`` tells the two kinds of hiding apart."""

    path: str
    access: Access
    directory: bool = True


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A protected name that is not there: it is made before the command runs, so that the command can't make it, and
    taken away afterwards. ``content`` None is a directory."""

    path: str
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a command sees. Mounts are in order, parents first: a later one lies over an earlier one. Everything that is
    not mentioned may be read and not written."""

    roots: tuple[str, ...]
    mounts: tuple[Mount, ...]
    placeholders: tuple[Placeholder, ...]
    private: str
    temporary: str = "/tmp"
    """Where the private directory is seen."""
    network: bool = False
    uncovered: tuple[str, ...] = ()
    """What can't be protected in this workspace, as clauses."""

    def paths(self, *accesses: Access) -> tuple[str, ...]:
        """The places of these kinds."""
        return tuple(mount.path for mount in self.mounts if mount.access in accesses)


@dataclass(frozen=True, slots=True)
class SandboxState:
    """How far commands are contained. ``uncovered`` names what a partial sandbox leaves open; ``reason`` says why there
    is none, or why it is only partial."""

    level: Level = "off"
    layer: Layer = "none"
    reason: str = ""
    uncovered: tuple[str, ...] = ()
    checked: bool = False
    """False before the probe."""

    @property
    def label(self) -> str:
        """The state in one or a few words, for a status line."""
        if not self.checked:
            return "checking"
        return "off" if self.level == "off" else self.layer if self.level == "full" else f"{self.layer}, partial"

    @property
    def text(self) -> str:
        """The state as a sentence without a full stop."""
        if not self.checked:
            return "not checked yet"
        open_ = f"; not covered: {', '.join(self.uncovered)}" if self.uncovered else ""
        why = f": {self.reason}" if self.reason else ""
        return f"off{why}" if self.level == "off" else f"{self.level} ({self.layer}){why}{open_}"
