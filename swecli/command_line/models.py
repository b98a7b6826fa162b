"""`swecli doctor`, `models`, `login` and `logout`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.assembly.accounts import AccountError, accounts_of
from swecli.assembly.models import supply_of
from swecli.assembly.startup import flags_of, read_startup
from swecli.block_text import block_lines
from swecli.command_line.arguments import Parser, working_directory
from swecli.command_line.standard_streams import agrees, complain, is_terminal, print_text
from swecli.core.config.key_store import KeyStore, KeyStoreError
from swecli.core.llm.remedies import for_shell
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.assembly.health import Repair


def doctor(arguments: Sequence[str]) -> int:
    """``swecli doctor``: configured providers, and known facts about their models."""
    parser = Parser(
        prog="swecli doctor",
        description="Check providers and their models, the sandbox, stored sessions, and the terminal.",
    )
    parser.add_argument("--online", action="store_true", help="contact each provider, and look for local servers")
    parser.add_argument("-m", "--model", metavar="PROVIDER/NAME", help="as if this model were selected")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="check in this folder")
    parser.add_argument(
        "--repair",
        action="append",
        choices=("vacuum", "index", "permissions", "recover"),
        default=[],
        help="repair stored sessions: free disk space, rebuild the search index, make files private, recover "
        "readable data from a damaged database",
    )
    parser.add_argument("--yes", action="store_true", help="repair without asking")
    chosen = parser.parse_args(arguments)
    if chosen.repair:
        asks = is_terminal(sys.stdin) and is_terminal(sys.stdout) and not chosen.yes
        return _repaired(chosen.repair, working_directory(chosen.cwd), asks=asks)
    options = LaunchOptions(cwd=working_directory(chosen.cwd), model=chosen.model, store=False)
    startup = read_startup(options.cwd, dict(os.environ), flags_of(options))
    from swecli.assembly.doctor import examine, examine_files
    from swecli.assembly.health import examine_storage, finding_blocks, is_damaged
    from swecli.assembly.sandbox import examine_sandbox

    supply = supply_of(options, startup)
    main = supply.first.settled()
    report = asyncio.run(examine(supply, main, online=chosen.online))
    contained = examine_sandbox(options, startup)
    findings = examine_storage(startup.paths, options.cwd, startup.environment)
    files = examine_files(options, startup)
    if _show((*report.blocks, contained, *finding_blocks(findings), *files)) is not ExitCode.OK:
        return ExitCode.FAILURE
    if contained.style == "error":
        return ExitCode.SANDBOX
    if is_damaged(findings):
        return ExitCode.FAILURE
    return ExitCode.OK if report.healthy else ExitCode.CONFIG


def _repaired(names: Sequence[Repair], folder: Path, *, asks: bool) -> int:
    """Carry out repairs, after the user's consent to each if swecli ``asks``. Fails if data is known to be missing
    afterwards.

    Raises:
        StartError: a repair failed.
    """
    import sqlite3

    from swecli.assembly.health import OFFERS, repair
    from swecli.core.config.paths import user_paths

    complete = True
    for name in names:
        if asks and not agrees(f"{OFFERS[name]} for {folder}?"):
            print_text("Nothing was changed.\n")
            continue
        try:
            done = repair(name, user_paths(os.environ), folder)
            print_text(f"{done.text}\n")
            complete = complete and done.complete
        except (OSError, sqlite3.Error) as error:
            text = (
                f"--repair {name} failed ({error}); nothing was lost. Do what it says, or else close other swecli "
                "windows in this folder or free disk space"
            )
            raise StartError(text, ExitCode.FAILURE) from error
    return ExitCode.OK if complete else ExitCode.FAILURE


def models(arguments: Sequence[str]) -> int:
    """``swecli models``: the models available now; with words, every known model with all of them in its name."""
    parser = Parser(
        prog="swecli models",
        description="List the models your keys and servers offer; with WORDS, every known model whose name "
        "contains them; with a whole name, also what that model can do. Queries local servers and those at your own "
        "addresses.",
    )
    parser.add_argument("words", metavar="WORDS", nargs="*")
    words = parser.parse_args(arguments).words
    from swecli.commands.models import capability_table, matching, model_table, named, omitted

    options = LaunchOptions(cwd=Path.cwd(), store=False)
    startup = read_startup(options.cwd, dict(os.environ), {})
    for notice in startup.notices:
        complain(f"warning: {notice}")
    supply = supply_of(options, startup)
    offers = asyncio.run(supply.offered.query())
    for problem in supply.offered.unlisted:
        complain(f"warning: {problem}")
    matches = matching(offers, " ".join(words)) if words else [offer for offer in offers if offer.usable]
    if not matches and len(words) == 1 and "/" in words[0] and (can := supply.configs.capabilities(words[0])):
        return _show([capability_table(words[0], can)])  # a server need not list what it has
    if not matches:
        reason = f"No known model matches {' '.join(words)!r}" if words else supply.first.nothing_chosen
        raise StartError(reason, ExitCode.CONFIG)
    left_out = omitted(supply.offered.omitted)
    blocks: list[DisplayBlock] = [model_table(matches)]
    if left_out and not words:
        blocks.append(TextBlock(left_out, "dim"))
    for offer in named(matches, " ".join(words)) if words else ():
        blocks += (TextBlock(""), capability_table(offer.ref, supply.configs.capabilities(offer.ref)))
    return _show(blocks)


def login(arguments: Sequence[str]) -> int:
    """``swecli login PROVIDER``: store a key, from a prompt or from standard input."""
    parser = Parser(
        prog="swecli login",
        description=(
            "Store an API key in the system keyring, or in a file only you can read. The key is hidden as you "
            "type; without a terminal, swecli reads the first line of standard input. At chatgpt and copilot "
            "you sign in with your subscription instead."
        ),
    )
    parser.add_argument("provider", metavar="PROVIDER")
    parser.add_argument("--client-id", default="", metavar="ID", help="of your own OAuth app, to sign in at copilot")
    chosen = parser.parse_args(arguments)
    provider = chosen.provider
    startup = read_startup(Path.cwd(), dict(os.environ), {})
    accounts = accounts_of(startup)
    try:
        config = accounts.find(provider)
        if config.sign_in:
            from swecli.command_line.sign_in import sign_in

            return print_text(f"{sign_in(accounts, config, chosen.client_id)}\n")
        notice = accounts.store(config.name, _read_key(provider))
    except AccountError as error:
        raise StartError(str(error), ExitCode.BAD_INPUT) from error
    return print_text(f"{notice}\n")


def logout(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="swecli logout", description="Delete a provider's stored API key; without a provider, list stored keys."
    )
    parser.add_argument("provider", metavar="PROVIDER", nargs="?")
    provider = parser.parse_args(arguments).provider
    from swecli.commands.models import forget, stored_text
    from swecli.core.config.paths import user_paths

    store = KeyStore(user_paths(os.environ).config)
    try:
        command = "swecli logout"
        notice = stored_text(store.entries(), command) if provider is None else forget(store, provider, command)
        notice += _told_limits(store, user_paths(os.environ).data) if provider is None else ""
    except KeyStoreError as error:
        raise StartError(str(error), ExitCode.BAD_INPUT) from error
    return print_text(f"{notice}\n")


def _told_limits(store: KeyStore, data: Path) -> str:
    """What providers said last about the limits of subscriptions, as lines after the stored keys."""
    from swecli.core.sign_in.session import limits
    from swecli.core.sign_in.tokens import definitions

    signed_in = [entry.provider for entry in store.entries() if entry.provider in definitions()]
    told = [f"{name}: {', '.join(clauses)} at its last answer" for name in signed_in if (clauses := limits(data, name))]
    return "".join(f"\n{line}" for line in told)


def _read_key(provider: str) -> str:
    if is_terminal(sys.stdin):
        from getpass import getpass

        try:
            return getpass(f"Key for {provider} (hidden as you type): ")
        except EOFError:
            sys.stderr.write("\n")  # the question's line has no end yet
            return ""
    return sys.stdin.readline() if sys.stdin is not None else ""  # pyright: ignore[reportUnnecessaryComparison]


def _show(blocks: Sequence[DisplayBlock]) -> ExitCode:
    text = "\n".join(line for block in blocks for line in block_lines(block))
    return print_text(f"{for_shell(text)}\n")
