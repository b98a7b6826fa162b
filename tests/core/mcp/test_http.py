"""Servers at an address."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal

import pytest

from swecli.core.mcp.definitions import ServerDefinition
from swecli.core.protocol.events import Notice
from tests.core.engine.support import until
from tests.core.mcp.support import SDK_SERVER, TEXT, call, served
from tests.core.mcp.test_oauth import Server
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
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SDK_SERVER), kind, str(port), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async for line in process.stderr:
            if b"running on" in line:
                break
        yield
    finally:
        process.kill()
        await process.communicate()


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
            assert list(made.tool_texts().values())[1].startswith("MCP server hub: ")


async def test_an_address_that_wants_a_login(tmp_path: Path) -> None:
    server = Server()
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    definition = ServerDefinition("hub", "http", url=f"http://127.0.0.1:{server.port}/mcp")
    async with listening, served(TEXT, tmp_path, definition) as (made, servers):
        await until(lambda: servers.connections["hub"].state == "needs login")
        await until(lambda: bool(made.bodies(Notice)))
        assert made.bodies(Notice)[0].hint == "/mcp login hub"
