"""Logging in: the file of tokens, the redirect, and the whole flow against a small server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from swecli.core.mcp.definitions import ServerDefinition
from swecli.core.mcp.oauth import Login, Redirect, TokenFile


def definition(port: int = 1, **changes: object) -> ServerDefinition:
    return ServerDefinition("hub", "http", url=f"http://127.0.0.1:{port}/mcp", **changes)  # type: ignore[arg-type]


async def get(url: str) -> str:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer


async def test_the_redirect_takes_one_answer() -> None:
    redirect = Redirect()
    address = await redirect.listen()
    assert "404" in await get(f"{address.removesuffix('callback')}favicon.ico?code=no")
    assert "you can close this page" in await get(f"{address}?code=abc&state=s")
    assert await redirect.answer() == {"code": "abc", "state": "s"}
    with pytest.raises(ConnectionError):
        await get(f"{address}?code=again")


async def test_tokens_are_for_the_user_alone(tmp_path: Path) -> None:
    from mcp.shared.auth import OAuthToken

    storage = TokenFile(tmp_path / "logins", definition())
    assert await storage.get_tokens() is None
    await storage.set_tokens(OAuthToken(access_token="secret", refresh_token="more"))
    assert storage.path.stat().st_mode & 0o777 == 0o600
    assert storage.path.parent.stat().st_mode & 0o777 == 0o700
    found = await TokenFile(tmp_path / "logins", definition()).get_tokens()
    assert found is not None
    assert found.access_token == "secret"
    assert await TokenFile(tmp_path / "logins", definition(2)).get_tokens() is None


async def test_no_page_is_opened_unasked(tmp_path: Path) -> None:
    opened: list[str] = []
    login = Login(tmp_path, opened.append)
    assert await login.authorisation(definition(), False, opened.append) is None
    own = definition(headers={"Authorization": "Bearer x"})
    assert await login.authorisation(own, True, opened.append) is None
    assert not opened


class Server:
    """An address that wants a login, and the login itself."""

    def __init__(self) -> None:
        self.port = 0
        self.authorised: list[str] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        names = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(names.get("content-length", 0)))
        status, content, more = self.reply(path, names, body)
        raw = json.dumps(content).encode()
        writer.write(f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}connection: close\r\n".encode())
        writer.write(f"content-length: {len(raw)}\r\n\r\n".encode() + raw)
        await writer.drain()
        writer.close()

    def reply(self, path: str, names: dict[str, str], body: bytes) -> tuple[str, object, str]:
        base = f"http://127.0.0.1:{self.port}"
        if path.startswith("/.well-known/oauth-protected-resource"):
            return "200 OK", {"resource": f"{base}/mcp", "authorization_servers": [base]}, ""
        if path.startswith("/.well-known/"):
            endpoints = {f"{word}_endpoint": f"{base}/{word}" for word in ("authorization", "token", "registration")}
            modes = {"response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
            return "200 OK", {"issuer": base, **endpoints, **modes}, ""
        if path == "/registration":
            return "201 Created", {**json.loads(body), "client_id": "swecli-1"}, ""
        if path == "/token":
            return "200 OK", {"access_token": "good", "token_type": "Bearer", "expires_in": 3600}, ""
        if names.get("authorization") == "bearer good":
            self.authorised.append(path)
            return "200 OK", {}, ""
        where = f'www-authenticate: Bearer resource_metadata="{base}/.well-known/oauth-protected-resource"\r\n'
        return "401 Unauthorized", {}, where


async def test_the_whole_login(tmp_path: Path) -> None:
    import httpx2

    server, told = Server(), list[str]()
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()

    def open_page(url: str) -> None:
        query = parse_qs(urlsplit(url).query)
        back = f"{query['redirect_uri'][0]}?code=abc&state={query['state'][0]}"
        asyncio.run_coroutine_threadsafe(get(back), loop).result()

    login = Login(tmp_path, open_page)
    async with listening:
        auth = await login.authorisation(definition(server.port), True, told.append)
        async with httpx2.AsyncClient(auth=auth) as client:
            assert (await client.post(definition(server.port).url)).status_code == 200
        login.done("hub")
        assert len(told) == 1
        kept = await login.authorisation(definition(server.port), False, told.append)
        async with httpx2.AsyncClient(auth=kept) as client:
            assert (await client.post(definition(server.port).url)).status_code == 200
        assert len(told) == 1
        assert len(server.authorised) == 2
