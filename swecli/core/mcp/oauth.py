"""Login at a server's address: the SDK's OAuth flow, with tokens in a private file and a redirect to this machine."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from swecli.core.atomic_text import DamagedFile, one_writer, read_json, write_json
from swecli.core.mcp.connection import LoginNeeded
from swecli.core.mcp.definitions import ServerDefinition

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import AuthorizationCodeResult
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

WAIT: Final = 300.0
"""Seconds to wait for the user to log in."""
_PAGE = "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n{text}\n"


class TokenFile:
    """Tokens and registration of one server at one address; every address has its own file."""

    def __init__(self, folder: Path, definition: ServerDefinition) -> None:
        digest = hashlib.sha256(definition.url.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self.path = folder / f"{definition.name}-{digest}.json"

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        tokens = await asyncio.to_thread(self._read, "tokens")
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await asyncio.to_thread(self._write, "tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        client = await asyncio.to_thread(self._read, "client")
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await asyncio.to_thread(self._write, "client", client_info.model_dump(mode="json", exclude_none=True))

    async def forget(self) -> None:
        await asyncio.to_thread(self.path.unlink, missing_ok=True)

    def _read(self, part: str) -> dict[str, Any]:
        try:
            return read_json(self.path, part, dict)
        except (DamagedFile, OSError):
            return {}

    def _write(self, part: str, value: dict[str, Any]) -> None:
        with one_writer(self.path):
            stored = {name: self._read(name) for name in ("tokens", "client")}
            write_json(self.path, {**stored, part: value})


class Redirect:
    """Listens on this machine for the response of the login page."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[dict[str, str]] | None = None
        self._server: asyncio.Server | None = None

    async def listen(self) -> str:
        """Start listening. Returns the redirect address."""
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"

    async def answer(self) -> dict[str, str]:
        """Parameters sent by the page: ``code`` and ``state``, or ``error``.

        Raises:
            LoginNeeded: no response arrived in time.
        """
        assert self._answer is not None
        try:
            return await asyncio.wait_for(self._answer, WAIT)
        except TimeoutError:
            raise LoginNeeded(f"the login page did not answer within {WAIT:g} s") from None
        finally:
            self.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError):
            line = await asyncio.wait_for(reader.readline(), 10.0)
            target = urlsplit(line.decode("ascii", "replace").split(" ")[1] if line.count(b" ") >= 2 else "/")
            query = {name: values[0] for name, values in parse_qs(target.query).items()}
            wanted = target.path == "/callback" and bool({"code", "error"} & query.keys())
            text = "swecli has the login; you can close this page." if wanted else "Nothing is here."
            writer.write(_PAGE.format(status="200 OK" if wanted else "404 Not Found", text=text).encode())
            await writer.drain()
            if wanted and self._answer is not None and not self._answer.done():
                self._answer.set_result(query)
        writer.close()


class Login:
    """Provides the authorisation of requests to a server. ``tell`` shows the user the page to open."""

    def __init__(self, folder: Path, open_page: Callable[[str], object] = webbrowser.open) -> None:
        self._folder = folder
        self._open = open_page
        self._listening: dict[str, Redirect] = {}

    def done(self, server: str) -> None:
        """Stop listening for the server's login page."""
        redirect = self._listening.pop(server, None)
        if redirect is not None:
            redirect.close()

    async def authorisation(
        self, definition: ServerDefinition, interactive: bool, tell: Callable[[str], None]
    ) -> httpx2.Auth | None:
        """None if the definition itself contains the authorisation. Without ``interactive``, tokens of an earlier login
        are used and renewed, but no page is opened."""
        from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
        from mcp.shared.auth import OAuthClientMetadata
        from pydantic import AnyUrl

        if any(name.lower() == "authorization" for name in definition.headers):
            return None
        storage = TokenFile(self._folder, definition)
        if not interactive and await storage.get_tokens() is None:
            return None
        redirect = Redirect()
        address = "http://127.0.0.1/callback"
        if interactive:
            self.done(definition.name)
            self._listening[definition.name] = redirect
            address = await redirect.listen()
            await storage.forget()  # the registration names the address of an earlier login

        async def show(url: str) -> None:
            if not interactive:
                raise LoginNeeded("its login has expired")
            tell(url)
            await asyncio.to_thread(self._open, url)

        async def come_back() -> AuthorizationCodeResult:
            answer = await redirect.answer()
            if "error" in answer:
                raise LoginNeeded(f"the login was refused: {json.dumps(answer['error'])}")
            return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

        metadata = OAuthClientMetadata(
            client_name="swecli",
            redirect_uris=[AnyUrl(address)],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            token_endpoint_auth_method="none",
        )
        return OAuthClientProvider(definition.url, metadata, storage, show, come_back)
