"""Signing in, renewing and using a sign-in, at an authorization server on this machine."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from msgspec.structs import replace

from swecli.assembly.accounts import AccountError, Accounts
from swecli.core.config.key_store import KeyStore
from swecli.core.config.settings import ProviderSettings, Settings
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import MissingKey, known_providers, resolve
from swecli.core.llm.types import Failed, Finished, ModelRequest, ProviderError
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.sign_in.flows import renew, sign_in_by_browser, sign_in_by_device
from swecli.core.sign_in.session import SignedIn, limits
from swecli.core.sign_in.tokens import Definition, SignInError, Tokens, decoded, definitions
from tests.support.json_server import JsonServer, Reply, serve_json

CLAIMS = {"https://api.openai.com/auth": {"chatgpt_account_id": "acc-1"}}


def token(claims: object = CLAIMS) -> str:
    return f"h.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.s"


def definition_at(server: JsonServer, name: str = "chatgpt") -> Definition:
    return replace(
        definitions()[name],
        authorize_url=f"{server.url}/authorize",
        device_url=f"{server.url}/device",
        token_url=f"{server.url}/token",
        redirect_port=0,
    )


def form(server: JsonServer, number: int = -1) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(server.asked[number].body.decode()).items()}


class Browser:
    """Follows the redirect as a browser does after the user agreed; ``change`` edits what comes back."""

    def __init__(self, change: Callable[[dict[str, str]], dict[str, str]] = lambda query: query) -> None:
        self.query: dict[str, str] = {}
        self.answers: list[asyncio.Task[httpx.Response]] = []
        self._change = change

    def __call__(self, address: str) -> None:
        self.query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        back = self._change({"code": "the code", "state": self.query["state"]})
        self.answers.append(asyncio.ensure_future(self._follow(back)))

    async def _follow(self, back: dict[str, str]) -> httpx.Response:
        address = self.query["redirect_uri"].replace("localhost", "127.0.0.1")
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(address.rpartition("/")[0] + "/favicon.ico")).status_code == 404
            return await client.get(address, params=back)


async def test_signing_in_by_browser_proves_that_it_was_this_program() -> None:
    answer = {"access_token": "a1", "refresh_token": "r1", "expires_in": 3600, "id_token": token()}
    async with serve_json({"/token": answer}) as server:
        browser = Browser()
        tokens = await sign_in_by_browser(definition_at(server), browser)
        assert (await browser.answers[0]).status_code == 200
    assert (tokens.access, tokens.refresh, tokens.account) == ("a1", "r1", "acc-1")
    sent = form(server)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(sent["code_verifier"].encode()).digest()).decode().rstrip("=")
    assert browser.query["code_challenge"] == challenge
    assert browser.query["code_challenge_method"] == "S256"
    assert sent["redirect_uri"] == browser.query["redirect_uri"]
    assert "offline_access" in browser.query["scope"]
    assert decoded(tokens.encoded()) == tokens


@pytest.mark.parametrize(
    ("back", "told"),
    [
        ({"state": "another"}, "another attempt"),
        ({"code": "", "error": "access_denied"}, "refused: access_denied"),
        ({"code": "", "error": "x", "error_description": "No plan\x1b[2J"}, "refused: No plan"),
    ],
)
async def test_a_foreign_or_refused_answer_stores_nothing(back: dict[str, str], told: str) -> None:
    async with serve_json({}) as server:
        browser = Browser(lambda query: {name: value for name, value in {**query, **back}.items() if value})
        with pytest.raises(SignInError, match=told):
            await sign_in_by_browser(definition_at(server), browser)
        assert server.asked == []


async def test_the_address_of_another_machines_browser_can_be_pasted() -> None:
    async with serve_json({"/token": {"access_token": "a1"}}) as server:
        shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def pasted() -> str:
            query = parse_qs(urlsplit(await shown).query)
            return f"http://localhost:1455/auth/callback?code=c&state={query['state'][0]}\n"

        assert (await sign_in_by_browser(definition_at(server), shown.set_result, pasted)).access == "a1"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"access_token": 5}', b'{"access_token": "a\\nb"}'])
async def test_an_answer_without_a_token_is_an_error(body: bytes) -> None:
    async with serve_json({"/token": Reply(body)}) as server:
        with pytest.raises(SignInError):
            await sign_in_by_browser(definition_at(server), Browser())


async def test_signing_in_by_device_waits_as_it_is_told() -> None:
    asked = {"device_code": "d", "user_code": "AB-12", "verification_uri": "https://h/device", "interval": 5}
    answers = ({"error": "authorization_pending"}, {"error": "slow_down"}, {"access_token": "gho"})
    waits: list[float] = []
    shown: list[tuple[str, str]] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with serve_json({"/device": asked, "/token": answers}) as server:
        at = definition_at(server, "copilot")
        tokens = await sign_in_by_device(at, "mine", lambda *what: shown.append(what), sleep)
    assert (tokens.access, tokens.client_id) == ("gho", "mine")
    assert waits == [5, 5, 10]
    assert shown == [("https://h/device", "AB-12")]
    assert form(server)["device_code"] == "d"


@pytest.mark.parametrize("error", ["access_denied", "expired_token", "pending forever", "page"])
async def test_signing_in_by_device_ends(error: str) -> None:
    page = "javascript:x" if error == "page" else "https://h/device"
    asked = {"device_code": "d", "user_code": "A", "verification_uri": page, "expires_in": 20}
    said = "authorization_pending" if error == "pending forever" else error

    async def sleep(seconds: float) -> None:
        return

    async with serve_json({"/device": asked, "/token": {"error": said}}) as server:
        with pytest.raises(SignInError):
            await sign_in_by_device(definition_at(server, "copilot"), "mine", lambda *what: None, sleep)


class Stored:
    """Tokens as two programs share them."""

    def __init__(self, tokens: Tokens) -> None:
        self.word = tokens.encoded()

    def session(self, definition: Definition, data: Path, now: float) -> SignedIn:
        def save(word: str) -> None:
            self.word = word

        return SignedIn("chatgpt", definition, lambda: self.word, save, data, lambda: now)


async def test_an_old_token_is_renewed_once_for_all(tmp_path: Path) -> None:
    new = {"access_token": "a2", "refresh_token": "r2", "expires_in": 3600}
    async with serve_json({"/token": (new, {"error": "invalid_grant"})}) as server:
        stored = Stored(Tokens("a1", "r1", 1000.0, "acc-1", "client"))
        programs = [stored.session(definition_at(server), tmp_path, 900.0) for _ in range(3)]
        found = await asyncio.gather(*(one.headers() for one in programs for _ in range(2)))
        assert found == [{"authorization": "Bearer a2", "chatgpt-account-id": "acc-1"}] * 6
        assert len(server.asked) == 1
        assert form(server)["refresh_token"] == "r1"
    kept = decoded(stored.word)
    assert kept is not None
    assert (kept.refresh, kept.account) == ("r2", "acc-1")


async def test_a_sign_in_that_can_not_be_renewed_says_what_to_do(tmp_path: Path) -> None:
    async with serve_json({"/token": {"error": "invalid_grant", "error_description": "revoked"}}) as server:
        stored = Stored(Tokens("a1", "r1", 1000.0))
        with pytest.raises(ProviderError) as failed:
            await stored.session(definition_at(server), tmp_path, 5000.0).headers()
        assert (failed.value.kind, failed.value.hint) == ("auth", "Use `swecli login chatgpt`.")
        assert "revoked" in failed.value.message
        assert decoded(stored.word) == Tokens("a1", "r1", 1000.0)
        with pytest.raises(SignInError, match="can't be renewed"):
            await renew(definition_at(server), Tokens("a1"))


def answer(text: str) -> Reply:
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    used = {"x-codex-primary-used-percent": "42", "x-codex-primary-window-minutes": "300"}
    return Reply(body, content_type="text/event-stream", headers=used)


@pytest.mark.parametrize("renewable", [True, False])
async def test_a_token_that_the_server_refuses_is_renewed_and_the_request_repeated(
    tmp_path: Path, renewable: bool
) -> None:
    refused = Reply(b'{"error": {"message": "token expired"}}', 401)
    routes = {"/v1/chat/completions": (refused, answer("Fine.")), "/token": {"access_token": "a2"}}
    async with serve_json(routes) as server:
        config = resolve("openai/m", {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "never-sent"})
        stored = Stored(Tokens("a1", "r1" if renewable else ""))
        session = stored.session(definition_at(server), tmp_path, 0.0)
        client = HttpModelClient(replace(config, headers={}, authorisation=session))
        request = ModelRequest((), (), (Message("user", (TextPart("hi"),), "1"),))
        events: list[Any] = [event async for event in client.stream(request)]
        sent = [one.headers["authorization"] for one in server.asked if one.path.endswith("completions")]
    if renewable:
        assert isinstance(events[-1], Finished)
        assert sent == ["Bearer a1", "Bearer a2"]
        assert limits(tmp_path, "chatgpt") == ("42 % of 5 h used",)
    else:
        assert isinstance(events[-1], Failed)
        assert events[-1].error.kind == "auth"
        assert sent == ["Bearer a1"]


def test_tokens_go_only_to_their_own_address(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path, lambda: None)
    accounts = Accounts(Settings(), {}, keys)
    chatgpt = known_providers()["chatgpt"]
    with pytest.raises(MissingKey, match="swecli login chatgpt"):
        resolve("chatgpt/m", {}, stored_key=accounts.stored_key)
    accounts.keep_sign_in(chatgpt, Tokens("a1").encoded())
    config = resolve("chatgpt/m", {}, stored_key=accounts.stored_key)
    assert config.base_url == "https://chatgpt.com/backend-api/codex"
    assert "authorization" not in config.headers
    with pytest.raises(AccountError, match="has no keys"):
        accounts.store("chatgpt", "sk-1")
    elsewhere = Settings(providers={"chatgpt": ProviderSettings(base_url="https://evil.example/v1")})
    moved = Accounts(elsewhere, {}, keys)
    with pytest.raises(AccountError, match="another address"):
        moved.keep_sign_in(moved.find("chatgpt"), Tokens("a1").encoded())
    with pytest.raises(MissingKey):
        resolve("chatgpt/m", {}, moved.custom, stored_key=moved.stored_key)
