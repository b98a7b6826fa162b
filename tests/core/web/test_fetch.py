"""Fetching against servers on this machine, with the check of addresses replaced; and what is refused with it."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from swecli.core.web.fetch import FetchError, Limits, Page, fetch

Answer = Callable[[str, dict[str, str]], Awaitable[bytes] | bytes]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[tuple[int, list[tuple[str, dict[str, str]]]]]:
    """A server that answers with raw bytes; its port, and what it was asked."""
    asked: list[tuple[str, dict[str, str]]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            asked.append((lines[0].split()[1], headers))
            data = answer(lines[0].split()[1], headers)
            writer.write(data if isinstance(data, bytes) else await data)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1], asked


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    head = "\r\n".join((f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers))
    return f"{head}\r\n\r\n".encode() + body


async def here(host: str, port: int) -> Sequence[str]:
    return ("127.0.0.1",)


LOCAL = Limits(size=1_000, seconds=5, allowed=lambda _address: True, find=here)


async def test_the_checked_address_is_asked_under_the_hosts_own_name_and_nothing_goes_along() -> None:
    async with server(lambda path, _: response(path.encode(), "content-type: text/plain")) as (port, asked):
        page = await fetch(f"http://docs.example.com:{port}/a?b=c#part", LOCAL)
    assert (page.status, page.body, page.content_type) == (200, b"/a?b=c", "text/plain")
    ((_, headers),) = asked
    assert headers["host"] == f"docs.example.com:{port}"
    assert headers["accept-encoding"] == "identity"
    assert not {"cookie", "authorization", "proxy-authorization"} & set(headers)


async def test_redirects_stay_on_the_host_and_are_checked_each_time() -> None:
    looked: list[str] = []

    async def find(host: str, port: int) -> Sequence[str]:
        looked.append(host)
        return ("127.0.0.1",) if len(looked) < 3 else ("169.254.169.254",)

    def answer(path: str, headers: dict[str, str]) -> bytes:
        return response(b"", f"location: {int(path[1:]) + 1}", "set-cookie: a=b", status="302 Found")

    limits = Limits(allowed=lambda address: str(address) == "127.0.0.1", find=find)
    async with server(answer) as (port, asked):
        with pytest.raises(FetchError, match="not on the public internet"):
            await fetch(f"http://a.example:{port}/1", limits)
    assert [path for path, _ in asked] == ["/1", "/2"]
    assert "cookie" not in asked[1][1]


async def test_another_host_or_an_endless_chain_is_not_followed() -> None:
    async with server(lambda path, _: response(b"", "location: http://b.example/x", status="301 Moved")) as (port, _):
        page = await fetch(f"http://a.example:{port}/", LOCAL)
        assert page.moved == "http://b.example/x"
    async with server(lambda path, _: response(b"", "location: /again", status="301 Moved")) as (port, asked):
        with pytest.raises(FetchError, match="redirects more than 5 times"):
            await fetch(f"http://a.example:{port}/", LOCAL)
        assert len(asked) == 6
    async with server(lambda path, _: response(b"", "location: file:///etc/passwd", status="302 F")) as (port, _):
        with pytest.raises(FetchError, match="Only http"):
            await fetch(f"http://a.example:{port}/", LOCAL)


@pytest.mark.parametrize(
    ("first", "moved", "followed"),
    [
        ("http://a.example/", "http://a.example:80/x", True),
        ("http://a.example/", "https://a.example:443/x", True),
        ("http://a.example:80/", "https://a.example/x", True),
        ("http://a.example/", "http://a.example:8080/x", False),
        ("http://a.example:8080/", "https://a.example/x", False),
        ("https://a.example/", "http://a.example:80/x", False),
    ],
)
async def test_a_schemes_own_port_is_the_same_place_with_and_without_its_number(
    first: str, moved: str, followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one(url: str, limits: Limits) -> Page:
        return Page(url, 301, moved=moved) if url == first else Page(url, 200)

    monkeypatch.setattr("swecli.core.web.fetch._one", one)
    page = await fetch(first, LOCAL)
    assert (page.url, page.moved) == ((moved, "") if followed else (first, moved))


async def test_bodies_and_bombs_are_cut() -> None:
    bombs = {
        "/plain": response(b"x" * 5_000),
        "/gzip": response(gzip.compress(b"x" * 10_000_000), "content-encoding: gzip"),
        "/deflate": response(zlib.compress(b"x" * 5_000), "content-encoding: deflate"),
        "/endless": b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b"x" * 5_000,
    }
    async with server(lambda path, _: bombs[path]) as (port, _):
        for path in bombs:
            page = await fetch(f"http://a.example:{port}{path}", LOCAL)
            assert (page.body, page.cut) == (b"x" * 1_000, True)
    odd = response(b"x", "content-encoding: br")
    async with server(lambda path, _: odd) as (port, _):
        with pytest.raises(FetchError, match="compressed as br"):
            await fetch(f"http://a.example:{port}/", LOCAL)


async def test_a_server_that_says_nothing_is_left_in_time() -> None:
    async def never(path: str) -> bytes:
        await asyncio.sleep(60)
        return b""

    async with server(lambda path, _: never(path)) as (port, _):
        with pytest.raises(FetchError, match=r"no page within 0\.2 s"):
            await fetch(f"http://a.example:{port}/", Limits(seconds=0.2, allowed=lambda _: True, find=here))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("file:///etc/passwd", "Only http"),
        ("ftp://example.com/", "Only http"),
        ("http://user:secret@example.com/", "user name"),
        ("http:///nowhere", "no host"),
        ("http://exa mple.com/", "spaces"),
        ("http://example.com\\@127.0.0.1/", "backslashes"),
        ("http://example.com:99999/", "not an address"),
        ("http://127.0.0.1:1/", "not on the public internet"),
        ("http://[::1]/", "not on the public internet"),
        ("http://[::ffff:127.0.0.1]/", "not on the public internet"),
        ("http://169.254.169.254/latest/meta-data/", "not on the public internet"),
        ("http://2130706433/", "not on the public internet"),
        ("http://localhost/", "not on the public internet"),
    ],
)
async def test_what_is_refused_before_anything_is_sent(url: str, says: str) -> None:
    with pytest.raises(FetchError, match=says):
        await fetch(url)


async def test_a_proxy_is_named_where_a_connection_fails() -> None:
    with pytest.raises(FetchError, match="the proxy in the environment"):
        await fetch("http://a.example:1/", LOCAL, {"HTTPS_PROXY": "http://proxy:3128"})
