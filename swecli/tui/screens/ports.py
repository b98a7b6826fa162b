"""What screens show and change, as the composition root supplies it. All methods may wait for the disk: they are called
in threads. Where something can't be done they raise ``ValueError`` with a sentence for the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from swecli.core.protocol.blocks import DisplayBlock
    from swecli.tui.session_link import OpenSession

FileName = Literal["user", "local"]
"""The user's own settings file, or the one of the project that is not shared."""

Effect = Literal["now", "session"]
"""When a changed setting counts: at once, or when a session is opened."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``text`` is its value as TOML, empty where it is unset; ``locked`` says why it can't be changed
    here, ``own`` whether one of the two files sets it."""

    name: str
    shown: str
    text: str
    origin: str
    about: str
    takes: str
    default: str
    choices: tuple[str, ...] = ()
    effect: Effect = "session"
    locked: str = ""
    own: FileName | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a change: a sentence, and the value that is in force now."""

    told: str
    name: str
    value: object = None


class SettingsPort(Protocol):
    """The settings of this folder."""

    @property
    def files(self) -> Mapping[FileName, str]:
        """The files that can be written, by name."""
        ...

    def read(self) -> Sequence[Setting]:
        """All settings."""
        ...

    def find(self, name: str) -> Setting | None:
        """A setting that is not in the list although it can be set, such as one of a new provider."""
        ...

    def check(self, name: str, text: str, file: FileName) -> str:
        """Why this value would be refused; empty where it would not."""
        ...

    def write(self, name: str, text: str, file: FileName) -> Written: ...
    def unset(self, name: str, file: FileName) -> Written: ...


@dataclass(frozen=True, slots=True)
class ShownRule:
    """A permission rule. ``grant`` is the id of what can be revoked, empty for rules of files and flags; ``used`` says
    how often it decided, ``void`` why it has no effect; ``expires`` is for people."""

    effect: str
    rule: str
    origin: str
    used: str
    void: str = ""
    grant: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a rule would have decided about: ``count`` of the ``total`` newest commands, those that may write first."""

    count: int
    total: int
    commands: tuple[str, ...] = ()


class PermissionsPort(Protocol):
    """The permission rules of this folder."""

    def read(self) -> Sequence[ShownRule]: ...

    def try_rule(self, effect: str, rule: str) -> Tried:
        """Which of the newest commands a rule speaks about. Nothing is run."""
        ...

    def add(self, how: str, rule: str) -> str:
        """Add a rule: ``week`` and ``project`` allow for seven days or until revoked, ``ask`` and ``deny`` go into the
        user's settings. Returns a sentence."""
        ...

    def revoke(self, grant: str) -> str: ...


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session of the list. ``updated`` is Unix seconds, ``cost`` US dollars as text, empty where it is unknown;
    ``away`` says why it can't be continued here."""

    id: str
    title: str
    folder: str
    updated: float
    messages: int
    tokens: int
    cost: str = ""
    model: str = ""
    away: str = ""


class SessionsPort(Protocol):
    """The stored sessions."""

    def read(self) -> Sequence[StoredSession]:
        """Sessions of this folder, newest first, then those of others."""
        ...

    def preview(self, session: StoredSession) -> Sequence[DisplayBlock]:
        """The last messages of a session."""
        ...

    def open(self, session_id: str) -> OpenSession:
        """Opens a session of this folder."""
        ...


@dataclass(frozen=True, slots=True)
class ShownCommand:
    """A command that runs, or a job that has ended. ``name`` is a job's id, or the item of a command in the foreground,
    which is ``item`` still when it has become a job; times are Unix seconds; ``size`` is bytes of output, of which
    ``beyond`` says that there may be more; ``about`` is what else there is to say."""

    name: str
    command: str
    started: float
    ended: float | None = None
    exit_status: int | None = None
    stopped: bool = False
    size: int = 0
    beyond: bool = False
    about: str = ""
    job: bool = True
    item: str = ""

    @property
    def running(self) -> bool:
        return self.ended is None


class CommandsPort(Protocol):
    """The commands of the session. Used on the event loop: nothing here waits for long."""

    def read(self) -> Sequence[ShownCommand]:
        """What runs in the foreground, then the jobs, oldest first."""
        ...

    async def output(self, name: str) -> str:
        """What a command wrote so far, without its middle where that is long.

        Raises:
            ValueError: there is no such command any more.
        """
        ...

    async def stop(self, name: str) -> str:
        """End a command with all that it has started. Returns a sentence.

        Raises:
            ValueError: there is no such command any more.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScreenPorts:
    """Makes what there is when it is wanted; a screen without its port says so."""

    settings: Callable[[], SettingsPort] | None = None
    permissions: Callable[[], PermissionsPort] | None = None
    sessions: Callable[[], SessionsPort] | None = None
    first: Literal["sessions"] | None = field(default=None)
    """The screen to begin with."""
