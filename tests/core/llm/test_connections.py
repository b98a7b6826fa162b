"""Addresses, proxies and certificates as the environment names them, and bodies that were compressed unasked."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
import threading
import zlib
from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import cast

import httpcore
import pytest

from swecli.core.llm import transport
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.transport import AddressError, Timeouts, Transport, _address, proxy_of
from swecli.core.llm.types import Failed, Finished, ProviderError, StreamEvent
from tests.core.llm.raw_server import head, say, serve
from tests.core.llm.test_client import HELLO, REQUEST, ask, client_of, text_of
from tests.support.json_server import read_request
from tests.support.server_thread import ServerThread
from tests.support.waiting import until

CERTIFICATE = Path(__file__).parents[2] / "data" / "tls" / "loopback.pem"
"""Signed by itself, for 127.0.0.1 only, and its key."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


def only(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Of all variables about connections, only these."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)


async def unreached(url: str) -> ProviderError:
    async with client_of(url) as client:
        last = [event async for event in client.stream(REQUEST)][-1]
    assert isinstance(last, Failed)
    return last.error


async def test_requests_at_once_share_the_connections_and_all_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch)
    opened: list[httpcore.AsyncConnectionPool] = []
    closed: list[httpcore.AsyncConnectionPool] = []

    class Counted(httpcore.AsyncConnectionPool):
        async def aclose(self) -> None:
            closed.append(self)
            await super().aclose()

    def counted(base_url: str) -> httpcore.AsyncConnectionPool:
        opened.append(Counted())
        return opened[-1]

    monkeypatch.setattr(transport, "open_pool", counted)
    async with serve(say(head(), HELLO)) as server, client_of(server.url) as client:

        async def text() -> str:
            return text_of([event async for event in client.stream(REQUEST)])

        assert await asyncio.gather(text(), text(), text()) == ["Hello"] * 3
    assert len(opened) == 1
    assert closed == opened


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9", "nonsense://x"])
async def test_this_machine_is_reached_without_proxy(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, HTTP_PROXY=proxy, http_proxy=proxy, ALL_PROXY=proxy)
    events, _ = await ask(say(head(), HELLO))
    assert text_of(events) == "Hello"


async def test_a_useless_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, http_proxy="gopher://127.0.0.1:9")
    error = await unreached("http://llm.invalid/v1")
    assert "PROXY" in error.hint
    assert not error.retryable


async def test_a_proxy_is_used_and_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(say(head(), HELLO)) as server:
        for name in ("HTTP_PROXY", "ALL_PROXY"):
            only(monkeypatch, **{name: server.url})
            async with client_of("http://llm.invalid/v1") as client:
                assert text_of([event async for event in client.stream(REQUEST)]) == "Hello"
        assert server.requests[0].path == "http://llm.invalid/v1/chat/completions"
        only(monkeypatch, HTTP_PROXY=server.url, NO_PROXY="llm.invalid")
        assert (await unreached("http://llm.invalid/v1")).kind == "network"
        assert len(server.requests) == 2


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_wants_a_login_is_not_asked_again(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = say(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    async with serve(refusal) as server:
        only(monkeypatch, HTTP_PROXY=server.url, HTTPS_PROXY=server.url)
        error = await unreached(f"{scheme}://llm.invalid/v1")
    assert (error.kind, error.retryable) == ("network", False)
    assert "proxy" in error.message
    assert "http://NAME:PASSWORD@HOST:PORT" in error.hint


async def test_a_proxy_that_does_not_run_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, HTTP_PROXY="http://name:canary@127.0.0.1:9")
    error = await unreached("http://llm.invalid/v1")
    assert error.retryable
    assert error.message.startswith("no connection to the proxy 127.0.0.1:9: ")
    assert "uses a proxy" in error.hint
    assert "canary" not in error.message + error.hint


async def test_a_socks_proxy_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, ALL_PROXY="socks5://127.0.0.1:9")
    error = await unreached("http://llm.invalid/v1")
    assert ("SOCKS" in error.message, error.retryable) == (True, False)


