"""What signing in gives: tokens, kept where API keys are kept, and the definition of each provider's flow."""

from __future__ import annotations

import base64
import binascii
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

EARLY = 300.0
"""Seconds before its end at which a token is renewed."""


class SignInError(Exception):
    """Signing in, or renewing it, failed. One sentence; what was stored before is kept."""


class Definition(Struct, frozen=True):
    """How to sign in at one provider. ``account_claim`` leads to the account's id in the identity token, which requests
    name in ``account_header``."""

    flow: Literal["browser", "device"]
    token_url: str
    client_id: str = ""
    scope: str = ""
    authorize_url: str = ""
    device_url: str = ""
    redirect_port: int = 0
    redirect_path: str = "/callback"
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    account_claim: tuple[str, ...] = ()
    account_header: str = ""


@cache
def definitions() -> Mapping[str, Definition]:
    """By the provider's name."""
    tables = tomllib.loads(Path(__file__).with_name("definitions.toml").read_text(encoding="utf-8"))
    return {name: msgspec.convert(table, Definition) for name, table in tables.items()}


class Tokens(Struct, frozen=True):
    """``expires`` is Unix seconds, 0 if unknown: then a token counts until the server refuses it."""

    access: str
    refresh: str = ""
    expires: float = 0.0
    account: str = ""
    client_id: str = ""

    def is_old(self, now: float) -> bool:
        return bool(self.expires) and now > self.expires - EARLY

    def encoded(self) -> str:
        """One word, as keys are."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()


def decoded(text: str) -> Tokens | None:
    """The tokens in a stored word; None if it is something else."""
    try:
        table: Any = json.loads(base64.urlsafe_b64decode(text.encode()))
        return msgspec.convert(table, Tokens)
    except (ValueError, binascii.Error, msgspec.ValidationError, RecursionError):
        return None


def tokens_of(answer: Mapping[str, Any], definition: Definition, client_id: str, now: float) -> Tokens:
    """The tokens of a token endpoint's answer (RFC 6749, 5.1).

    Raises:
        SignInError: it has none.
    """
    access, refresh, seconds = (answer.get(name) for name in ("access_token", "refresh_token", "expires_in"))
    if not isinstance(access, str) or not access or not access.isascii() or not access.isprintable():
        raise SignInError("The answer of the sign-in server has no token.")
    lasts = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else 0.0
    identity = answer.get("id_token")
    account = _claim(identity, definition.account_claim) if isinstance(identity, str) else ""
    given = refresh if isinstance(refresh, str) else ""
    return Tokens(access, given, now + lasts if lasts else 0.0, account, client_id)


def renewed_from(old: Tokens, new: Tokens) -> Tokens:
    """New tokens, with what the answer left out because it stays."""
    return replace(new, refresh=new.refresh or old.refresh, account=new.account or old.account)


def _claim(token: str, path: Sequence[str]) -> str:
    """A text in a JSON Web Token, which came from the server itself over TLS and is only passed back; empty if it has
    none."""
    parts = token.split(".")
    if len(parts) != 3 or not path:
        return ""
    try:
        value: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return ""
    for key in path:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) and value.isascii() and value.isprintable() else ""


Load = Callable[[], str]
Save = Callable[[str], object]
