"""Interface between the TUI and the rest of the program, and the values they exchange."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct, field

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.session import Session
    from swecli.core.permissions.types import Rule
    from swecli.core.protocol.blocks import DisplayBlock
    from swecli.core.protocol.result import Kept


OpenSession: TypeAlias = "Callable[[], Awaitable[Session]]"


class SessionNotOpened(Exception):
    """The session can't be opened; the message is for the user, ``code`` is the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


Notify = Literal["auto", "bell", "osc9", "osc777", "off"]
Density = Literal["short", "usual", "full"]
DiffForm = Literal["auto", "unified", "split"]
Progress = Literal["auto", "on", "off"]
Glyphs = Literal["auto", "unicode", "ascii"]
Editing = Literal["usual", "vim"]


class Preferences(Struct, frozen=True):
    """Interface settings; the defaults are those of an empty configuration."""

    theme: str = "auto"
    """A theme's name, the name of a pair of themes, or "auto"."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Keys of rebound actions."""
    theme_folders: tuple[Path, ...] = ()
    """Folders with theme files; on equal names the earlier folder wins."""
    reduced_motion: bool = False
    """Suppresses animations."""
    glyphs: Glyphs = "auto"
    density: Density = "usual"
    diff: DiffForm = "auto"
    editing: Editing = "usual"
    key_variables: frozenset[str] = frozenset()
    """Variables that hold keys according to the settings, whatever their names."""
    large_message: float = 0.25
    """Share of the window above which sending a message asks first."""
    forecast: bool = True
    """Whether to forecast the next request while the user types."""
    notify: Notify = "auto"
    mouse: bool = True
    title: bool = True
    progress: Progress = "auto"
    status_line: str | None = None
    """A shell command whose output replaces the status bar."""
    status_line_timeout: float = 2.0
    """Seconds."""


TrustChoice = Literal["trust", "session", "decline", "later"]
"""``later`` means no for this run; swecli asks again at the next start."""


class TrustQuestion(Struct, frozen=True):
    """Asks to trust ``folder``; ``names`` lists the files that would count, each followed by indented lines of what it
    asks for. Both are untrusted text."""

    folder: str
    names: tuple[str, ...]


LONGEST_MATCHER = 40
"""Characters of a hook's matcher that its question names; the value below shows any."""


class TrustItem(Struct, frozen=True):
    """A project setting, hook, MCP ``server`` (its name), or changed ``file`` (its path) of a skill, command or agent
    that needs separate consent; ``digest`` identifies exactly this value."""

    key: str
    value: str
    origin: str
    digest: str
    server: str = ""
    file: str = ""

    @property
    def wish(self) -> str:
        """What it would do, as the continuation of "to". Untrusted text."""
        from swecli.core.protocol.hook_words import moment  # not needed by the first frame

        if self.server:
            return f"start the MCP server {self.server}"
        if self.file:
            return f"use {self.file}, which is new or has changed"
        if self.key.startswith("hooks.") and self.key[6:7].isupper():
            matcher, colon, _ = self.value.partition(":")
            matcher = matcher if colon and len(matcher) <= LONGEST_MATCHER else ""
            return f"run this command {moment(self.key[6:], matcher)}"
        return f"set {self.key}"


class TrustGate(Protocol):
    """The trust question and its consequences. Methods may read files and are called in a thread."""

    def question(self) -> TrustQuestion | None:
        """The pending question; None if there is none."""
        ...

    def answer(self, choice: TrustChoice) -> str:
        """Store the answer. Returns a sentence for the user on failure, else an empty string."""
        ...

    def items(self) -> Sequence[TrustItem]:
        """Undecided items of a trusted project: settings that do more than restrict."""
        ...

    def accept(self, items: Sequence[TrustItem]) -> str:
        """Consent to these items. Returns as ``answer``."""
        ...

    def refuse(self, items: Sequence[TrustItem]) -> str:
        """Refuse these items until they change. Returns as ``answer``."""
        ...

    def postpone(self, items: Sequence[TrustItem]) -> None:
        """Refuse these items for this run only."""
        ...


FileName = Literal["user", "local"]
"""The user's own settings file, or the project's unshared one."""

Effect = Literal["now", "session"]
"""When a changed setting applies: at once, or when a session opens."""


class Setting(Struct, frozen=True):
    """One setting. ``text`` is its value as TOML, empty if unset; ``locked`` says why it can't be changed here, ``own``
    whether one of the two files sets it."""

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


class Written(Struct, frozen=True):
    """Result of a change: a sentence, and the effective value."""

    message: str
    name: str
    value: object = None


class SettingsPort(Protocol):
    @property
    def files(self) -> Mapping[FileName, str]: ...

    def read(self) -> Sequence[Setting]: ...

    def find(self, name: str) -> Setting | None:
        """A valid setting that the list lacks, such as one of a new provider."""
        ...

    def check(self, name: str, text: str, file: FileName) -> str:
        """Why this value would be refused; empty if it is valid."""
        ...

    def write(self, name: str, text: str, file: FileName) -> Written: ...
    def unset(self, name: str, file: FileName) -> Written: ...


class ShownRule(Struct, frozen=True):
    """A permission rule. ``grant`` is the id to revoke, empty for rules from files and flags; ``used`` counts its
    decisions, ``void`` says why it has no effect; ``expires`` is formatted for display. ``held``: an answer in the
    current session allowed it, and the session can revoke it."""

    effect: str
    rule: str
    origin: str
    used: str
    void: str = ""
    grant: str = ""
    held: bool = False


class Tried(Struct, frozen=True):
    """Recent commands that a rule would match: ``count`` of ``total``, commands that may write first."""

    count: int
    total: int
    commands: tuple[str, ...] = ()


