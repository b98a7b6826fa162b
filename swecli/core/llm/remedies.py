"""What the user can do about a failed request, in one sentence."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from swecli.core.llm.addresses import is_local
from swecli.core.llm.error_table import error_table
from swecli.core.llm.types import ErrorKind
from swecli.lazy_pattern import lazy_pattern

PROXY_LOGIN_HINT = (
    "Set the proxy's user name and password in HTTPS_PROXY and HTTP_PROXY: http://NAME:PASSWORD@HOST:PORT."
)
ADDRESS_LOGIN = "the name and password in its base URL"
GO_ON_LATER = "Your message is kept; “continue” (or swecli -c -p continue) tries again."
OTHER_MODEL = "choose another model with /model or -m"


KeySource = Literal["environment", "stored", "address", "none"]
"""Where the key of a request comes from: ``environment`` also stands for headers from the settings, ``address`` for
name and password in the base URL, which take the place of a key."""


class ErrorContext(Struct, frozen=True):
    """Context of the sentence for the user. Any of it may be empty. ``key_variables`` are those that hold the key, or
    could hold one."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    key_variables: tuple[str, ...] = ()
    key: KeySource = "environment"


WEB_PAGE = lazy_pattern(r"\s*<[!?a-z]", re.IGNORECASE)
"""Begins like HTML or XML, unlike the ``<400>`` of some gateways."""


def hint(kind: ErrorKind, status: int, message: str, context: ErrorContext, *, moderated: bool = False) -> str:
    """The user's remedy; empty if only waiting helps, which the program does."""
    server = context.base_url or "the server"
    if status == 407:
        return PROXY_LOGIN_HINT
    if WEB_PAGE.match(message) and kind in ("auth", "not_found", "bad_request", "protocol"):
        if kind == "auth":
            return f"A web page answered: a proxy or firewall blocks {server}, or the base URL is wrong."
        return f"The server sent a web page, so the base URL is probably wrong: check {server}."
    table = error_table()
    refused = moderated and kind in ("auth", "bad_request")
    remedy = table.remedies["moderated"] if refused else table.remedy(kind, message)
    if not remedy and kind == "auth":
        return _for_key(context, server)
    return remedy.format(
        other=OTHER_MODEL,
        server=server,
        model=context.model,
        provider=context.provider or "provider",
        base_url=context.base_url,
        larger=", or load the model with a larger one" if context.base_url and is_local(context.base_url) else "",
    )


_SHELL: tuple[tuple[re.Pattern[str], str], ...] = (
    (lazy_pattern(r" \(/model in a session\)"), ""),
    (lazy_pattern(r"(?:use /model, or type|/model or -m) (?=[\w.-]+/(?:NAME|name)\b)"), "use -m "),
    (lazy_pattern(r"\bType (?=[\w.-]+/(?:NAME|name)\b)"), "Give -m "),
    (lazy_pattern(r"/model or -m\b"), "-m"),
    (lazy_pattern(r"(?<![\w/.:~-])/login\b(?![/\w-]|\.\w)"), "swecli login"),
)


def for_shell(text: str) -> str:
    """A text about models and keys for somebody in a shell, where ``/model`` and ``/login`` do not work."""
    for pattern, words in _SHELL:
        text = pattern.sub(words, text)
    return text


def for_task(text: str) -> str:
    """A text for somebody who runs many tasks in sessions that end with them, so none of them can be continued."""
    return for_shell(text).replace(GO_ON_LATER, "").rstrip()


def _for_key(context: ErrorContext, server: str) -> str:
    names = " or ".join(context.key_variables)
    login = f"/login {context.provider}"
    if context.key == "none":
        return f"{server} requires a key: {f'set {names} or ' if names else ''}use {login}."
    if context.key == "address":
        return f"{server} rejected {ADDRESS_LOGIN}: correct them there; with them, swecli sends no key."
    if context.key == "stored":
        return f"{server} rejected the stored key, or the key may not use this model: {login} stores another one."
    key = f"the key in {names}" if names else "the API key"
    return f"Check {key}: {server} rejected it, or the key may not use this model."
