"""Opening a session for the front-end that was chosen."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.command_line.succession import Succession
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:  # nothing that takes long is loaded before the first paint
    from swecli.assembly.accounts import Accounts
    from swecli.assembly.workspace_trust import WorkspaceTrust
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.view import SessionPort
    from swecli.tui.boot import Terminal
    from swecli.tui.link import OpenSession
    from swecli.tui.preferences import Preferences
    from swecli.tui.screens.ports import PermissionsPort, ScreenPorts, SessionsPort, SettingsPort

MAX_FILES = 20_000
"""Files that are offered as mentions."""
FILES_SECONDS = 3.0
"""How long the tree is walked for them."""


def run_headless(options: LaunchOptions) -> int:
    """The one-shot: a session, its events as text or JSON, and an exit status."""
    return asyncio.run(_headless(options))


async def _headless(options: LaunchOptions) -> int:
    from swecli.app import open_session
    from swecli.headless.front_end import run, start_failed

    try:
        session = await open_session(options)
    except StartError as error:
        start_failed(options, error)
        raise
    return await run(session, options)


def run_plain(options: LaunchOptions) -> int:
    """Lines out, lines in."""
    from swecli.app import open_session
    from swecli.plain.front_end import LinearFrontEnd

    async def opened(wanted: LaunchOptions) -> SessionPort:
        session = await open_session(wanted)
        if wanted.banner:
            session.notice(wanted.banner)
        return session

    sessions = Succession(options, opened)

    async def run() -> int:
        return await LinearFrontEnd(sessions.first, sessions.next, first_prompt=options.prompt).run()

    from swecli.command_line.printing import print_text

    code = asyncio.run(run())
    if sessions.spoke:
        print_text(f"Continue with: {resume_hint(options)}\n")
    return code


def run_interactive(options: LaunchOptions, terminal: Terminal | None = None) -> int:
    """The interface in the terminal, which may be taken already."""
    from swecli.assembly.workspace_trust import WorkspaceTrust
    from swecli.tui.launch import run
    from swecli.tui.options import Options

    trust = WorkspaceTrust(options)
    sessions = Succession(options, lambda wanted: open_for_screen(trust.applied(wanted)))
    screen = Options(
        sessions.first,
        first_prompt=options.prompt or None,
        new_session=sessions.next,
        add_folder=sessions.add_folder,
        commands=_commands,
        files=lambda: mentions(options.cwd),
        branch=lambda: branch(options.cwd),
        models=lambda: models(options),
        providers=lambda: providers(options),
        no_provider=lambda provider: no_provider(options, provider),
        store_key=lambda provider, key: store_key(options, provider, key),
        try_model=lambda ref: trial(trust.applied(options), ref),
        demo=open_demo,
        preferences=lambda: _preferences(trust.applied(options)),
        remember=_remember,
        # What is picked for a session that goes on is for that session.
        keep_model=None if options.continue_newest or options.resume else lambda ref: _keep_model(options, ref),
        screens=screen_ports(options, trust, sessions.open),
        trust=trust,
        state=state_folder(options),
        resume_hint=resume_hint(options),
    )
    return run(screen, terminal)


def _preferences(options: LaunchOptions) -> Preferences:
    from swecli.command_line.interface_settings import preferences

    return preferences(options)


def _remember(key: str, value: str) -> str:
    from swecli.command_line.interface_settings import remember

    return remember(key, value)


def screen_ports(
    options: LaunchOptions, trust: WorkspaceTrust, opened: Callable[[LaunchOptions], Awaitable[SessionPort]]
) -> ScreenPorts:
    """What the screens show and change. Each is made when it is used first: none of it is needed for the start."""
    from swecli.tui.screens.ports import ScreenPorts

    fresh = replace(options, prompt="", resume=None, continue_newest=False, pick_session=False)
    # Flags speak of the session of this start; one that is gone to later has its own model and its own address.
    other = fresh if options.pick_session else replace(fresh, model=None, base_url=None)

    def opener(session_id: str) -> OpenSession:
        return lambda: opened(replace(other, resume=session_id))

    def settings() -> SettingsPort:
        from swecli.assembly.settings_files import SettingsFiles

        return SettingsFiles(trust.applied(fresh), dict(os.environ))

    def permissions() -> PermissionsPort:
        from swecli.assembly.permission_rules import PermissionRules

        return PermissionRules(trust.applied(fresh), dict(os.environ))

    def sessions() -> SessionsPort:
        from swecli.assembly.session_list import SessionList

        return SessionList(fresh, dict(os.environ), opener)

    return ScreenPorts(
        settings, permissions, sessions if options.store else None, "sessions" if options.pick_session else None
    )


def _keep_model(options: LaunchOptions, ref: str) -> str:
    from swecli.command_line.interface_settings import keep_model

    return keep_model(options, ref)


async def open_for_screen(options: LaunchOptions) -> SessionPort:
    """A session for the interface, which tells of a failed start in its own way."""
    from swecli.tui.link import SessionNotOpened
    from swecli.tui.loading import load

    await asyncio.to_thread(load, ("swecli.app",))  # keys are answered meanwhile
    from swecli.app import open_session

    try:
        session = await open_session(options)
    except StartError as error:
        raise SessionNotOpened(str(error), int(error.exit_code)) from error
    if options.banner:
        session.notice(options.banner)
    return session


async def trial(options: LaunchOptions, ref: str) -> tuple[bool, str]:
    """Whether a model answers, and a sentence for the user."""
    from swecli.assembly.trial import try_model

    return await try_model(options, ref)


async def open_demo() -> SessionPort:
    """The demonstration as a session for the interface, with its task already asked for."""
    from swecli.command_line.subcommands import demo_options
    from swecli.core.protocol.commands import Submit
    from swecli.tui.link import SessionNotOpened

    try:
        options = await asyncio.to_thread(demo_options)
    except StartError as error:
        raise SessionNotOpened(str(error), int(error.exit_code)) from error
    session = await open_for_screen(options)
    session.send(Submit(options.prompt))
    return session


def _commands() -> Sequence[SlashCommand]:
    from swecli.commands.registry import COMMANDS

    return COMMANDS


def mentions(folder: Path) -> Sequence[str]:
    """Files and folders that ``@`` offers: what is not ignored, as far as it is found in time."""
    from swecli.core.workspace.walk import walk

    deadline = time.monotonic() + FILES_SECONDS
    found: list[str] = []
    for entry in walk(folder, (folder,), stop=lambda: time.monotonic() > deadline):
        if len(found) >= MAX_FILES:
            break
        found.append(f"{entry.path}/" if entry.is_dir else entry.path)
    return found


def branch(folder: Path) -> str:
    """The git branch, the beginning of the commit where there is none, or nothing."""
    from swecli.core.workspace.git_facts import git_facts

    facts = git_facts(folder)
    return "" if facts is None else facts.branch or (facts.commit or "")[:8]


def models(options: LaunchOptions) -> Sequence[str]:
    """Models that can be chosen at once: the one asked for, and the usual one of each provider with a key."""
    from swecli.core.llm.providers import configured_providers

    if options.script is not None:
        return ()
    usual = [provider.default_model for provider in configured_providers(os.environ)]
    return tuple(dict.fromkeys(name for name in (options.model or "", *usual) if name))


def providers(options: LaunchOptions) -> Sequence[tuple[str, str]]:
    """The providers that a key can be stored for, each with its address and what is known of its key."""
    states = {"environment": "key in the environment", "stored": "key stored", "not needed": "needs no key"}
    return [
        (account.provider.name, f"{account.address} · {states.get(account.key, 'no key yet')}")
        for account in _accounts(options).all()
        if account.provider.api_key_env
    ]


def no_provider(options: LaunchOptions, provider: str) -> str:
    """Why no key can be stored for a provider of this name; empty where it can."""
    from swecli.assembly.accounts import AccountError

    try:
        _accounts(options).find(provider)
    except (AccountError, StartError) as error:
        return str(error)
    return ""


def store_key(options: LaunchOptions, provider: str, key: str) -> tuple[str, str]:
    """Store a key. Returns a sentence for the user, and the provider's usual model where it has one.

    Raises:
        ValueError: it was not stored; one sentence.
    """
    from swecli.core.llm.providers import find_provider

    accounts = _accounts(options)
    told = accounts.store(provider, key)
    found = find_provider(provider, accounts.custom)
    return told, f"{found.name}/{found.default_model}" if found is not None and found.default_model else ""


def _accounts(options: LaunchOptions) -> Accounts:
    from swecli.assembly.startup import startup_of
    from swecli.command_line.model_commands import accounts_of

    return accounts_of(startup_of(options, dict(os.environ), with_flags=False))


def state_folder(options: LaunchOptions) -> Path | None:
    """Where the prompt's history of this folder is kept; None where nothing is to be kept."""
    from swecli.core.config.paths import user_paths, workspace_key

    if not options.store:
        return None
    return user_paths(os.environ).state / "workspaces" / workspace_key(options.cwd)


def resume_hint(options: LaunchOptions) -> str:
    """The command that goes on from here."""
    if options.script is not None:
        return "swecli demo"
    place = "" if options.cwd == Path.cwd() else f" -C {shlex.quote(str(options.cwd))}"
    if options.settings is not None:  # its model may be of a provider that only they know
        place += f" --settings {shlex.quote(str(options.settings))}"
    return f"swecli{place} -c" if options.store else f"swecli{place}"