@pytest.mark.parametrize(("host", "told"), [("127.0.0.1", "SSL_CERT_FILE"), ("localhost", "another name")])
async def test_certificates(host: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    async with serve(say(head(), HELLO), tls=context) as server:
        trusted = {} if host == "127.0.0.1" else {"SSL_CERT_FILE": str(CERTIFICATE)}
        only(monkeypatch, **trusted)
        error = await unreached(server.url.replace("127.0.0.1", host))
        assert (error.kind, error.retryable, error.unreached) == ("network", False, "")
        assert "certificate of" in error.message
        assert told in error.hint
        only(monkeypatch, SSL_CERT_FILE=str(CERTIFICATE))
        async with client_of(server.url) as client:
            assert text_of([event async for event in client.stream(REQUEST)]) == "Hello"


async def test_a_server_without_tls_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    only(monkeypatch)
    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        error = await unreached(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert (error.kind, error.retryable) == ("network", False)
    assert error.message.endswith("does not answer in TLS")
    assert "http://" in error.hint


async def test_certificates_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, SSL_CERT_FILE=str(tmp_path / "none.pem"))
    error = await unreached("https://127.0.0.1:9/v1")
    assert f"SSL_CERT_FILE ({tmp_path / 'none.pem'}): No such file" in error.message
    assert not error.retryable


@pytest.mark.parametrize("raw", [False, True])
async def test_a_deflated_answer_is_read_in_both_formats(raw: bool) -> None:
    press = zlib.compressobj(wbits=-zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
    data = press.compress(HELLO) + press.flush()
    events, _ = await ask(say(head(content_encoding="deflate"), data[:7], data[7:]))
    assert text_of(events) == "Hello"


async def test_encodings_are_undone_from_the_last_to_the_first() -> None:
    events, _ = await ask(say(head(content_encoding="gzip, deflate"), zlib.compress(gzip.compress(HELLO))))
    assert text_of(events) == "Hello"


async def test_name_and_password_in_the_base_url_are_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch)
    async with serve(say(head(), HELLO)) as server:
        async with client_of(server.url.replace("//", "//n%40me:p%3Ass@") + "/v1") as client:
            assert text_of([event async for event in client.stream(REQUEST)]) == "Hello"
        login = server.requests[0].headers["authorization"]
    assert b64decode(login.removeprefix("Basic ")) == b"n@me:p:ss"


@pytest.mark.parametrize(
    ("url", "path", "host"),
    [
        ("http://A.example:80", "/", "a.example"),
        ("http://a.example/v 1/ü?q=a b%20c", "/v%201/%C3%BC?q=a%20b%20c", "a.example"),
        ("https://bücher.example:443/v1", "/v1", "xn--bcher-kva.example"),
        ("http://[::1]:8000/v1", "/v1", "[::1]:8000"),
    ],
)
def test_addresses_are_sent_in_ascii(url: str, path: str, host: str) -> None:
    address, name, login = _address(url)
    assert address == f"{url.partition(':')[0]}://{host}{path}"
    assert (name, login) == (host, "")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://a/",
        "http://",
        "http://a:x/",
        "http://a:99999/",
        "http://a b/",
        "http://a\n/",
    ],
)
async def test_what_is_no_address_is_named(url: str) -> None:
    with pytest.raises(AddressError):
        _address(url)
    with pytest.raises(ProviderError) as refused:
        await Transport(url, Timeouts()).send(url, {})
    assert "is not a base URL" in refused.value.message


@pytest.mark.parametrize(
    ("passed_by", "used"), [("", True), ("*", False), (".invalid", False), ("llm.invalid:81", True)]
)
def test_the_environment_decides_about_the_proxy(passed_by: str, used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, HTTP_PROXY="proxy:3128", NO_PROXY=passed_by)
    assert proxy_of("http://llm.invalid/v1") == ("http://proxy:3128" if used else None)
    assert proxy_of("http://127.0.0.1:8000/v1") is None
    assert proxy_of("https://llm.invalid/v1") is None


@pytest.mark.parametrize("passed_by", ["fd00::5", "[fd00::5]", "[fd00::5]:8080"])
def test_an_ipv6_address_is_passed_by_in_each_form(passed_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, HTTP_PROXY="proxy:3128", NO_PROXY=passed_by)
    assert proxy_of("http://[fd00::5]:8080/v1") is None
    assert proxy_of("http://[fd00::6]:8080/v1") is not None


def test_an_empty_login_in_an_address_leaves_the_key() -> None:
    assert _address("http://@host/v1") == ("http://host/v1", "host", "")


class _Answering(ServerThread):
    """A server that keeps its connections, and sends the end of each body only when it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = 0
        self.ending = threading.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while (await read_request(reader)) is not None:
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                writer.write(f"{len(HELLO):x}\r\n".encode() + HELLO + b"\r\n")
                await writer.drain()
                await asyncio.to_thread(self.ending.wait)
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        writer.close()


async def finished(client: HttpModelClient) -> None:
    """One request, left as the engine does: at the answer's end, not at the body's."""
    async with aclosing(cast("AsyncGenerator[StreamEvent]", client.stream(REQUEST))) as events:
        async for event in events:
            if isinstance(event, Finished):
                return


async def test_requests_in_a_row_share_a_connection() -> None:
    tasks = len(asyncio.all_tasks())
    with _Answering() as server:
        url = f"http://127.0.0.1:{server.port}"
        async with client_of(url) as client:
            for _ in range(3):
                server.ending.clear()
                await finished(client)  # the body has not ended
                server.ending.set()
                await until(lambda: len(asyncio.all_tasks()) == tasks)  # the rest is read beside the next step
        assert server.connections == 1


async def test_closing_does_not_wait_for_the_end_of_a_body() -> None:
    with _Answering() as server:
        async with client_of(f"http://127.0.0.1:{server.port}") as client:
            await finished(client)
        server.ending.set()
