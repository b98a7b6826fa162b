"""What the interface asks of the program around it, and the values that go between them."""

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


OpenSession: TypeAlias = "Callable[[], Awaitable[Session]]"


class SessionNotOpened(Exception):
    """The session can't be opened; the message is for the user, ``code`` the exit code."""

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
    """Everything has the value that it has without any settings."""

    theme: str = "auto"
    """A theme's name, the name of a pair of themes, or "auto"."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Keys of the actions that were changed."""
    theme_folders: tuple[Path, ...] = ()
    """Folders with theme files; of two themes with the same name the one of the earlier folder counts."""
    reduced_motion: bool = False
    """Nothing turns or moves by itself."""
    glyphs: Glyphs = "auto"
    density: Density = "usual"
    diff: DiffForm = "auto"
    editing: Editing = "usual"
    large_message: float = 0.25
    """Share of the window above which a message is asked about before it is sent."""
    forecast: bool = True
    """Whether the next request is foretold while a message is typed."""
    notify: Notify = "auto"
    mouse: bool = True
    title: bool = True
    progress: Progress = "auto"
    status_line: str | None = None
    """A shell command whose output replaces the status bar."""
    status_line_timeout: float = 2.0
    """Seconds."""


TrustChoice = Literal["trust", "session", "decline", "later"]
"""``later`` counts as no for this run and asks again at the next start."""


class TrustQuestion(Struct, frozen=True):
    """``folder`` is what trust would be about, ``names`` what would be read of it. Both may hold anything."""

    folder: str
    names: tuple[str, ...]


class TrustItem(Struct, frozen=True):
    """Something of the project that needs consent of its own, a setting, a hook or an MCP ``server`` (its name);
    ``digest`` names exactly this value."""

    key: str
    value: str
    origin: str
    digest: str
    server: str = ""

    @property
    def wish(self) -> str:
        """What it wants, going on after "to". May hold anything."""
        if self.server:
            return f"start the MCP server {self.server}"
        if self.key.startswith("hooks.") and self.key[6:7].isupper():
            return f"run this program at {self.key[6:]}"
        return f"set {self.key}"


class TrustGate(Protocol):
    """The question and its consequences. Every method may read files and is called in a thread."""

    def question(self) -> TrustQuestion | None:
        """None where there is nothing to ask."""
        ...

    def answer(self, choice: TrustChoice) -> str:
        """Take the answer. Returns a sentence for the user if something went wrong, else nothing."""
        ...

    def items(self) -> Sequence[TrustItem]:
        """What the settings of a trusted project want beyond tightening, and the user has not decided about."""
        ...

    def accept(self, items: Sequence[TrustItem]) -> str:
        """Consent to these. Returns as ``answer``."""
        ...

    def refuse(self, items: Sequence[TrustItem]) -> str:
        """Do not ask about these again as long as they stay the same. Returns as ``answer``."""
        ...

    def postpone(self, items: Sequence[TrustItem]) -> None:
        """These count as no for this run."""
        ...


FileName = Literal["user", "local"]
"""The user's own settings file, or the one of the project that is not shared."""

Effect = Literal["now", "session"]
"""When a changed setting counts: at once, or when a session is opened."""


class Setting(Struct, frozen=True):
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


class Written(Struct, frozen=True):
    """What became of a change: a sentence, and the value that is in force now."""

    message: str
    name: str
    value: object = None


class SettingsPort(Protocol):
    @property
    def files(self) -> Mapping[FileName, str]: ...

    def read(self) -> Sequence[Setting]: ...

    def find(self, name: str) -> Setting | None:
        """A setting that is not in the list although it can be set, such as one of a new provider."""
        ...

    def check(self, name: str, text: str, file: FileName) -> str:
        """Why this value would be refused; empty where it would not."""
        ...

    def write(self, name: str, text: str, file: FileName) -> Written: ...
    def unset(self, name: str, file: FileName) -> Written: ...


class ShownRule(Struct, frozen=True):
    """A permission rule. ``grant`` is the id of what can be revoked, empty for rules of files and flags; ``used`` says
    how often it decided, ``void`` why it has no effect; ``expires`` is for people. ``held``: an answer allowed it in
    the session that runs, which can revoke it."""

    effect: str
    rule: str
    origin: str
    used: str
    void: str = ""
    grant: str = ""
    held: bool = False


class Tried(Struct, frozen=True):
    """What a rule would have decided about: ``count`` of the ``total`` newest commands, those that may write first."""

    count: int
    total: int
    commands: tuple[str, ...] = ()


class PermissionsPort(Protocol):
    """The permission rules of this folder."""

    def read(self, held: Sequence[Rule] = ()) -> Sequence[ShownRule]:
        """Every rule that holds; ``held`` are those that answers allowed in the session."""
        ...

    def try_rule(self, effect: str, rule: str) -> Tried:
        """Which of the newest commands a rule speaks about. Nothing is run."""
        ...

    def add(self, how: str, rule: str) -> str:
        """Add a rule: ``week`` and ``project`` allow for seven days or until revoked, ``ask`` and ``deny`` go into the
        user's settings. Returns a sentence."""
        ...

    def revoke(self, grant: str) -> str: ...