class PermissionsPort(Protocol):
    """The permission rules of this folder."""

    def read(self, held: Sequence[Rule] = ()) -> Sequence[ShownRule]:
        """All rules; ``held`` are those that answers allowed in the session."""
        ...

    def try_rule(self, effect: str, rule: str) -> Tried:
        """Match a rule against recent commands, without running any."""
        ...

    def add(self, how: str, rule: str) -> str:
        """Add a rule: ``week`` and ``project`` allow for seven days or until revoked; ``ask`` and ``deny`` are written
        to the user's settings. Returns a sentence."""
        ...

    def revoke(self, grant: str) -> str: ...


class StoredSession(Struct, frozen=True):
    """A stored session. ``updated`` is Unix seconds, ``cost`` US dollars as text, empty if unknown; ``away`` says why
    it can't be continued here."""

    id: str
    title: str
    folder: str
    updated: float
    messages: int
    tokens: int
    cost: str = ""
    model: str = ""
    away: str = ""
    first: str = ""
    """First words of its first message."""
    branch: str = ""
    """Git branch when it was last opened."""
    size: int = 0
    """Size on disk in bytes."""
    parent: str = ""
    """Name of the session that it was forked from."""
    open_elsewhere: bool = False
    """Whether another swecli process has it open."""


class SessionsPort(Protocol):
    def read(self) -> Sequence[StoredSession]:
        """Sessions of this folder, then of other folders, newest first."""
        ...

    def preview(self, session: StoredSession) -> Sequence[DisplayBlock]:
        """Last messages of a session."""
        ...

    def search(self, words: str) -> Mapping[str, str]:
        """Sessions that contain all the words: id to a matching line."""
        ...

    def delete(self, session: StoredSession) -> str:
        """Delete a session that is not open. Returns a sentence for the user."""
        ...


class Backend:
    """The program behind the interface: everything read, opened or stored outside a session. This base class provides
    nothing; the program overrides its methods. Non-async methods may block on the disk and are called in threads.
    Failures raise ``ValueError`` with a sentence for the user."""

    first_prompt: str | None = None
    begins_with_sessions = False
    """Whether the program starts with the list of sessions."""
    of_all_folders = False
    """Whether that list starts with the sessions of all folders."""
    trust: TrustGate | None = None
    """The workspace's trust question, asked before reading any of it."""
    state: Path | None = None
    """Folder for this workspace's prompt history and drafts."""

    # --- sessions ---

    @property
    def resume_hint(self) -> str:
        """Command to continue this session, printed at exit; empty if it is not stored."""
        return "swecli -c"

    @property
    def kept(self) -> Kept:
        """What of this session is stored."""
        return "all"

    async def open_session(self) -> Session:
        """Open the initial session; awaited after the first frame.

        Raises:
            SessionNotOpened: there is none.
        """
        raise SessionNotOpened("There is no session to open")

    async def new_session(self) -> Session:
        """Open the session that replaces the current one on /clear. Raises as ``open_session``."""
        return await self.open_session()

    async def open_demo(self) -> Session:
        """Open the demonstration in place of the session. Raises as ``open_session``."""
        return await self.open_session()

    def stored_session(self, session_id: str, *, fork: bool = False) -> OpenSession:
        """Opener of a stored session, or of a copy with a new id. It raises as ``open_session``."""
        return self.open_session

    def sessions(self) -> SessionsPort | None:
        """The stored sessions; None if none are stored. The three ports are fetched on the event loop."""
        return None

    def greets(self) -> bool:
        """Whether a new session starts with the greeting rather than one line. Called on the event loop."""
        return False

    def earlier(self, session_id: str) -> Sequence[StoredSession]:
        """Other continuable sessions of this folder, newest first."""
        return ()

    def settings(self) -> SettingsPort:
        raise ValueError("No settings to change here; `swecli config` shows them")

    def permissions(self) -> PermissionsPort:
        raise ValueError("No stored rules here; `swecli permissions` shows a folder's rules")

    def add_folder(self, folder: Path) -> None:
        """Include this folder in sessions opened from now on. Called on the event loop."""

    # --- the prompt ---

    def commands(self) -> Sequence[SlashCommand]:
        return ()

    def files(self) -> Sequence[str]:
        """Paths that ``@`` offers, relative to the working directory."""
        return ()

    def branch(self) -> str:
        """Git branch, with ``*`` for uncommitted changes; empty outside a repository."""
        return ""

    # --- models and keys ---

    def models(self) -> Sequence[str]:
        """``provider/name`` of the models that /model offers."""
        return ()

    def providers(self) -> Sequence[tuple[str, str]]:
        """Providers that /login offers: name and short description."""
        return ()

    def no_provider(self, provider: str) -> str:
        """Why no key can be stored for this provider; empty if one can."""
        return ""

    def store_key(self, provider: str, key: str) -> tuple[str, str]:
        """Store a key. Returns a sentence for the user and the provider's default model, if any."""
        raise ValueError("Keys cannot be stored here; use swecli login")

    async def try_model(self, ref: str) -> tuple[bool, str]:
        """Send a model (``provider/name``) a short test request. Returns whether it answered, and a sentence for the
        user."""
        return False, f"{ref} cannot be asked here"

    def keep_model(self, ref: str) -> str:
        """Make a model the user's default. Returns a sentence that says where; empty if the choice is only for this
        session."""
        return ""

    # --- preferences ---

    def preferences(self) -> Preferences:
        return Preferences()

    def remember(self, key: str, value: str) -> str:
        """Write a setting (dotted key and value) to the user's file. Returns the file's path."""
        raise ValueError("settings cannot be changed here")
