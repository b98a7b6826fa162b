"""`swecli login` at a provider with subscriptions: the flow in a browser, or with a code on another device."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING

from swecli.assembly.accounts import AccountError, Accounts
from swecli.command_line.arguments import UsageError
from swecli.command_line.standard_streams import complain, is_terminal
from swecli.exit_codes import ExitCode
from swecli.launch import StartError

if TYPE_CHECKING:
    from swecli.core.llm.providers import ProviderConfig
    from swecli.core.sign_in.tokens import Tokens

_APP = "https://github.com/settings/applications/new"


def sign_in(accounts: Accounts, provider: ProviderConfig, client_id: str) -> str:
    """Sign in and store the tokens. Returns a sentence for the user.

    Raises:
        StartError: it failed; what was stored before is kept.
    """
    from swecli.core.sign_in.tokens import SignInError

    try:
        accounts.sign_in_place(provider)  # before anybody opens a page
        tokens = asyncio.run(_tokens(provider.name, client_id))
        return accounts.keep_sign_in(provider, tokens.encoded())
    except (SignInError, AccountError) as error:
        raise StartError(str(error), ExitCode.AUTH) from None
    except KeyboardInterrupt:
        raise StartError("Nobody was signed in.", ExitCode.INTERRUPTED) from None


async def _tokens(name: str, client_id: str) -> Tokens:
    from swecli.core.sign_in.flows import sign_in_by_browser, sign_in_by_device
    from swecli.core.sign_in.tokens import definitions

    definition = definitions()[name]
    if definition.flow == "browser":
        return await sign_in_by_browser(definition, _show_page, _pasted if is_terminal(sys.stdin) else None)
    given = client_id or definition.client_id
    if not given:
        raise UsageError(
            f"{name} knows no swecli: register an OAuth app of your own with its device flow turned on ({_APP}), and "
            f"give its client id: swecli login {name} --client-id ID"
        )
    return await sign_in_by_device(definition, given, _show_code)


def _show_page(address: str) -> None:
    complain("swecli: sign in on this page; it returns here:")
    complain(address)
    if is_terminal(sys.stdin):
        complain("swecli: if the browser is on another machine, paste the address at which it ended, and press Enter.")
    _open(address)


def _show_code(address: str, code: str) -> None:
    complain(f"swecli: enter the code {code} at {address}")
    _open(address)


def _open(address: str) -> None:
    if is_terminal(sys.stdin) and "SSH_CONNECTION" not in os.environ:
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(address)


async def _pasted() -> str:
    """The next line of the terminal. Leaves no thread behind that would wait for it."""
    loop, line = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(0, line.set)
    try:
        await line.wait()
        return sys.stdin.readline()
    finally:
        loop.remove_reader(0)
