"""From arguments to a front-end or a subcommand, and from failures to one line and an exit status."""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, get_args

from swecli.command_line.arguments import (
    LATER,
    SUBCOMMANDS,
    Parser,
    UsageError,
    launch_options,
    main_parser,
    working_directory,
)
from swecli.command_line.standard_streams import (
    complain,
    input_lines,
    is_terminal,
    joined,
    output_failed,
    print_lines,
    print_text,
    read_piped,
)
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, OutputFormat, StartError
from swecli.output import Output, OutputClosed
from swecli.stopping import Stop

if TYPE_CHECKING:
    from swecli.assembly.models import Accounts
    from swecli.assembly.trust import WorkspaceTrust
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.session import Session
    from swecli.core.llm.types import ModelInfo
    from swecli.core.protocol.blocks import DisplayBlock
    from swecli.tui.boot import Terminal
    from swecli.tui.options import Preferences
    from swecli.tui.screens.ports import PermissionsPort, ScreenPorts, SessionsPort, SettingsPort
    from swecli.tui.session_link import OpenSession


def never_began(arguments: Sequence[str], code: ExitCode) -> int:
    """Tell whoever reads JSON, where the arguments ask for it. Returns the exit status."""
    from swecli.headless.run import never_began as tell

    return int(tell(_wanted(arguments), code))


def _wanted(arguments: Sequence[str]) -> OutputFormat:
    try:
        chosen = main_parser().parse_known_args(arguments)[0].output_format
    except StartError:
        return "text"
    return chosen if chosen in get_args(OutputFormat) else "text"


def demo(arguments: Sequence[str], terminal: Terminal | None = None) -> int:
    """``swecli demo``: the real program on the sample project, with the scripted model. ``terminal`` is given where
    it is taken already."""
    parser = Parser(
        prog="swecli demo", description="The program on a sample project with a scripted model: no key, no network."
    )
    parser.add_argument("-p", "--print", action="store_true", help="as text, like without a terminal")
    parser.add_argument("--plain", action="store_true", help="line mode; you answer its questions")
    chosen = parser.parse_args(arguments)

    options = demo_options()
    if chosen.plain or os.environ.get("TERM", "").lower() == "dumb":
        options = replace(options, plain=True)
    elif terminal is None and (chosen.print or not (is_terminal(sys.stdin) and is_terminal(sys.stdout))):
        options = replace(options, headless=True, output_format="transcript", approve_all=True)
    return launch(options, terminal)


