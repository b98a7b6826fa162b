"""What the interface needs of the program besides the open session."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from msgspec import Struct

from swecli.tui.preferences import Preferences

if TYPE_CHECKING:
    from swecli.assembly.accounts import Accounts
    from swecli.assembly.permissions import FolderRules
    from swecli.assembly.session_list import SessionList
    from swecli.assembly.settings import SettingsFiles
    from swecli.assembly.succession import OpenSession, Succession
    from swecli.assembly.trust import WorkspaceTrust
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.session import Session
    from swecli.launch import LaunchOptions

OpenWith: TypeAlias = "Callable[[LaunchOptions], Awaitable[Session]]"

MAX_FILES = 100_000
"""Most files to offer as mentions."""
FILES_SECONDS = 3.0
"""Seconds to search the tree for them."""


def _absent(*_: object) -> NoReturn:
    raise ValueError("This program has only a session; nothing outside of it was read or changed")


class Program(Struct, frozen=True, kw_only=True):
    """Everything that is read, opened or stored outside of a session. Functions read anew, because the answer to the
    question about trust decides what counts; they may block on the disk and are called in threads. Failures raise
    ``ValueError`` with a sentence for the user, and ``StartError`` where a session doesn't open."""

    open: Succession
    """Opens the sessions of this run, one after another."""
    demo: OpenSession = _absent
    """Opens the demonstration in place of the session."""
    sessions: Callable[[], SessionList] | None = None
    """The stored sessions; None if none are stored. Called on the event loop."""
    settings: Callable[[], SettingsFiles] = _absent
    """Called on the event loop."""
    permissions: Callable[[], FolderRules] = _absent
    """Called on the event loop."""
    accounts: Callable[[], Accounts] = _absent
    """The user's keys at providers."""
    trust: WorkspaceTrust | None = None
    """The workspace's trust question, asked before reading any of it."""

    models: Callable[[], Sequence[str]] = tuple
    """``provider/name`` of the models that are known without asking a server."""
    try_model: Callable[[str], Awaitable[tuple[bool, str]]] = _absent
    """Sends a model (``provider/name``) a short test request. Returns whether it answered, and a sentence."""
    keep_model: Callable[[str], str] = _absent
    """Makes a model the user's default. Returns a sentence that says where; empty if the choice is only for this
    session."""

    preferences: Callable[[], Preferences] = Preferences
    remember: Callable[[str, str], str] = _absent
    """Writes a setting (dotted key and value) to the user's file. Returns the file's path."""

    commands: Callable[[], Sequence[SlashCommand]] = tuple
    files: Callable[[], Sequence[str]] = tuple
    """Paths that ``@`` offers, relative to the working directory."""
    branch: Callable[[], str] = str
    """Git branch, or the beginning of the commit without one; empty outside a repository."""

    first_prompt: str | None = None
    begins_with_sessions: bool = False
    """Whether the program starts with the list of sessions."""
    of_all_folders: bool = False
    """Whether that list starts with the sessions of all folders."""
    greets: bool = False
    """Whether a new session starts with the greeting rather than one line."""
    state: Path | None = None
    """Folder for this workspace's prompt history and drafts."""


def program_of(options: LaunchOptions, open_session: OpenWith) -> Program:
    """The program with the options of its start."""
    from swecli.assembly.succession import Succession, demo_options
    from swecli.assembly.trust import WorkspaceTrust
    from swecli.core.config.paths import user_paths, workspace_key
    from swecli.launch import fresh_start
    from swecli.tui.preferences import keep_model, read_preferences, remember

    trust, fresh = WorkspaceTrust(options), fresh_start(options)

    async def demo() -> Session:
        from swecli.core.protocol.commands import Submit

        wanted = await asyncio.to_thread(demo_options)
        session = await open_session(wanted)
        session.send(Submit(wanted.prompt))
        return session

    def sessions() -> SessionList:
        from swecli.assembly.session_list import SessionList

        return SessionList(fresh, dict(os.environ))

    def settings() -> SettingsFiles:
        from swecli.assembly.settings import SettingsFiles

        return SettingsFiles(trust.applied(fresh), dict(os.environ))

    def permissions() -> FolderRules:
        from swecli.assembly.permissions import FolderRules

        return FolderRules(trust.applied(fresh), dict(os.environ))

    def accounts() -> Accounts:
        from swecli.assembly.accounts import accounts_of
        from swecli.assembly.startup import startup_of

        return accounts_of(startup_of(options, dict(os.environ), with_flags=False))

    async def try_model(ref: str) -> tuple[bool, str]:
        from swecli.assembly import model_trial

        return await model_trial.try_model(trust.applied(options), ref)

    def commands() -> Sequence[SlashCommand]:
        from swecli.commands.registry import COMMANDS

        return COMMANDS

    goes_on = options.continue_newest or options.resume  # a choice in a continued session applies to that session only
    return Program(
        open=Succession(options, lambda wanted: open_session(trust.told(wanted))),
        demo=demo,
        sessions=sessions if options.store else None,
        settings=settings,
        permissions=permissions,
        accounts=accounts,
        trust=trust,
        models=lambda: _known_models(options),
        try_model=try_model,
        keep_model=lambda ref: "" if goes_on else keep_model(options, ref),
        preferences=lambda: read_preferences(trust.applied(options)),
        remember=remember,
        commands=commands,
        files=lambda: _files(options.cwd),
        branch=lambda: _branch(options.cwd),
        first_prompt=options.prompt or None,
        begins_with_sessions=options.pick_session,
        of_all_folders=options.all_folders,
        greets=options.script is None,
        state=user_paths(os.environ).state / "workspaces" / workspace_key(options.cwd) if options.store else None,
    )


def _known_models(options: LaunchOptions) -> Sequence[str]:
    """The requested model if its provider is named, and the default of each provider with a key."""
    from swecli.core.llm.providers import configured_providers

    if options.script is not None:
        return ()
    usual = [provider.default_model for provider in configured_providers(os.environ)]
    return tuple(dict.fromkeys(name for name in (options.model or "", *usual) if "/" in name))


def _files(folder: Path) -> Sequence[str]:
    """Files and folders that are neither ignored nor generated, as many as are found in time."""
    from swecli.core.workspace.walk import GENERATED, walk

    deadline = time.monotonic() + FILES_SECONDS
    paths: list[str] = []
    for entry in walk(
        folder,
        (folder,),
        stop=lambda: time.monotonic() > deadline,
        skip=lambda folder: folder.rpartition("/")[2] in GENERATED,
    ):
        if len(paths) >= MAX_FILES:
            break
        paths.append(f"{entry.path}/" if entry.is_dir else entry.path)
    return paths


def _branch(folder: Path) -> str:
    from swecli.core.git import git_facts

    facts = git_facts(folder)
    return "" if facts is None else facts.branch or (facts.commit or "")[:8]
