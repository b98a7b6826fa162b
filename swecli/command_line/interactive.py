"""Interactive sessions, on the screen or line by line, and the program's services for the screen."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from msgspec.structs import replace

from swecli.assembly.trust import WorkspaceTrust
from swecli.launch import LaunchOptions, StartError, fresh_start
from swecli.safe_text import safe_line, sanitise
from swecli.tui.backend import (
    Backend,
    OpenSession,
    Preferences,
    SessionNotOpened,
    StoredSession,
    TrustChoice,
    TrustItem,
)

if TYPE_CHECKING:
    from swecli.assembly.accounts import Accounts
    from swecli.assembly.permissions import PermissionRules
    from swecli.assembly.session_list import SessionList
    from swecli.assembly.settings import SettingsFiles
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.session import Session
    from swecli.core.llm.types import ModelInfo
    from swecli.core.protocol.result import Kept
    from swecli.tui.boot import Terminal

Said = Literal["yes", "no", "single", "later"]
_TRUST: dict[str, TrustChoice] = {"y": "trust", "yes": "trust", "s": "session", "n": "decline", "no": "decline"}
_SAID: dict[str, Said] = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "o": "single"}


def asked(options: LaunchOptions, source: TextIO, target: TextIO) -> LaunchOptions:
    """Ask all questions that precede reading the folder. Returns the options with the answers."""
    options = replace(options, asked=options.trust is None)
    gate = WorkspaceTrust(options)

    def say(*lines: str) -> None:
        target.write("".join(f"{sanitise(line)}\n" for line in lines))
        target.flush()

    question = gate.question()
    if question is not None:
        names = [f"  {safe_line(name)}" for name in question.names]
        say(
            f"Do you trust {safe_line(question.folder)}? It contains files that would change how swecli works:",
            *names,
            "These files have no effect yet. Answer y yes, s only this time, n no, never; anything else means not now.",
        )
        choice = _TRUST.get(_line(source), "later")
        if told := gate.answer(choice):
            say(told)
        if choice not in ("trust", "session"):
            return gate.told(options)
    for told in _items(gate, gate.items(), source, say):
        say(told)
    return gate.told(options)


def _items(gate: WorkspaceTrust, items: Sequence[TrustItem], source: TextIO, say: Callable[..., None]) -> list[str]:
    """Ask about several items at once, then, if requested, about each."""
    if len(items) > 1:
        say(f"Allow this project to do these {len(items)} things?", *(_shown(item) for item in items))
        say("Answer y for all of them, o for one by one, n for none; anything else means not now.")
        every = _SAID.get(_line(source), "later")
        if every != "single":
            return list(filter(None, [_keep(gate, every, items)]))
    told: list[str] = []
    for item in items:
        say("Allow this project to do this?", _shown(item), "Answer y yes, n no; anything else means not now.")
        told.append(_keep(gate, _SAID.get(_line(source), "later"), [item]))
    return list(filter(None, told))


def _shown(item: TrustItem) -> str:
    return f"- {safe_line(item.wish)}: {safe_line(item.value)} ({safe_line(item.origin)})"


def _keep(gate: WorkspaceTrust, said: Said, items: Sequence[TrustItem]) -> str:
    match said:
        case "yes":
            return gate.accept(items)
        case "no":
            return gate.refuse(items)
        case _:
            gate.postpone(items)
            return ""


def _line(source: TextIO) -> str:
    """The next answer; empty at the end of the input."""
    return source.readline().strip().lower()


class Succession:
    """Opens sessions with ``open_session`` and remembers the newest. ``options`` are those of the start."""

    def __init__(self, options: LaunchOptions, open_session: Callable[[LaunchOptions], Awaitable[Session]]) -> None:
        self._options = options
        self._open = open_session
        self._last: Session | None = None
        self._spoke = False
        self._added: tuple[Path, ...] = ()

    def add_folder(self, folder: Path) -> None:
        self._added = (*self._added, folder)

    @property
    def spoke(self) -> bool:
        """Whether there was a conversation to continue."""
        return self._spoke or (self._last is not None and self._last.view.totals.turns > 0)

    @property
    def resume_hint(self) -> str:
        """Command to continue the newest session; empty if it is not stored."""
        return "" if self.kept == "nothing" and self._options.script is None else resume_hint(self._options)

    @property
    def kept(self) -> Kept:
        """What of the newest session is stored."""
        return "all" if self._last is None else self._last.kept

    async def open(self, options: LaunchOptions) -> Session:
        """Open the session of the options.

        Raises:
            StartError: it can't start.
        """
        session = await self._open(replace(options, add_dirs=(*options.add_dirs, *self._added)))
        self._spoke = self.spoke
        self._last = session
        return session

    async def fork(self, options: LaunchOptions) -> Session:
        """A copy of the session to continue, in the mode of the newest."""
        mode = options.mode if self._last is None else self._last.view.mode
        return await self.open(replace(options, fork=True, mode=mode))

    async def first(self) -> Session:
        return await self.open(self._options)

    async def next(self) -> Session:
        """A new session in place of the newest, with its model, effort and mode, but without the first message of the
        start and without continuing another session."""
        fresh = fresh_start(self._options)
        if self._last is None:
            return await self.open(fresh)
        view = self._last.view
        model, effort = view.model, view.effort
        fresh = replace(fresh, mode=view.mode)
        if model is None:
            return await self.open(fresh)
        if view.replaced:
            effort = view.own_effort
            session = await self.open(replace(fresh, model=view.replaced))
        else:
            address = _kept(self._options.base_url, model)
            session = await self.open(replace(fresh, model=model.ref, address=model.address, base_url=address))
        if session.view.effort != effort:
            from swecli.core.protocol.commands import SetEffort

            session.send(SetEffort(effort))
        return session


def _kept(given: str | None, model: ModelInfo) -> str | None:
    """``--base-url``, if it is the model's address: it may include a password, which no session stores."""
    from swecli.core.llm.addresses import normalise, origin_of

    same = given and model.address and origin_of(normalise(given, "openai-chat")) == origin_of(model.address)
    return given if same else None