def demo_options() -> LaunchOptions:
    """How the demonstration is started, on a fresh copy of the sample project.

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


def sessions(arguments: Sequence[str]) -> int:
    """``swecli sessions``: the stored sessions of a folder, the newest first."""
    parser = Parser(prog="swecli sessions", description="Stored sessions of this folder, newest first.")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="use this folder instead")
    folder = working_directory(parser.parse_args(arguments).cwd)
    rows = _stored_sessions(folder)
    if not rows:
        complain(f"swecli: no sessions are stored for {folder}")
        return ExitCode.OK
    _table(("id", "last used", "turns", "model", "first message"), rows)
    return ExitCode.OK


def _stored_sessions(folder: Path) -> list[tuple[str, ...]]:
    from swecli.assembly.storage import DATABASE
    from swecli.core.config.paths import user_paths
    from swecli.core.sessions.database import open_database
    from swecli.core.sessions.store import SessionStore

    file = user_paths(os.environ).workspace_data(folder) / DATABASE
    if not file.exists():
        return []
    database = open_database(file)
    for problem in database.problems:
        complain(f"warning: {problem}")
    with closing(SessionStore(database)) as store:
        return [
            (session.id, _when(session.updated), str(session.turns), session.model, " ".join(session.title.split()))
            for session in store.list()
        ]


def debug(arguments: Sequence[str]) -> int:
    """``swecli debug decode|tool --batch``: JSON lines in, one JSON line out for each."""
    parser = Parser(prog="swecli debug", description="For bug reports and external checks: JSON lines in and out.")
    parser.add_argument("what", choices=("decode", "tool"), help="decode recorded answers, or run single tool calls")
    parser.add_argument("--batch", action="store_true", required=True, help="read lines from standard input")
    what = parser.parse_args(arguments).what
    if what == "decode":
        from swecli.core.llm.debug_decode import decode_batch

        return print_lines(decode_batch(input_lines()))
    import asyncio

    return asyncio.run(_tool_batch())


async def _tool_batch() -> int:
    from swecli.app import tool_batch

    out = Output(sys.stdout)
    try:
        async for line in tool_batch(input_lines()):
            out.line(line)
    except OutputClosed as error:
        return output_failed(error)
    return ExitCode.OK


def _when(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp).strftime("%Y-%m-%d %H:%M")


def _table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from swecli.block_text import block_lines
    from swecli.core.protocol.blocks import TableBlock

    lines = block_lines(TableBlock(headers, tuple(rows)))
    print_text("\n".join(lines) + "\n")


class Succession:
    """Opens sessions with ``open_session`` and remembers the newest. ``options`` are those of the start."""

    def __init__(self, options: LaunchOptions, open_session: Callable[[LaunchOptions], Awaitable[Session]]) -> None:
        self._options = options
        self._open = open_session
        self._last: Session | None = None
        self._spoke = False
        self._added: tuple[Path, ...] = ()

    def add_folder(self, folder: Path) -> None:
        """One more folder to work in, in every session that is opened from now on."""
        self._added = (*self._added, folder)

    @property
    def spoke(self) -> bool:
        """Whether there was a conversation that can be continued."""
        return self._spoke or (self._last is not None and self._last.view.totals.turns > 0)

    async def open(self, options: LaunchOptions) -> Session:
        """The session that the options ask for.

        Raises:
            StartError: it can't start.
        """
        session = await self._open(replace(options, add_dirs=(*options.add_dirs, *self._added)))
        self._spoke = self.spoke
        self._last = session
        return session

    async def first(self) -> Session:
        """The session of the start."""
        return await self.open(self._options)

    async def next(self) -> Session:
        """A new session in place of the newest, with its model, effort and mode: without the first message of the
        start, and not where another session was continued."""
        fresh = replace(self._options, prompt="", resume=None, continue_newest=False, pick_session=False)
        if self._last is None:
            return await self.open(fresh)
        view = self._last.view
        model, effort = view.model, view.effort
        fresh = replace(fresh, mode=view.mode)
        if model is None:
            return await self.open(fresh)
        address = _kept(self._options.base_url, model)
        session = await self.open(replace(fresh, model=model.ref, address=model.address, base_url=address))
        if session.view.effort != effort:
            from swecli.core.protocol.commands import SetEffort

            session.send(SetEffort(effort))
        return session


def _kept(given: str | None, model: ModelInfo) -> str | None:
    """``--base-url``, as far as the model is asked there: it may hold a password, which no session knows."""
    from swecli.core.llm.addresses import normalise, origin_of

    same = given and model.address and origin_of(normalise(given, "openai-chat")) == origin_of(model.address)
    return given if same else None


MAX_FILES = 20_000
"""Files that are offered as mentions."""
FILES_SECONDS = 3.0
"""How long the tree is walked for them."""


def run_headless(options: LaunchOptions) -> int:
    """The one-shot: a session, its events as text or JSON, and an exit status."""
    stop = Stop()
    with stop.handled():
        import asyncio

        return asyncio.run(_headless(options, stop))


async def _headless(options: LaunchOptions, stop: Stop) -> int:
    import asyncio

    from swecli.app import open_session
    from swecli.headless.outcome import meaning
    from swecli.headless.run import never_began, run, start_failed

    if options.input_format == "text" and meaning(options.prompt) is not None:
        options = replace(options, needs_model=False)
    opening = asyncio.ensure_future(open_session(options))
    try:
        with stop.calling(opening.cancel):
            session = await opening
    except StartError as error:
        start_failed(options.output_format, error)
        raise
    except asyncio.CancelledError:
        if stop.code is None:
            raise
        return never_began(options.output_format, stop.code)
    return await run(session, options, {"settings": _settings_shown, "permissions": _permissions_shown}, stop)


def _settings_shown(options: LaunchOptions) -> tuple[DisplayBlock, ...]:
    """All settings, where there is no screen to look at them."""
    from swecli.assembly.settings import SettingsFiles
    from swecli.command_line.config import settings_table

    return (settings_table(SettingsFiles(options, dict(os.environ)).described()),)


def _permissions_shown(options: LaunchOptions) -> tuple[DisplayBlock, ...]:
    """All rules, where there is no screen to look at them."""
    from swecli.assembly.permissions import FolderRules
    from swecli.command_line.permissions import rules_block

    return (rules_block(FolderRules(LaunchOptions(options.cwd), dict(os.environ))),)


def run_plain(options: LaunchOptions) -> int:
    """Lines out, lines in."""
    from swecli.app import open_session
    from swecli.plain.front_end import LinearFrontEnd

    async def opened(wanted: LaunchOptions) -> Session:
        session = await open_session(wanted)
        if wanted.banner:
            session.notice(wanted.banner)
        return session

    sessions = Succession(options, opened)

    async def run() -> int:
        return await LinearFrontEnd(sessions.first, sessions.next, first_prompt=options.prompt).run()

    import asyncio

    from swecli.command_line.standard_streams import print_text

    code = asyncio.run(run())
    if sessions.spoke:
        print_text(f"Continue with: {resume_hint(options)}\n")
    return code


def run_interactive(options: LaunchOptions, terminal: Terminal | None = None) -> int:
    """The interface in the terminal, which may be taken already."""
    from swecli.assembly.trust import WorkspaceTrust
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
    from swecli.command_line.config import preferences

    return preferences(options)


def _remember(key: str, value: str) -> str:
    from swecli.command_line.config import remember

    return remember(key, value)


def screen_ports(
    options: LaunchOptions, trust: WorkspaceTrust, opened: Callable[[LaunchOptions], Awaitable[Session]]
) -> ScreenPorts:
    """What the screens show and change. Each is made when it is used first: none of it is needed for the start."""
    from swecli.tui.screens.ports import ScreenPorts

    fresh = replace(options, prompt="", resume=None, continue_newest=False, pick_session=False)
    # Flags speak of the session of this start; one that is gone to later has its own model and its own address.
    other = fresh if options.pick_session else replace(fresh, model=None, base_url=None)

    def opener(session_id: str) -> OpenSession:
        return lambda: opened(replace(other, resume=session_id))

    def settings() -> SettingsPort:
        from swecli.assembly.settings import SettingsFiles

        return SettingsFiles(trust.applied(fresh), dict(os.environ))

    def permissions() -> PermissionsPort:
        from swecli.assembly.permissions import PermissionRules

        return PermissionRules(trust.applied(fresh), dict(os.environ))

    def sessions() -> SessionsPort:
        from swecli.assembly.storage import SessionList

        return SessionList(fresh, dict(os.environ), opener)

    return ScreenPorts(
        settings, permissions, sessions if options.store else None, "sessions" if options.pick_session else None
    )


def _keep_model(options: LaunchOptions, ref: str) -> str:
    from swecli.command_line.config import keep_model

    return keep_model(options, ref)


async def open_for_screen(options: LaunchOptions) -> Session:
    """A session for the interface, which tells of a failed start in its own way."""
    import asyncio

    from swecli.tui.background import load
    from swecli.tui.session_link import SessionNotOpened

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
    from swecli.assembly.models import try_model

    return await try_model(options, ref)


async def open_demo() -> Session:
    """The demonstration as a session for the interface, with its task already asked for."""
    from swecli.core.protocol.commands import Submit
    from swecli.tui.session_link import SessionNotOpened

    try:
        import asyncio

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
    from swecli.assembly.models import AccountError

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
    from swecli.command_line.models import accounts_of

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


NEAR = 0.78
"""How much a word has to look like a subcommand to be taken for a mistyped one; 1 is the same word."""


def dispatch(arguments: Sequence[str], terminal: Terminal | None = None) -> int:
    """Run what the arguments ask for. Returns the exit status. ``terminal`` is given where the interface's first
    paint has been made already; what is written until the interface goes on is not seen before it is given back."""
    _one_line_for_defects("--debug" in arguments)
    try:
        return int(_run(arguments, terminal))
    except StartError as error:
        from swecli.command_line.standard_streams import complain

        complain(f"swecli: {error}")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except OSError:
        from swecli.output import lost_output

        failure = lost_output()
        if failure is None:
            raise
        from swecli.command_line.standard_streams import output_failed

        return int(output_failed(failure))


def _run(arguments: Sequence[str], terminal: Terminal | None) -> int:
    if arguments and arguments[0] in LATER:
        raise _not_built(arguments[0])
    if arguments and arguments[0] in SUBCOMMANDS:
        module = import_module(f"swecli.command_line.{SUBCOMMANDS[arguments[0]].module}")
        if terminal is not None:  # only the demonstration has a screen
            return module.demo(arguments[1:], terminal)
        return getattr(module, arguments[0])(arguments[1:])
    options = launch_options(parsed(arguments), os.environ, is_root=is_root())
    return launch(options if terminal is not None else with_standard_input(options), terminal)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments of the form without a subcommand. A single word that is most likely meant as a subcommand is no
    message, unless it comes after ``--`` or with ``-p``.

    Raises:
        UsageError: they make no sense.
    """
    parser = main_parser()
    try:
        found = parser.parse_args(arguments)
    except UsageError:
        with suppress(UsageError):
            _no_subcommand(parser.parse_known_args(arguments)[0].prompt, arguments)
        raise
    _no_subcommand(found.prompt, arguments)
    return found


