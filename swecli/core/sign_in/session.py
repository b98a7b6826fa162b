"""A provider's sign-in while requests are made: renewed in time, once for all programs that share it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from swecli.core.atomic_text import one_writer, write_json
from swecli.core.llm.types import ProviderError
from swecli.core.sign_in.flows import renew
from swecli.core.sign_in.tokens import Definition, Load, Save, SignInError, Tokens, decoded

LIMITS = "sign-in-limits.json"
"""In the data directory: what the providers said last about the limits of the plans."""
_WINDOWS = ("primary", "secondary")


class SignedIn:
    """``load`` and ``save`` reach the stored tokens, ``lock`` is a file that programs lock while they renew."""

    def __init__(
        self,
        provider: str,
        definition: Definition,
        load: Load,
        save: Save,
        data: Path,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._provider = provider
        self._definition = definition
        self._load, self._save = load, save
        self._data = data
        self._clock = clock
        self._turn = asyncio.Lock()
        self._told: dict[str, str] = {}

    async def headers(self) -> Mapping[str, str]:
        """The headers of a request, with a token that holds for a while.

        Raises:
            ProviderError: nobody is signed in, or the sign-in can't be renewed.
        """
        tokens = await asyncio.to_thread(self._stored)
        if tokens.is_old(self._clock()):
            tokens = await self._renewed(tokens)
        return self._headers_of(tokens)

    async def after_refusal(self, sent: Mapping[str, str]) -> Mapping[str, str] | None:
        """Headers for a second attempt after the server refused the token; None if it would be the same again.

        Raises:
            ProviderError: the sign-in can't be renewed.
        """
        tokens = await asyncio.to_thread(self._stored)
        fresh = self._headers_of(tokens)
        if fresh["authorization"] != sent.get("authorization"):  # another program has renewed it
            return fresh
        return self._headers_of(await self._renewed(tokens)) if tokens.refresh else None

    def _stored(self) -> Tokens:
        tokens = decoded(self._load())
        if tokens is None:
            raise self._failed(f"nobody is signed in at {self._provider}")
        return tokens

    def _failed(self, why: str) -> ProviderError:
        return ProviderError("auth", why, hint=f"Use `swecli login {self._provider}`.")

    def _headers_of(self, tokens: Tokens) -> dict[str, str]:
        named = self._definition.account_header
        account = {named: tokens.account} if named and tokens.account else {}
        return {"authorization": f"Bearer {tokens.access}", **account}

    async def _renewed(self, old: Tokens) -> Tokens:
        """New tokens; those of another program if it was faster, because a refresh token may count only once."""
        async with self._turn:
            with contextlib.ExitStack() as stack:
                lock = self._data / f"sign-in-{self._provider}"
                await asyncio.to_thread(stack.enter_context, one_writer(lock))
                tokens, trouble = await self._renewed_alone(old)
        if tokens is None:
            raise self._failed(trouble)
        return tokens

    async def _renewed_alone(self, old: Tokens) -> tuple[Tokens | None, str]:
        """While nobody else renews them: the tokens, or why there are none."""
        now = decoded(await asyncio.to_thread(self._load))
        if now is None:
            return None, f"nobody is signed in at {self._provider}"
        if now.access != old.access:
            return now, ""
        try:
            tokens = await renew(self._definition, now)
        except SignInError as error:
            return None, str(error)
        await asyncio.to_thread(self._save, tokens.encoded())
        return tokens, ""

    def answered(self, headers: Mapping[str, str]) -> None:
        """Keep what an answer says about the plan's limits, for ``swecli login``."""
        plan_limits = {
            name: value for name, value in headers.items() if name.startswith("x-codex-") and len(value) < 100
        }
        if plan_limits and plan_limits != self._told:
            self._told = plan_limits
            with contextlib.suppress(OSError):
                path = self._data / LIMITS
                write_json(path, {**_read(path), self._provider: {"at": self._clock(), **plan_limits}})


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def limits(data: Path, provider: str) -> tuple[str, ...]:
    """What the provider said last about the plan's limits, as clauses."""
    known = _read(data / LIMITS).get(provider)
    fields = cast("dict[str, Any]", known) if isinstance(known, dict) else {}
    clauses: list[str] = []
    for window in _WINDOWS:
        try:
            used = float(fields[f"x-codex-{window}-used-percent"])
            minutes = float(fields[f"x-codex-{window}-window-minutes"])
        except (KeyError, ValueError, TypeError):
            continue
        span = f"{minutes / 1440:.0f} days" if minutes >= 2880 else f"{minutes / 60:.0f} h"
        clauses.append(f"{used:.0f} % of {span} used")
    return tuple(clauses)