def resume_hint(options: LaunchOptions) -> str:
    """Command to continue a session of these options; empty if they store none."""
    if options.script is not None:
        return "swecli demo"
    place = "" if options.cwd == Path.cwd() else f" -C {shlex.quote(str(options.cwd))}"
    if options.worktree:  # its folder may be removed, and is created again
        from swecli.core.worktrees import repository_of_tree

        home = repository_of_tree(options.cwd)
        outside = home is not None and not Path.cwd().is_relative_to(home)
        place = f"{f' -C {shlex.quote(str(home))}' if outside else ''} -w {options.worktree}"
    if options.settings is not None:  # they may define its model's provider
        place += f" --settings {shlex.quote(str(options.settings))}"
    return f"swecli{place} -c" if options.store else ""


def run_plain(options: LaunchOptions) -> int:
    from swecli.command_line.standard_streams import is_terminal

    if is_terminal(sys.stdin):
        options = asked(options, sys.stdin, sys.stdout)
    from swecli.app import open_session
    from swecli.plain.front_end import LinearFrontEnd

    async def opened(wanted: LaunchOptions) -> Session:
        session = await open_session(wanted)
        if wanted.banner:
            session.notice(wanted.banner)
        return session

    sessions = Succession(options, opened)

    def fork(session_id: str) -> OpenSession:
        fresh = replace(options, prompt="", continue_newest=False, model=None, base_url=None)
        return lambda: sessions.fork(replace(fresh, resume=session_id))

    import asyncio

    from swecli.steady_clock import keep_steady

    async def run() -> int:
        keep_steady(asyncio.get_running_loop())
        forks = fork if options.store else None
        front_end = LinearFrontEnd(sessions.first, sessions.next, fork_session=forks, first_prompt=options.prompt)
        return await front_end.run()

    from swecli.command_line.standard_streams import print_text

    code = asyncio.run(run())
    if sessions.spoke:
        from swecli.tui.launch import way_back

        print_text(f"{way_back(sessions.resume_hint, sessions.kept)}\n")
    return code


