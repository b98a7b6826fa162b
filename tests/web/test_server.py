"""Who may see the page of `swecli web`, and what becomes of the program when pages come and go."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyte
import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Program
from tests.support.waiting import PATIENCE

pytest.importorskip("textual_serve")

import aiohttp

from swecli.web.server import PageServer

ECHO = """
import json, sys
out = sys.stdout.buffer
def send(kind, data):
    out.write(kind + len(data).to_bytes(4, "big") + data)
    out.flush()
print("stray"); print("__GANGLION__", flush=True)
send(b"D", b"begun;")
while True:
    kind = sys.stdin.buffer.read(1)
    data = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
    if not kind or (kind == b"M" and json.loads(data)["type"] == "quit"):
        break
    if data == b"flood":
        for _ in range(400):
            send(b"D", b"x" * 10_000)
    send(b"M", json.dumps({"type": "open_url", "url": "javascript:x"}).encode())
    send(b"D", kind + data + b";")
print(json.dumps({"resume": "swecli -c"}), file=sys.stderr)
"""
"""A program behind a page: says what it hears."""


@asynccontextmanager
async def served(*origins: str) -> AsyncIterator[tuple[PageServer, aiohttp.ClientSession]]:
    server = PageServer([sys.executable, "-c", ECHO], origins)
    runner = await server.start(0)
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            yield server, client
    finally:
        await server.close()
        await runner.cleanup()


async def admitted(server: PageServer, client: aiohttp.ClientSession) -> str:
    """The page's address, after its token was used."""
    async with client.get(server.address(), allow_redirects=False) as answer:
        assert answer.status == 303
        return f"http://127.0.0.1:{server.port}{answer.headers['Location']}"


async def connected(client: aiohttp.ClientSession, base: str, page: str) -> aiohttp.ClientWebSocketResponse:
    origin = "/".join(base.split("/")[:3])
    return await client.ws_connect(f"{base}ws/{page}?width=90&height=20", headers={"Origin": origin})


async def heard(socket: aiohttp.ClientWebSocketResponse, end: bytes) -> bytes:
    said = b""
    while not said.endswith(end):
        message = await socket.receive()
        assert message.type is aiohttp.WSMsgType.BINARY, (message, said)
        said += message.data
    return said


async def test_no_token_no_page_and_the_token_works_once() -> None:
    async with served() as (server, client):
        first = server.address()
        address = server.address()
        base = address.partition("?")[0]
        root = f"http://127.0.0.1:{server.port}/"
        for stranger in (root, base, f"{base}?token=x", first, f"{base}file/page.js", f"{base}state/1", f"{base}../x"):
            async with client.get(stranger, allow_redirects=False) as answer:
                assert answer.status == 403, stranger
        async with client.get(address, allow_redirects=False) as answer:
            assert answer.status == 303
            cookie = answer.headers["Set-Cookie"]
            assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", f"Path={base[len(root) - 1 :]}"))
        async with aiohttp.ClientSession() as other, other.get(address, allow_redirects=False) as answer:
            assert answer.status == 403
        async with client.get(base) as answer:
            assert answer.status == 200
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Cache-Control"] == "no-store"
        for name, status in (
            ("page.js", 200),
            ("page.css", 200),
            ("textual.js", 200),
            ("../server.py", 404),
            ("x", 404),
        ):
            async with client.get(f"{base}file/{name}") as answer:
                assert answer.status in (status, 403), name
        assert not server.program.begun


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "tunnel.example", "Origin": "https://tunnel.example"}, 200),
        ({"Host": "127.0.0.1:1"}, 403),
        ({}, 200),
    ],
)
async def test_only_names_of_this_machine_and_of_the_users_tunnel(headers: dict[str, str], status: int) -> None:
    async with served("https://tunnel.example") as (server, client):
        base = await admitted(server, client)
        jar = {"Cookie": f"swecli={server._key}"}
        async with aiohttp.ClientSession() as plain, plain.get(base, headers=headers | jar) as answer:
            assert answer.status == status


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
async def test_a_page_of_another_site_gets_no_socket(origin: str) -> None:
    async with served() as (server, client):
        base = await admitted(server, client)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{base}ws/1", headers={"Origin": origin} if origin else {})
        assert refused.value.status == 403
        assert not server.program.begun


async def test_a_reloaded_page_finds_the_program_and_a_second_one_takes_it() -> None:
    async with served() as (server, client):
        base = await admitted(server, client)
        first = await connected(client, base, "a")
        assert await heard(first, b"begun;") == b"begun;"
        for bad in ("{", '["stdin"]', '["stdin", 5]', '["resize", {"width": -1, "height": "x"}]', "[" * 9_999, "5"):
            await first.send_str(bad)
        await first.send_str(json.dumps(["stdin", "hello"]))
        assert await heard(first, b"hello;") == b"Dhello;"
        await first.close()
        again = await connected(client, base, "b")
        drawn = json.loads((await heard(again, b";"))[1:-1])
        assert drawn == {"type": "attach", "width": 90, "height": 20}
        second = await connected(client, base, "c")
        await heard(second, b";")
        closing = await again.receive()
        assert closing.type is aiohttp.WSMsgType.CLOSE
        assert closing.data == 4001
        for page, state in (("b", "elsewhere"), ("c", "free")):
            async with client.get(f"{base}state/{page}") as answer:
                assert await answer.json() == {"state": state}
        await server.close()
        assert server.program.resume == "swecli -c"
        async with client.get(f"{base}state/c") as answer:
            assert await answer.json() == {"state": "ended"}


async def test_what_a_page_is_too_slow_for_is_left_out_and_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.web.server.BACKLOG", 50_000)
    async with served() as (server, client):
        socket = await connected(client, await admitted(server, client), "a")
        await heard(socket, b"begun;")
        await socket.send_str(json.dumps(["stdin", "flood"]))
        said = b""
        while b'"attach"' not in said:
            said += await socket.receive_bytes()
        assert len(said) < 4_000_000


async def test_the_real_program_answers_on_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with LoopbackServer(parse_script('[[step]]\ntext = "From the model."')) as provider:
        program = Program(folder, tmp_path / "home", provider.environment())
        process = await asyncio.to_thread(program.start, "web", "-m", "openai/m")
        assert process.stdout is not None
        try:
            address = (await asyncio.to_thread(process.stdout.readline)).decode().strip()
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
                async with client.get(address) as answer:
                    assert answer.status == 200
                socket = await connected(client, address.partition("?")[0], "a")
                screen = pyte.Screen(90, 20)
                stream = pyte.ByteStream(screen)

                async def shows(text: str) -> None:
                    while not any(text in line for line in screen.display):
                        message: Any = await socket.receive(PATIENCE)
                        assert message.type is aiohttp.WSMsgType.BINARY, screen.display
                        stream.feed(message.data)

                await shows("Ask for a change")
                await socket.send_str(json.dumps(["stdin", "\x1b[200~two\nlines\x1b[201~"]))
                await shows("lines")
                await socket.send_str(json.dumps(["stdin", "\r"]))
                await shows("From the model.")
                sent = json.dumps(provider.requests[-1].body)
                assert "two\\nlines" in sent
        finally:
            process.terminate()
            _, errors = await asyncio.to_thread(process.communicate)
        assert b"continue with: swecli -c" in errors
