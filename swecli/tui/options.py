"""What the composition root hands to the interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from swecli.tui.screens.ports import ScreenPorts

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.tui.session_link import OpenSession
    from swecli.tui.trust_gate import TrustGate


Notify = Literal["auto", "bell", "osc9", "osc777", "off"]
Density = Literal["short", "usual", "full"]
DiffForm = Literal["auto", "unified", "split"]
Progress = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class Preferences:
    """Everything has the value that it has without any settings."""

    theme: str = "auto"
    """A theme's name, the name of a pair of themes, or "auto"."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Keys of the actions that were changed."""
    theme_folders: tuple[Path, ...] = ()
    """Folders with theme files; of two themes with the same name the one of the earlier folder counts."""
    reduced_motion: bool = False
    """Nothing turns or moves by itself."""
    density: Density = "usual"
    diff: DiffForm = "auto"
    notify: Notify = "auto"
    mouse: bool = True
    title: bool = True
    progress: Progress = "auto"
    status_line: str | None = None
    """A shell command whose output replaces the status bar."""
    status_line_timeout: float = 2.0
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Options:
    """``open_session`` is awaited after the first frame. ``new_session`` is what /clear opens in its place;
    without it /clear is refused. Callables are called in threads, besides those that are awaited."""

    open_session: OpenSession
    new_session: OpenSession | None = None
    add_folder: Callable[[Path], None] | None = None
    """Sessions that are opened from now on work in this folder too."""
    first_prompt: str | None = None
    commands: Callable[[], Sequence[SlashCommand]] = lambda: ()
    files: Callable[[], Sequence[str]] = lambda: ()
    """Paths that ``@`` offers, relative to the working directory."""
    branch: Callable[[], str] = lambda: ""
    """The git branch, with a ``*`` when there are uncommitted changes; empty outside of a repository."""
    models: Callable[[], Sequence[str]] = lambda: ()
    """``provider/name`` of the models that /model offers."""
    providers: Callable[[], Sequence[tuple[str, str]]] = lambda: ()
    """Providers that /login offers: name, and a word on each."""
    no_provider: Callable[[str], str] = lambda _: ""
    """Why no key can be stored for a provider of this name; empty where it can."""
    store_key: Callable[[str, str], tuple[str, str]] | None = None
    """Stores a key for a provider. Returns a sentence for the user and the provider's usual model, or nothing."""
    try_model: Callable[[str], Awaitable[tuple[bool, str]]] | None = None
    """Asks a model (``provider/name``) something short: whether it answers, and a sentence for the user."""
    demo: OpenSession | None = None
    """Opens the demonstration in place of the session."""
    preferences: Callable[[], Preferences] = Preferences
    """Reads what the user has set for the interface."""
    remember: Callable[[str, str], str] | None = None
    """Writes a setting (a dotted key and its value) to the user's file. Returns where it was written; a ValueError
    says in a sentence why it was not."""
    keep_model: Callable[[str], str] | None = None
    """Makes a model (``provider/name``) the user's default. Returns a sentence that says where; a ValueError says in a
    sentence why it was not done."""
    screens: ScreenPorts = ScreenPorts()
    """What the screens show and change."""
    trust: TrustGate | None = None
    """Asks whether the workspace is trusted, before anything of it is read."""
    state: Path | None = None
    """Folder for prompt history and drafts of this workspace."""
    resume_hint: str = "swecli -c"
    """The command that continues this session, printed at the end."""
