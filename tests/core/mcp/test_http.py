"""Servers at an address."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from swecli.core.mcp.definitions import ServerDefinition
from swecli.core.protocol.events import Notice
from tests.core.engine.support import until
from tests.core.mcp.support import SDK_SERVER, TEXT, call, served
from tests.core.mcp.test_oauth import Server
from tests.support.preloaded import Preloaded
from tests.support.waiting import PATIENCE


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port at which nobody answers and which nobody else is given; who asks for it by its number can have it."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@asynccontextmanager
async def running(kind: str, port: int) -> AsyncIterator[None]:
    command = [str(SDK_SERVER), kind, str(port)]
    process = Preloaded(command, cwd=SDK_SERVER.parent, env=os.environ, kind="sdk", stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        while line := await asyncio.to_thread(process.stderr.readline):
            if b"running on" in line:
                break
        yield
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)


@pytest.mark.parametrize(("kind", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_a_call_and_a_server_that_goes_away(kind: Literal["http", "sse"], path: str, tmp_path: Path) -> None:
    with reserved_port() as port:
        definition = ServerDefinition("hub", kind, url=f"http://127.0.0.1:{port}/{path}", call_timeout=PATIENCE)
        script = call("echo", '{"text": "hi"}') + TEXT + call("echo", '{"text": "hi"}') + TEXT
        async with served(script, tmp_path, definition) as (made, servers):
            connection = servers.connections["hub"]
            await until(lambda: connection.state == "failed")  # nobody is there yet
            assert "127.0.0.1" in connection.reason
            async with running(kind, port):
                await servers.reconnect("hub")
                await made.say("go")
                assert list(made.tool_texts().values()) == ["hi"]
            await made.say("again")
            lost = list(made.tool_texts().values())[1]
            assert lost.startswith("MCP server hub: ")
            assert "restarts" not in lost  # it is not swecli's to start


async def test_an_address_that_only_knows_sse_is_connected_without_saying_so(tmp_path: Path) -> None:
    with reserved_port() as port:
        definition = ServerDefinition("hub", "http", url=f"http://127.0.0.1:{port}/sse", call_timeout=PATIENCE)
        async with (
            running("sse", port),
            served(call("echo", '{"text": "hi"}') + TEXT, tmp_path, definition) as (made, _),
        ):
            await made.say("go")
            assert list(made.tool_texts().values()) == ["hi"]


@pytest.mark.parametrize("status", [405, 503])
async def test_an_address_without_a_server_says_what_it_answered(status: int, tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    definition = ServerDefinition("hub", "http", url=f"http://127.0.0.1:{port}/mcp")
    async with listening, served(TEXT, tmp_path, definition) as (_, servers):
        connection = servers.connections["hub"]
        await until(lambda: connection.state == "failed")
        assert connection.reason == f"http://127.0.0.1:{port}/mcp answered with HTTP status {status}"


class Forgetful:
    """An address with sessions, which forgets the first one after its first call."""

    def __init__(self, status: int, error: str = "") -> None:
        self.status, self.error = status, error
        self.sessions = 0
        self.calls: list[str] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        names = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(names.get("content-length", 0)))
        status, content, more = self.reply(names.get("mcp-session-id", ""), json.loads(body or b"{}"))
        raw = json.dumps(content).encode() if content is not None else b""
        writer.write(f"HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n{more}connection: close\r\n".encode())
        writer.write(f"content-length: {len(raw)}\r\n\r\n".encode() + raw)
        await writer.drain()
        writer.close()

    def reply(self, session: str, message: dict[str, Any]) -> tuple[int, object, str]:
        method = message.get("method")
        if method is None:
            return 405, None, ""
        if method != "initialize" and session == "s1" and self.calls:
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": self.error}}
            return self.status, error if self.error else None, ""
        if "id" not in message:
            return 202, None, ""
        result: dict[str, Any] = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        more = ""
        if method == "initialize":
            self.sessions += 1
            more = f"mcp-session-id: s{self.sessions}\r\n"
            version = message["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "forgetful", "version": "1"}
        if method == "tools/call":
            self.calls.append(session)
            result = {"content": [{"type": "text", "text": f"said in {session}"}]}
        return 200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, more


class Sloppy(Forgetful):
    """An address that gives one tool no schema, and one content of each result no text."""

    def reply(self, session: str, message: dict[str, Any]) -> tuple[int, object, str]:
        status, content, more = super().reply(session, message)
        result: dict[str, Any] = content.get("result", {}) if isinstance(content, dict) else {}
        if "tools" in result:
            result["tools"].append({"name": "bare"})
        if "content" in result:
            result["content"].append({"type": "text"})
        return status, content, more


@asynccontextmanager
async def forgetful(
    status: int, error: str = "", kind: type[Forgetful] = Forgetful
) -> AsyncIterator[tuple[Forgetful, ServerDefinition]]:
    server = kind(status, error)
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server, ServerDefinition("hub", "http", url=f"http://127.0.0.1:{port}/mcp", call_timeout=PATIENCE)


@pytest.mark.parametrize(
    ("status", "error"), [(404, ""), (404, "unknown"), (400, "Bad Request: No valid session ID provided")]
)
async def test_a_session_that_the_address_forgot_begins_anew(status: int, error: str, tmp_path: Path) -> None:
    async with (
        forgetful(status, error) as (server, definition),
        served(call("echo") * 3 + TEXT, tmp_path, definition) as (made, servers),
    ):
        await made.say("go")
        assert list(made.tool_texts().values()) == ["said in s1", "said in s2", "said in s2"]
        assert server.calls == ["s1", "s2", "s2"]
        assert servers.connections["hub"].state == "ready"


async def test_what_does_not_follow_the_protocol_costs_nothing_else(tmp_path: Path) -> None:
    async with (
        forgetful(404, kind=Sloppy) as (_, definition),
        served(call("bare", '{"any": 1}') + TEXT, tmp_path, definition) as (made, _servers),
    ):
        await made.say("go")
        assert list(made.tool_texts().values()) == [
            "said in s1\n[Content of type text can't be shown: it does not follow the protocol.]"
        ]


async def test_a_login_that_ends_in_a_session_is_told(tmp_path: Path) -> None:
    async with (
        forgetful(401) as (_, definition),
        served(call("echo") * 2 + TEXT, tmp_path, definition) as (made, servers),
    ):
        await made.say("go")
        assert list(made.tool_texts().values())[1] == "MCP server hub: it requires a login."
        await until(lambda: servers.connections["hub"].state == "needs login")
        # On a busy machine, a notice that the first message waits for the server comes before.
        await until(lambda: any(one.hint == "Log in with: /mcp login hub" for one in made.bodies(Notice)))


async def test_an_address_that_comes_back_is_connected_again(tmp_path: Path) -> None:
    with reserved_port() as port:
        definition = ServerDefinition("hub", "http", url=f"http://127.0.0.1:{port}/mcp", call_timeout=PATIENCE)
        script = call("echo", '{"text": "hi"}') + TEXT
        async with contextlib.AsyncExitStack() as stack:
            async with running("http", port):
                made, servers = await stack.enter_async_context(served(script * 3, tmp_path, definition))
                await made.say("go")
            await made.say("nobody there")
            async with running("http", port):
                await made.say("again")
                said = list(made.tool_texts().values())
                assert "its effect is unknown" in said[1]
                assert said[2] == "hi"
                assert servers.connections["hub"].state == "ready"


async def test_an_address_that_wants_a_login(tmp_path: Path) -> None:
    server = Server()
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    definition = ServerDefinition("hub", "http", url=f"http://127.0.0.1:{server.port}/mcp")
    async with listening, served(TEXT, tmp_path, definition) as (made, servers):
        await until(lambda: servers.connections["hub"].state == "needs login")
        # On a busy machine, a notice that the first message waits for the server comes before.
        await until(lambda: any(one.hint == "Log in with: /mcp login hub" for one in made.bodies(Notice)))