def _no_subcommand(prompt: str, arguments: Sequence[str]) -> None:
    """Raises ``MeantAsSubcommand`` where the message is a subcommand at the wrong place, or nearly one."""
    if "--" in arguments or not prompt.isascii() or not prompt.isidentifier():
        return
    if prompt in LATER:
        raise _not_built(prompt)
    if prompt in SUBCOMMANDS:
        raise MeantAsSubcommand(f"{prompt} is a subcommand only as the first argument: swecli {prompt} …", prompt)
    near = [f"--{prompt}"] if prompt in ("help", "version") else []
    near = near or difflib.get_close_matches(prompt.lower(), (*SUBCOMMANDS, *LATER), 1, NEAR)
    if near:
        raise MeantAsSubcommand(f"unknown subcommand {prompt}; did you mean swecli {near[0]}?", prompt)


class MeantAsSubcommand(StartError):
    """A word that was hardly meant as a message. Says how to send it all the same."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(f"{message} To send the word as a message: swecli -- {word}", ExitCode.USAGE)


def _not_built(word: str) -> MeantAsSubcommand:
    return MeantAsSubcommand(f"{word} is a subcommand not available in this version; nothing was sent.", word)


def is_root() -> bool:
    """Whether this process may do everything."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def with_standard_input(options: LaunchOptions) -> LaunchOptions:
    """Without a terminal there is no screen: then the run is a one-shot, and what is piped in joins the message.

    Raises:
        StartError: there is nothing to do.
    """
    if options.compact_dry_run:
        return options
    if options.plain and not options.headless:
        return options
    person, screen = is_terminal(sys.stdin), is_terminal(sys.stdout)
    dumb = os.environ.get("TERM", "").lower() == "dumb"
    if options.pick_session and (dumb or not person or not screen):
        raise UsageError("-r needs a session id without a terminal; `swecli sessions` lists them")
    if person and screen and not options.headless and dumb:
        return replace(options, plain=True)
    if not options.headless and not screen:
        sys.stderr.write("swecli: stdout is not a terminal; running as -p\n")
    options = replace(options, headless=options.headless or not person or not screen)
    if not options.headless or options.input_format != "text":
        return options
    if not person:
        from swecli.core.workspace.mentions import mentioned_by_hand

        stream = sys.stdin.buffer if sys.stdin is not None else None  # pyright: ignore[reportUnnecessaryComparison]
        typed = options.prompt
        text = joined(typed, read_piped(stream, typed))
        options = replace(options, prompt=text, mentions=mentioned_by_hand(text, typed))
    if not options.prompt.strip():
        if person:
            raise UsageError('-p needs a message: swecli -p "what to do"')
        raise StartError("standard input is empty; nothing to do", ExitCode.BAD_INPUT)
    return options


def launch(options: LaunchOptions, terminal: Terminal | None = None) -> int:
    """Open the session and run the front-end that the options ask for, in the ``terminal`` if it is taken already."""
    if options.compact_dry_run:
        from swecli.command_line.inspect import print_plan

        return print_plan(options)
    if options.dry_run:
        from swecli.command_line.inspect import print_request

        return print_request(options)

    if options.headless:
        return run_headless(options)
    if options.plain:
        return run_plain(options)
    return run_interactive(options, terminal)


def _one_line_for_defects(debug: bool) -> None:
    """An unexpected failure is one line, not a traceback, unless asked for."""
    if debug:
        return

    def show(kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        from swecli.command_line.standard_streams import complain

        detail = " ".join(str(error).split())[:300]
        complain(
            f"swecli: internal error: {kind.__name__}: {detail}. Stored work is kept; run again with --debug for the "
            "traceback."
        )

    sys.excepthook = show