class StoredSession(Struct, frozen=True):
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
    first: str = ""
    """The beginning of its first message."""
    branch: str = ""
    """The git branch when it was opened last."""
    size: int = 0
    """Bytes that it takes."""
    parent: str = ""
    """What the session is called that it was forked from."""
    open_elsewhere: bool = False
    """Whether another swecli has it open now."""


class SessionsPort(Protocol):
    def read(self) -> Sequence[StoredSession]:
        """Sessions of this folder, newest first, then those of others."""
        ...

    def preview(self, session: StoredSession) -> Sequence[DisplayBlock]:
        """The last messages of a session."""
        ...

    def search(self, words: str) -> Mapping[str, str]:
        """Sessions whose content has all the words, by id, each with such a place on one line."""
        ...


class Backend:
    """The program behind the interface: everything that is read, opened or stored outside of a session. This class
    offers nothing; the program's own overrides what it offers. Methods that are not awaited may wait for the disk and
    are called in threads. Where something can't be done they raise ``ValueError`` with a sentence for the user."""

    first_prompt: str | None = None
    begins_with_sessions = False
    """Whether the list of sessions is the first thing to be seen."""
    of_all_folders = False
    """Whether that list begins with those of all folders."""
    trust: TrustGate | None = None
    """Asks whether the workspace is trusted, before anything of it is read."""
    state: Path | None = None
    """Folder for prompt history and drafts of this workspace."""
    resume_hint = "swecli -c"
    """The command that continues this session, printed at the end."""

    # --- sessions ---

    async def open_session(self) -> Session:
        """The session of the start; awaited after the first frame.

        Raises:
            SessionNotOpened: there is none.
        """
        raise SessionNotOpened("There is no session to open")

    async def new_session(self) -> Session:
        """What /clear opens in place of the newest session. Raises as ``open_session``."""
        return await self.open_session()

    async def open_demo(self) -> Session:
        """The demonstration in place of the session. Raises as ``open_session``."""
        return await self.open_session()

    def stored_session(self, session_id: str, *, fork: bool = False) -> OpenSession:
        """One of ``sessions``, or a copy of it under an id of its own. Opening it raises as ``open_session``."""
        return self.open_session

    def sessions(self) -> SessionsPort | None:
        """The stored sessions; None where nothing is stored. Called on the event loop, as are the other two ports."""
        return None

    def greets(self) -> bool:
        """Whether a new session begins with the first screen, and not with a line. Called on the event loop."""
        return False

    def earlier(self, session_id: str) -> Sequence[StoredSession]:
        """Other sessions of this folder that can be continued, newest first."""
        return ()

    def settings(self) -> SettingsPort:
        raise ValueError("No settings to change here; `swecli config` shows them")

    def permissions(self) -> PermissionsPort:
        raise ValueError("No stored rules here; `swecli permissions` shows a folder's rules")

    def add_folder(self, folder: Path) -> None:
        """Sessions that are opened from now on work in this folder too. Called on the event loop."""

    # --- the prompt ---

    def commands(self) -> Sequence[SlashCommand]:
        return ()

    def files(self) -> Sequence[str]:
        """Paths that ``@`` offers, relative to the working directory."""
        return ()

    def branch(self) -> str:
        """The git branch, with a ``*`` when there are uncommitted changes; empty outside of a repository."""
        return ""

    # --- models and keys ---

    def models(self) -> Sequence[str]:
        """``provider/name`` of the models that /model offers."""
        return ()

    def providers(self) -> Sequence[tuple[str, str]]:
        """Providers that /login offers: name, and a word on each."""
        return ()

    def no_provider(self, provider: str) -> str:
        """Why no key can be stored for a provider of this name; empty where it can."""
        return ""

    def store_key(self, provider: str, key: str) -> tuple[str, str]:
        """A sentence for the user and the provider's usual model, or nothing."""
        raise ValueError("Keys cannot be stored here; use swecli login")

    async def try_model(self, ref: str) -> tuple[bool, str]:
        """Asks a model (``provider/name``) something short: whether it answers, and a sentence for the user."""
        return False, f"{ref} cannot be asked here"

    def keep_model(self, ref: str) -> str:
        """Makes a model the user's default. Returns a sentence that says where; empty where the model is only for this
        session."""
        return ""

    # --- preferences ---

    def preferences(self) -> Preferences:
        return Preferences()

    def remember(self, key: str, value: str) -> str:
        """Writes a setting (a dotted key and its value) to the user's file. Returns where it was written."""
        raise ValueError("settings cannot be changed here")
