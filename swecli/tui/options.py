"""What the composition root hands to the interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.tui.preferences import Preferences
from swecli.tui.screens.ports import ScreenPorts

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.tui.link import OpenSession
    from swecli.tui.trust_gate import TrustGate


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