def run_interactive(options: LaunchOptions, terminal: Terminal | None = None) -> int:
    """The interface in the terminal, which it may already use."""
    from swecli.tui.launch import run

    return run(Program(options), terminal)


MAX_FILES = 100_000
"""Most files to offer as mentions."""
FILES_SECONDS = 3.0
"""Seconds to search the tree for them."""


class Program(Backend):
    """The program's services for the interface: sessions with the options of the start, and everything around them."""

    def __init__(self, options: LaunchOptions) -> None:
        from swecli.core.config.paths import user_paths, workspace_key

        self._options = options
        self._trust = WorkspaceTrust(options)
        self._sessions = Succession(options, lambda wanted: open_for_screen(self._trust.told(wanted)))
        self._fresh = fresh_start(options)
        self.first_prompt = options.prompt or None
        self.begins_with_sessions = options.pick_session
        self._forks_picked = options.fork and options.pick_session
        """Whether to copy the session that is picked first."""
        self.of_all_folders = options.all_folders
        self.trust = self._trust
        if options.store:
            self.state = user_paths(os.environ).state / "workspaces" / workspace_key(options.cwd)

    # --- sessions ---

    @property
    def resume_hint(self) -> str:
        return self._sessions.resume_hint

    @property
    def kept(self) -> Kept:
        return self._sessions.kept

    async def open_session(self) -> Session:
        return await self._sessions.first()

    async def new_session(self) -> Session:
        return await self._sessions.next()

    async def open_demo(self) -> Session:
        from swecli.core.protocol.commands import Submit

        try:
            options = await asyncio.to_thread(demo_options)
        except StartError as error:
            raise SessionNotOpened(str(error), int(error.exit_code)) from error
        session = await open_for_screen(options)
        session.send(Submit(options.prompt))
        return session

    def sessions(self) -> SessionList | None:
        from swecli.assembly.session_list import SessionList

        return SessionList(self._fresh, dict(os.environ)) if self._options.store else None

    def stored_session(self, session_id: str, *, fork: bool = False) -> OpenSession:
        # Flags apply to the session of this start; a later one has its own model and its own address.
        other = self._fresh if self._options.pick_session else replace(self._fresh, model=None, base_url=None)

        def opened() -> Awaitable[Session]:
            copies, self._forks_picked = self._forks_picked, False
            wanted = replace(other, resume=session_id, fork=copies)
            return self._sessions.fork(wanted) if fork else self._sessions.open(wanted)

        return opened

    def greets(self) -> bool:
        return self._options.script is None

    def earlier(self, session_id: str) -> Sequence[StoredSession]:
        sessions = self.sessions()
        return () if sessions is None else [one for one in sessions.here() if one.id != session_id and one.messages]

    def settings(self) -> SettingsFiles:
        from swecli.assembly.settings import SettingsFiles

        return SettingsFiles(self._trust.applied(self._fresh), dict(os.environ))

    def permissions(self) -> PermissionRules:
        from swecli.assembly.permissions import PermissionRules

        return PermissionRules(self._trust.applied(self._fresh), dict(os.environ))

    def add_folder(self, folder: Path) -> None:
        self._sessions.add_folder(folder)

    # --- the prompt ---

    def commands(self) -> Sequence[SlashCommand]:
        from swecli.commands.registry import COMMANDS

        return COMMANDS

    def files(self) -> Sequence[str]:
        """Files and folders that are neither ignored nor generated, as many as are found in time."""
        from swecli.core.workspace.walk import GENERATED, walk

        deadline = time.monotonic() + FILES_SECONDS
        paths: list[str] = []
        for entry in walk(
            self._options.cwd,
            (self._options.cwd,),
            stop=lambda: time.monotonic() > deadline,
            skip=lambda folder: folder.rpartition("/")[2] in GENERATED,
        ):
            if len(paths) >= MAX_FILES:
                break
            paths.append(f"{entry.path}/" if entry.is_dir else entry.path)
        return paths

    def branch(self) -> str:
        """The git branch, the beginning of the commit without one, or an empty string."""
        from swecli.core.git import git_facts

        facts = git_facts(self._options.cwd)
        return "" if facts is None else facts.branch or (facts.commit or "")[:8]

    # --- models and keys ---

    def models(self) -> Sequence[str]:
        """The requested model if its provider is named, and the default of each provider with a key."""
        from swecli.core.llm.providers import configured_providers

        if self._options.script is not None:
            return ()
        usual = [provider.default_model for provider in configured_providers(os.environ)]
        return tuple(dict.fromkeys(name for name in (self._options.model or "", *usual) if "/" in name))

    def providers(self) -> Sequence[tuple[str, str]]:
        """Providers that may need a key, each with its address and the state of its key; the user's own servers come
        first."""
        from swecli.core.llm.addresses import without_password

        states = {"environment": "key in the environment", "stored": "key stored", "not needed": "key optional"}
        return [
            (account.provider.name, f"{without_password(account.address)} · {states.get(account.key, 'no key yet')}")
            for account in sorted(self._accounts().all(), key=lambda account: not account.elsewhere)
            if account.provider.api_key_env
        ]

    def no_provider(self, provider: str) -> str:
        from swecli.assembly.accounts import AccountError

        try:
            self._accounts().find(provider)
        except (AccountError, StartError) as error:
            return str(error)
        return ""

    def store_key(self, provider: str, key: str) -> tuple[str, str]:
        accounts = self._accounts()
        return accounts.store(provider, key), accounts.default_of(provider)

    def _accounts(self) -> Accounts:
        from swecli.assembly.startup import startup_of
        from swecli.command_line.models import accounts_of

        return accounts_of(startup_of(self._options, dict(os.environ), with_flags=False))

    async def try_model(self, ref: str) -> tuple[bool, str]:
        from swecli.assembly.models import try_model

        return await try_model(self._trust.applied(self._options), ref)

    def keep_model(self, ref: str) -> str:
        from swecli.command_line.preferences import keep_model

        if self._options.continue_newest or self._options.resume:
            return ""  # a choice in a continued session applies to that session only
        return keep_model(self._options, ref)

    # --- preferences ---

    def preferences(self) -> Preferences:
        from swecli.command_line.preferences import preferences

        return preferences(self._trust.applied(self._options))

    def remember(self, key: str, value: str) -> str:
        from swecli.command_line.preferences import remember

        return remember(key, value)


async def open_for_screen(options: LaunchOptions) -> Session:
    """A session for the interface, which reports a failed start in its own way."""
    from importlib import import_module

    await asyncio.to_thread(import_module, "swecli.app")  # keeps the interface responsive
    from swecli.app import open_session

    try:
        session = await open_session(options)
    except StartError as error:
        raise SessionNotOpened(str(error), int(error.exit_code)) from error
    if options.banner:
        session.notice(options.banner)
    return session


def demo_options() -> LaunchOptions:
    """Options of the demonstration, on a fresh copy of the sample project.

    Raises:
        StartError: there is no room for the copy.
    """
    from swecli import demo as bundled

    try:
        folder = bundled.prepare()
    except OSError as error:
        raise StartError(f"cannot copy the sample project to a temporary folder: {error}") from error
    return LaunchOptions(
        cwd=folder,
        prompt=bundled.PROMPT,
        script=bundled.SCRIPT,
        banner=bundled.banner(folder),
        store=False,
        mode="default",
        trust="session",
    )
